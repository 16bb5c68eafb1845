package oracle

import (
	"slices"

	"github.com/stintd/stint/core/plan"
)

// promised grants what sets hold a host for, once it is empty.
func (g *whole) promised() {
	for _, s := range g.mine(func(*set) bool { return true }) {
		h, leaf, kept := s.target, s.taker.alloc.leaf, g.kept(s)
		origin := owned
		if s.account == plan.Root {
			origin = sharePool
		}
		switch {
		case g.taken(h) && (g.room(s) > 0 || !g.net(h) || g.size[h]-g.used(h) < s.taker.slots()):
			continue
		case !g.taken(h) && (g.account(s.account)+kept < 1 || !g.roomy(leaf, g.size[h], true)):
			continue
		}
		s.n = 0
		g.give(s.taker, h, origin, plan.None)
	}
}

// own is ①. Before and after, hosts of other origins become owned; before, shared ones only above the leaf's quota.
func (g *whole) own() {
	leaves := g.ranked(g.leaves())
	relabel := func(needs func(leaf plan.Node) bool) {
		for _, leaf := range leaves {
			for _, origin := range []string{borrowed, sharePool} {
				for _, h := range g.stays(leaf, origin) {
					if g.account(leaf) >= g.size[h] && (origin == borrowed || needs(leaf)) {
						g.relabel(h, owned, plan.None)
					}
				}
			}
		}
	}
	relabel(func(leaf plan.Node) bool { return g.above(leaf) > 0 })
	for _, leaf := range leaves {
		for g.offer(g.allocsOf(leaf), false, func(s *sub) bool {
			h, c := g.place(s)
			own := g.account(leaf)
			if h == nil || c > 0 && (own < 1 || g.spare() < c-own || !g.roomy(leaf, c, g.covered(s))) {
				return false
			}
			g.give(s, h, owned, plan.None)
			return true
		}) {
		}
	}
	relabel(func(plan.Node) bool { return true })
}

// lead is the newest unit of a host: in every order a host stands where that does.
func (g *whole) lead(h *host) *unit { return slices.MinFunc(h.units, g.newest) }

// stays are a leaf's hosts of an origin that are not under reclaim, the newest first.
func (g *whole) stays(leaf plan.Node, origin string) []*host {
	list := g.held(func(h *host) bool { return g.leaf(h) == leaf && g.origin(h) == origin && g.net(h) })
	slices.SortFunc(list, func(a, b *host) int { return g.newest(g.lead(a), g.lead(b)) })
	return list
}

// share is ②.
func (g *whole) share() {
	g.loop(func(leaf plan.Node) bool {
		return g.offer(g.allocsOf(leaf), false, func(s *sub) bool { return g.draw(s, g.deserved(leaf)) })
	})
	if !g.s.StaticQuota {
		g.loop(func(leaf plan.Node) bool {
			return g.offer(g.allocsOf(leaf), false, func(s *sub) bool { return g.draw(s, 1<<60) })
		})
	} else {
		for _, a := range slices.Clone(g.allocs) {
			for a.plan == g.in && !g.barred(a.leaf) && g.offer([]*alloc{a}, false, func(s *sub) bool { return g.draw(s, 1<<60) }) {
			}
		}
	}
	for _, leaf := range g.ranked(g.leaves()) {
		for _, h := range g.stays(leaf, borrowed) {
			if c := g.size[h]; g.account(plan.Root) >= c && g.spare() >= c && !g.barred(leaf) {
				g.relabel(h, sharePool, plan.None)
			}
		}
	}
}

// draw grants a unit from the pool while the leaf has less than it deserves; what it is promised by the set that the
// unit would make lapse does not count.
func (g *whole) draw(s *sub, deserved int64) bool {
	h, c := g.place(s)
	usage := g.usage(s.alloc.leaf)
	if g.covered(s) {
		if sets := g.mine(func(t *set) bool { return t.taker == s }); sets[len(sets)-1].account == plan.Root {
			usage -= g.room(sets[len(sets)-1])
		}
	}
	if h == nil || c > 0 && (usage >= deserved || g.account(plan.Root) < 1 || g.spare() < c || !g.roomy(s.alloc.leaf, c, g.covered(s))) {
		return false
	}
	g.give(s, h, sharePool, plan.None)
	return true
}

// loop serves the leaves of the tree, the least usage ÷ ratio first at every level; who cannot be served drops out.
func (g *whole) loop(serve func(leaf plan.Node) bool) {
	tree := map[plan.Node]bool{}
	for _, s := range g.below(plan.Root) {
		if !g.barred(s.alloc.leaf) {
			tree[s.alloc.leaf] = true
		}
	}
	for len(tree) > 0 {
		leaf := g.choose(plan.Root, tree, func(a, b plan.Node) bool {
			order := less(uint64(g.usage(a)), uint64(g.ratio[b]), uint64(g.usage(b)), uint64(g.ratio[a]))
			return order < 0 || order == 0 && g.rankOrder(g.in, a, b) < 0
		})
		if !serve(leaf) {
			delete(tree, leaf)
		}
	}
}

// borrow is ③.
func (g *whole) borrow() {
	for _, leaf := range g.ranked(g.leaves()) {
		for g.offer(g.allocsOf(leaf), true, func(s *sub) bool {
			h, c := g.place(s)
			if h == nil {
				return false
			}
			m := plan.Node(plan.None)
			if c > 0 {
				if m = g.lends(leaf, c, 0, plan.None); m == plan.None || g.spare() < 0 || !g.roomy(leaf, c, g.covered(s)) {
					return false
				}
			}
			g.give(s, h, borrowed, m)
			return true
		}) {
		}
	}
}

// lends is the first that lends a host of c slots to a leaf, of which moved are borrowed already, but not the one named.
func (g *whole) lends(leaf plan.Node, c, moved int64, not plan.Node) plan.Node {
	if most := g.w.BorrowLimit[leaf]; most != plan.Unlimited && g.of(leaf, borrowed, false)-moved+c > most {
		return plan.None
	}
	from := g.w.BorrowFrom[leaf]
	if from == nil {
		from = []plan.Peer{{Any: true}}
	}
	for _, peer := range from {
		for _, m := range g.leaves() {
			if m != leaf && m != not && g.admits([]plan.Peer{peer}, leaf, m) && g.admits(g.w.LendTo[m], m, leaf) &&
				g.account(m) >= c && g.lendable(m)-g.lent(m, false) >= c {
				return m
			}
		}
	}
	return plan.None
}
