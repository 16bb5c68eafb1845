package verify

import (
	"strings"

	"github.com/stintd/stint/core/decision"
)

// Gangs (REQ-3): sub-allocations of which at least so many units are held, or none. Units under reclaim count as given
// back.

// gang tells whether a sub-allocation is one. What is gone from the policy is none any more: all of it is on its way
// back.
func (s *sub) gang() bool { return s != nil && s.least > 1 && s.plan != "" && !s.orphan }

// lower has what is wanted bound the least number (D-157).
func (s *sub) lower() { s.least = max(1, min(s.least, s.units)) }

// stay counts the units of each gang that are not under reclaim, at this point of a cycle.
func (v *verifier) stay() {
	v.stays = map[key]int64{}
	for k, s := range v.m.subs {
		if s.gang() {
			v.stays[k] = s.held
		}
	}
	if len(v.stays) == 0 {
		return
	}
	for at, p := range v.m.piles {
		if _, ok := v.stays[at.key]; ok {
			v.stays[at.key] -= p.leaving
		}
	}
}

// mustBeTogether is the attribute of which the hosts of a gang have one value, "" where it may be anywhere (D-108).
func (s *sub) mustBeTogether() string {
	if s.gang() && !strings.HasPrefix(s.together, "prefer ") {
		return s.together
	}
	return ""
}

// value is what a host has in an attribute, nil where it has nothing that is compared.
func (h *host) value(attribute string) any {
	switch {
	case h == nil:
		return nil
	case attribute == "host":
		return h.name
	}
	if _, is := h.attr[attribute].(bool); is {
		return nil
	}
	return h.attr[attribute]
}

// staying is on hosts of which values those gangs lie that must be together, nil being one; of what is not under
// reclaim.
func (v *verifier) staying() map[key]map[any]bool {
	on := map[key]map[any]bool{}
	for at, p := range v.m.piles {
		by := v.m.subs[at.key].mustBeTogether()
		if by == "" || p.units <= p.leaving {
			continue
		}
		if on[at.key] == nil {
			on[at.key] = map[any]bool{}
		}
		on[at.key][v.m.hosts[at.host].value(by)] = true
	}
	return on
}

// gathered checks that what gangs were granted that must be together lies on hosts with one value, which some host has
// of what they held before.
func (v *verifier) gathered() {
	given, had := map[key]map[any]bool{}, map[key]map[any]bool{}
	add := func(to map[key]map[any]bool, at spot, by string) {
		if to[at.key] == nil {
			to[at.key] = map[any]bool{}
		}
		to[at.key][v.m.hosts[at.host].value(by)] = true
	}
	for at, p := range v.m.piles {
		by := v.m.subs[at.key].mustBeTogether()
		if by == "" || v.dim() {
			continue
		}
		granted := int64(0)
		for _, n := range v.given[at] {
			granted += n
		}
		if granted > 0 {
			add(given, at, by)
		}
		if p.units-p.leaving > granted && !v.waited[at.key] {
			add(had, at, by)
		}
	}
	for k, values := range given {
		s := v.m.subs[k]
		v.is(k.about("REQ-3", "grants",
			"units of a gang together by %s are granted on hosts of which not all have one value", s.together),
			len(values) == 1 && !values[nil])
		for value := range values {
			v.is(k.about("REQ-3", "grants", "a gang together by %s is granted units where it has nothing", s.together),
				had[k] == nil || had[k][value])
		}
	}
}

// gangWaits tells whether a sub-allocation is a gang that holds nothing that stays.
func (v *verifier) gangWaits(k key) bool {
	n, ok := v.stays[k]
	return ok && n <= 0
}

// goesWhole tells whether all of a gang is under reclaim: so go units that no rule names, with those that one does.
func (v *verifier) goesWhole(k key) bool {
	return v.gangWaits(k) && v.m.subs[k].held > 0
}

// whole checks that no gang holds some units, and fewer than its least number, at one point of a cycle.
func (v *verifier) whole(table, when string) {
	v.stay()
	if v.dim() {
		return
	}
	for k, n := range v.stays {
		least := v.m.subs[k].least
		v.is(k.about("REQ-3", table, "a gang of at least %d holds %d that are not under reclaim, %s", least, n, when),
			n <= 0 || n >= least)
	}
}

// draining checks that of gangs that drain whole some unit is on a host that drains.
func (v *verifier) draining() {
	drains := map[key]bool{}
	for _, c := range v.newClaims {
		if h := v.m.hosts[c.host]; c.reason == "drain" && v.goesWhole(c.key) {
			drains[c.key] = drains[c.key] || h != nil && !h.gone && h.state == "draining"
		}
	}
	for k, some := range drains {
		v.is(k.about("REQ-3", "reclaims", "all of a gang goes with reason drain, and no host of it drains"), some)
	}
}

// broken checks releases of the cause gang_broken: they are of a gang, are fewer units than its least number, and leave
// nothing of it.
func (v *verifier) broken() {
	for k, units := range v.breaks {
		s := v.m.subs[k]
		if !v.is(k.about("REQ-3", "releases", "cause gang_broken of a sub-allocation that is no gang"), s.gang()) ||
			v.dim() {
			continue
		}
		v.is(k.about("REQ-3", "releases", "cause gang_broken of %d units, which are enough for a gang of at least %d",
			units, s.least), units < s.least)
		v.equal(k.about("REQ-3", "releases", "units that stay of a gang that is broken"), 0, v.stays[k])
	}
}

// ganged checks a row of the reason gang: all that it wants is short, and the detail tells how many would fit.
func (v *verifier) ganged(s *sub, f shortfallRow) {
	say := func(ok bool, why string) { v.is(f.about("REQ-3", "shortfalls", "reason gang, and %s", why), ok) }
	if !v.dim() {
		say(s.gang(), "it is no gang")
		say(v.gangWaits(f.key), "some of it is held")
	}
	g, ok := decision.ReadGangDetail(f.detail)
	if say(ok, "the detail does not tell how many would fit"); !ok {
		return
	}
	known, is := reasonsOf[g.Reason]
	say(is && g.Reason != "gang" && (known.md || known.slot), "the next unit's reason is none")
	v.equal(f.about("REQ-3", "shortfalls", "the least number that the detail names"), s.least, g.Least)
	say(g.Fit <= g.Least, "more would fit than it needs") // room may have come free after its turn
}
