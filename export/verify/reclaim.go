package verify

import (
	"fmt"
	"maps"
	"slices"
)

// claim is units of a spot under reclaim.
type claim struct {
	spot
	number        int64
	units         int64
	reason        string
	forConsumer   string
	forAllocation string
	forSub        string
	issued        int64
	deadline      int64
	sameCycle     int64 // the cycle in which it was issued
	device        string
}

// taker is the sub-allocation that units are taken for.
func (c *claim) taker() key { return key{c.plan, c.forConsumer, c.forAllocation, c.forSub, ""} }

// reasons are the reasons of reclaims: whether a taker stands behind them, and in which plans they are.
var reasons = map[string]struct{ taker, slot, md bool }{
	"recall": {true, true, true}, "fair_share": {true, true, true}, "over_limit": {false, true, true},
	"reserve": {false, true, true}, "ownership_change": {false, true, true}, "window_switch": {false, true, true},
	"plan_change": {false, true, true}, "drain": {false, true, true},
	"gang": {false, false, true},
}

// reclaims takes note of what is put under reclaim, and of what is cancelled.
func (v *verifier) reclaims() { v.reclaimed(func(row int, _ *claim) bool { return !v.early[row] }) }

// detained takes note of what orphans hold and is put under reclaim before hosts are settled (D-37), where releases
// name it already.
func (v *verifier) detained() {
	v.early = map[int]bool{}
	named, number := map[int64]bool{}, v.table["releases"].number["reclaim"]
	for row := range v.table["releases"].n {
		if n := number.at(row); n > 0 && v.m.claims[n] == nil {
			named[n] = true
		}
	}
	if len(named) == 0 {
		return
	}
	said := v.table["reclaims"].words["action"]
	v.reclaimed(func(row int, c *claim) bool {
		s := v.m.subs[c.key]
		if s != nil && s.orphan && (said.text(row) == "cancelled" || named[c.number] && c.reason == "plan_change") {
			v.early[row] = true
		}
		return v.early[row]
	})
}

// reclaimed takes note of the rows of reclaims that a function picks.
func (v *verifier) reclaimed(pick func(row int, c *claim) bool) {
	t := v.table["reclaims"]
	keys, host, units, action := t.keys(), t.words["host"], t.number["units"], t.words["action"]
	number, reason := t.number["reclaim"], t.words["reason"]
	issued, deadline := t.number["issued"], t.number["deadline"]
	forConsumer, forAllocation, forSub := t.words["for_consumer"], t.words["for_allocation"], t.words["for_sub"]
	device := t.words["device"]
	for row := range t.n {
		c := &claim{spot: v.m.located(spot{keys(row), host.text(row)}), number: number.at(row), units: units.at(row),
			reason:      reason.text(row),
			forConsumer: forConsumer.text(row), forAllocation: forAllocation.text(row), forSub: forSub.text(row),
			issued: issued.at(row), deadline: deadline.at(row), sameCycle: v.cycle, device: device.text(row)}
		if !pick(row, c) {
			continue
		}
		v.is(c.about("log", "reclaims", "a row of %d units", c.units), c.units > 0)
		v.before(c.spot)
		if !v.wellFormed(c) {
			continue
		}
		v.seated("reclaims", c.spot, c.device, false)
		switch action.text(row) {
		case "issued":
			v.issue(c)
		case "cancelled":
			v.cancel(c)
		default:
			v.fault(c.about("log", "reclaims", "action %q is none", action.text(row)))
		}
	}
}

// wellFormed checks a row by itself: its reason, and that it names who shall have the units, or a rule (INV-7).
func (v *verifier) wellFormed(c *claim) bool {
	r, ok := reasons[c.reason]
	t := v.m.policy.byName[c.plan]
	switch {
	case !v.is(c.about("INV-7", "reclaims", "reason %q is none", c.reason), ok):
		return false
	case !v.is(c.about("log", "reclaims", "there is no such plan"), t != nil):
		return false
	}
	v.is(c.about("INV-7", "reclaims", "reason %s is not for this kind of plan", c.reason),
		r.md && t.md || r.slot && !t.md)
	if v.is(c.about("INV-7", "reclaims", "reason %s, for consumer %q: a taker must stand behind it, or else must not",
		c.reason, c.forConsumer),
		r.taker == (c.forConsumer != "")) && r.taker {
		k := c.taker()
		v.is(c.about("INV-7", "reclaims", "taken from itself"), k != c.key)
	}
	return true
}

// issue puts units under reclaim.
func (v *verifier) issue(c *claim) {
	t := v.m.policy.byName[c.plan]
	p := v.m.piles[c.spot]
	held := int64(0)
	if p != nil {
		held = p.units - p.leaving
	}
	if !v.is(c.about("INV-9", "reclaims", "%d units are put under reclaim, of %d that are not", c.units, held),
		c.units <= held) && p == nil {
		return
	}
	v.swap(c, c.key)
	if c.forConsumer != "" { // of what is cancelled, the taker may be gone from the policy
		v.is(c.about("INV-7", "reclaims", "the taker %s %s %s is no sub-allocation", c.forConsumer, c.forAllocation,
			c.forSub),
			v.m.subs[c.taker()] != nil)
	}
	v.equal(c.about("log", "reclaims", "issued is not the cycle's now"), v.now, c.issued)
	v.deadline(t, c)
	v.newClaims = append(v.newClaims, c)
	for _, other := range v.m.claims[c.number] {
		v.is(c.about("CYC-6", "reclaims", "reclaim %d is for another taker or reason than its other rows", c.number),
			other.reason == c.reason && other.forConsumer == c.forConsumer && other.forAllocation == c.forAllocation &&
				other.forSub == c.forSub)
		v.is(c.about("CYC-6", "reclaims", "reclaim %d was issued in an earlier cycle", c.number),
			other.sameCycle == c.sameCycle)
		v.is(c.about("CYC-6", "reclaims", "reclaim %d is on host %s too", c.number, other.host),
			other.host == c.host || liesElsewhere(t, c))
	}
	if v.firstKnown == 0 || c.number < v.firstKnown {
		v.firstKnown = c.number
	}
	v.m.claims[c.number] = append(v.m.claims[c.number], c)
	p.leaving += c.units
	if p.leave(c.device, c.units); p.seats != nil && p.seats[untold] == 0 {
		v.is(c.about("INV-9", "reclaims", "%d units on the devices %q are under reclaim, and %d lie there",
			p.leavingOn[c.device], c.device, p.seats[c.device]),
			p.leavingOn[c.device] <= p.seats[c.device])
	}
	v.m.leaving += c.units
	v.issued[c.plan] = true
	if reasons[c.reason].taker {
		v.takers[c.plan] = true
	}
}

// deadline checks the grace that a victim gets: in a slot plan its consumer's; in an MD plan the smallest that is set.
func (v *verifier) deadline(t *plan, c *claim) {
	grace, ok := v.m.policy.grace[c.consumer]
	if s := v.m.subs[c.key]; s != nil && s.orphan {
		grace, ok = s.grace, true
	}
	f := Fault{Rule: "SLOT-9", Table: "reclaims", Plan: c.plan, Consumer: c.consumer, Allocation: c.allocation,
		Host: c.host,
		What: "the deadline is not issued + the holder's grace", Expected: instant(c.issued + grace),
		Got: instant(c.deadline)}
	switch {
	case !ok:
	case slices.ContainsFunc(v.cancelled, func(o *claim) bool { return o.spot == c.spot && o.deadline == c.deadline }):
		// gone over to another taker
	case t.subtle() && c.reason != "plan_change": // smaller, maybe: graceFor tells
		f.Rule, f.What = "MD-10", "the deadline is after issued + the holder's grace"
		v.is(f, c.deadline <= c.issued+grace && c.deadline >= c.issued)
	default:
		v.is(f, c.deadline == c.issued+grace)
	}
}

// causes checks the reasons of what was put under reclaim, when it is known what it counts as: that may have
// changed in the cycle, before.
func (v *verifier) causes() {
	for _, c := range v.newClaims {
		p, t := v.m.piles[c.spot], v.m.policy.byName[c.plan]
		if p == nil || v.goesWhole(c.key) {
			continue
		}
		if v.cause(t, c); t.md && !v.hazy[t.name] {
			about := v.lawful(t, c, p)
			if v.is(c.about("INV-7", "reclaims", "reason %s, and nothing stands behind it for units that count as %s",
				c.reason, list(p.label)), len(about) > 0) && t.subtle() {
				v.graceFor(t, c, about)
			}
		}
	}
}

// cause checks a reason against what it says: hosts that drain or left, policies and windows that changed, what the
// units count as.
func (v *verifier) cause(t *plan, c *claim) {
	h, p := v.m.hosts[c.host], v.m.piles[c.spot]
	s := v.m.subs[c.key]
	say := func(ok bool, why string) {
		v.is(c.about("INV-7", "reclaims", "reason %s, and %s", c.reason, why), ok)
	}
	in := h != nil && !h.gone && h.plan == c.plan
	orphan := s != nil && s.orphan
	e := t.at(v.now, v.m.policy.zone).entry[c.consumer]
	switch c.reason {
	case "drain":
		say(in && h.state == "draining", "the host does not drain")
	case "ownership_change":
		say(!in || t.md && t.owners, "the host is in the plan")
	case "plan_change":
		foreign := e != nil && p.has(func(l label) bool { // as is what is borrowed of a lender that is hybrid by now
			return (l.origin == "hybrid") != (e.kind == "hybrid") || l.lender != "" && v.hybrid(t, l.lender)
		})
		say(orphan || t.exclusive != "" || !t.md && foreign && v.policyCycle > 1,
			"neither is its consumer gone nor its policy another")
	case "window_switch":
		say(v.switches[c.plan] && (!t.md || v.nears(t)), "no other window of the plan opened, or is to")
	case "over_limit":
		say(!orphan && in, "the host or its consumer is not in the plan")
		say(h != nil && h.state != "draining", "the host drains")
		if t.md {
			say(limited(t.at(v.now, v.m.policy.zone), c.consumer), "no share limit or ratio of 0 stands above it")
		}
	case "gang":
		say(false, "its gang does not go whole") // those that do are not looked at one by one
	case "reserve":
		say(t.md && t.owners || !t.md && v.hybrid(t, c.consumer), "nothing is reserved in such a plan")
	case "recall":
		say(c.forConsumer != c.consumer, "it is the holder's own")
		if t.md {
			say(t.owners, "nobody owns anything in the plan")
		} else {
			say(v.hybrid(t, c.consumer) || p.has(func(l label) bool {
				return l.origin == "borrowed" && l.lender == c.forConsumer || l.origin == "hybrid"
			}),
				"it was not lent by the taker")
		}
	case "fair_share":
		say(t.share || t.exclusive != "" || v.hybrid(t, c.consumer), "share_reclaim is false")
		if !t.md {
			say(c.forConsumer != c.consumer || t.exclusive != "", "it is the holder's own")
			say(p.has(func(l label) bool { return l.origin == "share_pool" || l.origin == "hybrid" }),
				"it is from no pool")
		}
	}
	if reasons[c.reason].taker {
		say(in && h.state == "ok", "the host is not ok")
	}
}

// limited tells whether a share limit or a ratio of 0 stands above a leaf.
func limited(w *window, leaf string) bool {
	for path := leaf; path != "/" && path != ""; path = parentOf(path) {
		if e := w.entry[path]; e != nil && (len(e.limit) > 0 || e.ratio == 0) {
			return true
		}
	}
	return false
}

func (p *pile) has(is func(l label) bool) bool {
	for l := range p.label {
		if is(l) || l.origin == "" {
			return true
		}
	}
	return false
}

// cancel takes units off their reclaim.
func (v *verifier) cancel(c *claim) {
	v.cancelled = append(v.cancelled, c)
	v.swap(c, c.taker())
	left := c.units
	for _, was := range v.m.claims[c.number] {
		if was.spot != c.spot || was.deadline != c.deadline || left == 0 || !sameDevices(was.device, c.device) {
			continue
		}
		v.is(c.about("CYC-6", "reclaims",
			"reclaim %d is cancelled with another reason, taker or date than it was issued with", c.number),
			was.reason == c.reason && was.forConsumer == c.forConsumer && was.forAllocation == c.forAllocation &&
				was.forSub == c.forSub && was.issued == c.issued)
		n := min(left, was.units)
		left -= n
		v.end(was, n)
	}
	if !v.unknown(c.number) {
		v.equal(c.about("CYC-6", "reclaims", "reclaim %d is cancelled beyond what is under it", c.number), 0, left)
	}
	v.drop(c.number)
}

// swap counts that something was taken for a share from a sub-allocation, or from what was promised to it.
func (v *verifier) swap(c *claim, from key) {
	if c.reason == "fair_share" && v.m.swaps[from.plan] != nil {
		v.m.swaps[from.plan][from]++
	}
}

// swapsAnew counts from 0 for those of whom fair share may take again: all when the policy is another, and those of
// leaves that ask for something else than in the cycle before. Hosts and windows end turns too: what is counted from
// before that keeps some from being checked.
func (v *verifier) swapsAnew() {
	for _, t := range v.m.policy.plans {
		if v.policyCycle == v.cycle || v.m.swaps[t.name] == nil && v.clearUS == 0 {
			v.m.swaps[t.name] = map[key]int{}
		}
	}
	if v.inputs == 0 && len(v.silent) == 0 {
		return
	}
	clear(v.m.hidden)
	others := map[[2]string]bool{}
	for k, s := range v.m.subs {
		if s.units != s.was {
			s.was, others[[2]string{k.plan, k.consumer}] = s.units, true
		}
	}
	for _, swaps := range v.m.swaps {
		maps.DeleteFunc(swaps, func(k key, _ int) bool { return others[[2]string{k.plan, k.consumer}] })
	}
}

// turned tells whether a sub-allocation may have had all of its turns, so that nothing is taken for it any more
// (docs/shares.md). Turns are not in the log: each takes such a row.
func (v *verifier) turned(k key) bool {
	swaps := v.m.swaps[k.plan]
	return swaps == nil && v.clearUS > 0 || swaps[k] >= 3 || v.m.hidden[k.plan] >= 3
}

// unknown tells whether a reclaim was issued before what is known of them. Their numbers rise.
func (v *verifier) unknown(number int64) bool {
	return v.clearUS > 0 && (v.firstKnown == 0 || number < v.firstKnown)
}

// end takes units off a claim.
func (v *verifier) end(c *claim, n int64) {
	c.units -= n
	v.m.leaving -= n
	if p := v.m.piles[c.spot]; p != nil {
		p.leaving -= n
		p.leave(c.device, -n)
	}
}

// drop forgets claims under which nothing is any more.
func (v *verifier) drop(number int64) {
	list := slices.DeleteFunc(v.m.claims[number], func(c *claim) bool { return c.units == 0 })
	if v.m.claims[number] = list; len(list) == 0 {
		delete(v.m.claims, number)
	}
}

// settleClaim takes released units off the reclaim that they were under.
func (v *verifier) settleClaim(at spot, device string, number, n int64, why string) {
	if number == 0 {
		return
	}
	list := slices.Clone(v.m.claims[number])
	slices.SortStableFunc(list, func(a, b *claim) int { return int(min(1, max(-1, a.deadline-b.deadline))) })
	left := n
	for _, c := range list {
		if c.spot != at || left == 0 || !sameDevices(c.device, device) {
			continue
		}
		if why == "grace_expired" {
			v.due(c)
		}
		k := min(left, c.units)
		left -= k
		v.end(c, k)
	}
	if !v.unknown(number) {
		v.equal(at.about("CYC-6", "releases", "released beyond what is under reclaim %d", number), 0, left)
	}
	v.drop(number)
}

// due checks that a reclaim was due when it ended without the client.
func (v *verifier) due(c *claim) {
	t := v.m.policy.byName[c.plan]
	if t == nil {
		return
	}
	at := c.deadline
	if t.confirmed {
		v.is(c.about("CYC-8", "releases", "reclaim %d ended by itself, and the plan waits for clients without end",
			c.number), t.overdue != none)
		at += max(0, t.overdue)
	}
	v.is(Fault{Rule: "CYC-8", Table: "releases", Plan: c.plan, Consumer: c.consumer, Allocation: c.allocation,
		Host: c.host,
		What: fmt.Sprintf("reclaim %d ended before it was due", c.number), Expected: instant(at), Got: instant(v.now)},
		v.now >= at)
}

// expired checks that nothing is under reclaim any more that was due before the cycle began.
func (v *verifier) expired() {
	for _, list := range v.m.claims {
		for _, c := range list {
			t := v.m.policy.byName[c.plan]
			if t == nil || c.sameCycle == v.cycle || t.confirmed && t.overdue == none {
				continue
			}
			at := c.deadline
			if t.confirmed {
				at += t.overdue
			}
			v.is(Fault{Rule: "CYC-8", Table: "releases", Plan: c.plan, Consumer: c.consumer, Allocation: c.allocation,
				Host: c.host,
				What: fmt.Sprintf("reclaim %d was due and did not end", c.number), Expected: instant(at),
				Got: instant(v.now)}, v.now < at)
		}
	}
}
