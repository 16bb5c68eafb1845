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
		c := Consumer{Plan: g.m.Name, Path: g.p.Path[n], Amount: g.amount(n), StaticPart: static[n], Configured: g.estates[g.in].configured[n]}
		c.Owned, c.Reserved = g.possession(n)
		pooled := int64(0)
		for _, s := range g.below(n) {
			c.Demand += s.wanted
			c.Held += s.held
			pooled += g.holds(s)
		}
		c.Short = c.Demand - c.Held
		r.Consumers = append(r.Consumers, c)
		if pooled+c.Short == 0 {
			continue
		}
		r.Shares = append(r.Shares, Share{Plan: g.m.Name, Path: c.Path, Priority: int64(g.w.Priority[n]), Ratio: g.w.Ratio[n],
			Usage: g.exact(n), Fixed: g.usage(n), Demand: g.demand(n), Quota: quota[n], UnitsHeld: pooled, UnitsWanted: pooled + c.Short})
	}
}

// explain gives every shortfall its reason (D-7).
func (g *round) explain(r *Result) {
	quota := g.quotas()
	g.shortfalls(r, func(s *sub) Shortfall { return g.reason(s, quota) })
}

// reason is what stops the next unit of a sub-allocation: the first of D-7's list, and of that of docs/shares.md, that applies.
func (g *round) reason(s *sub, quota map[plan.Node]uint64) Shortfall {
	list := g.usable(s)
	if len(list) == 0 && s.req != "" {
		return Shortfall{Reason: "no_host_matches"}
	}
	limit, limited := g.stopped(s)
	owns, _ := g.possession(s.alloc.leaf)
	if limited && zero(owns) {
		return limit
	}
	if row, ok := g.itself(s, list); ok {
		return row
	}
	if g.unowned(s) {
		return Shortfall{Reason: "ownership_unmet"}
	}
	if limited {
		return limit
	}
	var now [][]int64
	sum := make([]int64, len(s.size))
	fitsNow := false
	for _, t := range list {
		if !full(s, t.host, 0) { // no more of it may go there, so its room does not count
			free := g.free(t)
			now, fitsNow = append(now, free), fitsNow || fits(s.size, free)
			for d, n := range free {
				sum[d] += max(0, n)
			}
		}
	}
	scarce := g.scarce(s.size, now)
	switch higher, over := g.higher(s), g.over(s, quota); {
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

// stopped is the ratio of 0 or the share limit that keeps a sub-allocation from the pool, the nearest to its leaf.
func (g *round) stopped(s *sub) (row Shortfall, ok bool) {
	for _, n := range slices.Backward(g.way(s.alloc.leaf)) {
		if g.w.Ratio[n] == 0 {
			return Shortfall{Reason: "share_limit", Blocker: g.p.Path[n]}, true
		}
	}
	for _, has := range []func(n plan.Node) []int64{func(n plan.Node) []int64 { return g.stood[n] }, g.claimed} {
		if n, d, hit := g.limited(s, has); hit {
			return Shortfall{Reason: "share_limit", Blocker: g.p.Path[n], Dimension: g.p.Dimensions[d]}, true
		}
	}
	return row, false
}

// usable are the parcels that a sub-allocation may use, full or not: its leaf's own, and those of the public pool.
func (g *round) usable(s *sub) []parcel {
	var list []parcel
	for _, h := range g.candidates(s) {
		for _, t := range g.parcels(g.in, h) {
			if t.owner == plan.Root || t.owner == s.alloc.leaf {
				list = append(list, t)
			}
		}
	}
	return list
}

// itself is what stands against a unit by itself: its size or max_per_host.
func (g *round) itself(s *sub, list []parcel) (row Shortfall, ok bool) {
	var empty [][]int64
	fitsEmpty, fitsNow, fitsOpen, open := false, false, false, false
	for _, t := range list {
		empty = append(empty, t.size)
		fitsEmpty = fitsEmpty || fits(s.size, t.size)
		now := fits(s.size, g.free(t))
		fitsNow = fitsNow || now
		if !full(s, t.host, 0) {
			open, fitsOpen = true, fitsOpen || now
		}
	}
	switch {
	case len(list) == 0: // where all are closed, size is not what is wrong
		return row, false
	case !fitsEmpty:
		return Shortfall{Reason: "too_big", Dimension: g.scarce(s.size, empty)}, true
	case !open, fitsNow && !fitsOpen: // all that it may use, or all with room, are full of it
		return Shortfall{Reason: "max_per_host"}, true
	}
	return row, false
}

// unowned tells whether a unit more would be within what the leaf owns as configured, and is not there to be owned.
func (g *round) unowned(s *sub) bool {
	e, leaf := g.estates[g.in], s.alloc.leaf
	v := slices.Clone(s.size)
	for _, u := range g.units(func(u *unit) bool { return u.owner == leaf && u.leaf() == leaf }) {
		plus(v, u.sub.size, 1)
	}
	for d, n := range s.size {
		if n > 0 && v[d] > e.configured[leaf][d] {
			return false
		}
	}
	return e.unmet[leaf]
}

// scarce is the dimension in which most of the vectors are too small, "" when none is.
func (g *round) scarce(size []int64, rooms [][]int64) string {
	most, name := 0, ""
	for d, n := range size {
		small := 0
		for _, room := range rooms {
			if n > 0 && room[d] < n { // a room may be below 0
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
			if g.w.Priority[k] > g.w.Priority[n] && g.uses(k) && (best == plan.None || g.usage(k) > g.usage(best)) {
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

// uses tells whether a consumer has units from the pool.
func (g *round) uses(n plan.Node) bool {
	return slices.ContainsFunc(g.below(n), func(s *sub) bool { return g.holds(s) > 0 })
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
