package oracle

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// round is one plan in one cycle. Sets of hosts, their order and the pool's capacities do not change while granting.
type round struct {
	*Cluster
	m        *plan.MDPlan
	w        *plan.MDWindow
	in       int
	hosts    []*host          // in host order
	weight   []uint64         // by dimension (D-2)
	packs    map[string]int64 // capacity of the pool by unit size (MD-11)
	matching map[string][]bool
	tree     map[plan.Node]bool // what MD-16 has not dropped yet: leaves only
}

func newRound(c *Cluster, in int) *round {
	m := &c.p.MDPlans[in]
	g := &round{Cluster: c, m: m, w: &m.Windows[0], in: in, hosts: c.order[in], packs: map[string]int64{},
		matching: map[string][]bool{}, tree: map[plan.Node]bool{}, weight: make([]uint64, len(c.p.Dimensions))}
	largest := make([]int64, len(c.p.Dimensions))
	for _, h := range g.hosts {
		if h.State == "ok" {
			for d, n := range capacity(m, h) {
				largest[d] = max(largest[d], n)
			}
		}
	}
	for d, n := range largest {
		if n > 0 {
			g.weight[d] = 1 << 58 / uint64(n)
		}
	}
	for _, a := range c.allocs {
		if a.plan == in && !g.barred(a.leaf) {
			g.tree[a.leaf] = true
		}
	}
	return g
}

// barred tells whether a consumer, or one above it, has the share ratio 0 (D-6).
func (g *round) barred(n plan.Node) bool {
	return slices.ContainsFunc(g.path(n), func(n plan.Node) bool { return g.w.Ratio[n] == 0 })
}

// grant is the loop of MD-16: choose a leaf, try to place one unit of it, drop it when nothing fits or it wants no more.
func (g *round) grant() {
	for len(g.tree) > 0 {
		leaf := g.choose(plan.Root)
		if !g.place(leaf) {
			delete(g.tree, leaf)
		}
	}
}

// choose goes down to a leaf: the highest priority still in the tree, among equals the least usage ÷ ratio.
func (g *round) choose(n plan.Node) plan.Node {
	best := plan.None
	for _, k := range g.children(n) {
		if !g.alive(k) {
			continue
		}
		if best == plan.None || g.w.Priority[k] > g.w.Priority[best] ||
			g.w.Priority[k] == g.w.Priority[best] && g.less(k, best) {
			best = k
		}
	}
	if g.p.Leaf(best) {
		return best
	}
	return g.choose(best)
}

// less compares two siblings by usage ÷ ratio, as cross products.
func (g *round) less(a, b plan.Node) bool {
	ah, al := bits.Mul64(g.usage(a), uint64(g.w.Ratio[b]))
	bh, bl := bits.Mul64(g.usage(b), uint64(g.w.Ratio[a]))
	return ah < bh || ah == bh && al < bl
}

// children are the members of the plan below a consumer, in plan order.
func (g *round) children(n plan.Node) []plan.Node {
	var list []plan.Node
	for k := g.p.First[n]; k != plan.None; k = g.p.Next[k] {
		if g.m.Member[k] {
			list = append(list, k)
		}
	}
	return list
}

func (g *round) alive(n plan.Node) bool {
	return g.tree[n] || slices.ContainsFunc(g.children(n), g.alive)
}

// place grants one unit of a leaf by CYC-10 and D-9; false when nothing of it fits or it wants no more.
func (g *round) place(leaf plan.Node) bool {
	for _, a := range g.allocs {
		if a.plan != g.in || a.leaf != leaf {
			continue
		}
		subs := slices.DeleteFunc(slices.Clone(a.subs), func(s *sub) bool { return s.held >= s.wanted })
		slices.SortStableFunc(subs, func(a, b *sub) int {
			ah, al := bits.Mul64(uint64(a.held), uint64(b.wanted))
			bh, bl := bits.Mul64(uint64(b.held), uint64(a.wanted))
			return cmp.Or(cmp.Compare(ah, bh), cmp.Compare(al, bl))
		})
		for _, s := range subs {
			if _, _, hit := g.limited(s); hit {
				continue
			}
			if h := g.host(s); h != nil {
				h.put(s, g.cycle)
				g.granted[event{s, h, ""}]++
				return true
			}
		}
	}
	return false
}

// limited finds the share limit (MD-18) that one unit more would exceed, the leaf's own first.
func (g *round) limited(s *sub) (blocker plan.Node, dim int, hit bool) {
	for _, n := range slices.Backward(g.path(s.alloc.leaf)) {
		over := g.beyond(n, s.size)
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

// below are the sub-allocations of a consumer and all below it, in the order of D-14.
func (g *round) below(n plan.Node) []*sub {
	var list []*sub
	for leaf := n; leaf < g.p.End[n]; leaf++ {
		for _, a := range g.allocs {
			if a.plan == g.in && a.leaf == leaf {
				list = append(list, a.subs...)
			}
		}
	}
	return list
}

// meets tells whether a host meets a sub-allocation's requirement.
func (g *round) meets(s *sub, h *host) bool {
	if g.matching[s.req] == nil {
		g.matching[s.req] = g.matches(parsed(s.req))
	}
	return g.matching[s.req][slices.Index(g.Cluster.hosts, h)]
}

// candidates are the hosts that a sub-allocation may use, full or not, in host order.
func (g *round) candidates(s *sub) []*host {
	return slices.DeleteFunc(slices.Clone(g.hosts), func(h *host) bool { return h.State != "ok" || !g.meets(s, h) })
}

// free is what is left of a host.
func (g *round) free(h *host) []int64 {
	v := capacity(g.m, h)
	for d, n := range h.used() {
		v[d] -= n
	}
	return v
}

func fits(size, room []int64) bool {
	for d, n := range size {
		if n > room[d] {
			return false
		}
	}
	return true
}

// full tells whether a host holds as many units of a sub-allocation as max_per_host allows.
func full(s *sub, h *host) bool {
	n := int64(0)
	for _, u := range h.units {
		if u.sub == s {
			n++
		}
	}
	return s.perHost != plan.Unlimited && n >= s.perHost
}

// host is where the next unit goes, nil when it fits nowhere: the first by the requirement's order, else by the
// plan's placement (MD-20); ties by host order.
func (g *round) host(s *sub) *host {
	order := parsed(s.req)
	before := func(a, b *host) bool {
		switch {
		case order != nil && order.Ordered():
			return g.bind(order).Less(slices.Index(g.Cluster.hosts, a), slices.Index(g.Cluster.hosts, b))
		case g.m.Placement == plan.BestFit:
			return g.liker(s, a, b)
		case g.m.Placement == plan.Stacked: // D-3
			return len(a.units) > 0 && len(b.units) == 0
		case g.m.Placement == plan.Balanced: // D-3
			return g.room(a) > g.room(b)
		}
		panic(fmt.Sprintf("oracle: placement %d is no MD placement", g.m.Placement))
	}
	var best *host
	for _, h := range g.candidates(s) {
		if fits(s.size, g.free(h)) && !full(s, h) && (best == nil || before(h, best)) {
			best = h
		}
	}
	return best
}

// room is a host's weighted free capacity (D-3).
func (g *round) room(h *host) uint64 {
	sum := uint64(0)
	for d, n := range g.free(h) {
		sum += uint64(n) * g.weight[d]
	}
	return sum
}

// liker tells whether best fit takes host a rather than b, which comes before it: the likeness of free room and
// unit is greater, or the same in a lower shape, or in the same and fuller (D-2).
func (g *round) liker(s *sub, a, b *host) bool {
	na, da, ca := g.likeness(s, a)
	nb, db, cb := g.likeness(s, b)
	return na*db > nb*da || na*db == nb*da && ca < cb
}

// likeness is D-2's measure as a fraction, and the class: shape, then fullness. The first eight dimensions count.
func (g *round) likeness(s *sub, h *host) (num, den uint64, class int) {
	free := g.free(h)
	dims := min(len(free), 8)
	steps, most := make([]uint64, dims), uint64(0)
	for d := range dims {
		steps[d] = uint64(free[d]) * g.weight[d] >> 46
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
