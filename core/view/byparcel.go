package view

import "github.com/stintd/stint/core/cluster"

// ByParcel is what is held on each parcel, by sub-allocation and label.
type ByParcel struct{ rows rows }

// On is what is held on a parcel: of a row's key A is the sub-allocation, B the pool, C the lender.
func (v *ByParcel) On(k cluster.ParcelID) Group { return v.rows.of(int32(k)) }

// Rebuild makes the view of the state.
func (v *ByParcel) Rebuild(s *cluster.State, p *cluster.Plan) {
	h := &s.Holding
	v.rows.build(p.Parcels.Len(), func(f func(c change)) {
		for q, sub := range h.Sub {
			if sub == cluster.NoID || s.Sub.Plan[sub] != p.Index {
				continue
			}
			leaving := int64(0)
			if h.Set[q] != cluster.NoID {
				leaving = h.Units[q]
			}
			f(change{int32(h.Parcel[q]), labelKey(sub, h.Pool[q], h.Lender[q]), h.Units[q], leaving})
		}
	})
}

// each calls f for all rows, parcel by parcel.
func (v *ByParcel) each(f func(k cluster.ParcelID, key Key, units, leaving int64)) {
	for k := range v.rows.first {
		g := v.rows.of(int32(k))
		for i, key := range g.Key {
			f(cluster.ParcelID(k), key, g.Units[i], g.Leaving[i])
		}
	}
}

// Apply brings the view up by rows of the log.
func (v *ByParcel) Apply(_ *cluster.State, p *cluster.Plan, r Span) {
	r.each(p.Index, func(i int) {
		l := r.Log
		key := labelKey(l.Sub.At(i), l.Pool.At(i), l.Lender.At(i))
		v.rows.add(int32(l.Parcel.At(i)), key, l.Units.At(i), l.Leaving.At(i))
	})
}

func labelKey(sub cluster.SubID, pool, lender cluster.ConsumerID) Key {
	return Key{int32(sub), int32(pool), int32(lender)}
}
