package pool

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// Room is what is free on a parcel beside what sets keep there, and what lenders' reserves leave of that for those who
// draw on it through the pool of a consumer, both by dimension; less tells whether that is less. Either may be below 0.
func (v *Promises) Room(k cluster.ParcelID, pool plan.Node, free, rest []int64) (less bool) {
	e := &v.env
	for d := range free {
		free[d] = e.Plan.Parcels.Available(d, k)
		rest[d] = free[d]
	}
	if !e.Views.Reserves.Any(k) {
		return false
	}
	e.Views.Reserves.Each(&e.State.Policy.Tree, k, pool, func(keeper plan.Node, amount []int64) {
		for d := range rest {
			if left := v.Left(k, keeper, d) - amount[d]; left < rest[d] {
				rest[d], less = left, true
			}
		}
	})
	return less
}

// Left is what outsiders of a consumer, and sets of outsiders, leave of a parcel's capacity in a dimension.
func (v *Promises) Left(k cluster.ParcelID, keeper plan.Node, d int) int64 {
	left := v.env.Beside(k, keeper, d)
	for _, id := range v.On(k) {
		if !v.env.Within(v.env.State.Set.Taker[id], keeper) {
			left -= v.env.State.Kept(id, d)
		}
	}
	return left
}

// Beside is what outsiders of a consumer leave of a parcel's capacity in a dimension.
func (e *Env) Beside(k cluster.ParcelID, keeper plan.Node, d int) int64 {
	left, g := e.Plan.Parcels.Cap[d][k], e.Views.ByParcel.On(k)
	for i, key := range g.Key {
		if sub := cluster.SubID(key.A); !e.Within(sub, keeper) {
			left -= e.State.Size(sub)[d] * g.Units[i]
		}
	}
	return left
}

// Within tells whether a sub-allocation is of a consumer or of one below it; orphans are outsiders of everybody.
func (e *Env) Within(sub cluster.SubID, n plan.Node) bool {
	leaf := e.State.Node(sub)
	return leaf != plan.None && e.State.Policy.Within(leaf, n)
}
