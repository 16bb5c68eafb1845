package view

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// Usage is how many units of each size every leaf holds from each pool: what shares of pools are made of (MD-12). What
// orphans hold is the root's.
type Usage struct {
	rows rows
	on   *ByParcel
	list []change // scratch
}

// Of is what a leaf holds: of a row's key A is the pool, NoID for what is its own, B the unit's shape, C the
// sub-allocation, so that what is held from one pool stands together, and of it what is of one size.
func (v *Usage) Of(leaf plan.Node) Group { return v.rows.of(int32(leaf)) }

// Rebuild makes the view of what is held on parcels. Most of what a sub-allocation holds is from one pool: that is
// added up first. O(rows of parcels + sub-allocations × log of what a leaf holds).
func (v *Usage) Rebuild(s *cluster.State, p *cluster.Plan) {
	v.list = v.list[:0]
	sums := make([]sum, len(s.Sub.Wanted))
	flush := func(sub cluster.SubID) {
		if one := &sums[sub]; one.units != 0 {
			key := Key{one.pool, int32(s.Sub.Shape[sub]), int32(sub)}
			v.list = append(v.list, change{int32(leafOf(s, p, sub)), key, one.units, one.leaving})
		}
	}
	v.on.each(func(_ cluster.ParcelID, key Key, units, leaving int64) {
		one := &sums[key.A]
		if one.pool != key.B {
			flush(cluster.SubID(key.A))
			*one = sum{pool: key.B}
		}
		one.units, one.leaving = one.units+units, one.leaving+leaving
	})
	for sub := range sums {
		flush(cluster.SubID(sub))
	}
	v.rows.build(s.Policy.Len(), func(f func(c change)) {
		for _, c := range v.list {
			f(c)
		}
	})
}

// sum is what a sub-allocation holds from one pool.
type sum struct {
	pool           int32
	units, leaving int64
}

// Apply brings the view up by rows of the log.
func (v *Usage) Apply(_ *cluster.State, p *cluster.Plan, r Span) {
	v.list = v.list[:0]
	r.each(p.Index, func(i int) {
		l := r.Log
		key := Key{int32(l.Pool.At(i)), int32(l.Shape.At(i)), int32(l.Sub.At(i))}
		v.list = append(v.list, change{int32(l.Leaf.At(i)), key, l.Units.At(i), l.Leaving.At(i)})
	})
	v.rows.merge(v.list)
}

// From is the rows of what a leaf holds from one pool.
func (v *Usage) From(leaf plan.Node, pool cluster.ConsumerID) Group {
	return v.Of(leaf).of(int32(pool))
}
