package view

import "github.com/stintd/stint/core/cluster"

// Loans is what each consumer lends, by who holds it.
type Loans struct {
	rows rows
	on   *ByParcel
}

// By is what a consumer lends: of a row's key A is the leaf that holds it, B the unit's shape, C the pool.
func (v *Loans) By(lender cluster.ConsumerID) Group { return v.rows.of(int32(lender)) }

// Rebuild makes the view of what is held on parcels.
func (v *Loans) Rebuild(s *cluster.State, p *cluster.Plan) {
	v.rows.reset(s.Consumer.Len())
	v.on.each(func(_ cluster.ParcelID, key Key, units, leaving int64) {
		if sub := cluster.SubID(key.A); key.C != cluster.NoID {
			v.rows.add(key.C, Key{int32(leafOf(s, p, sub)), int32(s.Sub.Shape[sub]), key.B}, units, leaving)
		}
	})
}

// Apply brings the view up by rows of the log.
func (v *Loans) Apply(_ *cluster.State, p *cluster.Plan, r Span) {
	r.each(p.Index, func(i int) {
		l := r.Log
		if l.Lender.At(i) != cluster.NoID {
			key := Key{int32(l.Leaf.At(i)), int32(l.Shape.At(i)), int32(l.Pool.At(i))}
			v.rows.add(int32(l.Lender.At(i)), key, l.Units.At(i), l.Leaving.At(i))
		}
	})
}
