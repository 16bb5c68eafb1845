package reclaim

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// What leaves' turns on their own parcels ask of a stage (step 4; grant.Sets), beside Prefer and Hold.

// Promised is how many units of a sub-allocation are promised, by sets and by joining them in this cycle.
func (g *Stage) Promised(sub cluster.SubID) int64 { return g.sets.promised[sub] }

// latest is the latest set whose taker a sub-allocation is, noSet when there is none. O(sets).
func (g *Stage) latest(sub cluster.SubID) int32 {
	for i := len(g.sets.list) - 1; i >= 0; i-- {
		if one := &g.sets.list[i]; one.taker == sub && one.units > 0 {
			return int32(i)
		}
	}
	return noSet
}

// Latest is the parcel of the latest set whose taker a sub-allocation is, NoID where that is gone; ok is false when
// there is none.
func (g *Stage) Latest(sub cluster.SubID) (k cluster.ParcelID, ok bool) {
	if i := g.latest(sub); i != noSet {
		return g.sets.list[i].parcel, true
	}
	return cluster.NoID, false
}

// Lapse lets that set lapse by a unit (CYC-7).
func (g *Stage) Lapse(sub cluster.SubID) {
	i := g.latest(sub)
	if g.lapse(i); g.sets.list[i].parcel != cluster.NoID {
		g.changed(g.sets.list[i].parcel)
	}
}

// Room is what is free on a parcel beside what sets keep there, and what lenders' reserves leave of that for those who
// draw on it through the pool of a consumer; less tells whether that is less.
func (g *Stage) Room(k cluster.ParcelID, pool plan.Node, free, rest []int64) (less bool) {
	copy(free, g.of(g.free, k))
	now, _ := g.rooms(k, pool)
	for d := range rest {
		rest[d] = now[d]
		less = less || rest[d] != free[d]
	}
	return less
}
