package oracle

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// What is asked of those above their quotas, and how it is divided (SLOT-15, SLOT-27, SLOT-30).

// above is how far a hybrid leaf is above its quota; where a shrunken group takes nothing back, above what it owns as
// configured (SLOT-27).
func (g *slots) above(leaf plan.Node) int64 {
	if g.ratios() {
		return max(0, g.shared(leaf)-g.deserved[leaf])
	}
	most := g.quota[leaf]
	if g.s.NoShrinkReclaim && g.owned[leaf].Cmp(rat(g.w.Owns[leaf])) < 0 {
		most = max(most, g.w.Owns[leaf])
	}
	return max(0, g.draws(leaf, true)-most)
}

// takeBack is SLOT-27: owners get what hybrid branches hold above their part, then those above their quotas give
// to those below theirs, at last for reserves.
func (g *slots) takeBack() {
	g.skip = map[*sub]bool{}
	g.ownersBack()
	g.divideAsked()
	for _, leaf := range g.hybridLeaves() {
		for g.serve(leaf, g.counted, func(s *sub) bool {
			if g.enoughPledged(s) || g.skip[s] || !g.due(s) {
				return false
			}
			take := func(s *sub) bool {
				return g.due(s) && g.joinOr(s, common, "fair_share", func() bool {
					return g.wrest(s, common, "fair_share")
				})
			}
			g.skip[s] = g.waits(s) && !g.promiseAll(s, take) || !g.waits(s) && !take(s)
			return !g.skip[s]
		}) {
		}
	}
	g.lapsePartial()
	for n := plan.Node(g.p.Len() - 1); n > plan.Root; n-- { // children come before their parents
		if g.hybrid(n) && g.w.Limit[n] != plan.Unlimited {
			if len(g.blended(n)) > 0 && g.claimed(n)+g.wanting(n) > g.w.Limit[n] && g.wanting(n) > 0 {
				g.notes["a reserve below a limit is filled by others"]++
			}
			g.sweep(n, "reserve", func() int64 { return min(g.wanting(n), g.claimed(n)+g.wanting(n)-g.w.Limit[n]) })
		}
	}
	g.sweep(plan.Root, "reserve", func() int64 {
		return min(g.wanting(plan.Root), g.wanting(plan.Root)-g.netAccount(common))
	})
}

// wanting is what of the reserves below a consumer nobody will hold once all sets under way are done (CYC-7), and units
// are gone.
func (g *slots) wanting(n plan.Node, gone ...*unit) int64 {
	return total(g.blended(n), func(k plan.Node) int64 {
		return max(0, g.wanting(k, gone...), g.reserves[k]-g.draws(k, true)-g.promisedTo(k)+g.of(k, gone))
	})
}

// budgetBears is how many slots the reclaim budget lets through at most: so much is divided.
func (g *slots) budgetBears() int64 {
	if g.budget == plan.Unlimited {
		return 1 << 60
	}
	largest := int64(1)
	for _, u := range g.units(func(u *unit) bool { return !u.leaves() && !u.sub.alloc.orphan }) {
		largest = max(largest, u.slots())
	}
	return largest * max(0, g.budget-g.spent)
}

// divideAsked says who gives how much of what is asked of all, as far as the budget lets it through (SLOT-15, SLOT-27).
func (g *slots) divideAsked() {
	g.begin()
	g.divides = g.budgetBears()
	g.lacks(plan.Root)
}

// begin forgets who gives what.
func (g *slots) begin() {
	g.gives, g.start = map[plan.Node]int64{}, map[plan.Node]int64{}
	for _, leaf := range g.parties() {
		g.start[leaf] = g.shared(leaf)
	}
}

// parties are the leaves among whom what is asked is divided, partners those right below a consumer, in rank order:
// where all share by ratio all of them, else those under the hybrid policy.
func (g *slots) parties() []plan.Node {
	if g.ratios() {
		return g.ranked(g.leaves())
	}
	return g.hybridLeaves()
}

func (g *slots) partners(n plan.Node) []plan.Node {
	if g.ratios() {
		return g.ranked(g.children(n))
	}
	return g.blended(n)
}

// ratios tells whether all consumers are under the share-ratio policy.
func (g *slots) ratios() bool {
	return !slices.ContainsFunc(g.children(plan.Root), func(n plan.Node) bool {
		return g.w.Policy[n] != plan.ShareRatio
	})
}

// shared is what a leaf holds, net, of what is divided.
func (g *slots) shared(leaf plan.Node) int64 {
	if g.ratios() {
		return g.held(leaf, sharePool, true)
	}
	return g.draws(leaf, true)
}

// belowQuota is how far a hybrid leaf is below its quota.
func (g *slots) belowQuota(leaf plan.Node) int64 {
	if g.ratios() {
		return max(0, g.deserved[leaf]-g.usage(leaf))
	}
	return max(0, g.quota[leaf]-g.draws(leaf, true)-g.promisedTo(leaf))
}

// aboveAll is how far a consumer's leaves are above their quotas beyond what they give already.
func (g *slots) aboveAll(n plan.Node) int64 {
	sum := int64(0)
	for _, leaf := range g.parties() {
		if g.under(n, leaf) {
			sum += g.above(leaf) - g.gives[leaf]
		}
	}
	return sum
}

// lacks is what leaves at and below a consumer lack of their quotas beyond what is given below it. As much as neither
// idle slots nor, below a limit, that leaves room for is given by those below it.
func (g *slots) lacks(n plan.Node) int64 {
	if g.p.Leaf(n) {
		return g.belowQuota(n)
	}
	sum, room := total(g.partners(n), g.lacks), int64(1<<60)
	switch {
	case n == plan.Root && g.ratios():
		room = max(0, min(g.pooled(n)-g.usage(n), g.spared(g.netFree, g.netAccount)))
	case n == plan.Root:
		room = max(0, g.netAccount(common))
	default:
		if most := g.most(n); most != plan.Unlimited {
			room = max(0, most-g.claimed(n))
		}
		if !g.ratios() {
			sum = max(sum, g.quota[n]-g.claimed(n)) // its reserve may be more than all below it can use
		}
	}
	inside := max(0, min(sum-room, g.aboveAll(n)))
	g.spread(n, min(inside, g.divides))
	g.divides = max(0, g.divides-inside)
	return sum - inside
}

// spread divides what is to be given back in proportion to how far everyone is above, rounded in reverse rank order.
func (g *slots) spread(n plan.Node, amount int64) {
	if n != plan.Root && g.p.Leaf(n) {
		g.gives[n] += amount
		return
	}
	kids, above := g.partners(n), []uint64(nil)
	slices.Reverse(kids)
	for _, k := range kids {
		above = append(above, uint64(g.aboveAll(k)))
	}
	for i, part := range fill(uint64(amount), above, above) {
		g.spread(kids[i], int64(part))
	}
}

// givers are the units of leaves that have to give yet, of the one that gives most first; of a leaf only units that
// leave it its quota.
func (g *slots) givers(chosen []*unit) []*unit {
	return g.yielding(chosen, func(leaf plan.Node) int64 {
		return g.gives[leaf] - (g.start[leaf] - g.shared(leaf)) - g.of(leaf, chosen)
	})
}

// surplus are the units of all leaves above their quotas, of the one furthest above first.
func (g *slots) surplus(chosen []*unit) []*unit {
	return g.yielding(chosen, func(leaf plan.Node) int64 { return g.above(leaf) - g.of(leaf, chosen) })
}

// wrest makes a set for a unit, of what leaves are to give; where the units of those do not serve, of what others have
// above their quotas.
func (g *slots) wrest(s *sub, account plan.Node, reason string) bool {
	return g.seizeOf(s, account, reason, g.ofHybrid, g.givers, g.surplus)
}

// seizeOf is seize from the first of several lists that serves, at last of a gang; the budget ends it.
func (g *slots) seizeOf(s *sub, account plan.Node, reason string, may func(u *unit, all []*unit) bool,
	lists ...func(chosen []*unit) []*unit) bool {
	before := g.denied[s]
	g.denied[s] = false
	done := slices.ContainsFunc(lists, func(next func(chosen []*unit) []*unit) bool {
		return !g.denied[s] && g.seize(s, account, reason, next)
	}) || !g.denied[s] && g.gangVictims(s, account, reason, may)
	g.denied[s] = g.denied[s] || before
	return done
}

func (g *slots) yielding(chosen []*unit, gives func(leaf plan.Node) int64) []*unit {
	give := map[plan.Node]int64{}
	for _, leaf := range g.hybridLeaves() {
		give[leaf] = gives(leaf)
	}
	list := g.victims(func(u *unit) bool {
		return g.ok(u.host) && !g.owed(u) && !g.breaks(u, chosen) && give[u.leaf()] > 0 &&
			!slices.Contains(chosen, u) && g.above(u.leaf())-g.of(u.leaf(), chosen) >= u.slots()
	})
	slices.SortStableFunc(list, func(a, b *unit) int { return cmp.Compare(give[b.leaf()], give[a.leaf()]) })
	return list
}

// sweep reclaims what leaves at and below a consumer have to give, by rule, while
// something lacks; what fills a reserve stays.
func (g *slots) sweep(n plan.Node, reason string, lack func() int64) {
	for lack() > 0 {
		denied := func(u *unit) bool { return g.skip[u.sub] || !g.under(n, u.leaf()) || g.fills(n, u) }
		list := slices.DeleteFunc(g.givers(nil), denied)
		if len(list) == 0 {
			list = slices.DeleteFunc(g.surplus(nil), denied)
		}
		if len(list) == 0 { // what this cycle granted stops nothing
			list = g.victims(func(u *unit) bool {
				return u.cycle == g.cycle && g.ok(u.host) && g.hybrid(u.leaf()) && !g.owed(u) && !g.breaks(u, nil) &&
					g.under(n, u.leaf()) && !g.fills(n, u)
			})
			if len(list) > 0 {
				g.notes["not granted after all, for a reserve"]++
			}
		}
		if len(list) == 0 { // a gang, as if it were one unit
			list = g.victims(func(u *unit) bool {
				all := g.staying(u.sub)
				return g.breaks(u, nil) && g.ofHybrid(u, all) && !g.skip[u.sub] && g.under(n, u.leaf()) &&
					g.wanting(n, all...) <= g.wanting(n)
			})
		}
		if len(list) == 0 {
			return
		}
		if !g.rule(list[0], reason) {
			g.skip[list[0].sub] = true
		}
	}
}

// ownersBack takes what hybrid branches hold above their part back for owners: for their
// demand, then for what they reserve (SLOT-30).
func (g *slots) ownersBack() {
	owners := g.ranked(slices.DeleteFunc(g.leaves(), g.hybrid))
	beyond := func() int64 { return g.blend(true) - g.all }
	if len(owners) == 0 || beyond() <= 0 {
		return
	}
	needs := func(wanted bool) int64 {
		slots := int64(0)
		for _, leaf := range owners {
			need := max(0, min(g.reserved(leaf), g.owns[leaf])-g.held(leaf, owned,
				true)-g.rooms(func(s *set) bool { return s.account == leaf })-
				g.joins(func(j joined) bool { return j.account == leaf }))
			if wanted {
				need = max(need, min(g.netAccount(leaf), g.wanted[leaf]-g.claimed(leaf)))
			}
			slots += need
		}
		for _, h := range g.hosts {
			if g.ok(h) {
				slots -= max(0, g.netFree(h))
			}
		}
		return slots
	}
	g.begin()
	g.spread(plan.Root, max(0, min(beyond(), needs(true), g.budgetBears(), g.aboveAll(plan.Root))))
	for _, leaf := range owners {
		for g.serve(leaf, g.counted, func(s *sub) bool {
			if g.enoughPledged(s) || g.skip[s] || g.netAccount(leaf) < s.slots() {
				return false
			}
			take := func(s *sub) bool {
				return g.netAccount(leaf) >= s.slots() &&
					g.joinOr(s, leaf, "recall", func() bool { return beyond() > 0 && g.wrest(s, leaf, "recall") })
			}
			g.skip[s] = g.waits(s) && !g.promiseAll(s, take) || !g.waits(s) && !take(s)
			return !g.skip[s]
		}) {
		}
	}
	g.sweep(plan.Root, "reserve", func() int64 { return min(beyond(), needs(false)) })
}
