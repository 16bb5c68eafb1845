package oracle_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// policy compiles a policy file of one MD plan p over the group G.
func policy(t *testing.T, dims, consumers, planText string) *plan.Policy {
	t.Helper()
	text := fmt.Sprintf(`stint: 1
dimensions: [%s]
resource_groups: [{name: G, select: "select(ncpus >= 0)"}]
consumers: [%s]
md_plans:
  - name: p
    resource_groups: [{name: G}]
    %s
`, dims, consumers, planText)
	p, err := plan.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// hosts makes ok hosts h1, h2, … of sizes over the dimensions ncpus and maxmem.
func hosts(sizes ...[2]int64) []oracle.Host {
	var rows []oracle.Host
	for i, s := range sizes {
		rows = append(rows, oracle.Host{Name: fmt.Sprintf("h%d", i+1), State: "ok",
			Size: map[string]int64{"ncpus": s[0], "maxmem": s[1]}})
	}
	return rows
}

// demand is a row without limits; size is ncpus, maxmem.
func demand(consumer, sub string, units int64, size [2]int64) oracle.Demand {
	return oracle.Demand{Consumer: consumer, Allocation: "a", Sub: sub, Units: units,
		Size: map[string]int64{"ncpus": size[0], "maxmem": size[1]}, MaxPerHost: plan.Unlimited}
}

// want compares figures of a result, each written `path field`: held, short, usage,
// demand, quota, and the reasons of shortfalls.
func want(t *testing.T, r oracle.Result, figures map[string]float64, reasons ...string) {
	t.Helper()
	got := map[string]float64{}
	for _, c := range r.Consumers {
		got[c.Path+" held"], got[c.Path+" short"] = float64(c.Held), float64(c.Short)
		got[c.Path+" static"] = float64(c.StaticPart[0])
	}
	for _, s := range r.Shares {
		got[s.Path+" usage"], _ = s.Usage.Float64()
		got[s.Path+" demand"] = math.Ldexp(float64(s.Demand), -48)
		got[s.Path+" quota"] = math.Ldexp(float64(s.Quota), -48)
	}
	for name, f := range figures {
		if g, ok := got[name]; !ok || math.Abs(g-f) > 1e-9 {
			t.Errorf("%s = %v (%v), want %v", name, g, ok, f)
		}
	}
	var why []string
	for _, s := range r.Shortfalls {
		why = append(why, strings.TrimSpace(fmt.Sprintln(s.Consumer, s.Units, s.Reason, s.Dimension, s.Blocker)))
	}
	slices.Sort(why)
	slices.Sort(reasons)
	if !slices.Equal(why, reasons) {
		t.Errorf("shortfalls = %q, want %q", why, reasons)
	}
}

const both = "ncpus, maxmem"

// TestExamples holds the worked examples of the source texts against the oracle.
func TestExamples(t *testing.T) {
	tree := "{path: /A}, {path: /A/A1}, {path: /A/A2}, {path: /B}, {path: /B/B1}, {path: /B/B2}, {path: /C}"
	shares := `consumers: [{path: /A, share: {priority: 1}}, {path: /A/A1}, {path: /A/A2, share: {ratio: 2}},
      {path: /B, share: {priority: 1, ratio: 2}}, {path: /B/B1, share: {priority: 1}}, {path: /B/B2}, {path: /C}]`
	for _, c := range []struct {
		name, consumers, plan string
		hosts                 []oracle.Host
		demand                []oracle.Demand
		want                  map[string]float64
		reasons               []string
	}{
		{"MD-14 the quota tree", tree, shares, hosts([2]int64{3}, [2]int64{3}, [2]int64{3}), []oracle.Demand{
			demand("/A/A1", "", 100, [2]int64{1}), demand("/A/A2", "", 100, [2]int64{1}),
			demand("/B/B1", "", 100, [2]int64{1}), demand("/B/B2", "", 100, [2]int64{1}),
			demand("/C", "", 100, [2]int64{1}),
		}, map[string]float64{
			"/A usage": 1. / 3, "/A quota": 1. / 3, "/B usage": 2. / 3, "/B quota": 2. / 3, "/C usage": 0,
			"/C quota": 0, "/A/A1 quota": 1. / 9, "/A/A1 demand": 1, "/A demand": 2, "/A/A2 quota": 2. / 9,
			"/B/B1 quota": 2. / 3, "/B/B2 quota": 0, "/A/A1 held": 1, "/A/A2 held": 2, "/B/B1 held": 6, "/B/B2 held": 0,
			"/C held": 0, "/A static": 3, "/A/A1 static": 1, "/B/B1 static": 6, "/B/B2 static": 0, "/C static": 0,
		}, []string{"/A/A1 99 pool_exhausted ncpus", "/A/A2 98 pool_exhausted ncpus", "/B/B1 94 pool_exhausted ncpus",
			"/B/B2 100 lower_priority ncpus /B/B1", "/C 100 lower_priority ncpus /B"}},
		{"MD-11 packed host by host", "{path: /A}", "consumers: [{path: /A}]", hosts([2]int64{6, 64}, [2]int64{6, 64}),
			[]oracle.Demand{demand("/A", "", 1, [2]int64{4, 16})}, map[string]float64{"/A usage": .5, "/A quota": .5},
			nil},
		{"MD-11 fragmented", "{path: /A}", "consumers: [{path: /A}]", hosts([2]int64{6, 64}, [2]int64{6, 64}),
			[]oracle.Demand{demand("/A", "", 3, [2]int64{4, 16})},
			map[string]float64{"/A usage": 1, "/A held": 2, "/A short": 1, "/A demand": 1},
			[]string{"/A 1 fragmented ncpus"}},
		{"MD-12 two unit sizes", "{path: /A}", "consumers: [{path: /A}]",
			hosts([2]int64{16, 64}, [2]int64{16, 64}, [2]int64{8, 128}),
			[]oracle.Demand{demand("/A", "big", 3, [2]int64{4, 16}), demand("/A", "wide", 2, [2]int64{1, 32})},
			map[string]float64{"/A usage": .55, "/A held": 5, "/A short": 0}, nil},
		{"MD-11 overcommit", "{path: /A}", "overcommit: {ncpus: 2}\n    consumers: [{path: /A}]",
			hosts([2]int64{16, 64}, [2]int64{16, 64}, [2]int64{8, 128}),
			[]oracle.Demand{demand("/A", "", 3, [2]int64{4, 16})}, map[string]float64{"/A usage": .25}, nil},
		{"MD-16 what fits nowhere blocks nobody", "{path: /Big}, {path: /Small}",
			"consumers: [{path: /Big, share: {priority: 9}}, {path: /Small}]", hosts([2]int64{4}, [2]int64{4}),
			[]oracle.Demand{demand("/Big", "", 2, [2]int64{5}), demand("/Small", "", 9, [2]int64{1})},
			map[string]float64{"/Big held": 0, "/Big demand": 0, "/Small held": 8},
			[]string{"/Big 2 too_big ncpus", "/Small 1 pool_exhausted ncpus"}},
		{"MD-18 a limit holds while all else is idle", "{path: /A}",
			"consumers: [{path: /A, share: {limit: {ncpus: 6}}}]",
			hosts([2]int64{16}), []oracle.Demand{demand("/A", "", 9, [2]int64{1})},
			map[string]float64{"/A held": 6}, []string{"/A 3 share_limit ncpus /A"}},
		{"D-6 ratio 0", "{path: /A}, {path: /A/B}", "consumers: [{path: /A, share: {ratio: 0}}, {path: /A/B}]",
			hosts([2]int64{16}), []oracle.Demand{demand("/A/B", "", 9, [2]int64{1})},
			map[string]float64{"/A held": 0, "/A/B quota": 0, "/A/B static": 0}, []string{"/A/B 9 share_limit  /A"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := oracle.New(policy(t, both, c.consumers, c.plan))
			o.SetHosts(c.hosts, true)
			o.SetDemand("s", c.demand)
			want(t, o.Cycle(), c.want, c.reasons...)
			if r := o.Cycle(); len(r.Grants)+len(r.Releases) > 0 {
				t.Errorf("a second cycle still decides: %v %v", r.Grants, r.Releases)
			}
		})
	}
}

// on lists rows as host:units, those of a host together.
func on(rows []oracle.Units) string {
	var b strings.Builder
	for _, u := range rows {
		fmt.Fprintf(&b, " %s%s:%d%s", u.Sub, u.Host, u.Units, u.Cause)
	}
	return strings.TrimSpace(b.String())
}

// TestPlacement holds MD-20, D-2, D-3 and REQ-1's order.
func TestPlacement(t *testing.T) {
	for _, c := range []struct {
		name, placement, req string
		hosts                []oracle.Host
		units, perHost       int64
		want                 string
	}{
		{"best_fit takes the room most like the unit", "best_fit", "",
			hosts([2]int64{8, 8}, [2]int64{8, 0}, [2]int64{8, 1}), 17, plan.Unlimited, "h1:1 h2:8 h3:8"},
		{"best_fit ties by host order", "best_fit", "", hosts([2]int64{4}, [2]int64{4}), 5, plan.Unlimited,
			"h1:4 h2:1"},
		{"stacked takes hosts in use, then host order", "stacked", "", hosts([2]int64{3}, [2]int64{2}), 4,
			plan.Unlimited, "h1:3 h2:1"},
		{"balanced takes the emptiest", "balanced", "", hosts([2]int64{2}, [2]int64{4}), 4, plan.Unlimited,
			"h1:1 h2:3"},
		{"order replaces the placement", "balanced", "order(ncpus)", hosts([2]int64{4}, [2]int64{2}), 3, plan.Unlimited,
			"h1:1 h2:2"},
		{"select", "balanced", "select(ncpus > 2)", hosts([2]int64{4}, [2]int64{2}), 9, plan.Unlimited, "h1:4"},
		{"max_per_host", "best_fit", "", hosts([2]int64{4}, [2]int64{2}), 9, 1, "h1:1 h2:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := oracle.New(policy(t, both, "{path: /A}", "placement: "+c.placement+"\n    consumers: [{path: /A}]"))
			o.SetHosts(c.hosts, true)
			d := demand("/A", "", c.units, [2]int64{1})
			d.Requirement, d.MaxPerHost = c.req, c.perHost
			o.SetDemand("s", []oracle.Demand{d})
			if got := on(o.Cycle().Grants); got != c.want {
				t.Errorf("granted %s, want %s", got, c.want)
			}
		})
	}
}

// TestSettle holds CYC-5, CYC-10 and D-9 to D-12: each step's releases and grants.
func TestSettle(t *testing.T) {
	o := oracle.New(policy(t, both, "{path: /A}, {path: /B, rank: 1}",
		"placement: stacked\n    consumers: [{path: /A}, {path: /B}]"))
	step := func(name, releases, grants string) {
		t.Helper()
		r := o.Cycle()
		if got := on(r.Releases); got != releases {
			t.Errorf("%s: released %q, want %q", name, got, releases)
		}
		if got := on(r.Grants); got != grants {
			t.Errorf("%s: granted %q, want %q", name, got, grants)
		}
	}
	mem := [2]int64{0, 1}
	cpu := [2]int64{1, 0}
	o.SetHosts(hosts([2]int64{4, 1}, [2]int64{2, 0}), true)
	o.SetDemand("s", []oracle.Demand{demand("/A", "x", 2, cpu), demand("/A", "y", 2, cpu), demand("/B", "m", 1, mem)})
	o.Running([]oracle.Holding{{Consumer: "/A", Allocation: "a", Sub: "y", Host: "h2", Units: 1}})
	step("least satisfied first", "", "xh1:2 yh1:1 mh1:1")
	o.SetHosts([]oracle.Host{{Name: "h1", Size: map[string]int64{"ncpus": 1}}}, false)
	step("a shrunk host passes over units that do not help", "xh1:1host_lost yh1:1host_lost", "xh2:1")
	o.SetHosts([]oracle.Host{{Name: "h2", State: "closed"}}, false)
	o.Release([]oracle.Holding{{Consumer: "/A", Allocation: "a", Sub: "x", Host: "h1", Units: 3, Done: true}})
	step("done lowers what is wanted, and a closed host gets nothing", "xh1:1done", "yh1:1")
	o.SetHosts([]oracle.Host{{Name: "h2", State: "unavail"}}, false)
	o.Release([]oracle.Holding{{Consumer: "/A", Allocation: "a", Sub: "y", Host: "h1", Units: 1}})
	step("a lost host", "xh2:1host_lost yh1:1client yh2:1host_lost", "xh1:1")
	o.SetDemand("s", []oracle.Demand{demand("/A", "x", 1, cpu), demand("/B", "m", 1, [2]int64{0, 2})})
	o.SetHosts([]oracle.Host{{Name: "h1", State: "ok", Size: map[string]int64{"ncpus": 9, "maxmem": 9}}}, true)
	step("another unit size is another sub-allocation", "mh1:1demand_gone", "mh1:1")
}

// claims lists what was put under reclaim and taken off, as host:units, action and reason.
func claims(r oracle.Result) string {
	var b strings.Builder
	for _, u := range r.Reclaims {
		fmt.Fprintf(&b, " %s:%d %s %s,", u.Host, u.Units, u.Action, u.Reason)
	}
	return strings.Trim(b.String(), " ,")
}

// TestLeaving holds D-25, draining hosts, CYC-4 and CYC-8 for an MD plan p, beside a slot plan of another group.
func TestLeaving(t *testing.T) {
	text := `stint: 1
dimensions: [ncpus, slots]
resource_groups: [{name: G, select: "select(zone == 1)"}, {name: S, select: "select(zone == 2)"}]
consumers: [{path: /A, reclaim_grace: 90s}]
slot_plans: [{resource_group: S, consumers: [{path: /A, policy: share_ratio}]}]
md_plans: [{name: p, placement: stacked, reclaim_budget: 3, release: confirmed, overdue_after: 60s, resource_groups: [{name: G}], consumers: [{path: /A}]}]
`
	p, err := plan.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := oracle.New(p)
	in := func(host, state string, zone float64) {
		o.SetHosts([]oracle.Host{{Name: host, State: state, Size: map[string]int64{"ncpus": 2, "slots": 2},
			Attr: map[string]any{"zone": zone}}}, false)
	}
	step := func(name, reclaims, releases, held string) {
		t.Helper()
		r := o.Cycle()
		if got := claims(r); got != reclaims {
			t.Errorf("%s: reclaims %q, want %q", name, got, reclaims)
		}
		if got := on(r.Releases); got != releases {
			t.Errorf("%s: releases %q, want %q", name, got, releases)
		}
		if got := on(r.Held); got != held {
			t.Errorf("%s: held %q, want %q", name, got, held)
		}
	}
	in("h1", "ok", 1)
	in("h2", "ok", 1)
	in("h3", "ok", 2)
	o.SetDemand("s", []oracle.Demand{
		{Plan: "p", Consumer: "/A", Allocation: "a", Units: 4, Size: map[string]int64{"ncpus": 1},
			MaxPerHost: plan.Unlimited},
		{Plan: "S", Consumer: "/A", Allocation: "a", Units: 4, MaxPerHost: plan.Unlimited}})
	step("both plans grant", "", "", "h1:2 h2:2 h3:2")
	in("h1", "draining", 1)
	in("h2", "ok", 0)
	step("the budget bears three", "h2:1 issued ownership_change, h1:2 issued drain", "", "h2:2 h1:2 h3:2")
	in("h1", "closed", 1)
	in("h2", "ok", 1)
	step("both are back", "h1:2 cancelled drain, h2:1 cancelled ownership_change", "", "h1:2 h2:2 h3:2")
	in("h1", "draining", 1)
	in("h2", "ok", 2)
	step("in another plan work is lost at once", "h1:2 issued drain", "h2:2host_lost", "h1:2 h2:2 h3:2")
	step("grace", "", "", "h1:2 h2:2 h3:2")
	step("the deadline has passed", "", "", "h1:2 h2:2 h3:2")
	step("clients do not confirm, and are overdue", "", "h1:2grace_expired", "h2:2 h3:2")
}

// TestFair plays MD-17: who has less for their ratio takes units back until it would
// be worse for the other, and waits for them.
func TestFair(t *testing.T) {
	c := oracle.New(policy(t, "ncpus, maxmem", "{path: /a}, {path: /b}", "consumers: [{path: /a}, {path: /b}]"))
	c.SetHosts(hosts([2]int64{4, 4}, [2]int64{2, 2}), true)
	c.SetDemand("s", []oracle.Demand{demand("/a", "", 9, [2]int64{1, 1})})
	want(t, c.Cycle(), map[string]float64{"/a held": 6}, "/a 3 pool_exhausted ncpus")
	c.SetDemand("t", []oracle.Demand{demand("/b", "", 9, [2]int64{2, 2})})
	r := c.Cycle()
	want(t, r, map[string]float64{"/a held": 6, "/b held": 0},
		"/a 3 over_quota ncpus", "/b 1 waiting_for_reclaim  /a", "/b 8 pool_exhausted ncpus")
	if len(r.Reclaims) != 1 || r.Reclaims[0].Units != 2 || r.Reclaims[0].For.Consumer != "/b" || r.Leaving != 2 ||
		r.Promised != 1 {
		t.Errorf("reclaims %+v, %d leaving, %d promised", r.Reclaims, r.Leaving, r.Promised)
	}
	r = c.Cycle()
	want(t, r, map[string]float64{"/a held": 4, "/b held": 1}, "/a 5 over_quota ncpus", "/b 8 pool_exhausted ncpus")
	if r.Leaving != 0 || r.Promised != 0 {
		t.Errorf("at rest %d are leaving, %d promised", r.Leaving, r.Promised)
	}
}
