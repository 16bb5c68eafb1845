package pool

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// Promises are the units that sets under way hold room for (CYC-6), a row for each set of the plan with a taker, and
// their sum by sub-allocation.
type Promises struct {
	Set   []cluster.SetID
	Units []int64 // by SubID
	env   Env
}

// Sum adds up what is promised in a plan. O(sets + sub-allocations).
func (v *Promises) Sum(e Env) {
	s := e.State
	v.env, v.Set, v.Units = e, v.Set[:0], zeros(v.Units, len(s.Sub.Wanted))
	for id, number := range s.Set.Number {
		taker := s.Set.Taker[id]
		if number > 0 && s.Set.Plan[id] == e.Plan.Index && taker != cluster.NoID && s.Set.Units[id] > 0 {
			v.Set = append(v.Set, cluster.SetID(id))
			v.Units[taker] += s.Set.Units[id]
		}
	}
}

// Pool is from whose pool a set's taker is to get its units, ok false where that is its leaf's own parcel or the
// parcel is gone.
func (v *Promises) Pool(id cluster.SetID) (pool plan.Node, ok bool) {
	e := &v.env
	k, leaf := e.State.Aim(id), e.State.Node(e.State.Set.Taker[id])
	if k == cluster.NoID || leaf == plan.None {
		return plan.None, false
	}
	pool = e.Meet(leaf, k)
	return pool, pool != leaf
}

// Net is, by leaf and shape, the units of a pool that count once sets under way are done (CYC-7): those held and not
// under reclaim, and those promised.
type Net struct {
	pool  plan.Node
	start []int32 // by node less the pool's: where the rows of a leaf begin; one more at the end
	shape []cluster.ShapeID
	units []int64
	more  []netRow // scratch: promises, by leaf
}

type netRow struct {
	leaf  plan.Node
	shape cluster.ShapeID
	units int64
}

// Sum adds up what is net in a pool. O(consumers of the pool, what they hold from it by size, sets).
func (v *Net) Sum(e *Env, promises *Promises, pool plan.Node) {
	s := e.State
	v.pool, v.start, v.shape, v.units, v.more = pool, v.start[:0], v.shape[:0], v.units[:0], v.more[:0]
	for _, id := range promises.Set {
		if from, ok := promises.Pool(id); ok && from == pool {
			taker := s.Set.Taker[id]
			v.more = append(v.more, netRow{s.Node(taker), s.Sub.Shape[taker], s.Set.Units[id]})
		}
	}
	for n := pool; n < s.Policy.End[pool]; n++ {
		first := len(v.shape)
		v.start = append(v.start, int32(first))
		if !s.Policy.Leaf(n) {
			continue
		}
		g := e.Views.Usage.From(n, e.ID(pool))
		for i, key := range g.Key {
			v.add(first, cluster.ShapeID(key.B), g.Units[i]-g.Leaving[i])
		}
		for _, m := range v.more {
			if m.leaf == n {
				v.add(first, m.shape, m.units)
			}
		}
	}
	v.start = append(v.start, int32(len(v.shape)))
}

// add adds units of a shape to the leaf whose rows begin at first and are the last so far.
func (v *Net) add(first int, shape cluster.ShapeID, units int64) {
	for i := len(v.shape) - 1; i >= first; i-- {
		if v.shape[i] == shape {
			v.units[i] += units
			return
		}
	}
	v.shape, v.units = append(v.shape, shape), append(v.units, units)
}

// Of is the units of one shape that a leaf has net.
func (v *Net) Of(leaf plan.Node, shape cluster.ShapeID) int64 {
	at := leaf - v.pool
	for i := v.start[at]; i < v.start[at+1]; i++ {
		if v.shape[i] == shape {
			return v.units[i]
		}
	}
	return 0
}

// Stakes adds up, by node less the pool's, the share usage of what is net: of a leaf its sizes', of a branch its
// children's.
func (v *Net) Stakes(e *Env, stake []int64) []int64 {
	stake = zeros(stake, len(v.start)-1)
	for n := range stake {
		for i := v.start[n]; i < v.start[n+1]; i++ {
			stake[n] += share.Fraction(v.units[i], e.Views.Capacity.Of(e.State, v.pool, v.shape[i]))
		}
	}
	e.sumUp(v.pool, stake)
	return stake
}

// sumUp adds each consumer's figure in a pool to its parent's, from the leaves up.
func (e *Env) sumUp(pool plan.Node, figure []int64) {
	for n := len(figure) - 1; n > 0; n-- {
		up := e.State.Policy.Parent[int(pool)+n] - pool
		figure[up] = share.Add(figure[up], figure[n])
	}
}

// zeros is n zeros, in the memory of s where that is large enough.
func zeros[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}
