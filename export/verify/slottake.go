package verify

import (
	"cmp"
	"slices"
)

// taken checks what a slot plan's cycle took back against the rules that it names: from whom, how much, and whether it
// had to (SLOT-5, SLOT-12, SLOT-27, SLOT-30, PLAN-2).
func (v *verifier) taken(p *plan) {
	f := v.figures[p.name]
	if f == nil || f.vague || p.exclusive != "" || v.dim() {
		return
	}
	var claims []*claim
	for _, c := range v.newClaims {
		if s := v.m.subs[c.key]; c.plan == p.name && c.units > 0 && s != nil && !s.orphan &&
			f.w.entry[c.consumer] != nil && v.m.piles[c.spot] != nil && !v.goesWhole(c.key) {
			claims = append(claims, c)
		}
	}
	if len(claims) > 0 {
		v.fromClosed(p, claims)
		v.switchTakes(p, f, claims)
		v.newBeforeOld(p, f, claims)
		v.sharesFirst(p, f, claims)
		v.hybridTakes(p, f, claims)
	}
	v.limitsKept(p, f)
}

// serves notes for whom anything is under reclaim as the cycle begins.
func (v *verifier) serves() {
	v.served = map[string]bool{}
	for _, list := range v.m.claims {
		for _, c := range list {
			v.served[c.plan+c.forConsumer] = true
		}
	}
}

// calmBefore tells whether nothing of a plan was under reclaim before the cycle's reclaims, so that all that is now
// comes from these.
func (v *verifier) calmBefore(p *plan) bool {
	for _, list := range v.m.claims {
		for _, c := range list {
			if c.plan == p.name && c.sameCycle != v.cycle {
				return false
			}
		}
	}
	return !slices.ContainsFunc(v.cancelled, func(c *claim) bool { return c.plan == p.name })
}

// open tells whether a host is an ok one of a plan.
func (v *verifier) open(p *plan, name string) bool {
	h := v.m.hosts[name]
	return h != nil && !h.gone && h.plan == p.name && h.state == "ok"
}

// fromClosed checks that what is beyond a limit or a pool goes from ok hosts first (SLOT-12): none of a leaf's units
// goes from another host while units of the same size and kind stay with the leaf on one.
func (v *verifier) fromClosed(p *plan, claims []*claim) {
	for _, c := range claims {
		if c.reason != "over_limit" || v.open(p, c.host) {
			continue
		}
		from, stays := v.m.piles[c.spot], ""
		for at, pile := range v.m.piles {
			if at.plan == p.name && at.consumer == c.consumer && pile.units > pile.leaving &&
				pile.size[0] == from.size[0] && v.open(p, at.host) &&
				len(pile.label) == 1 && len(from.label) == 1 && sameKeys(pile.label, from.label) && v.given[at] == nil {
				stays = at.host
			}
		}
		v.is(c.about("SLOT-12", "reclaims", "reason over_limit, the host is closed, and a unit like it stays on %s",
			stays), stays == "")
	}
}

func sameKeys(a, b map[label]int64) bool {
	for l := range a {
		if _, ok := b[l]; !ok {
			return false
		}
	}
	return true
}

// switchTakes checks what goes at a switch between hybrid and ownership (PLAN-2): what is lent or borrowed, and of the
// rest exactly what is beyond what will be owned: with a unit that goes its leaf would have more than that. Where
// another window is near, that may be the cause; so may the one that opened, now or before: of what it left for later
// the units from before it go.
func (v *verifier) switchTakes(p *plan, f *slots, claims []*claim) {
	claims = slices.DeleteFunc(slices.Clone(claims), func(c *claim) bool { return c.reason != "window_switch" })
	if len(claims) == 0 {
		return
	}
	windows := []*ownUse{v.ownInUse(p, f)}
	if v.nears(p) {
		next := v.ownInUse(p, v.entitleBy(p, p.at(v.now+p.lead, v.m.policy.zone)))
		windows[0].late = !v.opened(p)
		windows = append(windows, next)
	}
	for _, c := range claims {
		owns := int64(0)
		lawful := slices.ContainsFunc(windows, func(w *ownUse) bool {
			own, beyond := v.beyondOwned(p, w, c)
			owns = max(owns, own)
			return beyond
		})
		v.is(c.about("PLAN-2", "reclaims", "reason window_switch, and with it the consumer would hold no more than "+
			"the %d slots that it owns", owns), lawful)
	}
}

// ownUse is, by leaf, how many slots of its own it uses or lends under a window, less those under reclaim, and whether
// that is not sure, as only some units of a holding go, and which is not told.
type ownUse struct {
	*slots
	net    map[string]int64
	unsure map[string]bool
	late   bool // only what its switch left for later goes by it
}

func (v *verifier) ownInUse(p *plan, f *slots) *ownUse {
	use, others := &ownUse{slots: f, net: map[string]int64{}, unsure: map[string]bool{}}, map[spot]int64{}
	for _, c := range v.newClaims { // what goes for other reasons is looked at after the switch
		if c.reason != "window_switch" {
			others[c.spot] += c.units
		}
	}
	for at, pile := range v.m.piles {
		if at.plan != p.name || pile.orphan {
			continue
		}
		e, counts := f.w.entry[at.consumer], map[string]int64{}
		for l, n := range pile.label {
			if !loaned(l) || e != nil && e.kind == "hybrid" && l.origin == "share_pool" {
				counts[at.consumer] += n
			}
			if l.lender != "" {
				counts[l.lender] += n
			}
		}
		leaving := pile.leaving - others[at]
		for whose, n := range counts {
			use.net[whose] += n * pile.size[0]
			if n == pile.units {
				use.net[whose] -= leaving * pile.size[0]
			} else {
				use.unsure[whose] = use.unsure[whose] || leaving > 0
			}
		}
	}
	return use
}

// beyondOwned gives what the leaf of a claim owns under a window, and whether the claim is of a loan, or the leaf would
// have more than it owns with a unit of it. It is true as well where the window does not tell.
func (v *verifier) beyondOwned(p *plan, w *ownUse, c *claim) (owns int64, beyond bool) {
	pile, e := v.m.piles[c.spot], w.w.entry[c.consumer]
	foreign := e != nil && pile.has(func(l label) bool { return (l.origin == "hybrid") != (e.kind == "hybrid") })
	if w.late && !foreign {
		return 0, false
	}
	if e == nil || e.kind == "share_ratio" || w.unsure[c.consumer] || v.capMay(p, w.slots, c.consumer) || !foreign {
		return 0, true // other figures of the window may take it
	}
	owns = w.owned[c.consumer]
	if e.kind == "hybrid" {
		owns = w.scaled[c.consumer]
	}
	return owns, pile.has(loaned) || w.net[c.consumer]+pile.size[0] > owns
}

// loaned tells whether units count as borrowed or drawn from a pool, or it is not known as what.
func loaned(l label) bool { return l.origin != "hybrid" && l.origin != "owned" }

// capMay tells whether a share.max or limit stands above a leaf.
func (v *verifier) capMay(p *plan, f *slots, leaf string) bool {
	for path := leaf; path != "/" && path != ""; path = parentOf(path) {
		if e := f.w.entry[path]; e == nil || e.most != none {
			return true
		}
	}
	return false
}

// newBeforeOld checks that running work gets what it could be relabelled to before new work of the same leaf does
// (SLOT-12).
func (v *verifier) newBeforeOld(p *plan, f *slots, claims []*claim) {
	granted := map[string]map[label]int64{}
	for at, labels := range v.given {
		for l, n := range labels {
			if at.plan != p.name || l.origin == "hybrid" || v.m.subs[at.key] == nil {
				continue
			}
			if granted[at.consumer] == nil {
				granted[at.consumer] = map[label]int64{}
			}
			granted[at.consumer][label{origin: l.origin, lender: l.lender}] += n * v.m.subs[at.key].size[0]
		}
	}
	for _, c := range claims {
		if c.reason != "over_limit" || granted[c.consumer] == nil || f.w.entry[c.consumer].kind == "hybrid" ||
			v.taking(p, c.consumer) {
			continue
		}
		pile := v.m.piles[c.spot]
		for l, n := range granted[c.consumer] {
			same := len(pile.label) != 1 // it may be what its account has too much of
			for own := range pile.label {
				same = same || own.origin == l.origin && (own.lender == l.lender || l.origin == "share_pool")
			}
			v.is(c.about("SLOT-12", "reclaims", "reason over_limit, and new units of the consumer got %d slots as %s, "+
				"to which it could have been relabelled", n, l.words()),
				same || n < pile.size[0])
		}
	}
}

// taking tells whether anything was under reclaim for a leaf before the cycle.
func (v *verifier) taking(p *plan, leaf string) bool {
	is := func(c *claim) bool { return c.plan == p.name && c.forConsumer == leaf && c.sameCycle != v.cycle }
	for _, list := range v.m.claims {
		if slices.ContainsFunc(list, is) {
			return true
		}
	}
	return slices.ContainsFunc(v.cancelled, func(c *claim) bool {
		return c.plan == p.name &&
			c.forConsumer == leaf
	}) || v.served[p.name+leaf]
}

// sharesFirst checks that nothing is taken from others' shares for a unit that somebody could lend (SLOT-5: ③ before
// ⑤).
func (v *verifier) sharesFirst(p *plan, f *slots, claims []*claim) {
	if p.recallFirst || !v.calmBefore(p) || v.owing(p, f.w) {
		return
	}
	var idle *slotIdle
	for _, c := range claims {
		s := v.m.subs[c.taker()]
		if c.reason != "fair_share" || s == nil || s.orphan || f.w.entry[s.consumer].kind == "hybrid" ||
			v.capped(p, f.w, s) {
			continue
		}
		if idle == nil {
			idle = v.idleOf(p, f)
		}
		room := false
		for i, h := range v.roomOf(p).host {
			room = room || v.usable(s, h) && v.roomOf(p).free[i][0] >= s.size[0] && !v.leavesOn(p, h.name)
		}
		if !room {
			continue
		}
		lender := v.lendable(idle, s.consumer, s.size[0])
		v.is(c.about("SLOT-5", "reclaims", "reason fair_share for %s, and %s could lend to it", c.forConsumer,
			lender), lender == "")
	}
}

// leavesOn tells whether anything on a host is under reclaim.
func (v *verifier) leavesOn(p *plan, host string) bool {
	for at, pile := range v.m.onHost[host] {
		if at.plan == p.name && pile.leaving > 0 {
			return true
		}
	}
	return false
}

// youngestFirst checks that of the units of one sub-allocation on one host those granted in the cycle are chosen first,
// and then not granted at all (CYC-1): none that was there before is taken for a taker's sake while one like it was
// granted.
func (v *verifier) youngestFirst() {
	claims := slices.SortedFunc(slices.Values(v.newClaims), func(a, b *claim) int {
		return cmp.Compare(a.number,
			b.number)
	})
	for _, c := range claims {
		p := v.m.piles[c.spot]
		if c.units == 0 || !reasons[c.reason].taker || p == nil || len(p.label) != 1 || len(v.given[c.spot]) == 0 ||
			slices.ContainsFunc(v.cancelled, func(o *claim) bool { return o.spot == c.spot }) {
			continue
		}
		v.is(c.about("CYC-1", "reclaims", "reason %s, and units like it were granted there in the same cycle",
			c.reason), false)
	}
}
