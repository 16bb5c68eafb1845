package oracle

import (
	"slices"

	"github.com/stintd/stint/core/plan"
)

// choice is the hosts that a sub-allocation may use with one more unit: by its requirement's order, else in group
// order.
func (g *whole) choice(s *sub) []*host {
	list := slices.DeleteFunc(g.candidates(s), func(h *host) bool { return g.size[h] < s.slots() || full(s, h, 0) })
	if before := g.ordered(s); before != nil {
		slices.SortStableFunc(list, func(a, b *host) int {
			switch {
			case before(a, b):
				return -1
			case before(b, a):
				return 1
			}
			return 0
		})
	}
	return list
}

// used is what units take of a host.
func (g *whole) used(h *host) int64 {
	sum := int64(0)
	for _, u := range h.units {
		sum += u.sub.slots()
	}
	return sum
}

// place is where the next unit of a sub-allocation goes, and what that costs: the first host of its holder's with room,
// else the first empty one that no set of another's keeps. nil: nowhere.
func (g *whole) place(s *sub) (*host, int64) {
	mine := g.holderOf(s)
	open := func(h *host) bool { t := g.reserver(h); return t == nil || g.holderOf(t.taker) == mine }
	for _, h := range g.choice(s) {
		if g.holder(h) == mine && g.net(h) && open(h) && g.size[h]-g.used(h) >= s.slots() {
			return h, 0
		}
	}
	for _, h := range g.choice(s) {
		if !g.taken(h) && open(h) {
			return h, g.size[h]
		}
	}
	return nil, 0
}

// offer offers the units that a leaf's allocations want, the least satisfied of each first, until one is taken. Where
// promised units wait aside, they count as held.
func (g *whole) offer(allocs []*alloc, aside bool, take func(s *sub) bool) bool {
	has := func(s *sub) int64 {
		if aside {
			return s.held + g.pledged(s)
		}
		return s.held
	}
	for _, a := range allocs {
		subs := slices.DeleteFunc(slices.Clone(a.subs), func(s *sub) bool {
			return has(s) >= s.wanted || g.undone[s] || g.small(s)
		})
		slices.SortStableFunc(subs, func(a, b *sub) int {
			return less(uint64(has(a)), uint64(b.wanted), uint64(has(b)), uint64(a.wanted))
		})
		if slices.ContainsFunc(subs, take) {
			return true
		}
	}
	return false
}

// allocsOf are a leaf's allocations in order of arrival.
func (g *whole) allocsOf(leaf plan.Node) []*alloc {
	return slices.DeleteFunc(slices.Clone(g.allocs), func(a *alloc) bool { return a.plan != g.in || a.leaf != leaf })
}

// give grants a unit: with the label of its host if that is held, else with the one given.
func (g *whole) give(s *sub, h *host, origin string, lender plan.Node) {
	if g.covered(s) {
		sets := g.mine(func(t *set) bool { return t.taker == s })
		g.lapse(sets[len(sets)-1])
	}
	if g.taken(h) {
		first := h.units[0]
		u := g.put(s, h)
		u.origin, u.lender, u.pool = first.origin, first.lender, first.pool
		return
	}
	g.put(s, h)
	g.relabel(h, origin, lender)
}

// relabel gives all units of a host an origin and a lender.
func (g *whole) relabel(h *host, origin string, lender plan.Node) {
	leaf := g.leaf(h)
	for _, u := range h.units {
		u.origin, u.lender, u.pool = "", plan.None, plan.None
	}
	pool := plan.None
	if origin == sharePool {
		pool = g.p.Parent[leaf]
		for pool != plan.Root && g.of(pool, sharePool, false) >= g.pooled(pool) {
			pool = g.p.Parent[pool]
		}
	}
	for _, u := range h.units {
		u.origin, u.lender, u.pool = origin, lender, pool
	}
}

// label labels what runs without a label, in row order: like its host, or as the whole host can count.
func (g *whole) label() {
	list := g.units(func(u *unit) bool { return u.origin == "" })
	slices.SortFunc(list, func(a, b *unit) int { return int(a.row - b.row) })
	for _, u := range list {
		if u.origin != "" {
			continue
		}
		if i := slices.IndexFunc(u.host.units, func(v *unit) bool { return v.origin != "" }); i >= 0 {
			first := u.host.units[i]
			u.origin, u.lender, u.pool = first.origin, first.lender, first.pool
			continue
		}
		leaf, c := u.leaf(), g.size[u.host]
		m := g.lends(leaf, c, 0, plan.None)
		switch {
		case g.account(leaf) >= c:
			g.relabel(u.host, owned, plan.None)
		case g.idlePool(leaf) >= c && !g.barred(leaf) || m == plan.None:
			g.relabel(u.host, sharePool, plan.None)
		default:
			g.relabel(u.host, borrowed, m)
		}
	}
}

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
		case !g.taken(h) && (s.account != plan.Root && g.account(s.account)+kept < 1 ||
			s.account == plan.Root && g.idlePool(leaf)+kept < 1 ||
			!g.roomy(leaf, g.size[h], true)):
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
			for a.plan == g.in && !g.barred(a.leaf) && g.offer([]*alloc{a}, false,
				func(s *sub) bool { return g.draw(s, 1<<60) }) {
			}
		}
	}
	for _, leaf := range g.ranked(g.leaves()) {
		for _, h := range g.stays(leaf, borrowed) {
			if c := g.size[h]; g.idlePool(leaf) >= c && g.spare() >= c && !g.barred(leaf) {
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
	if h == nil || c > 0 && (usage >= deserved || g.idlePool(s.alloc.leaf) < 1 || g.spare() < c ||
		!g.roomy(s.alloc.leaf, c, g.covered(s))) {
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
			order := less(uint64(g.usage(a)), g.weight(b), uint64(g.usage(b)), g.weight(a))
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
			m := plan.None
			if c > 0 {
				if m = g.lends(leaf, c, 0, plan.None); m == plan.None || !g.mayLend(c) ||
					!g.roomy(leaf, c, g.covered(s)) {
					return false
				}
			}
			g.give(s, h, borrowed, m)
			return true
		}) {
		}
	}
}

// lends is the first that lends a host of c slots to a leaf, of which moved are borrowed already, but not the one
// named.
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
