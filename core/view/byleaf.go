package view

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// ByLeaf is what each leaf holds, by pool, parcel and sub-allocation. What orphans hold is the root's.
type ByLeaf struct {
	rows rows
	on   *ByParcel
	list []change // scratch
}

// Of is what a leaf holds: of a row's key A is the pool, B the parcel, C the sub-allocation, so that what is held from
// one pool stands together in the order of parcels.
func (v *ByLeaf) Of(leaf plan.Node) Group { return v.rows.of(int32(leaf)) }

// From is the rows of what a leaf holds from one pool.
func (v *ByLeaf) From(leaf plan.Node, pool cluster.ConsumerID) Group {
	return v.Of(leaf).of(int32(pool))
}

// Rebuild makes the view of what is held on parcels.
func (v *ByLeaf) Rebuild(s *cluster.State, p *cluster.Plan) {
	v.rows.build(s.Policy.Len(), func(f func(c change)) {
		v.on.each(func(k cluster.ParcelID, key Key, units, leaving int64) {
			leaf := leafOf(s, p, cluster.SubID(key.A))
			f(change{int32(leaf), Key{key.B, int32(k), key.A}, units, leaving})
		})
	})
}

// Apply brings the view up by rows of the log.
func (v *ByLeaf) Apply(_ *cluster.State, p *cluster.Plan, r Span) {
	v.list = v.list[:0]
	r.each(p.Index, func(i int) {
		l := r.Log
		key := Key{int32(l.Pool.At(i)), int32(l.Parcel.At(i)), int32(l.Sub.At(i))}
		v.list = append(v.list, change{int32(l.Leaf.At(i)), key, l.Units.At(i), l.Leaving.At(i)})
	})
	v.rows.merge(v.list)
}

// leafOf is for whom a sub-allocation's units count.
func leafOf(s *cluster.State, p *cluster.Plan, sub cluster.SubID) plan.Node {
	return p.Pairs.Leaf[s.Sub.Pair[sub]]
}
