package verify

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

func instant(us int64) string { return time.UnixMicro(us).UTC().Format(time.RFC3339Nano) }

// about is a fault of what a sub-allocation holds on a host.
func (at spot) about(rule, table, format string, args ...any) Fault {
	return Fault{Rule: rule, Table: table, Plan: at.plan, Consumer: at.consumer, Allocation: at.allocation, Sub: at.sub,
		Host: at.host, What: fmt.Sprintf(format, args...)}
}

func (k key) about(rule, table, format string, args ...any) Fault {
	return spot{k, ""}.about(rule, table, format, args...)
}

// before notes what a spot held before the cycle's events.
func (v *verifier) before(at spot) {
	if _, ok := v.begun[at]; ok {
		return
	}
	n := int64(0)
	if p := v.m.piles[at]; p != nil {
		n = p.units
	}
	v.begun[at] = n
}

// releases takes the cycle's releases off what is held, and checks why they came.
func (v *verifier) releases() {
	t := v.table["releases"]
	keys, host, units, cause := t.keys(), t.words["host"], t.number["units"], t.words["cause"]
	labels, reclaim, device := t.labels(), t.number["reclaim"], t.words["device"]
	gone, overrun := map[key]bool{}, map[key]int64{}
	v.breaks = map[key]int64{}
	lost := map[string]bool{}
	for row := range t.n {
		n, why := units.at(row), cause.text(row)
		at := v.released(spot{keys(row), host.text(row)}, labels(row), device.text(row), reclaim.at(row), why)
		v.is(at.about("log", "releases", "a row of %d units", n), n > 0)
		v.before(at)
		v.loses(at, row, n, reclaim.at(row), why)
		p := v.m.piles[at]
		v.seated("releases", at, device.text(row), why == "host_lost")
		v.rise(at, device.text(row), n)
		v.takeOff(at, labels(row), n)
		v.settleClaim(at, device.text(row), reclaim.at(row), n, why)
		switch why {
		case "client", "done":
			how := map[string]int{"client": 0, "done": 1}[why]
			if v.equal(at.about("INV-9", "releases", "units that clients gave back, of which none are held"), 0,
				n*missing(p)); p != nil {
				p.back[how] += n
				if p.seats != nil {
					if p.backOn == nil {
						p.backOn = map[string]int64{}
					}
					p.backOn[device.text(row)] += n
				}
				v.m.given = append(v.m.given, p)
			}
		case "demand_gone":
			gone[at.key] = true
		case "host_lost":
			lost[at.host] = true
			if h := v.m.hosts[at.host]; h != nil && !h.gone && h.state != "unavail" && h.plan != "" {
				overrun[at.key] += n
			}
		case "gang_broken":
			if v.breaks[at.key] += 0; reclaim.at(row) == 0 {
				v.breaks[at.key] += n
			}
		case "grace_expired":
			v.is(at.about("CYC-8", "releases", "cause grace_expired, and it is under no reclaim"), reclaim.at(row) > 0)
		default:
			v.fault(at.about("log", "releases", "cause %q is none", why))
		}
	}
	for _, p := range v.m.given {
		v.cameBack(p)
	}
	v.m.given = v.m.given[:0]
	clear(v.m.vague)
	v.settled(gone, lost, overrun)
	v.forget()
	v.expired()
}

// missing is 1 where nothing is held, else 0.
func missing(p *pile) int64 {
	if p == nil {
		return 1
	}
	return 0
}

// takeOff takes released units off a pile. Releases do not tell the pool.
func (v *verifier) takeOff(at spot, l label, n int64) {
	p := v.m.piles[at]
	if p == nil {
		v.equal(at.about("INV-9", "releases", "more units are released than are held"), 0, n)
		return
	}
	if !v.equal(at.about("INV-9", "releases", "more units are released than are held"), min(n, p.units), n) {
		n = p.units
	}
	var pools []label
	for have := range p.label {
		if have.origin == l.origin && have.lender == l.lender || have == (label{}) {
			pools = append(pools, have)
		}
	}
	// what is not known last
	slices.SortFunc(pools, func(a, b label) int { return len(b.origin+b.pool) - len(a.origin+a.pool) })
	p.loose = p.loose || len(pools) > 1
	for _, have := range pools {
		take := min(n, p.label[have])
		v.m.put(at, have, -take, 0)
		n -= take
	}
	if n == 0 {
		return
	}
	before := int64(0) // of what came back by an input before that by which the host left the plan
	for was, units := range p.was {
		if p.left == v.cycle && was.origin == l.origin && was.lender == l.lender {
			before += units
		}
	}
	if !v.strange[at.plan] && n > before {
		v.equal(at.about("INV-9", "releases", "released as %s, of which fewer are held", l.words()), 0, n)
	}
	for _, have := range slices.Collect(maps.Keys(p.label)) {
		take := min(n, p.label[have])
		v.m.put(at, have, -take, 0)
		n -= take
	}
}

func (l label) words() string {
	text := l.origin
	if l.pool != "" {
		text += " of " + l.pool
	}
	if l.lender != "" {
		text += " from " + l.lender
	}
	return text
}

// settled checks what CYC-5 released: no more than it must. Overrun is what was released afterwards on hosts that hold
// more than they have.
func (v *verifier) settled(gone map[key]bool, lost map[string]bool, overrun map[key]int64) {
	for k := range gone {
		if s := v.m.subs[k]; s == nil {
			v.fault(k.about("CYC-5", "releases", "cause demand_gone of a sub-allocation that nobody knows"))
		} else if v.breaks[k] == 0 { // else no more is held than is wanted, and maybe less
			v.equal(k.about("CYC-5", "releases", "held after what is beyond demand was released (demand_gone)"),
				s.units, s.held+overrun[k])
		}
	}
	for name := range lost {
		h := v.m.hosts[name]
		if h == nil || h.gone || h.state == "unavail" || h.plan == "" {
			continue
		}
		v.is(Fault{Rule: "CYC-5", Table: "releases", Plan: h.plan, Host: name,
			What: "cause host_lost, and neither is the host lost nor did it come to have less"},
			v.resized || v.overrun[name])
	}
}

// grants adds the cycle's grants to what is held.
func (v *verifier) grants() {
	t := v.table["grants"]
	keys, host, units, labels, source := t.keys(), t.words["host"], t.number["units"], t.labels(), t.words["source"]
	type rowKey struct {
		spot
		label
		device string
	}
	device, twice := t.words["device"], map[rowKey]bool{}
	for row := range t.n {
		at, l, n := spot{keys(row), host.text(row)}, labels(row), units.at(row)
		id := rowKey{at, l, device.text(row)}
		v.is(at.about("log", "grants", "a row of %d units", n), n > 0)
		v.before(at)
		if v.given[at] == nil {
			v.given[at] = map[label]int64{}
		}
		v.is(at.about("log", "grants", "a row of %s stands twice", l.words()), !twice[id])
		twice[id] = true
		v.seated("grants", at, id.device, false)
		v.given[at][l] += n
		s := v.m.subs[at.key]
		if !v.is(at.about("INV-9", "grants", "nobody wants this sub-allocation"), s != nil) {
			v.m.sit(v.m.put(at, l, n, v.cycle+1), id.device, n)
			continue
		}
		v.is(Fault{Rule: "log", Table: "grants", Plan: at.plan, Consumer: at.consumer, Allocation: at.allocation,
			Host: at.host,
			What: "the source is another", Expected: s.source, Got: source.text(row)}, s.source == source.text(row))
		p := v.m.put(at, l, n, v.cycle+1)
		v.m.sit(p, id.device, n)
		v.mayGrant(s, p, at, l)
	}
}

// mayGrant checks where a unit was put and what it counts as.
func (v *verifier) mayGrant(s *sub, p *pile, at spot, l label) {
	h := v.m.hosts[at.host]
	state, plan := "no host", ""
	if h != nil {
		state, plan = h.state, h.plan
	}
	v.is(Fault{Rule: "INV-1", Table: "grants", Plan: at.plan, Consumer: at.consumer, Allocation: at.allocation,
		Host: at.host,
		What: "a grant on a host that is not ok", Expected: "ok", Got: state}, state == "ok")
	v.is(Fault{Rule: "INV-1", Table: "grants", Plan: at.plan, Consumer: at.consumer, Allocation: at.allocation,
		Host: at.host,
		What: "a grant on a host of another plan", Expected: at.plan, Got: plan}, plan == at.plan)
	if h != nil && s.cond != nil {
		v.is(at.about("REQ-1", "grants", "the host does not meet the requirement"), s.cond.truth(h, v.m))
	}
	if s.perHost != none {
		v.is(at.about("INV-4", "grants", "max_per_host is %d, and %d units are held", s.perHost, p.units),
			p.units <= s.perHost)
	}
	t := v.m.policy.byName[at.plan]
	if t == nil {
		v.fault(at.about("log", "grants", "there is no such plan"))
		return
	}
	v.is(at.about("INV-9", "grants", "its consumer is no leaf of the plan"),
		t.member[at.consumer] && v.m.policy.leaf(at.consumer))
	if why := v.badLabel(t, at, l); why != "" {
		v.fault(at.about("log", "grants", "granted as %s: %s", l.words(), why))
	} else {
		v.report.Checks["log"]++
	}
}

// badLabel tells why units that are granted cannot count as what they are said to, "" when they can.
func (v *verifier) badLabel(t *plan, at spot, l label) string {
	e := t.at(v.now, v.m.policy.zone).entry[at.consumer]
	if e == nil {
		return ""
	}
	pooled := l.pool != "" && (l.pool == "/" || under(at.consumer, l.pool)) && l.pool != at.consumer
	switch {
	case t.md && v.strange[t.name]:
	case t.md:
		return v.misplaced(t, at, l)
	case e.kind == "hybrid":
		if l != (label{origin: "hybrid"}) {
			return "its policy is hybrid"
		}
	case l.origin == "owned":
		if e.kind != "ownership" || l.pool != "" || l.lender != "" {
			return "what is owned is of no pool and not lent, under the policy ownership"
		}
	case l.origin == "share_pool":
		if !pooled || l.lender != "" {
			return "a share pool is that of a consumer above it, and not lent"
		}
	case l.origin == "borrowed":
		lender := t.at(v.now, v.m.policy.zone).entry[l.lender]
		if l.pool != "" || lender == nil || lender.kind != "ownership" || l.lender == at.consumer ||
			!v.m.policy.leaf(l.lender) {
			return "a lender is another leaf that owns"
		}
	default:
		return "a slot plan has no such origin for it"
	}
	return ""
}

// keyframe holds what is held against what a keyframe says.
func (v *verifier) keyframe() {
	t := v.table["holdings"]
	if t == nil {
		return
	}
	keys, labels, host, units, granted := t.keys(), t.labels(), t.words["host"], t.number["units"], t.number["granted"]
	source := t.words["source"]
	device, lie := t.words["device"], map[spot]map[string]int64{}
	stated := map[spot]map[label]int64{}
	lots := map[spot]map[int64]int64{}
	for row := range t.n {
		at := spot{keys(row), host.text(row)}
		if stated[at] == nil {
			stated[at], lots[at], lie[at] = map[label]int64{}, map[int64]int64{}, map[string]int64{}
		}
		v.seated("holdings", at, device.text(row), false)
		lie[at][device.text(row)] += units.at(row)
		stated[at][labels(row)] += units.at(row)
		lots[at][granted.at(row)] += units.at(row)
		v.is(at.about("log", "holdings", "a row of %d units", units.at(row)), units.at(row) > 0)
		if s := v.m.subs[at.key]; s != nil {
			v.is(Fault{Rule: "log", Table: "holdings", Plan: at.plan, Consumer: at.consumer, Allocation: at.allocation,
				Host: at.host,
				What: "the source is another", Expected: s.source, Got: source.text(row)}, s.source == source.text(row))
		}
	}
	relabel := map[string]bool{} // plan and leaf
	v.stale(relabel)
	for at, p := range v.m.piles {
		if s := v.m.subs[at.key]; s != nil && s.orphan {
			continue // what a consumer holds that is gone from the policy is in no keyframe
		}
		total := int64(0)
		for _, n := range stated[at] {
			total += n
		}
		v.equal(at.about("INV-9", "holdings", "held by the grants and releases so far"), p.units, total)
		for cycle, n := range lots[at] {
			v.is(at.about("INV-9", "holdings", "%d units of cycle %d, in which %d were granted", n, cycle,
				p.lots[cycle]), n <= p.lots[cycle])
		}
	}
	for at, have := range stated {
		if v.m.piles[at] == nil {
			total := int64(0)
			for _, n := range have {
				total += n
			}
			v.equal(at.about("INV-9", "holdings", "held by the grants and releases so far"), 0, total)
		}
	}
	v.deviceFrame(lie)
	v.counted(stated, relabel)
}
