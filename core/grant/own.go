package grant

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
)

// Sets is what leaves' turns on their own parcels ask of sets under way, and of those who make them (core/reclaim). It
// counts what the turns have decided, which the state does not know yet.
type Sets interface {
	// Promised is how many units of a sub-allocation are promised, by sets and by joining them in this cycle.
	Promised(sub cluster.SubID) int64
	// Latest is the parcel of the latest set whose taker a sub-allocation is, NoID where that is gone; ok is false when
	// there is none.
	Latest(sub cluster.SubID) (k cluster.ParcelID, ok bool)
	// Lapse lets that set lapse by a unit (CYC-7).
	Lapse(sub cluster.SubID)
	// Prefer promises a unit of a sub-allocation on one of its leaf's own parcels that among accepts: it joins, or
	// takes victims (MD-6). It is false where it can do neither.
	Prefer(sub cluster.SubID, among func(k cluster.ParcelID) bool) bool
	// Hold takes in that a unit is granted.
	Hold(sub cluster.SubID, k cluster.ParcelID)
	// Room is pool.Promises.Room, by now.
	Room(k cluster.ParcelID, pool plan.Node, free, rest []int64) (less bool)
}

// Own hands out what is free on a leaf's own parcels (step 4 of docs/shares.md), where sets are under way, or where the
// plan takes back for a preference; elsewhere Pool does. A promised unit is given when nothing else of its
// sub-allocation is short, and its latest set lapses for it. What leaves are given is booked together with what sets
// decided.
// O(units × parcels of the leaf), where units lapse or are promised, else as Pool.
func (g *Granter) Own(e *Env, leaf plan.Node, sets Sets, out *Decisions) {
	g.env, g.top, g.sets = e, leaf, sets
	defer func() { g.sets = nil }()
	if g.fill(true); len(g.leaves) == 0 {
		return
	}
	if g.layLots(nil); len(g.lots.list) == 0 { // full parcels too: a set that lapses may free them
		return
	}
	g.lookup()
	for g.queue.Advance(0) {
		at := g.queue.Next(0)
		a := &g.queue.Ask[at]
		if a.Least > 1 {
			g.formOwn(a, out)
			g.queue.Settle(0)
			continue
		}
		k, on, done := g.placeOwn(a)
		switch {
		case k != cluster.NoID:
			out.add(g.env, a.Sub, k, on)
			a.Has++
		case !done:
			a.Passed = true
		}
		if g.queue.Settle(0); g.moved {
			g.moved = false
			g.queue.Again(0)
		}
	}
}

// placeOwn takes room for one unit of an ask on one of its leaf's own parcels, preference by preference. Where a better
// one has none but what others hold, the plan may have the unit promised that: then it is done without a parcel.
func (g *Granter) placeOwn(a *pool.Ask) (k cluster.ParcelID, on cluster.Devices, done bool) {
	promised, worst := g.sets.Promised(a.Sub) >= a.Wanted-a.Has, int8(preferences)
	prefers := g.env.Plan.MD.ReclaimForPref
	if promised {
		aim, ok := g.sets.Latest(a.Sub)
		if !ok { // they joined in this cycle
			return cluster.NoID, 0, false
		}
		if prefers && aim != cluster.NoID && g.env.Owner(aim) == g.top {
			worst = g.env.preference(g.top, aim) // nothing worse than that
		}
	}
	for at, l := range g.lots.list {
		tier := g.env.preference(g.top, l.parcel[0])
		if tier > worst {
			break
		}
		if rows := g.find(a.Kind, at, 1); len(rows) > 0 {
			k, on = g.take(a.Kind, at, rows[0])
			if promised {
				g.sets.Lapse(a.Sub)
			}
			if g.sets.Hold(a.Sub, k); promised {
				g.relay()
			}
			return k, on, true
		}
		among := func(k cluster.ParcelID) bool { return g.env.preference(g.top, k) == tier }
		if prefers && !promised && g.sets.Prefer(a.Sub, among) {
			g.relay()
			return cluster.NoID, 0, true
		}
	}
	return cluster.NoID, 0, false
}

// relay lays the lots by what parcels have now, as sets lapsed or were made.
func (g *Granter) relay() {
	g.moved = true
	for _, l := range g.lots.list {
		l.lay(g.env.Plan, g.room)
	}
	for i := range g.kind {
		g.kind[i].lot = 0
		for at := range g.kind[i].unit {
			g.kind[i].unit[at].begun = false
		}
	}
}
