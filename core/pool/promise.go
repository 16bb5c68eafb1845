package pool

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// Promises are the units that sets under way hold room for (CYC-6), a row for each set of the plan with a taker, in
// order of number, and the units that joined in this cycle, a row for each; and their sum by sub-allocation.
type Promises struct {
	Set    []cluster.SetID
	Joined []Join
	Units  []int64 // by SubID
	from   map[subPool]int64
	env    Env
	on     []cluster.SetID // the sets whose parcel is there, in the order of parcels
}

// Join is a unit that will fit a parcel once the sets under way are done.
type Join struct {
	Sub    cluster.SubID
	Parcel cluster.ParcelID
}

// Sum adds up what sets promise in a plan; nothing has joined yet. O(sets × log + sub-allocations).
func (v *Promises) Sum(e Env) {
	s := e.State
	v.env, v.Set, v.Joined = e, v.Set[:0], v.Joined[:0]
	v.on, v.Units, v.from = v.on[:0], column.Zeros(v.Units, len(s.Sub.Wanted)), map[subPool]int64{}
	for id := range s.Set.Of(e.Plan) {
		taker := s.Set.Taker[id]
		if taker != cluster.NoID && s.Set.Units[id] > 0 {
			v.Set = append(v.Set, id)
			v.Units[taker] += s.Set.Units[id]
			if s.Aim(id) != cluster.NoID {
				v.on = append(v.on, id)
			}
			if pool, ok := v.Pool(id); ok {
				v.from[subPool{taker, e.ID(pool)}] += s.Set.Units[id]
			}
		}
	}
	slices.SortFunc(v.Set, func(a, b cluster.SetID) int { return cmp.Compare(s.Set.Number[a], s.Set.Number[b]) })
	slices.SortFunc(v.on, func(a, b cluster.SetID) int { return cmp.Compare(s.Aim(a), s.Aim(b)) })
}

// Add notes that a unit joined.
func (v *Promises) Add(j Join) {
	v.Joined = append(v.Joined, j)
	v.Units[j.Sub]++
	if leaf := v.env.State.Node(j.Sub); leaf != v.env.Meet(leaf, j.Parcel) {
		v.from[subPool{j.Sub, v.env.ID(v.env.Meet(leaf, j.Parcel))}]++
	}
}

// On is the sets whose takers are to get a parcel's room. O(log sets).
func (v *Promises) On(k cluster.ParcelID) []cluster.SetID {
	aim := v.env.State.Aim
	from, _ := slices.BinarySearchFunc(v.on, k, func(id cluster.SetID, k cluster.ParcelID) int {
		return cmp.Compare(aim(id), k)
	})
	to := from
	for to < len(v.on) && aim(v.on[to]) == k {
		to++
	}
	return v.on[from:to]
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

// More returns how many units sets promise a sub-allocation, there from one pool and in all.
func (v *Promises) More(sub cluster.SubID, pool cluster.ConsumerID) (there, all int64) {
	if len(v.Units) == 0 || v.Units[sub] == 0 {
		return 0, 0
	}
	return v.from[subPool{sub, pool}], v.Units[sub]
}

// subPool is a sub-allocation in a pool.
type subPool struct {
	sub  cluster.SubID
	pool cluster.ConsumerID
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
	for _, j := range promises.Joined {
		if leaf := s.Node(j.Sub); e.Meet(leaf, j.Parcel) == pool && pool != leaf {
			v.more = append(v.more, netRow{leaf, s.Sub.Shape[j.Sub], 1})
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

// add adds units of a shape to the leaf whose rows begin at first and are the last so far, in the order of shapes.
func (v *Net) add(first int, shape cluster.ShapeID, units int64) {
	at, ok := len(v.shape), false
	if at > first && v.shape[at-1] >= shape { // else it comes behind all others, as most do
		at, ok = slices.BinarySearch(v.shape[first:], shape)
		at += first
	}
	if ok {
		v.units[at] += units
		return
	}
	v.shape, v.units = slices.Insert(v.shape, at, shape), slices.Insert(v.units, at, units)
}

// Of is the units of one shape that a leaf has net. O(log sizes of the leaf).
func (v *Net) Of(leaf plan.Node, shape cluster.ShapeID) int64 {
	from, to := v.start[leaf-v.pool], v.start[leaf-v.pool+1]
	if i, ok := slices.BinarySearch(v.shape[from:to], shape); ok {
		return v.units[int(from)+i]
	}
	return 0
}

// Stakes adds up, by node less the pool's, the share usage of what is net: of a leaf its sizes', of a branch its
// children's.
func (v *Net) Stakes(e *Env, stake []int64) []int64 {
	stake = column.Zeros(stake, len(v.start)-1)
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
