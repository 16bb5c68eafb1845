package oracle

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Cycle runs one scheduling cycle: settle, grant and explain, plan by plan.
func (c *Cluster) Cycle() Result {
	c.cycle++
	c.nowUS += 60_000_000
	c.settle()
	var r Result
	for i := range c.p.MDPlans {
		g := newRound(c, i)
		g.restore()
		g.grant()
		g.explain(&r)
		g.reclaim()
		g.figures(&r)
	}
	held := map[event]int64{}
	for _, h := range c.hosts {
		for _, u := range h.units {
			held[event{u.sub, h, ""}]++
			if u.leaves() {
				r.Leaving++
			}
		}
	}
	r.Grants, r.Releases, r.Held, r.Reclaims = c.rows(c.granted), c.rows(c.released), c.rows(held), c.rows(c.reclaimed)
	clear(c.granted)
	clear(c.reclaimed)
	clear(c.released)
	return r
}

// rows lists counted events in the order of D-14.
func (c *Cluster) rows(m map[event]int64) []Units {
	order := slices.SortedFunc(maps.Keys(m), func(a, b event) int {
		x, y := a.sub.alloc, b.sub.alloc
		return cmp.Or(cmp.Compare(x.plan, y.plan), cmp.Compare(x.leaf, y.leaf), cmp.Compare(x.arrival, y.arrival),
			cmp.Compare(a.sub.arrival, b.sub.arrival), cmp.Compare(slices.Index(c.order[x.plan], a.host),
				slices.Index(c.order[x.plan], b.host)), cmp.Compare(a.host.Name, b.host.Name), cmp.Compare(a.cause, b.cause))
	})
	var rows []Units
	for _, e := range order {
		rows = append(rows, Units{Key: c.key(e.sub), Host: e.host.Name, Cause: e.cause, Units: m[e]})
	}
	return rows
}

// settle applies CYC-5: what is under reclaim and due, then what hosts can no longer carry, then what nobody wants any more; and D-12.
func (c *Cluster) settle() {
	c.expire()
	for _, h := range slices.Concat(c.gone, c.hosts) {
		if h.State == "unavail" || slices.Contains(c.gone, h) {
			for len(h.units) > 0 {
				c.take(h, 0, "host_lost")
			}
			continue
		}
		for {
			over := c.exceeded(h)
			i := c.first(h, func(u unit) bool { return touches(u.sub.size, over) })
			if i < 0 {
				break
			}
			c.take(h, i, "host_lost")
		}
	}
	c.gone = nil
	for _, a := range c.allocs {
		for _, s := range a.subs {
			for s.held > s.wanted {
				h := c.newest(s)
				c.take(h, c.first(h, func(u unit) bool { return u.sub == s }), "demand_gone")
			}
		}
		a.subs = slices.DeleteFunc(a.subs, func(s *sub) bool { return !s.named && s.held == 0 })
	}
	c.allocs = slices.DeleteFunc(c.allocs, func(a *alloc) bool { return len(a.subs) == 0 })
}

// exceeded tells in which dimensions a host holds more than its capacity (D-11).
func (c *Cluster) exceeded(h *host) []bool {
	over := make([]bool, len(h.size))
	if in := c.planOf(h); in >= 0 {
		used, whole := h.used(), capacity(&c.p.MDPlans[in], h)
		for d := range over {
			over[d] = used[d] > whole[d]
		}
	}
	return over
}

func touches(size []int64, over []bool) bool {
	for d, o := range over {
		if o && size[d] > 0 {
			return true
		}
	}
	return false
}

// first finds the unit of a host that goes first in CYC-5's order among those that ok accepts, -1 when there is
// none: under reclaim, then last rank first, then newest first (D-10).
func (c *Cluster) first(h *host, ok func(unit) bool) int {
	best := -1
	for i, u := range h.units {
		if ok(u) && (best < 0 || c.sooner(u, h.units[best])) {
			best = i
		}
	}
	return best
}

// sooner tells whether unit a is given up before b of the same host and plan.
func (c *Cluster) sooner(a, b unit) bool {
	if a.leaves() != b.leaves() {
		return a.leaves()
	}
	if o := c.rankOrder(&c.p.MDPlans[a.sub.alloc.plan], a.sub.alloc.leaf, b.sub.alloc.leaf); o != 0 {
		return o > 0
	}
	return cmp.Or(cmp.Compare(a.cycle, b.cycle), cmp.Compare(a.sub.arrival, b.sub.arrival)) > 0
}

// rankOrder compares two leaves by rank, level by level from the root; siblings of equal rank by the order of the list.
func (c *Cluster) rankOrder(m *plan.MDPlan, a, b plan.Node) int {
	pa, pb := c.path(a), c.path(b)
	for i := range min(len(pa), len(pb)) {
		if pa[i] != pb[i] {
			rank := m.Windows[0].Rank
			return cmp.Or(cmp.Compare(rank[pa[i]], rank[pb[i]]), cmp.Compare(pa[i], pb[i]))
		}
	}
	return 0
}

// path is a consumer and those above it, from the first level down; the root is left out.
func (c *Cluster) path(n plan.Node) []plan.Node {
	var p []plan.Node
	for ; n != plan.Root; n = c.p.Parent[n] {
		p = append([]plan.Node{n}, p...)
	}
	return p
}

// newest is the host of a sub-allocation's newest unit, those under reclaim before others; of several the last in host order.
func (c *Cluster) newest(s *sub) *host {
	var best *host
	var newest unit
	for _, h := range c.order[s.alloc.plan] {
		for _, u := range h.units {
			switch {
			case u.sub != s || best != nil && newest.leaves() && !u.leaves():
			case best == nil || u.leaves() && !newest.leaves() || u.cycle >= newest.cycle:
				best, newest = h, u
			}
		}
	}
	return best
}
