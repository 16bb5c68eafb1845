package oracle

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// round is one MD plan in one cycle. The pool's capacities do not change while granting.
type round struct {
	frame
	m      *plan.MDPlan
	w      *plan.MDWindow
	weight []uint64              // by dimension (D-2)
	packs  map[string]int64      // capacity of the pool by unit size (MD-11)
	stood  map[plan.Node][]int64 // what share limits looked at once everything was granted (D-23)
	passed map[*sub]bool         // nothing more can be promised to them in this cycle
	vain   map[string]bool       // hosts that takers of a kind tried in vain; with no host: all of them
}

func newRound(c *Cluster, in int) *round {
	m := &c.p.MDPlans[in]
	g := &round{frame: newFrame(c, in), m: m, w: c.mdWindow(in), packs: map[string]int64{}, stood: map[plan.Node][]int64{},
		passed: map[*sub]bool{}, vain: map[string]bool{}, weight: make([]uint64, len(c.p.Dimensions))}
	largest := make([]int64, len(c.p.Dimensions))
	for _, h := range g.hosts {
		if h.State == "ok" {
			for _, s := range c.parcels(in, h) {
				for d, n := range s.size {
					largest[d] = max(largest[d], n)
				}
			}
		}
	}
	for d, n := range largest {
		if n > 0 {
			g.weight[d] = 1 << 58 / uint64(n)
		}
	}
	return g
}

// play is the plan's cycle after settle.
func (g *round) play(r *Result) {
	g.restore(g.bears, g.bearsThere)
	g.review()
	g.promised()
	g.owners()
	g.grant()
	g.leave()
	g.crowded()
	g.limits()
	g.fair()
	g.explain(r)
	g.figures(r)
}

// grant is the loop of MD-16: choose a leaf, try to place one unit of it, drop it when nothing fits or it wants no more.
func (g *round) grant() {
	g.race(g.stake, g.place)
	for n := range plan.Node(g.p.Len()) {
		g.stood[n] = g.claimed(n)
	}
}

// race offers the units that are not promised in turns by what consumers have (MD-16), until take takes none.
func (g *round) race(has func(n plan.Node) uint64, take func(s *sub) bool) {
	tree := map[plan.Node]bool{}
	for _, s := range g.below(plan.Root) {
		if !g.barred(s.alloc.leaf) {
			tree[s.alloc.leaf] = true
		}
	}
	for len(tree) > 0 {
		leaf := g.choose(plan.Root, tree, func(a, b plan.Node) bool { return g.before(a, b, has) })
		if !g.serve(leaf, g.counted, func(s *sub) bool { return g.pledged(s) < s.short() && take(s) }) {
			delete(tree, leaf)
		}
	}
}

// before compares two siblings: the highest priority first, among equals the one that has least for its ratio.
func (g *round) before(a, b plan.Node, has func(n plan.Node) uint64) bool {
	if x, y := g.w.Priority[a], g.w.Priority[b]; x != y {
		return x > y
	}
	return less(has(a), uint64(g.ratio[b]), has(b), uint64(g.ratio[a])) < 0
}

// place grants one unit of a sub-allocation; false when it fits nowhere.
func (g *round) place(s *sub) bool {
	if _, _, hit := g.limited(s, g.claimed); hit {
		return false
	}
	to, ok := g.spot(s, g.pool(s))
	if ok {
		g.put(s, to.host)
	}
	return ok
}

// pool are the parcels of the public pool that a sub-allocation may use.
func (g *round) pool(s *sub) []parcel {
	var list []parcel
	for _, h := range g.candidates(s) {
		if t := g.public(h); !zero(t.size) {
			list = append(list, t)
		}
	}
	return list
}

// limited finds the share limit (MD-18) that one unit more would exceed, the leaf's own first.
func (g *round) limited(s *sub, has func(n plan.Node) []int64) (blocker plan.Node, dim int, hit bool) {
	for _, n := range slices.Backward(g.way(s.alloc.leaf)) {
		over := g.beyond(n, s.size, has)
		for d, u := range s.size {
			if u > 0 && over[d] {
				return n, d, true
			}
		}
	}
	return plan.None, 0, false
}

// amount is the vector that a consumer and all below it hold in the plan.
func (g *round) amount(n plan.Node) []int64 {
	v := make([]int64, len(g.p.Dimensions))
	for _, s := range g.below(n) {
		for d, u := range s.size {
			v[d] += u * s.held
		}
	}
	return v
}

// free is what is left of a parcel beside what sets keep there: they are for the public pool.
func (g *round) free(t parcel) []int64 {
	v := g.spare(t, present)
	for _, s := range g.mine(func(s *set) bool { return s.target == t.host && t.owner == plan.Root }) {
		plus(v, g.kept(s), -1)
	}
	return v
}

func fits(size, room []int64) bool {
	for d, n := range size {
		if n > 0 && n > room[d] {
			return false
		}
	}
	return true
}

// spot is which of some parcels the next unit goes to, if it fits any: the first by the requirement's order, else by the
// plan's placement (MD-20); ties by the parcels' order.
func (g *round) spot(s *sub, list []parcel) (best parcel, ok bool) {
	ordered := g.ordered(s)
	var before func(a, b parcel) bool
	switch {
	case ordered != nil:
		before = func(a, b parcel) bool { return ordered(a.host, b.host) }
	case g.m.Placement == plan.BestFit:
		before = func(a, b parcel) bool { return g.liker(s, a, b) }
	case g.m.Placement == plan.Stacked: // D-3
		before = func(a, b parcel) bool { return g.begun(a) && !g.begun(b) }
	case g.m.Placement == plan.Balanced: // D-3
		before = func(a, b parcel) bool { return g.room(a) > g.room(b) }
	default:
		panic(fmt.Sprintf("oracle: placement %d is no MD placement", g.m.Placement))
	}
	for _, t := range list {
		if fits(s.size, g.free(t)) && !full(s, t.host, 0) && (!ok || before(t, best)) {
			best, ok = t, true
		}
	}
	return best, ok
}

// room is a parcel's weighted free capacity (D-3).
func (g *round) room(t parcel) uint64 {
	sum := uint64(0)
	for d, n := range g.free(t) {
		sum += uint64(max(0, n)) * g.weight[d]
	}
	return sum
}

// liker tells whether best fit takes parcel a rather than b, which comes before it: the likeness of free room and
// unit is greater, or the same in a lower shape, or in the same and fuller (D-2).
func (g *round) liker(s *sub, a, b parcel) bool {
	na, da, ca := g.likeness(s, a)
	nb, db, cb := g.likeness(s, b)
	return na*db > nb*da || na*db == nb*da && ca < cb
}

// likeness is D-2's measure as a fraction, and the class: shape, then fullness. The first eight dimensions count.
func (g *round) likeness(s *sub, t parcel) (num, den uint64, class int) {
	free := g.free(t)
	dims := min(len(free), 8)
	steps, most := make([]uint64, dims), uint64(0)
	for d := range dims {
		steps[d] = uint64(max(0, free[d])) * g.weight[d] >> 46
		most = max(most, steps[d])
	}
	digit := 1
	for d, x := range steps {
		level, code := uint64(0), 0
		switch {
		case len(free) > 4 && 4*x > most:
			level, code = 1, 1
		case len(free) > 4:
		case 2*x > most:
			level, code = 12, 3
		case 4*x > most:
			level, code = 6, 2
		case 16*x > most:
			level, code = 2, 1
		}
		if w := g.weight[d]; w > 0 {
			num += level * ((min(uint64(s.size[d]), 1<<58/w)*w + 1<<46 - 1) >> 46)
		}
		den += level * level
		class += digit * code
		digit *= 4
	}
	class *= 4
	for _, full := range []uint64{256, 1024, 2048} {
		if most > full {
			class++
		}
	}
	return num * num, max(1, den), class
}
