package oracle

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// figures adds the consumers and their shares after granting.
func (g *round) figures(r *Result) {
	g.holdPast()
	g.hold()
	demands := map[plan.Node]map[plan.Node]uint64{}
	quotas, statics := map[plan.Node]map[plan.Node]uint64{}, map[plan.Node]map[plan.Node][]int64{}
	for _, q := range g.pools() {
		quotas[q.at], statics[q.at], demands[q.at] = q.quotas(), q.static(), q.demands()
	}
	for _, n := range g.nodes() {
		if n == plan.Root {
			continue
		}
		c := Consumer{Plan: g.m.Name, Path: g.p.Path[n], Amount: g.amount(n), Configured: g.estates[g.in].configured[n],
			Owned: g.possession(n)}
		c.Reserved, c.Lent = make([]int64, len(c.Owned)), make([]int64, len(c.Owned))
		c.StaticPart = make([]int64, len(c.Owned))
		_, reserved := g.reserved(n)
		for _, v := range reserved {
			plus(c.Reserved, v, 1)
		}
		for _, u := range g.units(func(u *unit) bool { return g.under(n, u.owner) && !g.under(n, u.leaf()) }) {
			plus(c.Lent, u.sub.size, 1)
		}
		for _, s := range g.below(n) {
			c.Demand += s.wanted
			c.Held += s.held
		}
		c.Short = c.Demand - c.Held
		for _, q := range g.above(n) {
			plus(c.StaticPart, statics[q.at][n], 1)
			row := q.share(n)
			row.Quota, row.Demand = quotas[q.at][n], demands[q.at][n]
			if row.UnitsWanted > 0 || row.Demand > 0 {
				r.Shares = append(r.Shares, row)
			}
		}
		r.Consumers = append(r.Consumers, c)
	}
}

// above are the pools above a consumer, from the root down.
func (g *round) above(n plan.Node) []pool {
	var list []pool
	for n != plan.Root {
		n = g.p.Parent[n]
		list = append(list, g.pool(n))
	}
	slices.Reverse(list)
	return list
}

// share is a consumer's row in the pool but for its demand and quota.
func (q pool) share(n plan.Node) (row Share) {
	row = Share{Plan: q.m.Name, Path: q.p.Path[n], Pool: q.p.Path[q.at], Priority: int64(q.w.Priority[n]),
		Ratio: q.w.Ratio[n],
		Usage: q.exact(n), Fixed: q.usage(n)}
	if past := q.decayedOf(n); q.m.HalfLifeUS > 0 {
		row.Decayed, row.Lowered = past.told, past.factor
	}
	for _, s := range q.below(n) {
		row.UnitsHeld += q.holds(s)
		row.UnitsWanted += q.holds(s) + q.outstanding(s)
	}
	return row
}

// explain gives every shortfall its reason (D-7).
func (g *round) explain(r *Result) {
	g.hold()
	quotas := map[plan.Node]map[plan.Node]uint64{}
	for _, q := range g.pools() {
		quotas[q.at] = q.quotas()
	}
	left := g.totals()
	g.shortfalls(r, func(s *sub, units int64) []Shortfall {
		if name, prefers := s.asksFor(); name != "" && !prefers && !g.isHeld(s) {
			g.bonds[s] = append(g.roomiest(s, g.values(s), g.roomAt), noValue{})[0]
		}
		row, b := g.reason(s, quotas)
		row.Units = units
		switch {
		case !g.formed(s):
			row.Reason, row.Fits, row.Where = "gang", g.fitting(s), g.where(s)
		case row.Reason == "fragmented":
			row.Units = left.take(s, b, units)
			rest := g.outrun(s, quotas, row.Dimension)
			rest.Units = units - row.Units
			return slices.DeleteFunc([]Shortfall{row, rest}, func(row Shortfall) bool { return row.Units == 0 })
		}
		return []Shortfall{row}
	})
	basis := Reasoned{Plan: g.m.Name, Stood: map[string][]int64{}}
	for _, j := range g.joined {
		basis.Joined = append(basis.Joined, Joined{g.key(j.sub), j.host.Name, g.p.Path[j.owner]})
	}
	for s := range g.denied {
		basis.Denied = append(basis.Denied, g.key(s))
	}
	for n, amount := range g.stood {
		basis.Stood[g.p.Path[n]] = amount
	}
	r.Reasoned = append(r.Reasoned, basis)
}

// totals are the sums of free room that fragmented has not named yet (docs/spec/md.md, Reasons).
type totals struct {
	plan []int64
	of   map[string][]int64 // by barriers.given
}

// totals are those before any row.
func (g *round) totals() totals {
	t := totals{plan: make([]int64, len(g.p.Dimensions)), of: map[string][]int64{}}
	for _, h := range g.hosts {
		if g.ok(h) {
			for _, one := range g.parcels(g.in, h) {
				addRoom(t.plan, g.room(one.owner, one))
			}
		}
	}
	return t
}

// addRoom adds room that is not below 0.
func addRoom(sum, room []int64) {
	for d, n := range room {
		sum[d] += max(0, n)
	}
}

// take takes as many of some units off the totals as both carry, and gives their number.
func (t totals) take(s *sub, b barriers, units int64) int64 {
	if t.of[b.given] == nil {
		t.of[b.given] = b.sum(len(s.size))
	}
	for _, left := range [][]int64{t.plan, t.of[b.given]} {
		for d, n := range s.size {
			if n > 0 {
				units = min(units, left[d]/n)
			}
		}
	}
	plus(t.plan, s.size, -units)
	plus(t.of[b.given], s.size, -units)
	return units
}

// reason is what stops the next unit of a sub-allocation: the first of D-7's list, and of that of docs/shares.md, that
// applies. Barriers are known where nothing before them stops it.
func (g *round) reason(s *sub, quotas map[plan.Node]map[plan.Node]uint64) (row Shortfall, b barriers) {
	if g.small(s) {
		return Shortfall{Reason: "too_small"}, b
	}
	all, pools := g.reach(s), slices.DeleteFunc(g.above(s.alloc.leaf), func(q pool) bool {
		return !q.exists(s.alloc.leaf)
	})
	if len(all) == 0 && (s.req != "" || g.isHeld(s)) {
		return Shortfall{Reason: "no_host_matches"}, b
	}
	limit, limited := pools[len(pools)-1].stopped(s) // then those above are too
	if limited && zero(g.possession(s.alloc.leaf)) {
		return limit, b
	}
	if row, ok := g.itself(s, all); ok {
		return row, b
	}
	b = g.barriers(s, all)
	switch {
	case b.grace:
		return Shortfall{Reason: "grace_filter"}, b
	case g.unowned(s):
		return Shortfall{Reason: "ownership_unmet"}, b
	case limited:
		return limit, b
	case b.limited:
		return b.limit, b
	case b.fitsNow && len(g.undone) == 0 && !g.loose && g.formed(s):
		panic(fmt.Sprintf("BUG: a unit of %v would still fit", g.key(s)))
	case !b.fitsNow && slices.ContainsFunc(b.rooms, func(v []int64) bool { return fits(s.size, v) }):
		// it finds no devices
		g.notes["short of devices alone"]++
		d, _, _ := g.devices(g.in)
		return Shortfall{Reason: "fragmented", Dimension: g.p.Dimensions[d]}, b
	case !b.fitsNow && fits(s.size, b.sum(len(s.size))):
		return Shortfall{Reason: "fragmented", Dimension: g.scarce(s.size, b.rooms)}, b
	}
	return g.outrun(s, quotas, g.scarce(s.size, b.rooms)), b
}

// outrun is the reason of a unit that nothing about it stops: the reclaim budget, or others of a pool, which is scarce
// in a dimension.
func (g *round) outrun(s *sub, quotas map[plan.Node]map[plan.Node]uint64, dimension string) Shortfall {
	if g.denied[s] {
		return Shortfall{Reason: "reclaim_budget"}
	}
	pools := slices.DeleteFunc(g.above(s.alloc.leaf), func(q pool) bool { return !q.exists(s.alloc.leaf) })
	last := pools[0]
	if i := slices.IndexFunc(pools, func(q pool) bool { return q.pack(s.size) > 0 }); i >= 0 {
		last = pools[i]
	}
	row := last.outdone(s, quotas[last.at])
	row.Dimension = dimension
	return row
}

// outdone is the reason of a unit that others of the pool keep from it.
func (q pool) outdone(s *sub, quota map[plan.Node]uint64) Shortfall {
	switch higher, over := q.higher(s), q.over(s, quota); {
	case higher != plan.None:
		return Shortfall{Reason: "lower_priority", Blocker: q.p.Path[higher]}
	case over:
		return Shortfall{Reason: "over_quota"}
	}
	return Shortfall{Reason: "pool_exhausted"}
}

// barriers are what stands between a unit and parcels that have room.
type barriers struct {
	grace   bool // that its grace is too long
	limited bool // that a limit stops it, which is limit
	limit   Shortfall
	rooms   [][]int64 // of the parcels that it may be given
	given   string    // these parcels, with the pool of each
	fitsNow bool      // that it goes on one of those
}

// sum is the sum of the rooms.
func (b *barriers) sum(dims int) []int64 {
	sum := make([]int64, dims)
	for _, room := range b.rooms {
		addRoom(sum, room)
	}
	return sum
}

// barriers looks what keeps a unit from all parcels that it can reach, or from room there.
func (g *round) barriers(s *sub, all []parcel) (b barriers) {
	leaf, slow, deepest := s.alloc.leaf, 0, int32(-1)
	for _, t := range all {
		q := g.pool(g.meet(leaf, t.owner))
		limit, limited := q.stopped(s)
		tooSlow := g.tooSlow(leaf, t)
		if tooSlow {
			slow++
		}
		if full(s, t.host, 0) { // no more of it may go there, so its room does not count
			continue
		}
		room := g.room(leaf, t)
		switch fit := g.goesOn(s, t); {
		case !tooSlow && !limited:
			b.rooms, b.fitsNow = append(b.rooms, room), b.fitsNow || fit
			b.given += fmt.Sprintln(t.host.Name, t.owner, q.at)
		case !limited:
			b.grace = b.grace || fit
		case !tooSlow && fit && g.p.Depth[q.at] > deepest:
			b.limited, b.limit, deepest = true, limit, g.p.Depth[q.at]
		}
	}
	b.grace = b.grace || len(all) > 0 && slow == len(all)
	return b
}

// stopped is the ratio of 0 or the share limit that keeps a sub-allocation from the pool, the nearest to its leaf
// (D-26).
func (q pool) stopped(s *sub) (row Shortfall, ok bool) {
	for _, n := range slices.Backward(q.way(s.alloc.leaf)) {
		if q.w.Ratio[n] == 0 {
			return Shortfall{Reason: "share_limit", Blocker: q.p.Path[n]}, true
		}
	}
	if n := q.usedUp(q.way(s.alloc.leaf)); n != plan.None {
		return Shortfall{Reason: "budget", Blocker: q.p.Path[n], UntilUS: q.renewed(q.in, n)}, true
	}
	for _, has := range []func(n plan.Node) []int64{func(n plan.Node) []int64 { return q.stood[n] }, q.claimed} {
		if n, d, hit := q.limited(s, has); hit {
			return Shortfall{Reason: "share_limit", Blocker: q.p.Path[n], Dimension: q.p.Dimensions[d]}, true
		}
	}
	return row, false
}

// itself is what stands against a unit by itself: its size or max_per_host.
func (g *round) itself(s *sub, list []parcel) (row Shortfall, ok bool) {
	var empty [][]int64
	fitsEmpty, fitsNow, fitsOpen, open := false, false, false, false
	for _, t := range list {
		empty = append(empty, t.size)
		fitsEmpty = fitsEmpty || fits(s.size, t.size)
		now := g.goesOn(s, t)
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
func (q pool) higher(s *sub) plan.Node {
	parent := q.at
	for _, n := range q.way(s.alloc.leaf) {
		best := plan.None
		for _, k := range q.children(parent) {
			if q.w.Priority[k] > q.w.Priority[n] && q.uses(k) && (best == plan.None || q.usage(k) > q.usage(best)) {
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
func (q pool) uses(n plan.Node) bool {
	return slices.ContainsFunc(q.below(n), func(s *sub) bool { return q.holds(s) > 0 })
}

// over tells whether a consumer on the way would be at or above its quota with one unit less.
func (q pool) over(s *sub, quota map[plan.Node]uint64) bool {
	less := uint64(one) / uint64(max(q.pack(s.size), 1))
	for _, n := range q.way(s.alloc.leaf) {
		if u := q.usage(n); u >= less && u-less >= quota[n] {
			return true
		}
	}
	return false
}
