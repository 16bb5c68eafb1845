package oracle

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// spot is one unit on one host.
type spot struct {
	host *host
	at   int // in host.units
}

func (s spot) unit() *unit { return &s.host.units[s.at] }

// spots are the units of a consumer and all below it that ok accepts.
func (g *round) spots(n plan.Node, ok func(u unit) bool) []spot {
	var list []spot
	for _, h := range g.hosts {
		for i, u := range h.units {
			if a := u.sub.alloc; a.plan == g.in && a.leaf >= n && a.leaf < g.p.End[n] && ok(u) {
				list = append(list, spot{h, i})
			}
		}
	}
	return list
}

// limit is the most that a consumer may hold of a dimension from the pool; a ratio of 0 counts as 0 (MD-18).
func (g *round) limit(n plan.Node, d int) int64 {
	if g.w.Ratio[n] == 0 {
		return 0
	}
	return g.w.Limit[d][n]
}

// stays is the vector that a consumer holds and does not have to give back (CYC-7).
func (g *round) stays(n plan.Node) []int64 {
	v := g.amount(n)
	for _, s := range g.spots(n, unit.leaves) {
		for d, u := range s.unit().sub.size {
			v[d] -= u
		}
	}
	return v
}

// beyond tells in which dimensions a consumer would hold more than its limit with a unit of a size more.
func (g *round) beyond(n plan.Node, size []int64) []bool {
	over, v := make([]bool, len(size)), g.stays(n)
	for d := range over {
		most := g.limit(n, d)
		over[d] = most != plan.Unlimited && v[d]+size[d] > most
	}
	return over
}

// restore takes units off their reclaim that no limit asks for any more, the latest first (CYC-6).
func (g *round) restore() {
	list := g.spots(plan.Root, unit.leaves)
	slices.SortStableFunc(list, func(a, b spot) int { return cmp.Compare(b.unit().number, a.unit().number) })
	for _, s := range list {
		u := s.unit()
		bears := true
		for _, n := range g.path(u.sub.alloc.leaf) {
			bears = bears && !touches(u.sub.size, g.beyond(n, u.sub.size))
		}
		if bears {
			u.number = 0
			g.reclaimed[event{u.sub, s.host, "cancelled"}]++
		}
	}
}

// reclaim puts under reclaim what consumers hold over their limits: children before parents, the units granted last.
func (g *round) reclaim() {
	nothing := make([]int64, len(g.p.Dimensions))
	for n := plan.Node(g.p.Len() - 1); n > plan.Root; n-- {
		for g.m.Member[n] {
			over := g.beyond(n, nothing)
			list := g.spots(n, func(u unit) bool { return !u.leaves() && touches(u.sub.size, over) })
			if len(list) == 0 {
				break
			}
			s := slices.MinFunc(list, g.later)
			g.numbers++
			u := s.unit()
			u.number, u.due = g.numbers, g.nowUS+g.p.ReclaimUS[u.sub.alloc.leaf]
			g.reclaimed[event{u.sub, s.host, "issued"}]++
		}
	}
}

// later orders units as a limit takes them: granted last, then last rank, then the sub-allocation and the host that
// came last.
func (g *round) later(a, b spot) int {
	x, y := a.unit(), b.unit()
	return cmp.Or(cmp.Compare(y.cycle, x.cycle), g.rankOrder(g.m, y.sub.alloc.leaf, x.sub.alloc.leaf),
		cmp.Compare(y.sub.arrival, x.sub.arrival), cmp.Compare(slices.Index(g.hosts, b.host), slices.Index(g.hosts, a.host)))
}

// expire gives back what is under reclaim and due.
func (c *Cluster) expire() {
	for _, h := range slices.Concat(c.gone, c.hosts) {
		for i := len(h.units) - 1; i >= 0; i-- {
			if u := h.units[i]; u.leaves() && u.due <= c.nowUS {
				c.take(h, i, "grace_expired")
			}
		}
	}
}
