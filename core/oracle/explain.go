package oracle

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// figures adds the consumers and their shares after granting.
func (g *round) figures(r *Result) {
	quota, static := g.quotas(), g.static()
	for n := plan.Root + 1; int(n) < g.p.Len(); n++ {
		if !g.m.Member[n] {
			continue
		}
		c := Consumer{Plan: g.m.Name, Path: g.p.Path[n], Amount: g.amount(n), StaticPart: static[n]}
		for _, s := range g.below(n) {
			c.Demand += s.wanted
			c.Held += s.held
		}
		c.Short = c.Demand - c.Held
		r.Consumers = append(r.Consumers, c)
		if c.Demand == 0 && c.Held == 0 {
			continue
		}
		r.Shares = append(r.Shares, Share{Plan: g.m.Name, Path: c.Path, Priority: int64(g.w.Priority[n]), Ratio: g.w.Ratio[n],
			Usage: g.exact(n), Fixed: g.usage(n), Demand: g.demand(n), Quota: quota[n], UnitsHeld: c.Held, UnitsWanted: c.Demand})
	}
}

// explain gives every shortfall its reason (D-7).
func (g *round) explain(r *Result) {
	quota := g.quotas()
	g.shortfalls(r, func(s *sub) Shortfall { return g.reason(s, quota) })
}

// reason is what stops the next unit of a sub-allocation: the first of D-7's list that applies.
func (g *round) reason(s *sub, quota map[plan.Node]uint64) Shortfall {
	hosts := g.candidates(s)
	var empty, now [][]int64
	sum := make([]int64, len(s.size))
	fitsEmpty, fitsNow := false, false
	for _, h := range hosts {
		whole, free := g.capacity(g.in, h), g.free(h)
		empty = append(empty, whole)
		fitsEmpty = fitsEmpty || fits(s.size, whole)
		fitsNow = fitsNow || fits(s.size, free)
		if full(s, h, 0) { // no more of it may go there, so its room does not count
			continue
		}
		now = append(now, free)
		for d, n := range free {
			sum[d] += n
		}
	}
	if len(hosts) == 0 && s.req != "" {
		return Shortfall{Reason: "no_host_matches"}
	}
	for _, n := range slices.Backward(g.way(s.alloc.leaf)) { // the nearest is named
		if g.w.Ratio[n] == 0 {
			return Shortfall{Reason: "share_limit", Blocker: g.p.Path[n]}
		}
	}
	for _, has := range []func(n plan.Node) []int64{func(n plan.Node) []int64 { return g.stood[n] }, g.claimed} {
		if n, d, hit := g.limited(s, has); hit {
			return Shortfall{Reason: "share_limit", Blocker: g.p.Path[n], Dimension: g.p.Dimensions[d]}
		}
	}
	scarce := g.scarce(s.size, now)
	switch higher, over := g.higher(s), g.over(s, quota); {
	case !fitsEmpty && len(hosts) > 0: // where all are closed, size is not what is wrong
		return Shortfall{Reason: "too_big", Dimension: g.scarce(s.size, empty)}
	case len(hosts) > 0 && len(now) == 0: // all that it may use are full of it
		return Shortfall{Reason: "max_per_host"}
	case fitsNow && g.host(s) == nil:
		return Shortfall{Reason: "max_per_host"}
	case fitsNow && len(g.undone) == 0:
		panic(fmt.Sprintf("BUG: a unit of %v would still fit", g.key(s)))
	case !fitsNow && fits(s.size, sum):
		return Shortfall{Reason: "fragmented", Dimension: scarce}
	case g.denied[s]:
		return Shortfall{Reason: "reclaim_budget"}
	case higher != plan.None:
		return Shortfall{Reason: "lower_priority", Dimension: scarce, Blocker: g.p.Path[higher]}
	case over:
		return Shortfall{Reason: "over_quota", Dimension: scarce}
	}
	return Shortfall{Reason: "pool_exhausted", Dimension: scarce}
}

// scarce is the dimension in which most of the vectors are too small, "" when none is.
func (g *round) scarce(size []int64, rooms [][]int64) string {
	most, name := 0, ""
	for d, n := range size {
		small := 0
		for _, room := range rooms {
			if room[d] < n {
				small++
			}
		}
		if small > most {
			most, name = small, g.p.Dimensions[d]
		}
	}
	return name
}

// higher finds, at the first level from the root where a sibling of higher share priority holds units, the one with
// the greatest usage.
func (g *round) higher(s *sub) plan.Node {
	parent := plan.Root
	for _, n := range g.way(s.alloc.leaf) {
		best := plan.None
		for _, k := range g.children(parent) {
			if g.w.Priority[k] > g.w.Priority[n] && g.holds(k) && (best == plan.None || g.usage(k) > g.usage(best)) {
				best = k
			}
		}
		if best != plan.None {
			return best
		}
		parent = n
	}
	return plan.None
}

// holds tells whether a consumer has units from the pool.
func (g *round) holds(n plan.Node) bool {
	return slices.ContainsFunc(g.below(n), func(s *sub) bool { return s.held > 0 })
}

// over tells whether a consumer on the way would be at or above its quota with one unit less.
func (g *round) over(s *sub, quota map[plan.Node]uint64) bool {
	less := uint64(one) / uint64(max(g.pack(s.size), 1))
	for _, n := range g.way(s.alloc.leaf) {
		if u := g.usage(n); u >= less && u-less >= quota[n] {
			return true
		}
	}
	return false
}
