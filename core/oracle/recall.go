package oracle

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// What outsiders give back to those who own and reserve (MD-10, INV-3), by docs/spec/md.md and docs/shares.md.

// intruded tells in which dimensions outsiders would hold, with something more, what one of the lenders of a parcel
// that ok accepts reserves there. Promises are left aside.
func (g *round) intruded(t parcel, more []int64, ok func(x plan.Node) bool) []bool {
	over := make([]bool, len(t.size))
	for _, x := range g.lenders(t.owner, plan.Root) {
		if reserve := g.aside[aside{x, t.owner, t.host}]; reserve != nil && ok(x) {
			held := g.heldOn(t, func(u *unit) bool { return stays(u) && !g.under(x, u.leaf()) })
			for d, n := range held {
				over[d] = over[d] || n+more[d]+reserve[d] > t.size[d]
			}
		}
	}
	return over
}

// reserve puts under reclaim what outsiders hold of reserves: parcel by parcel, those of the owner first, then upwards.
func (g *round) reserve() {
	nothing := make([]int64, len(g.p.Dimensions))
	for _, h := range g.hosts {
		for _, t := range g.parcels(g.in, h) {
			for _, x := range g.lenders(t.owner, plan.Root) {
				for {
					over := g.intruded(t, nothing, func(y plan.Node) bool { return y == x })
					u := g.firstBut(h.units, func(u *unit) bool {
						return u.sub.alloc.plan == g.in && lies(u, t) && stays(u) && !g.under(x, u.leaf()) &&
							touches(u.sub.size, over)
					})
					if u == nil {
						break
					}
					if x != t.owner {
						g.notes["reserve of a branch taken back"]++
					}
					if !g.rule(u, "reserve") {
						return
					}
				}
			}
		}
	}
}

// outcome is what came of recalling room for a unit.
type outcome int

const (
	nowhere outcome = iota // it cannot be made to fit
	served                 // it is promised
	refused                // by the reclaim budget
)

// nodes are the plan's members in tree order.
func (g *round) nodes() []plan.Node {
	var list []plan.Node
	for n := range plan.Node(g.p.Len()) {
		if g.member[n] {
			list = append(list, n)
		}
	}
	return list
}

// recallFor recalls room for a unit: from outsiders of its leaf, else of its leaf's parent, and so on.
func (g *round) recallFor(s *sub) outcome {
	for x := s.alloc.leaf; x != plan.Root; x = g.p.Parent[x] {
		q := g.pool(x)
		if _, _, hit := q.limited(s, q.claimed); hit || q.barred(s.alloc.leaf) {
			g.notes["recall stopped by a share limit"] = 1
			continue
		}
		if done := g.recallOn(s, x, q.usable(s)); done != nowhere {
			return done
		}
	}
	return nowhere
}

// recallOn recalls room on one of some parcels from outsiders of x: the unit joins sets under way, or takes victims.
func (g *round) recallOn(s *sub, x plan.Node, list []parcel) outcome {
	if !g.firm && g.join(s, list) {
		g.notes["joined for a recall"]++
		return served
	}
	outside := func(n plan.Node) bool { return !g.under(x, n) }
	units := g.units(func(u *unit) bool {
		return outside(u.leaf()) && (stays(u) || u.set.taker != nil && g.onTarget(u.set, u) &&
			outside(u.set.taker.alloc.leaf))
	})
	slices.SortFunc(units, func(a, b *unit) int {
		far := cmp.Compare(g.p.Depth[g.meetOf(a)], g.p.Depth[g.meetOf(b)])
		return cmp.Or(g.coreLast(a, b), g.youngLast(a, b), far, g.lastRank(a, b))
	})
	return g.recallBest(s, x, list, units)
}

// takeBack makes a set of the victims that a recall chose, and dissolves the sets in its way.
func (g *round) takeBack(s *sub, t parcel, chosen []*unit, sets []*set) outcome {
	over := slices.ContainsFunc(chosen, (*unit).leaves)
	if !g.claim(&set{reason: "recall", target: t.host, owner: t.owner, taker: s}, chosen) {
		return refused
	}
	g.noteSet(len(chosen))
	if over {
		g.notes["took over a victim"]++
	}
	if t.owner != s.alloc.leaf {
		g.notes["recall for a branch"]++
	}
	if len(sets) > 1 {
		g.notes["dissolved several sets"]++
	}
	for _, o := range sets {
		g.dissolve(o)
	}
	return served
}

// without chooses victims for a unit on a parcel as if some sets were dissolved: theirs first, in the order of their
// deadlines.
func (g *round) without(s *sub, t parcel, here []*unit, sets []*set) (chosen []*unit, ok bool) {
	units, of := map[*set]int64{}, map[*unit]*set{}
	for _, o := range sets {
		units[o] = o.n
		o.n = 0
		for _, u := range here {
			if u.set == o {
				of[u], u.set = o, nil
			}
		}
	}
	defer func() {
		for _, o := range sets {
			o.n = units[o]
		}
		for u, o := range of {
			u.set = o
		}
	}()
	here = slices.DeleteFunc(slices.Clone(here), (*unit).leaves)
	fresh := func(u *unit) int64 {
		if of[u] == nil {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(here, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(fresh(a), fresh(b)), cmp.Compare(a.due, b.due))
	})
	here = g.grantedFirst(here)
	if len(sets) > 0 && fits(s.size, least(g.room(s.alloc.leaf, t), g.netRoom(s.alloc.leaf, t))) {
		return nil, true
	}
	for _, spared := range []func(u *unit) bool{func(u *unit) bool { return g.young(u) || g.core[u] },
		func(u *unit) bool { return g.core[u] }} {
		some := slices.DeleteFunc(slices.Clone(here), func(u *unit) bool { return of[u] == nil && spared(u) })
		if chosen, ok = g.pickOf(s, t, some, func(*unit) bool { return true }); ok {
			return chosen, ok
		}
	}
	return g.pickOf(s, t, here, func(*unit) bool { return true })
}

// youngLast orders units that have run for less than their min_runtime behind all others (REQ-4).
func (g *round) youngLast(a, b *unit) int {
	last := func(u *unit) int {
		if g.young(u) {
			g.notes["young ones recalled last"] = 1
			return 1
		}
		return 0
	}
	return cmp.Compare(last(a), last(b))
}

// grantedFirst moves units that were granted in this cycle before the first of their sub-allocation (CYC-1).
func (g *round) grantedFirst(units []*unit) (list []*unit) {
	for _, u := range units {
		for _, v := range units {
			if v.sub == u.sub && v.cycle == g.cycle && u.cycle < g.cycle && !slices.Contains(list, v) {
				list = append(list, v)
			}
		}
		if !slices.Contains(list, u) {
			list = append(list, u)
		}
	}
	return list
}

// dissolve ends a set; victims that no other set took over are cancelled.
func (g *round) dissolve(o *set) {
	o.n, g.loose = 0, true
	g.notes["dissolved set"]++
	for _, u := range g.units(func(u *unit) bool { return u.set == o }) {
		g.cancel(u)
	}
}

// meetOf is where the ways up from a unit's leaf and from its parcel's owner meet.
func (g *round) meetOf(u *unit) plan.Node {
	if u.pool == plan.None {
		return u.owner
	}
	return g.meet(u.leaf(), u.owner)
}

// recalls is MD-10: leaves recall their own parcels, then consumers for their pools, the deepest first.
func (g *round) recalls() {
	g.passed = map[*sub]bool{}
	leaves := slices.DeleteFunc(g.nodes(), func(n plan.Node) bool { return !g.p.Leaf(n) })
	slices.SortStableFunc(leaves, func(a, b plan.Node) int { return g.rankOrder(g.in, a, b) })
	for _, leaf := range leaves {
		for g.serve(leaf, g.counted, func(s *sub) bool { return g.recallIn(g.pool(leaf), s) }) {
		}
	}
	for _, q := range g.pools() {
		if q.at == plan.Root {
			continue
		}
		g.passed = map[*sub]bool{}
		tree := map[plan.Node]bool{}
		for _, s := range q.below(q.at) {
			if !q.barred(s.alloc.leaf) {
				tree[s.alloc.leaf] = true
			}
		}
		for len(tree) > 0 {
			leaf := q.choose(q.at, tree, func(a, b plan.Node) bool { return q.before(a, b, q.stake) })
			if !g.serve(leaf, g.counted, func(s *sub) bool { return g.recallIn(q, s) }) {
				delete(tree, leaf)
			}
		}
	}
}

// recallIn recalls room for a unit in a pool, or passes its sub-allocation over (MD-10.3).
func (g *round) recallIn(q pool, s *sub) bool {
	if g.forming[s] || g.passed[s] || g.pledged(s) >= s.short() {
		return false
	}
	if q.stops(s) {
		g.notes["recall stopped by a share limit"] = 1
		g.passed[s] = true
		return false
	}
	g.passed[s] = g.recallOn(s, q.at, q.usable(s)) != served
	return !g.passed[s]
}

// recallBest recalls room on the best of the first parcels where that serves (MD-10.4).
func (g *round) recallBest(s *sub, x plan.Node, list []parcel, units []*unit) outcome {
	type choice struct {
		t      parcel
		chosen []*unit
		sets   []*set
		depth  int32
	}
	var best *choice
	found, tried := 0, map[int]bool{}
	for _, u := range units {
		i := slices.IndexFunc(list, func(t parcel) bool { return lies(u, t) })
		if i < 0 || tried[i] || found == choicesMost || !g.takes(s, list[i], 0) {
			continue
		}
		tried[i] = true
		t := list[i]
		here := slices.DeleteFunc(slices.Clone(units), func(u *unit) bool { return !lies(u, t) })
		sets := slices.DeleteFunc(g.setsOn(t), func(s *set) bool { return g.under(x, s.taker.alloc.leaf) })
		slices.Reverse(sets)
		for n := range len(sets) + 1 {
			chosen, ok := g.without(s, t, here, sets[:n])
			if !ok {
				continue
			}
			c := &choice{t, chosen, sets[:n], -1}
			for _, v := range chosen {
				c.depth = max(c.depth, g.p.Depth[g.meetOf(v)])
			}
			found++
			if best == nil ||
				cmp.Or(cmp.Compare(c.depth, best.depth), cmp.Compare(len(c.chosen), len(best.chosen))) < 0 {
				best = c
			}
			break
		}
	}
	if best == nil {
		return nowhere
	}
	return g.takeBack(s, best.t, best.chosen, best.sets)
}
