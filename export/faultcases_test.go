package export_test

import (
	"slices"

	"github.com/stintd/stint/core/decision"
)

// budgeted is a plan in which a budget is used up from the third cycle on.
const budgeted = `
name: x
plan:
  stint: 1
  interval: 30m
  dimensions: [cpu]
  resource_groups: [{name: all, select: "select(cpu > 0)"}]
  consumers: [{path: /A}, {path: /B}]
  md_plans: [{name: p, resource_groups: [{name: all}], consumers: [{path: /A, budget: {units_hours: 4, per: day}}, {path: /B}]}]
hosts: [{host: h, cpu: 10}]
steps:
  - {demand: [{consumer: /A, allocation: a, units: 4, cpu: 1}]}
  - {cycles: 2}
  - {demand: [{consumer: /A, allocation: a, units: 6, cpu: 1}]}
`

// remembers is a plan in which /A used three quarters of what may be used before /B wants anything.
const remembers = `
name: x
plan:
  stint: 1
  interval: 1h
  dimensions: [cpu]
  resource_groups: [{name: all, select: "select(cpu > 0)"}]
  consumers: [{path: /A}, {path: /B}]
  md_plans: [{name: p, resource_groups: [{name: all}], share: {half_life: 1h}, consumers: [{path: /A}, {path: /B}]}]
hosts: [{host: h, cpu: 10}]
steps:
  - {demand: [{consumer: /A, allocation: a, units: 10, cpu: 1}], cycles: 2}
  - {demand: [{consumer: /A, allocation: a, units: 10, cpu: 1}, {consumer: /B, allocation: b, units: 10, cpu: 1}]}
`

// workLost is a cluster on which /B has four units since 0 s and six more since 60 s, all under reclaim since 120 s for
// /A/x, which has them with cycle 5 at 240 s. So B loses 4 × 240 + 6 × 180 = 2040 unit-seconds.
const workLost = `
name: x
plan:
  stint: 1
  dimensions: [cpu]
  resource_groups: [{name: all, select: "select(cpu > 0)"}]
  consumers: [{path: /A}, {path: /A/x}, {path: /B, reclaim_grace: 2m}]
  md_plans: [{name: p, resource_groups: [{name: all}], consumers: [{path: /A, share: {priority: 1}}, {path: /A/x}, {path: /B}]}]
hosts: [{host: h, cpu: 10}]
steps:
  - {demand: [{consumer: /B, allocation: b, units: 4, cpu: 1}]}
  - {demand: [{consumer: /B, allocation: b, units: 10, cpu: 1}]}
  - {demand: [{consumer: /B, allocation: b, units: 10, cpu: 1}, {consumer: /A/x, allocation: a, units: 10, cpu: 1}], cycles: 4}
`

// gangOf is a cluster of three hosts with two slots each, of which /A owns four that it lends, with demand: gangs of /A
// or /B.
func gangOf(steps string) string {
	return slotsOf("[{path: /A}, {path: /B}]",
		"consumers: [{path: /A, policy: ownership, owns: 4, lend: {limit: 4}}, {path: /B, policy: ownership, "+
			"borrow: {}}]",
		"[{host: h1, slots: 2}, {host: h2, slots: 2}, {host: h3, slots: 2}]", steps)
}

// broken is a gang of six on all hosts, of which one is lost.
var broken = gangOf(`
  - {demand: [{consumer: /B, allocation: b, units: 6, min_units: 5}]}
  - {hosts: [{host: h3, state: unavail}]}`)

// racks is a cluster of two racks with two hosts, and a gang of /A that is together by rack.
func racks(steps string) string {
	return `name: racks
rule: verify
plan:
  stint: 1
  dimensions: [cpu]
  resource_groups: [{name: all, select: "select(cpu > 0)"}]
  consumers: [{path: /A}]
  md_plans: [{name: p, resource_groups: [{name: all}], consumers: [{path: /A}]}]
hosts: [{host: h1, cpu: 2, rack: r1}, {host: h2, cpu: 2, rack: r1}, {host: h3, cpu: 3, rack: r2}]
steps:
` + steps
}

// none is no row of a table.
var none = []string{}

var wrongCycles = []wrongCycle{{
	name: "what is over a pool goes from a closed host while an ok one has as much",
	scenario: slotsOf("[{path: /A}, {path: /B}]",
		"consumers: [{path: /A, policy: ownership}, {path: /B, policy: ownership, owns: 1}]",
		"[{host: h3, slots: 2}, {host: h4, slots: 3}]", `
  - {demand: [{consumer: /A, allocation: a, units: 4}], cycles: 2}
  - {hosts: [{host: h4, state: closed}], demand: [{consumer: /A, allocation: a, units: 4}, {consumer: /B, allocation: b, units: 2}]}`),
	cycle: 3, grants: none, reclaims: []string{"/A a h4 1 over_limit"}, rule: "SLOT-12", consumer: "/A",
	what: "the host is closed",
}, {
	name: "a grant fills a limit that a reserve needs",
	scenario: slotsOf("[{path: /P}, {path: /P/a}, {path: /P/b}]",
		"consumers: [{path: /P, policy: hybrid, owns: 1, limit: 1}, {path: /P/a, owns: 1, reserves: 1}, {path: /P/b}]",
		"[{host: h1, slots: 2}]", `
  - {demand: [{consumer: /P/b, allocation: b, units: 1}]}`),
	cycle: 1, grants: []string{"/P/b b h1 1 hybrid"}, rule: "SLOT-26", consumer: "/P",
	what: "what reserves below it need",
}, {
	name: "a reserve that appears under a limit stays with others",
	scenario: slotsOf("[{path: /P}, {path: /P/a}, {path: /P/b}]",
		"consumers: [{path: /P, policy: hybrid, owns: 4, limit: 4}, {path: /P/a, owns: 4}, {path: /P/b}]",
		"[{host: h1, slots: 10}]", `
  - {demand: [{consumer: /P/b, allocation: b, units: 4}], cycles: 2}
  - plan: `+slotPlanOf("[{path: /P}, {path: /P/a}, {path: /P/b}]",
			"consumers: [{path: /P, policy: hybrid, owns: 4, limit: 4}, {path: /P/a, owns: 4, reserves: 3}, "+
				"{path: /P/b}]")),
	cycle: 3, grants: none, reclaims: none, rule: "INV-3", consumer: "/P", what: "not under reclaim, and the limit",
}, {
	name: "an older unit is taken and a new one like it granted",
	scenario: `
name: x
plan:
  stint: 1
  dimensions: [ncpus]
  resource_groups: [{name: All, select: "select(ncpus > 0)"}]
  consumers: [{path: /T}, {path: /X}, {path: /V}]
  md_plans: [{name: p, resource_groups: [{name: All}], consumers: [{path: /T, share: {priority: 1}}, {path: /X}, {path: /V}]}]
hosts: [{host: h, ncpus: 4}]
steps:
  - {demand: [{consumer: /X, allocation: x, units: 1, ncpus: 2}, {consumer: /V, allocation: v, units: 1, ncpus: 1}], cycles: 2}
  - demand: [{consumer: /T, allocation: t, units: 1, ncpus: 3}, {consumer: /X, allocation: x, units: 1, ncpus: 2}, {consumer: /V, allocation: v, units: 2, ncpus: 1}]
`,
	cycle: 3, grants: []string{"/V v h 1 public_pool /"},
	reclaims: []string{"/V v h 1 fair_share /T t", "/X x h 1 fair_share /T t"}, rule: "CYC-1", consumer: "/V",
	what: "granted there in the same cycle",
}, {
	name: "what is on its way back to its lender is lent again",
	scenario: slotsOf("[{path: /A}, {path: /B, reclaim_grace: 300s}, {path: /C}, {path: /D}]", `configured_slots: 4,
    consumers: [{path: /A, policy: ownership, owns: 2, lend: {limit: 2}}, {path: /B, policy: ownership, borrow: {}},
      {path: /C, policy: ownership, borrow: {}}, {path: /D, policy: hybrid, owns: 2}],
    windows: [{name: w1, hours: "00:00-08:00"}, {name: w2, hours: "08:00-00:00", consumers: [{path: /B, policy: hybrid}]}]`, "[{host: h1, slots: 4}]", `
  - {at: "2026-01-05T07:58:00Z", demand: [{consumer: /B, allocation: b, units: 2}]}
  - {at: "2026-01-05T08:00:00Z", demand: [{consumer: /B, allocation: b, units: 2}, {consumer: /C, allocation: c, units: 2}, {consumer: /D, allocation: d, units: 2}]}`),
	cycle: 2, grants: []string{"/C c h1 2 borrowed - /A"}, reclaims: []string{"/B b h1 2 window_switch"},
	rule: "INV-3", consumer: "/A", what: "slots lent after a loan",
}, {
	name: "what will be owned goes at a switch",
	scenario: slotsOf("[{path: /A}, {path: /B}]", `configured_slots: 4,
    consumers: [{path: /A, policy: hybrid, owns: 2}, {path: /B, policy: hybrid, owns: 2}],
    windows: [{name: w1, hours: "00:00-08:00"}, {name: w2, hours: "08:00-00:00", consumers: [{path: /A, policy: ownership}]}]`,
		"[{host: h1, slots: 2}, {host: h2, slots: 2}]", `
  - {at: "2026-01-05T07:58:00Z", demand: [{consumer: /A, allocation: a, units: 2}], cycles: 2}
  - {at: "2026-01-05T08:00:00Z", hosts: [{host: h2, state: closed}]}`),
	cycle: 3, grants: none, reclaims: []string{"/A a h1 1 window_switch"}, rule: "PLAN-2", consumer: "/A",
	what: "no more than the 2 slots",
}, {
	name: "what will be owned goes before a switch, with a lead",
	scenario: slotsOf("[{path: /A}, {path: /B}]", `configured_slots: 4, lead: 10m,
    consumers: [{path: /A, policy: hybrid, owns: 2}, {path: /B, policy: hybrid, owns: 2}],
    windows: [{name: w1, hours: "00:00-08:00"}, {name: w2, hours: "08:00-00:00", consumers: [{path: /A, policy: ownership}]}]`,
		"[{host: h1, slots: 4}]", `
  - {at: "2026-01-05T07:40:00Z", demand: [{consumer: /A, allocation: a, units: 2}], cycles: 2}
  - {at: "2026-01-05T07:55:00Z"}`),
	cycle: 3, grants: none, reclaims: []string{"/A a h1 1 window_switch"}, rule: "PLAN-2", consumer: "/A",
	what: "no more than the 2 slots",
}, {
	name: "an owner is shut out by what its sibling holds of a pool",
	scenario: slotsOf("[{path: /A}, {path: /A/own}, {path: /A/share}, {path: /B}]",
		"consumers: [{path: /A, policy: ownership, owns: 4, share: {max: 5}}, {path: /A/own, owns: 4}, {path: "+
			"/A/share}, {path: /B, policy: ownership}]",
		"[{host: h1, slots: 10}]", `
  - {demand: [{consumer: /A/share, allocation: s, units: 5}], cycles: 2}
  - {demand: [{consumer: /A/share, allocation: s, units: 5}, {consumer: /A/own, allocation: o, units: 4}]}`),
	cycle: 3, grants: none, reclaims: none, short: []string{"/A/own o 4 consumer_limit"}, rule: "INV-2",
	consumer: "/A/own", what: "its own 4 idle",
}, {
	name: "new work gets the loan that running work could have had",
	scenario: slotsOf("[{path: /B}, {path: /C}]",
		"consumers: [{path: /B, policy: ownership, owns: 1, share: {ratio: 0}, borrow: {}}, {path: /C, policy: "+
			"ownership}]",
		"[{host: h1, slots: 1}, {host: h2, slots: 1}]", `
  - {demand: [{consumer: /B, allocation: b, units: 1}], cycles: 2}
  - demand: [{consumer: /B, allocation: b, units: 2}]
    plan: `+slotPlanOf("[{path: /B}, {path: /C}]",
			"consumers: [{path: /B, policy: ownership, share: {ratio: 0}, borrow: {}}, {path: /C, policy: ownership, "+
				"owns: 1, lend: {limit: 1}}]")),
	cycle: 3, grants: []string{"/B b h2 1 borrowed - /C"}, reclaims: []string{"/B b h1 1 over_limit"},
	rule: "SLOT-12", consumer: "/B", what: "could have been relabelled",
}, {
	name: "what reserves need is not taken in proportion",
	scenario: slotsOf("[{path: /A}, {path: /A/A0}, {path: /A/A1}, {path: /B}, {path: /B/B0}, {path: /B/B1}]",
		"consumers: [{path: /A, policy: hybrid}, {path: /A/A0}, {path: /A/A1}, {path: /B, policy: ownership}, {path: "+
			"/B/B0}, {path: /B/B1}]",
		"[{host: h2, slots: 3}, {host: h3, slots: 4}]", `
  - {demand: [{consumer: /A/A0, allocation: x, units: 2}, {consumer: /A/A1, allocation: x, units: 1}], cycles: 2}
  - plan: `+slotPlanOf("[{path: /A}, {path: /A/A0}, {path: /A/A1}, {path: /B}, {path: /B/B0}, {path: /B/B1}]",
			`consumers: [{path: /A, policy: hybrid}, {path: /A/A0}, {path: /A/A1}, {path: /B, policy: ownership, owns: 10}, {path: /B/B0, owns: 2},
      {path: /B/B1, owns: 8, lend: {limit: 5}}]`)),
	cycle: 3, grants: none, reclaims: []string{"/A/A0 x h2 1 reserve"}, rule: "SLOT-27", consumer: "/A/A1",
	what: "its part of what reserves need",
}, {
	name: "more is taken from hybrid branches than anybody needs",
	scenario: slotsOf("[{path: /A}, {path: /B}, {path: /C}]", `configured_slots: 1,
    consumers: [{path: /A, policy: hybrid}, {path: /B, policy: hybrid}, {path: /C, policy: ownership, owns: 1, lend: {limit: 1}}]`,
		"[{host: h0, slots: 1}, {host: h1, slots: 2}]", `
  - {demand: [{consumer: /B, allocation: b, units: 2}, {consumer: /C, allocation: c, units: 1}], cycles: 2}
  - {hosts: [{host: h0, state: unavail}], demand: [{consumer: /A, allocation: a, units: 1}, {consumer: /B, allocation: b, units: 2}]}`),
	cycle: 3, grants: none, reclaims: []string{"/B b h1 1 over_limit", "/B b h1 1 fair_share /A a"}, rule: "SLOT-30",
	what: "those that others need",
}, {
	name: "a branch with a ratio of 0 gets nothing of its own pool",
	scenario: slotsOf("[{path: /A}, {path: /A/a}, {path: /B}]",
		"consumers: [{path: /A, policy: ownership, owns: 3, share: {ratio: 0}}, {path: /A/a}, {path: /B, policy: "+
			"ownership}]", "[{host: h1, slots: 3}]", `
  - {demand: [{consumer: /A/a, allocation: a, units: 3}]}`),
	cycle: 1, grants: none, reclaims: none, short: []string{"/A/a a 3 share_limit"}, rule: "INV-6", consumer: "/A/a",
	what: "3 slots of pools are idle",
}, {
	name: "shares are taken for a unit that could be lent to",
	scenario: slotsOf("[{path: /A}, {path: /B}, {path: /C}]",
		"consumers: [{path: /A, policy: ownership}, {path: /B, policy: ownership}, {path: /C, policy: ownership}]",
		"[{host: h1, slots: 4}, {host: h2, slots: 4}]", `
  - {demand: [{consumer: /B, allocation: x, units: 2}], cycles: 2}
  - demand: [{consumer: /A, allocation: x, units: 1}, {consumer: /B, allocation: x, units: 2}]
    plan: `+slotPlanOf("[{path: /A}, {path: /B}, {path: /C}]",
			"consumers: [{path: /A, policy: ownership, borrow: {}}, {path: /B, policy: ownership}, {path: /C, "+
				"policy: ownership, owns: 7, lend: {limit: 2}}]")),
	cycle: 3, grants: none, reclaims: []string{"/B x h1 1 over_limit", "/B x h1 1 fair_share /A x"}, rule: "SLOT-5",
	consumer: "/B", what: "/C could lend to it",
}, {
	name: "an idle slot is not lent while a hybrid branch is above its part",
	scenario: slotsOf("[{path: /A}, {path: /B}, {path: /C}]", `configured_slots: 2,
    consumers: [{path: /A, policy: ownership, owns: 2, lend: {limit: 2}}, {path: /B, policy: hybrid}, {path: /C, policy: ownership, borrow: {}}]`,
		"[{host: h1, slots: 3}]", `
  - {demand: [{consumer: /B, allocation: b, units: 1}], cycles: 2}
  - {hosts: [{host: h1, slots: 2}], demand: [{consumer: /B, allocation: b, units: 1}, {consumer: /C, allocation: c, units: 1}]}`),
	cycle: 3, grants: none, reclaims: none, short: []string{"/C c 1 pool_exhausted"}, rule: "INV-6", consumer: "/C",
	what: "/A could lend to it",
}, {
	name: "slots of hybrid branches stay idle",
	scenario: slotsOf("[{path: /A}, {path: /B}]",
		"consumers: [{path: /A, policy: hybrid, owns: 2}, {path: /B, policy: hybrid, owns: 2}]",
		"[{host: h1, slots: 4}]", `
  - {demand: [{consumer: /A, allocation: a, units: 3}]}`),
	cycle: 1, grants: none, short: []string{"/A a 3 pool_exhausted"}, rule: "INV-6", consumer: "/A",
	what: "4 slots of hybrid branches are idle",
}, {
	name: "a hybrid branch below its quota does not get what another has above",
	scenario: slotsOf("[{path: /A}, {path: /B}]",
		"consumers: [{path: /A, policy: hybrid, owns: 2}, {path: /B, policy: hybrid, owns: 2}]",
		"[{host: h1, slots: 4}]", `
  - {demand: [{consumer: /A, allocation: a, units: 4}], cycles: 2}
  - {demand: [{consumer: /A, allocation: a, units: 4}, {consumer: /B, allocation: b, units: 2}]}`),
	cycle: 3, grants: none, reclaims: none, short: []string{"/B b 2 pool_exhausted"}, rule: "INV-5", consumer: "/B",
	what: "/A holds a unit above its own",
}, {
	name: "a leaf below its part of the pool does not get what another has above",
	scenario: slotsOf("[{path: /A}, {path: /B}]",
		"consumers: [{path: /A, policy: share_ratio}, {path: /B, policy: share_ratio}]",
		"[{host: h1, slots: 4}]", `
  - {demand: [{consumer: /A, allocation: a, units: 4}], cycles: 2}
  - {demand: [{consumer: /A, allocation: a, units: 4}, {consumer: /B, allocation: b, units: 2}]}`),
	cycle: 3, grants: none, reclaims: none, short: []string{"/B b 2 pool_exhausted"}, rule: "INV-5", consumer: "/B",
	what: "/A holds a unit above its own",
}, {
	name: "an empty host stays empty, with exclusive placement",
	scenario: slotsOf("[{path: /A}]", "placement: exclusive, consumers: [{path: /A, policy: ownership, owns: 4}]",
		"[{host: h1, slots: 2}, {host: h2, slots: 2}]", `
  - {demand: [{consumer: /A, allocation: a, units: 1}]}`),
	cycle: 1, grants: none, short: []string{"/A a 1 pool_exhausted"}, rule: "INV-6", consumer: "/A",
	what: "2 empty hosts would do",
}, {
	name: "a host that was lent does not come back, with exclusive placement",
	scenario: slotsOf("[{path: /A}, {path: /B}]",
		"placement: exclusive, consumers: [{path: /A, policy: ownership, owns: 2, lend: {limit: 2}}, {path: /B, "+
			"policy: ownership, borrow: {}}]",
		"[{host: h1, slots: 2}]", `
  - {demand: [{consumer: /B, allocation: b, units: 1}], cycles: 2}
  - {demand: [{consumer: /A, allocation: a, units: 1}, {consumer: /B, allocation: b, units: 1}]}`),
	cycle: 3, grants: none, reclaims: none, short: []string{"/A a 1 pool_exhausted"}, rule: "INV-2", consumer: "/A",
	what: "it lent the host",
}, {
	name: "an owner goes short in a plan with a lead",
	scenario: slotsOf("[{path: /A}]", `lead: 10m, consumers: [{path: /A, policy: ownership, owns: 2}],
    windows: [{name: w1, hours: "00:00-08:00"}, {name: w2, hours: "08:00-00:00", consumers: [{path: /A, owns: 1}]}]`, "[{host: h1, slots: 2}]", `
  - {at: "2026-01-05T05:00:00Z", demand: [{consumer: /A, allocation: a, units: 2}]}`),
	cycle: 1, grants: none, short: []string{"/A a 2 pool_exhausted"}, rule: "INV-2", consumer: "/A",
	what: "its own 2 idle",
}, {
	name: "a release says that more was lost than its units can have run", scenario: workLost, cycle: 5,
	lost: func(c *decision.Cycle) { c.Releases.UnitSecondsLost[0] = 2400.001 }, rule: "D-120", consumer: "/B",
	what: "lost",
}, {
	name: "a release says that less was lost than its units must have run", scenario: workLost, cycle: 5,
	lost: func(c *decision.Cycle) { c.Releases.UnitSecondsLost[0] = 2039.999 }, rule: "D-120", consumer: "/B",
	what: "lost",
}, {
	name: "what was lost in the cycle is not what its releases say", scenario: workLost,
	cycle: 5, lost: func(c *decision.Cycle) { c.Summary.UnitMSLost++ }, rule: "D-120", what: "lost",
}, {
	name: "what a consumer lost so far lacks a cycle", scenario: workLost, cycle: 5,
	lost: func(c *decision.Cycle) { c.Consumers.UnitSecondsLost[2] = 0 }, rule: "D-120", consumer: "/B", what: "so far",
}, {
	name: "a consumer above one that lost something has not", scenario: workLost, cycle: 5,
	lost: func(c *decision.Cycle) { c.Consumers.UnitSecondsLost[1] = 3 }, rule: "D-120", consumer: "/A",
	what: "besides those of consumers below",
}, {
	name: "work is lost though nothing was reclaimed", scenario: workLost,
	cycle: 4, lost: func(c *decision.Cycle) { c.Summary.UnitMSLost = 1 }, rule: "D-120", what: "lost",
}, {
	name:     "a gang gets fewer units than it needs",
	scenario: gangOf("\n  - {demand: [{consumer: /A, allocation: a, units: 4, min_units: 3}]}"),
	cycle:    1, grants: []string{"/A a h1 2 owned"}, rule: "REQ-3", consumer: "/A", what: "of at least 3 holds 2",
}, {
	name:     "a gang that is together lies on two racks",
	scenario: racks("  - {demand: [{consumer: /A, allocation: a, units: 3, min_units: 3, cpu: 1, together: rack}]}"),
	cycle:    1, grants: []string{"/A a h1 2 public_pool /", "/A a h3 1 public_pool /"}, rule: "REQ-3", consumer: "/A",
	what: "not all have one value",
}, {
	name: "a gang that is together gets more in another rack",
	scenario: racks(`  - {demand: [{consumer: /A, allocation: a, units: 3, min_units: 3, cpu: 1, together: rack}]}
  - {demand: [{consumer: /A, allocation: a, units: 4, min_units: 3, cpu: 1, together: rack}]}`),
	cycle: 2, grants: []string{"/A a h3 1 public_pool /"}, rule: "REQ-3", consumer: "/A", what: "where it has nothing",
}, {
	name: "what is left of a gang stays", scenario: broken, cycle: 2, grants: none,
	edit: func(c *decision.Cycle) { dropBroken(&c.Releases) }, rule: "REQ-3", consumer: "/B",
	what: "of at least 5 holds 4",
}, {
	name: "less than what is left of a gang is released", scenario: broken, cycle: 2,
	edit: func(c *decision.Cycle) { c.Releases.Units[rowOf(&c.Releases)]-- }, rule: "REQ-3", consumer: "/B",
	what: "units that stay of a gang that is broken",
}, {
	name: "a gang of which enough are left is broken", scenario: gangOf(`
  - {demand: [{consumer: /B, allocation: b, units: 6, min_units: 4}]}
  - {hosts: [{host: h3, state: unavail}]}`),
	cycle: 2, edit: func(c *decision.Cycle) {
		r := &c.Releases
		for _, host := range []string{"h1", "h2"} {
			for _, code := range []*decision.Coded{&r.Plan, &r.Consumer, &r.Allocation, &r.Sub, &r.Origin, &r.Lender,
				&r.Device, &r.Source} {
				code.Code = append(slices.Clone(code.Code), code.Code[0])
			}
			r.Host = decision.Coded{Code: append(slices.Clone(r.Host.Code), codeOf(r.Host.Dict, host)),
				Dict: r.Host.Dict}
			r.Units, r.Cause.Code = append(r.Units, 2), append(r.Cause.Code, decision.CauseGangBroken)
			r.Reclaim = append(slices.Clone(r.Reclaim), 0)
			r.UnitSecondsLost = append(slices.Clone(r.UnitSecondsLost), 0)
		}
	}, rule: "REQ-3", consumer: "/B", what: "which are enough for a gang of at least 4",
}, {
	name: "units that are no gang are broken", scenario: gangOf(`
  - {demand: [{consumer: /B, allocation: b, units: 6}]}
  - {hosts: [{host: h3, state: unavail}]}`),
	cycle: 2, edit: func(c *decision.Cycle) { c.Releases.Cause.Code[0] = decision.CauseGangBroken }, rule: "REQ-3",
	consumer: "/B", what: "that is no gang",
}, {
	name: "a part of a gang is taken back", scenario: gangOf(`
  - {demand: [{consumer: /B, allocation: b, units: 6, min_units: 6}], cycles: 2}
  - {demand: [{consumer: /B, allocation: b, units: 6, min_units: 6}, {consumer: /A, allocation: a, units: 2}]}`),
	cycle: 3, grants: none, reclaims: []string{"/B b h1 2 recall /A a"}, rule: "REQ-3", consumer: "/B",
	what: "of at least 6 holds 4",
}, {
	name:     "what is no gang waits as one",
	scenario: gangOf("\n  - {demand: [{consumer: /A, allocation: a, units: 8}]}"),
	cycle:    1, short: []string{"/A a 2 gang"}, rule: "REQ-3", consumer: "/A", what: "it is no gang",
}, {
	name:     "a gang waits though more would fit than it needs",
	scenario: gangOf("\n  - {demand: [{consumer: /A, allocation: a, units: 8, min_units: 7}]}"),
	cycle:    1, edit: detail(8, 7), rule: "REQ-3", consumer: "/A", what: "more would fit than it needs",
}, {
	name:     "a gang waits for more units than it needs",
	scenario: gangOf("\n  - {demand: [{consumer: /A, allocation: a, units: 8, min_units: 7}]}"),
	cycle:    1, edit: detail(6, 8), rule: "REQ-3", consumer: "/A", what: "the least number that the detail names",
}, {
	name: "less was used of a budget than was held", scenario: budgeted, cycle: 3,
	lost: func(c *decision.Cycle) { c.Consumers.BudgetUsed[0] = 3 }, rule: "BUD-1", consumer: "/A",
	what: "hours used of its budget",
}, {
	name: "more was used of a budget than was held", scenario: budgeted, cycle: 2,
	lost: func(c *decision.Cycle) { c.Consumers.BudgetUsed[0] = 2.5 }, rule: "BUD-1", consumer: "/A",
	what: "hours used of its budget",
}, {
	name: "a budget is used up, and more is granted from the pool", scenario: budgeted, cycle: 4,
	grants: []string{"/A a h 2 public_pool /"}, short: none, rule: "BUD-2", consumer: "/A",
	what: "the budget of /A is used up",
}, {
	name: "a budget is used up, and another reason is told", scenario: budgeted,
	cycle: 4, short: []string{"/A a 2 pool_exhausted"}, rule: "D-7", consumer: "/A", what: "reason",
}, {
	name: "less was used lately than was held", scenario: remembers, cycle: 3,
	lost: func(c *decision.Cycle) { c.Shares.DecayedUsage[0] = 0.5 }, rule: "D-164", consumer: "/A",
	what: "decayed_usage in the pool /",
}, {
	name: "a ratio is lowered by more than what was used", scenario: remembers, cycle: 3,
	lost: func(c *decision.Cycle) { c.Shares.EffectiveRatio[0] = 0.5 }, rule: "D-165", consumer: "/A",
	what: "effective_ratio in the pool /",
}, {
	name: "quotas are divided by ratios as they stand in the policy", scenario: remembers, cycle: 3,
	lost: func(c *decision.Cycle) { copy(c.Shares.UsageQuota, []float64{0.5, 0.5}) }, rule: "MD-14", consumer: "/A",
	what: "usage_quota in the pool /",
}, {
	name: "a device holds more than it has", scenario: devicesOf(`
  - {demand: [{consumer: /A, allocation: a, units: 2, gpu: 6, cpu: 1}]}`),
	cycle: 1, grants: []string{"/A a h1 2 public_pool / - 0"}, rule: "INV-1", what: "more gpu is held on device 0",
}, {
	name: "a share lies on a device that is taken whole", scenario: devicesOf(`
  - {demand: [{consumer: /A, allocation: a, units: 1, gpu: 20, cpu: 1}]}
  - {demand: [{consumer: /A, allocation: a, units: 1, gpu: 20, cpu: 1}, {consumer: /A, allocation: b, units: 1, gpu: 1, cpu: 1}]}`),
	cycle: 2, grants: []string{"/A b h1 1 public_pool / - 1"}, rule: "INV-1", what: "more gpu is held on device 1",
}, {
	name: "a unit lies on a device that its host has not", scenario: devicesOf(`
  - {demand: [{consumer: /A, allocation: a, units: 1, gpu: 6, cpu: 1}]}`),
	cycle: 1, grants: []string{"/A a h1 1 public_pool / - 2"}, rule: "INV-1", consumer: "/A",
	what: "it lies on device 2, and the host has 2",
}, {
	name: "a unit of two devices lies on one", scenario: devicesOf(`
  - {demand: [{consumer: /A, allocation: a, units: 1, gpu: 20, cpu: 1}]}`),
	cycle: 1, grants: []string{"/A a h1 1 public_pool / - 0"}, rule: "INV-1", consumer: "/A", what: "devices of a unit",
}, {
	name: "a share lies on no device", scenario: devicesOf(`
  - {demand: [{consumer: /A, allocation: a, units: 1, gpu: 6, cpu: 1}]}`),
	cycle: 1, grants: []string{"/A a h1 1 public_pool /"}, rule: "INV-1", consumer: "/A", what: "devices of a unit",
}, {
	name: "a unit lies on devices twice", scenario: devicesOf(`
  - {demand: [{consumer: /A, allocation: a, units: 1, gpu: 20, cpu: 1}]}`),
	cycle: 1, grants: []string{"/A a h1 1 public_pool / - 1+1"}, rule: "INV-1", consumer: "/A", what: "devices",
}, {
	name: "units come back from a device on which they do not lie", scenario: devicesOf(`
  - {demand: [{consumer: /A, allocation: a, units: 1, gpu: 10, cpu: 1}]}
  - {demand: [{consumer: /A, allocation: a, units: 0, gpu: 10, cpu: 1}]}`),
	cycle: 2, edit: releasedOn("1"), rule: "INV-9", consumer: "/A", what: "lie on the devices \"1\"",
}, {
	name: "clients give back on one device, and another comes back", scenario: devicesOf(`
  - {demand: [{consumer: /A, allocation: a, units: 2, gpu: 10, cpu: 1}]}
  - {releases: [{consumer: /A, allocation: a, host: h1, units: 1, device: "0", done: true}]}`),
	cycle: 2, edit: releasedOn("1"), rule: "INV-9", consumer: "/A",
	what: "gave back 1 units on the devices \"0\", and 0 came back",
}, {
	name: "more is under reclaim on a device than lies there", scenario: devicesOf(`
  - {demand: [{consumer: /A, allocation: a, units: 2, gpu: 10, cpu: 1}]}
  - {hosts: [{host: h1, state: draining}]}`),
	cycle: 2, reclaims: []string{"/A a h1 2 drain - - 1"}, rule: "INV-9", consumer: "/A",
	what: "2 units on the devices \"1\" are under reclaim, and 1 lie there",
}, {
	name: "a unit is short that finds a device", scenario: devicesOf(`
  - {demand: [{consumer: /A, allocation: a, units: 2, gpu: 6, cpu: 1}]}`),
	cycle: 1, grants: []string{"/A a h1 1 public_pool / - 0"}, short: []string{"/A a 1 fragmented"}, rule: "INV-6",
	consumer: "/A", what: "fits the host",
}, {
	name: "devices alone are short, and the pool is said to be", scenario: devicesOf(`
  - {demand: [{consumer: /A, allocation: a, units: 3, gpu: 6, cpu: 1}]}`),
	cycle: 1, short: []string{"/A a 1 pool_exhausted"}, rule: "D-7", consumer: "/A", what: "reason",
}, {
	name: "more is short as fragmented than free room carries", scenario: devicesOf(`
  - {demand: [{consumer: /A, allocation: a, units: 5, gpu: 6, cpu: 1}]}`),
	cycle: 1, short: []string{"/A a 3 fragmented"}, rule: "D-7", consumer: "/A", what: "not so much free",
}, {
	name: "what free room carries is short as the rest is", scenario: devicesOf(`
  - {demand: [{consumer: /A, allocation: a, units: 5, gpu: 6, cpu: 1}]}`),
	cycle: 1, short: []string{"/A a 3 pool_exhausted"}, rule: "D-7", consumer: "/A",
	what: "units of reason pool_exhausted",
}, {
	name: "a pool takes as many units as the sum of its devices has room for", scenario: devicesOf(`
  - {demand: [{consumer: /A, allocation: a, units: 1, gpu: 6, cpu: 0}]}`),
	cycle: 1, lost: func(c *decision.Cycle) { c.Shares.Usage = []float64{1. / 3} }, rule: "MD-12", consumer: "/A",
	what: "usage",
}}

// devicesOf is a scenario of one host with two devices of 10, and 5 left over.
func devicesOf(steps string) string {
	return `name: x
plan:
  stint: 1
  dimensions: [cpu, gpu]
  resource_groups: [{name: all, select: "select(cpu > 0)"}]
  consumers: [{path: /A}, {path: /B}]
  md_plans: [{name: p, devices: {gpu: {per: 10}}, share_reclaim: false, resource_groups: [{name: all}], consumers: [{path: /A}, {path: /B}]}]
hosts: [{host: h1, cpu: 9, gpu: 25}]
steps:` + steps
}

// releasedOn has the releases name other devices.
func releasedOn(device string) func(c *decision.Cycle) {
	return func(c *decision.Cycle) {
		c.Releases.Device = decision.Coded{Code: make([]int32, len(c.Releases.Units)), Dict: decision.Words{device}}
	}
}

// rowOf is the first row of the cause gang_broken.
func rowOf(r *decision.Releases) int {
	return slices.Index(r.Cause.Code, decision.CauseGangBroken)
}

// dropBroken has units that were released as gang_broken be none.
func dropBroken(r *decision.Releases) {
	keep := decision.Releases{Key: decision.Key{Plan: r.Plan, Consumer: r.Consumer, Allocation: r.Allocation,
		Sub: r.Sub}, Host: r.Host, Cause: r.Cause,
		Origin: r.Origin, Lender: r.Lender, Device: r.Device, Source: r.Source}
	columns := []*decision.Coded{&keep.Plan, &keep.Consumer, &keep.Allocation, &keep.Sub, &keep.Host, &keep.Cause,
		&keep.Origin, &keep.Lender, &keep.Device, &keep.Source}
	for i, from := range []*decision.Coded{&r.Plan, &r.Consumer, &r.Allocation, &r.Sub, &r.Host, &r.Cause, &r.Origin,
		&r.Lender, &r.Device, &r.Source} {
		columns[i].Code = nil
		for row, cause := range r.Cause.Code {
			if cause != decision.CauseGangBroken {
				columns[i].Code = append(columns[i].Code, from.Code[row])
			}
		}
	}
	for row, cause := range r.Cause.Code {
		if cause != decision.CauseGangBroken {
			keep.Units, keep.Reclaim = append(keep.Units, r.Units[row]), append(keep.Reclaim, r.Reclaim[row])
			keep.UnitSecondsLost = append(keep.UnitSecondsLost, r.UnitSecondsLost[row])
		}
	}
	*r = keep
}

// codeOf is the code of a word.
func codeOf(d decision.Dict, word string) int32 {
	for code := range int32(d.Len()) {
		if string(d.Bytes(code)) == word {
			return code
		}
	}
	panic("BUG: there is no " + word)
}

// detail has a gang that waits tell another number of units that fit, and that it needs.
func detail(fit, least int64) func(c *decision.Cycle) {
	return func(c *decision.Cycle) {
		c.Shortfalls.Detail = decision.Coded{Code: []int32{0},
			Dict: decision.Words{decision.GangDetail(fit, least, "", decision.ReasonPoolExhausted, "")}}
	}
}
