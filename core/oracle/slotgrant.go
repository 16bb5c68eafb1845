package oracle

import (
	"maps"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// host is where the next unit of a sub-allocation goes, nil when it fits nowhere or a share.max does not bear it.
func (g *slots) host(s *sub) *host {
	counts, more := g.bound, s.slots()
	if g.pledged(s) >= s.short() { // what is promised counts already
		counts, more = g.holds, 0
	}
	if g.over(s.alloc.leaf, s.slots(), g.beside(counts, s.alloc.leaf, more)) != plan.None {
		return nil
	}
	return g.spot(s)
}

// spot is where a unit fits: the first host by the requirement's order, else by the
// plan's placement (SLOT-31); ties by group order.
func (g *slots) spot(s *sub) *host {
	before := g.ordered(s)
	if before == nil && g.s.Placement == plan.Stacked {
		before = func(a, b *host) bool { return g.inUse(a) && !g.inUse(b) }
	} else if before == nil {
		before = func(a, b *host) bool { return g.free(a) > g.free(b) }
	}
	var best *host
	for _, h := range g.candidates(s) {
		if g.free(h) >= s.slots() && !full(s, h, 0) && (best == nil || before(h, best)) {
			best = h
		}
	}
	return best
}

// give grants a unit. When all that the sub-allocation is short of is promised, its latest set gives up a unit first
// (CYC-7), and the room that this frees may be a better place. To a share.max the unit was looked at as a promised one.
func (g *slots) give(s *sub, h *host, origin string, lender plan.Node) {
	if g.pledged(s) >= s.short() {
		sets := g.mine(func(t *set) bool { return t.taker == s })
		g.lapse(sets[len(sets)-1])
		h = g.spot(s)
	}
	g.relabel(g.put(s, h), origin, lender)
}

// relabel gives a unit an origin and a lender; from the pools it gets the label of one (CYC-3).
func (g *slots) relabel(u *unit, origin string, lender plan.Node) {
	u.origin, u.lender, u.pool = "", plan.None, plan.None
	if origin == sharePool {
		u.pool = g.pool(u.leaf())
	}
	u.origin, u.lender = origin, lender
}

// pool names the pool of a unit that a leaf is about to get: the nearest whose leaves
// hold less than it and those below it have.
func (g *slots) pool(leaf plan.Node) plan.Node {
	b := g.p.Parent[leaf]
	for b != plan.Root && g.held(b, sharePool, false) >= g.pooled(b) {
		b = g.p.Parent[b]
	}
	return b
}

// label labels the units that run without a label, in row order.
func (g *slots) label() {
	list := g.units(func(u *unit) bool { return u.origin == "" })
	slices.SortFunc(list, func(a, b *unit) int { return int(a.row - b.row) })
	for _, u := range list {
		leaf, k := u.leaf(), u.slots()
		m := g.lender(leaf, k, 0, plan.None)
		switch {
		case g.hybrid(leaf):
			g.relabel(u, hybrid, plan.None)
		case g.ownIdle(leaf) >= k:
			g.relabel(u, owned, plan.None)
		case g.idlePool(leaf) >= k && !g.barred(leaf) || m == plan.None:
			g.relabel(u, sharePool, plan.None)
		default:
			g.relabel(u, borrowed, m)
		}
	}
}

// promised grants what sets hold room for, once the room is free.
func (g *slots) promised() {
	for _, s := range g.mine(every) {
		if g.waits(s.taker) {
			continue // it gets all in its turn
		}
		k, leaf := s.taker.slots(), s.taker.alloc.leaf
		for s.n > 0 && g.over(leaf, k, g.beside(g.holds, leaf, 0)) == plan.None {
			kept := g.kept(s)[0]
			if g.free(s.target)+kept < k || s.account > plan.Root && g.account(s.account)+kept < k ||
				s.account == plan.Root && g.idlePool(leaf)+kept < k ||
				// within the quota, whatever others have beyond theirs
				s.account == common && max(0, g.account(common))+kept < k ||
				s.account == common && g.unfilled(plan.Root, 0) > 0 &&
					g.account(common)+kept-k < g.unfilled(plan.Root, 0) ||
				s.account == plan.Root && max(0, g.spare())+kept < k { // no idle slot that an owner could claim
				break
			}
			origin := owned
			if s.account == plan.Root {
				origin = sharePool
			} else if s.account == common {
				origin = hybrid
			}
			if !g.lasts(s.taker, origin, plan.None) {
				break
			}
			s.n-- // before the unit is there: its label counts what is held before it
			g.relabel(g.put(s.taker, s.target), origin, plan.None)
			g.trim(s, []int64{max(0, kept-k)})
		}
	}
}

// own is ①: idle owned slots, leaf by leaf. Before and after, units of other origins become owned; before, shared
// ones only above the leaf's quota, so that nobody gets new owned units and has others taken.
func (g *slots) own() {
	leaves := g.ranked(g.leaves())
	relabel := func(needs func(leaf plan.Node) bool) {
		for _, leaf := range leaves {
			for _, origin := range []string{borrowed, sharePool} {
				for _, u := range g.movable(leaf, origin) {
					if g.ownIdle(leaf) >= u.slots() && (origin == borrowed || needs(leaf)) {
						g.relabel(u, owned, plan.None)
					}
				}
			}
		}
	}
	relabel(func(leaf plan.Node) bool { return g.held(leaf, sharePool, true) > g.deserved[leaf] })
	for _, leaf := range leaves {
		for g.serve(leaf, held, func(s *sub) bool { return g.serveBy(s, g.giveOwn) }) {
		}
	}
	relabel(func(plan.Node) bool { return true })
}

// giveOwn grants a unit from its leaf's own slots.
func (g *slots) giveOwn(s *sub) bool {
	h, leaf := g.host(s), s.alloc.leaf
	if h == nil || g.account(leaf) < s.slots() || g.pledged(s) < s.short() && g.ownIdle(leaf) < s.slots() ||
		!g.lasts(s, owned, plan.None) {
		return false
	}
	g.give(s, h, owned, plan.None)
	return true
}

// movable are a leaf's units of an origin that are not leaving, the newest first.
func (g *slots) movable(leaf plan.Node, origin string) []*unit {
	list := g.units(func(u *unit) bool { return u.leaf() == leaf && g.as(u) == origin && !u.leaves() })
	slices.SortFunc(list, g.newest)
	return list
}

// share is ②: first what leaves are entitled to, then what is left over; then loans become units of the pool.
func (g *slots) share() {
	entitled := func(leaf plan.Node) bool {
		return g.serve(leaf, held, func(s *sub) bool {
			return g.serveBy(s, g.giveOwn, func(s *sub) bool { return g.within(s) && g.draw(s) })
		})
	}
	tree, due := g.tree(), int64(0)
	for leaf := range tree {
		due += max(0, g.deserved[leaf]-g.usage(leaf))
	}
	if barred := slices.ContainsFunc(g.inner(), func(n plan.Node) bool { return g.ratio[n] == 0 }); barred ||
		due > min(g.account(plan.Root), g.spare()) {
		g.race(tree, g.usage, entitled)
	} else { // nobody's turn can cost another anything
		for _, leaf := range g.ranked(slices.Collect(maps.Keys(tree))) {
			for entitled(leaf) {
			}
		}
	}
	left := func(s *sub) bool { return g.serveBy(s, g.giveOwn, g.draw) }
	if !g.s.StaticQuota {
		g.race(g.tree(), g.usage, func(leaf plan.Node) bool { return g.serve(leaf, held, left) })
	} else {
		for _, a := range g.allocs { // first come first served
			for a.plan == g.in && !g.barred(a.leaf) && !g.broke[g.in][a.leaf] && g.offer(a, held, left) {
			}
		}
	}
	for _, leaf := range g.ranked(g.leaves()) {
		for _, u := range g.movable(leaf, borrowed) {
			if k := u.slots(); g.idlePool(leaf) >= k && g.spare() >= k && !g.barred(leaf) {
				g.relabel(u, sharePool, plan.None)
			}
		}
	}
}

// tree is the leaves that have demand and may draw from the pools.
func (g *slots) tree() map[plan.Node]bool {
	tree := map[plan.Node]bool{}
	for _, s := range g.below(plan.Root) {
		if !g.barred(s.alloc.leaf) && !g.broke[g.in][s.alloc.leaf] {
			tree[s.alloc.leaf] = true
		}
	}
	return tree
}

// race serves the leaves of a tree, the least usage ÷ ratio first at every level; who cannot be served drops out.
func (g *slots) race(tree map[plan.Node]bool, usage func(n plan.Node) int64, serve func(leaf plan.Node) bool) {
	for len(tree) > 0 {
		leaf := g.choose(plan.Root, tree, func(a, b plan.Node) bool {
			order := less(uint64(usage(a)), g.weight(b), uint64(usage(b)), g.weight(a))
			return order < 0 || order == 0 && g.rankOrder(g.in, a, b) < 0
		})
		if !serve(leaf) {
			delete(tree, leaf)
		}
	}
}

// within tells whether a leaf is entitled to a unit more; one that the pool promises counts already.
func (g *slots) within(s *sub) bool {
	k := s.slots()
	if g.pledged(s) >= s.short() {
		sets := g.mine(func(t *set) bool { return t.taker == s })
		if len(sets) > 0 && sets[len(sets)-1].account == plan.Root { // it lapses when the unit is given
			k = 0
		}
	}
	return g.usage(s.alloc.leaf)+k <= g.deserved[s.alloc.leaf]
}

// draw grants a unit from the pool.
func (g *slots) draw(s *sub) bool {
	h, k := g.host(s), s.slots()
	if h == nil || g.barred(s.alloc.leaf) || g.idlePool(s.alloc.leaf) < k || g.spare() < k ||
		!g.lasts(s, sharePool, plan.None) {
		return false
	}
	if len(g.bars(s.alloc.leaf)) > 1 {
		g.notes["drew from its own pool below a ratio of 0"]++
	}
	g.give(s, h, sharePool, plan.None)
	return true
}

// borrow is ③: leaves in rank order, each until nothing fits.
func (g *slots) borrow() {
	for _, leaf := range g.ranked(g.leaves()) {
		for !g.broke[g.in][leaf] && g.serve(leaf, g.counted, func(s *sub) bool {
			if g.waits(s) && g.pledged(s) > 0 {
				return false
			}
			return g.serveBy(s, g.giveOwn, g.draw, g.lend)
		}) {
		}
	}
}

// lend grants a unit that its leaf borrows.
func (g *slots) lend(s *sub) bool {
	if g.pledged(s) >= s.short() || !g.mayLend(s.slots()) {
		return false
	}
	h, m := g.host(s), g.lender(s.alloc.leaf, s.slots(), 0, plan.None)
	if h == nil || m == plan.None || !g.lasts(s, borrowed, m) {
		return false
	}
	if g.spare() < 0 {
		g.notes["lent while somebody has more than its part"]++
	}
	g.give(s, h, borrowed, m)
	return true
}

// lender is the first that lends k slots to a leaf, in the leaf's order of preference (SLOT-7), None when nobody can.
// moved of its borrowed slots would come from another lender instead: not from the one named.
func (g *slots) lender(leaf plan.Node, k, moved int64, not plan.Node) plan.Node {
	if most := g.w.BorrowLimit[leaf]; most != plan.Unlimited && g.held(leaf, borrowed, false)-moved+k > most {
		return plan.None
	}
	from := g.w.BorrowFrom[leaf]
	if from == nil {
		from = []plan.Peer{{Any: true}}
	}
	for _, peer := range from {
		for _, m := range g.leaves() {
			if m != leaf && m != not && g.admits([]plan.Peer{peer}, leaf, m) && g.admits(g.w.LendTo[m], m, leaf) &&
				g.ownIdle(m) >= k && g.lendable(m)-g.lent(m, false) >= k {
				return m
			}
		}
	}
	return plan.None
}

// admits tells whether a list of peers, nil for any, lets a leaf deal with another.
func (g *slots) admits(peers []plan.Peer, self, other plan.Node) bool {
	return peers == nil || slices.ContainsFunc(peers, func(p plan.Peer) bool {
		return p.Any || p.Siblings && g.p.Parent[self] == g.p.Parent[other] ||
			!p.Any && !p.Siblings && g.under(p.Node, other)
	})
}
