package oracle

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Gangs in slot plans (REQ-3), by docs/slots.md.

// waits tells whether a sub-allocation is a gang that holds nothing but what is under reclaim.
func (c *Cluster) waits(s *sub) bool { return s.gang() && len(c.staying(s)) == 0 }

// inSlots tells whether a sub-allocation is a gang of a slot plan.
func (c *Cluster) inSlots(s *sub) bool { return s.gang() && s.alloc.plan >= len(c.p.MDPlans) }

// breaks tells whether fewer than its least number of a gang would stay without a unit and those chosen.
func (c *Cluster) breaks(u *unit, chosen []*unit) bool {
	if !c.inSlots(u.sub) {
		return false
	}
	list := slices.DeleteFunc(c.staying(u.sub), func(v *unit) bool { return v == u || slices.Contains(chosen, v) })
	return int64(len(list)) < u.sub.least
}

// leavesWhole tells whether a unit under reclaim is of a gang that is taken back whole: that is never cancelled.
func (c *Cluster) leavesWhole(u *unit) bool {
	return c.inSlots(u.sub) && int64(len(c.staying(u.sub))) < u.sub.least
}

// dropped tells whether a unit went under reclaim, or is not granted any more, since it was listed.
func (c *Cluster) dropped(u *unit) bool { return u.leaves() || !slices.Contains(u.host.units, u) }

// reclaimGang reclaims all of a gang for a rule, newest first, each unit by itself, as one as far as the budget goes.
func (f *frame) reclaimGang(s *sub, reason string) bool {
	list := f.staying(s)
	slices.SortStableFunc(list, f.newest)
	if !f.affords(int64(len(slices.DeleteFunc(slices.Clone(list), func(u *unit) bool { return u.cycle == f.cycle })))) {
		return false
	}
	for _, u := range list {
		f.reclaim(u, &set{number: f.next(), plan: f.in, reason: reason})
	}
	f.notes["a gang taken whole by a rule"]++
	return true
}

// serveBy gives a unit in the last of some ways; a gang that waits gets its first units in all of them.
func (g *slots) serveBy(s *sub, ways ...func(s *sub) bool) bool {
	if g.waits(s) {
		return g.form(s, ways...)
	}
	return ways[len(ways)-1](s)
}

// form gives a gang that waits its first units, one after another, each in the first way that serves it: those of the
// steps so far, of which the last must serve one. What sets keep for it counts as free. All of them are given or none.
// A gang that is together gets them on hosts with one value, whichever its sets are on.
func (g *slots) form(s *sub, ways ...func(s *sub) bool) bool {
	if s.short() < s.least || g.undone[s] {
		return false
	}
	sets, promised := g.mine(func(t *set) bool { return t.taker == s }), map[*set]int64{}
	for _, t := range sets {
		promised[t], t.n = t.n, 0
	}
	value, held := g.bonds[s]
	delete(g.bonds, s)
	if !g.somewhere(s, func() bool { return g.formHere(s, ways) }) {
		for _, t := range sets {
			t.n = promised[t]
		}
		if held {
			g.bonds[s] = value
		}
		return false
	}
	for _, t := range sets {
		g.trim(t, []int64{0})
	}
	if len(sets) > 0 {
		g.notes["a gang got what it was promised"]++
	}
	g.notes["a gang formed"]++
	return true
}

// formHere is form where the gang may be.
func (g *slots) formHere(s *sub, ways []func(s *sub) bool) bool {
	before, last := g.units(func(u *unit) bool { return u.sub == s }), false
	for range s.least {
		i := slices.IndexFunc(ways, func(way func(s *sub) bool) bool { return way(s) })
		if i < 0 {
			last = false
			break
		}
		last = last || i == len(ways)-1
	}
	if !last {
		for _, u := range g.units(func(u *unit) bool { return u.sub == s && !slices.Contains(before, u) }) {
			g.drop(u)
		}
	}
	return last
}

// promiseAll promises a gang that waits all of its first units or none: each joins sets under way, or victims are taken
// for it. One that is together, and is promised nothing yet, tries value after value, of those whose hosts would take
// it empty.
func (g *slots) promiseAll(s *sub, take func(s *sub) bool) bool {
	if s.short() < s.least || g.gaveUp[s] || g.undone[s] {
		return false
	}
	if g.pledged(s) > 0 {
		return g.promiseHere(s, take)
	}
	delete(g.bonds, s)
	large := func() []any {
		return slices.DeleteFunc(g.values(s), func(v any) bool { return g.capacityAt(s, v) < s.least })
	}
	return g.among(s, func() []any { return g.roomiest(s, large(), g.roomAt) }, func() bool {
		return g.promiseHere(s, take)
	})
}

// promiseHere is promiseAll where the gang may be.
func (g *slots) promiseHere(s *sub, take func(s *sub) bool) bool {
	undo := g.notePromises()
	for g.pledged(s) < s.least {
		if !take(s) {
			undo()
			return false
		}
	}
	g.notes["room was made for a gang"]++
	return true
}

// roomAt is how many units of a gang that is held to no value fit hosts with a value now, accounts left aside.
func (g *slots) roomAt(s *sub, v any) int64 {
	return total(g.candidates(s), func(h *host) int64 {
		units := max(0, g.free(h)) / s.slots()
		if s.perHost != plan.Unlimited {
			here := g.units(func(u *unit) bool { return u.sub == s && u.host == h })
			units = min(units, max(0, s.perHost-int64(len(here))))
		}
		if s.place(h) != v || g.small(s) {
			units = 0
		}
		return units
	})
}

// tell holds gangs for what is told of them: one that waits and must be together to the value of what it is promised,
// or where it is promised nothing to the one where the most of it fit.
func (g *slots) tell() {
	g.frame.hold()
	for _, s := range g.below(plan.Root) {
		name, prefers := s.asksFor()
		if name == "" || prefers || g.isHeld(s) {
			continue
		}
		if i := slices.IndexFunc(g.joined, func(j joined) bool { return j.sub == s }); i >= 0 {
			g.bonds[s] = s.place(g.joined[i].host)
		} else {
			g.bonds[s] = append(g.roomiest(s, g.values(s), g.roomAt), noValue{})[0]
		}
	}
}

// rejoin has gangs that sets promise some of their first units join for the others before anybody else does: what they
// joined in the cycle before is theirs still.
func (g *slots) rejoin() {
	for _, s := range g.below(plan.Root) {
		if !g.waits(s) || s.short() < s.least || g.pledged(s) == 0 || g.pledged(s) >= s.least {
			continue
		}
		was, leaf, k := slices.Clone(g.joined), s.alloc.leaf, s.slots()
		for g.pledged(s) < s.least {
			mayDraw := g.s.ShareReclaim && !g.barred(leaf) && !g.broke[g.in][leaf] &&
				g.usage(leaf)+k <= g.deserved[leaf]
			if g.hybrid(leaf) && !(g.due(s) && g.join(s, common)) ||
				!g.hybrid(leaf) && !g.join(s, leaf) && !(mayDraw && g.join(s, plan.Root)) {
				g.joined = was
				break
			}
		}
		if len(g.joined) > len(was) {
			g.notes["a gang joined again"]++
		}
	}
}

// hold holds room that is free for a unit of a gang, until all of it can be given: on the first host where it would fit
// as if it joined sets under way, and fits now.
func (g *slots) hold(s *sub, account plan.Node, reason string) bool {
	k, leaf := s.slots(), s.alloc.leaf
	now := min(g.idlePool(leaf), g.spare())
	if account == common {
		now = min(g.account(common)-g.unfilled(leaf, k), g.spare())
	} else if account > plan.Root {
		now = min(g.account(account), g.ownIdle(account))
	}
	if now < k || g.netFor(s, account, nil) < k || g.over(leaf, k, g.beside(g.claimed, leaf, k)) != plan.None {
		return false
	}
	for _, h := range g.hosts {
		if g.takes(s, h) && g.netFree(h) >= k && g.free(h) >= k {
			g.notes["held room for a gang"]++
			return g.claim(&set{reason: reason, target: h, taker: s, account: account}, nil)
		}
	}
	return false
}

// joinOr lets a unit join sets under way, or takes victims for it; for a gang that waits, free room is held first.
func (g *slots) joinOr(s *sub, account plan.Node, reason string, take func() bool) bool {
	return g.waits(s) && g.hold(s, account, reason) || g.join(s, account) || take()
}

// notePromises gives a function that takes all back that was put under reclaim or promised since.
func (g *slots) notePromises() (undo func()) {
	type claimed struct {
		set         *set
		number, due int64
	}
	units, sets, n := map[*unit]claimed{}, slices.Clone(g.sets), map[*set]int64{}
	for _, u := range g.Cluster.units() {
		units[u] = claimed{u.set, u.number, u.due}
	}
	for _, s := range sets {
		n[s] = s.n
	}
	joined, spent, swept, reclaimed := slices.Clone(g.joined), g.spent, maps.Clone(g.swept), maps.Clone(g.reclaimed)
	return func() {
		for u, was := range units {
			u.set, u.number, u.due = was.set, was.number, was.due
		}
		g.sets, g.joined, g.spent, g.swept, g.reclaimed = sets, joined, spent, swept, reclaimed
		for _, s := range sets {
			s.n = n[s]
		}
	}
}

// giveUp lets the sets of gangs lapse that have waited for as long as the plan lets them, or want fewer units than a
// gang by now.
func (g *slots) giveUp() {
	g.gaveUp = map[*sub]bool{}
	for _, s := range g.below(plan.Root) {
		sets := g.mine(func(t *set) bool { return t.taker == s })
		if !g.waits(s) || len(sets) == 0 {
			continue
		}
		if over := g.nowUS-g.times[sets[0].cycle] >= g.s.GangWaitUS; over || s.short() < s.least {
			g.gaveUp[s] = over
			g.lapseAll(s)
			g.notes["a gang gave up"]++
		}
	}
}

// lapsePartial lets all lapse that gangs are promised which are promised fewer units than they need.
func (g *slots) lapsePartial() {
	for _, s := range g.below(plan.Root) {
		if g.waits(s) && g.pledged(s) > 0 && g.pledged(s) < s.least {
			g.lapseAll(s)
			g.notes["a gang lost some of what it was promised"]++
		}
	}
}

// lapseAll lets all lapse that a gang is promised.
func (g *slots) lapseAll(s *sub) {
	for _, t := range slices.Backward(g.mine(func(t *set) bool { return t.taker == s })) {
		for t.n > 0 {
			g.lapse(t)
		}
	}
	g.joined = slices.DeleteFunc(g.joined, func(j joined) bool { return j.sub == s })
}

// enoughPledged tells whether as many units of a sub-allocation are promised as may be.
func (g *slots) enoughPledged(s *sub) bool {
	if g.waits(s) {
		return g.pledged(s) >= s.least
	}
	return g.pledged(s) >= s.short()
}

// spares tells whether a unit may be a victim for a taker's unit beside those chosen: no gang is broken by it. Where
// something was granted in this cycle to the same sub-allocation, and what may stay for longer than a gang may wait, is
// no victim for a gang that waits.
func (g *slots) spares(u *unit, taker *sub, chosen []*unit) bool {
	return !g.breaks(u, chosen) && g.timely(u, taker)
}

func (g *slots) timely(u *unit, taker *sub) bool {
	granted := func(v *unit) bool { return v.sub == u.sub && v.cycle == g.cycle }
	return !g.waits(taker) || !slices.ContainsFunc(u.host.units, granted) && g.grace(u) < g.s.GangWaitUS
}

// gangVictims makes a set for a unit of all units of a gang, where no other victims serve: of the first, last rank
// first, newest first, on whose host the unit fits without it. may tells whether a unit is one by which its gang may be
// taken, given all units of that. There is a set for each host of the gang's, the taker's room is on that of the unit.
func (g *slots) gangVictims(s *sub, account plan.Node, reason string, may func(u *unit, all []*unit) bool) bool {
	for _, u := range g.victims(func(u *unit) bool { return u.sub.gang() && u.sub != s }) {
		all := g.staying(u.sub)
		slices.SortStableFunc(all, func(a, b *unit) int {
			return cmp.Or(cmp.Compare(g.place(a), g.place(b)), g.newest(a, b))
		})
		if slices.ContainsFunc(all, func(v *unit) bool { return v.cycle == g.cycle }) || !g.timely(u, s) ||
			!may(u, all) ||
			!g.fitsWithout(s, u.host, account, all) {
			continue
		}
		if !g.affords(int64(len(all))) {
			g.denied[s], g.skip[s] = true, true
			return false
		}
		g.claim(&set{reason: reason, target: u.host, taker: s, account: account}, g.onHost(all, u.host))
		for _, v := range all {
			if !v.leaves() {
				g.reclaim(v, &set{number: g.next(), plan: g.in, cycle: g.cycle, reason: reason, target: v.host,
					taker: s, account: account})
			}
			if account == plan.Root && v.origin == sharePool {
				g.swept[v.leaf()] += v.slots()
			}
		}
		g.notes["a gang taken whole for a taker"]++
		return true
	}
	return false
}

// onHost are those of some units that lie on a host.
func (g *slots) onHost(units []*unit, h *host) []*unit {
	return slices.DeleteFunc(slices.Clone(units), func(u *unit) bool { return u.host != h })
}

// fitsWithout tells whether a unit fits a host, its account and every share.max once all of a gang is gone.
func (g *slots) fitsWithout(s *sub, h *host, account plan.Node, all []*unit) bool {
	k, leaf := s.slots(), s.alloc.leaf
	has, holds := g.netFor(s, account, nil), g.bound
	switch {
	case account > plan.Root:
		holds = g.claimed
		has += total(all, func(u *unit) int64 {
			if u.lender == leaf {
				return u.slots()
			}
			return 0
		})
	default: // what comes back to the pools, or to the hybrid branches, on hosts that are ok
		back := slices.DeleteFunc(slices.Clone(all), func(u *unit) bool {
			return !g.ok(u.host) || g.hybrid(u.leaf()) != g.hybrid(leaf) || g.hybrid(leaf) && g.owed(u) ||
				!g.hybrid(leaf) && g.as(u) != sharePool
		})
		has = g.netFor(s, account, back)
	}
	return g.takes(s, h) && g.free(h)+g.of(plan.Root, g.onHost(all, h)) >= k && has >= k &&
		g.over(leaf, k, func(n plan.Node) int64 {
			return holds(n) - g.of(n, all) + g.lackingBelow(n, g.filling(leaf, k, all))
		}) == plan.None
}

// lentBy, ofPool and ofHybrid say which gangs may be taken whole: for the owner of what one of its units borrowed; for
// a fair share where its leaf stays at its quota, or is not worse off than the taker after it; as one unit of all its
// slots.
func (g *slots) lentBy(leaf plan.Node) func(u *unit, all []*unit) bool {
	return func(u *unit, _ []*unit) bool { return u.lender == leaf && (g.as(u) == borrowed || g.owed(u)) }
}

func (g *slots) ofPool(taker *sub) func(u *unit, all []*unit) bool {
	return func(u *unit, all []*unit) bool {
		of := slices.DeleteFunc(slices.Clone(all), func(v *unit) bool { return g.as(v) != sharePool })
		return g.as(u) == sharePool && u.leaf() != taker.alloc.leaf && g.yieldsAll(of, taker)
	}
}

func (g *slots) ofHybrid(u *unit, all []*unit) bool {
	return g.ok(u.host) && g.hybrid(u.leaf()) && !g.owed(u) && g.above(u.leaf()) >= g.of(plan.Root, all)
}

// yieldsAll is yields for units of one leaf as if they were one.
func (g *slots) yieldsAll(units []*unit, taker *sub) bool {
	leaf, v := units[0].leaf(), g.of(plan.Root, units)
	above := g.held(leaf, sharePool, true) - g.deserved[leaf]
	if above <= 0 || above >= v {
		return above > 0
	}
	a, b := g.part(leaf, taker.alloc.leaf)
	return less(uint64(max(0, g.usage(a)-v)), g.weight(b), uint64(g.usage(b)+taker.slots()), g.weight(a)) >= 0
}

// fewerFit tells whether fewer units of a gang that waits would fit now than it needs, and what stops the next one.
func (g *slots) fewerFit(s *sub, why *Shortfall) bool {
	before, units := g.units(func(u *unit) bool { return u.sub == s }), int64(0)
	ways := []func(s *sub) bool{g.giveOwn, g.draw, g.lend}
	if g.hybrid(s.alloc.leaf) {
		ways = []func(s *sub) bool{g.blendIn}
	}
	for units < min(s.least, s.wanted-int64(len(before))) &&
		slices.ContainsFunc(ways, func(way func(s *sub) bool) bool { return way(s) }) {
		units++
	}
	stops := units < s.least
	if stops {
		*why = g.why(s, true)
		why.Fits = units
	}
	for _, u := range g.units(func(u *unit) bool { return u.sub == s && !slices.Contains(before, u) }) {
		g.drop(u)
	}
	return stops
}
