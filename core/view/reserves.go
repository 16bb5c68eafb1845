package view

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// Reserves is what consumers reserve of parcels, their own and those of consumers below them (MD-5): of a parcel its
// owner's first, then upwards.
type Reserves struct {
	first  []int32 // by ParcelID: its first row; nil: nothing is reserved
	parcel []cluster.ParcelID
	keeper []plan.Node
	amount []int64 // by row, then dimension
	dims   int

	deed     cluster.Deeds // whose reserves these are
	revision int64
	version  int
}

// Version is another number when reserves, or the amounts of parcels, are others.
func (v *Reserves) Version() int { return v.version }

// Each calls f for the reserves on a parcel of those who lend it in the pool of a consumer: all keepers strictly below
// that. Amount is by dimension, in the view's own memory.
func (v *Reserves) Each(t *plan.Tree, k cluster.ParcelID, pool plan.Node, f func(keeper plan.Node, amount []int64)) {
	if v.first == nil {
		return
	}
	for i := int(v.first[k]); i < len(v.parcel) && v.parcel[i] == k; i++ {
		if n := v.keeper[i]; n > pool && n < t.End[pool] {
			f(n, v.amount[i*v.dims:(i+1)*v.dims])
		}
	}
}

// Any tells whether anything of a parcel is reserved.
func (v *Reserves) Any(k cluster.ParcelID) bool {
	return v.first != nil && int(v.first[k]) < len(v.parcel) && v.parcel[v.first[k]] == k
}

// reserve is a row before rows are sorted.
type reserve struct {
	k      cluster.ParcelID
	keeper plan.Node
	amount []int64
}

// Rebuild lays what is reserved of consumers' parts of hosts on their parcels (docs/ownership.md): the consumer's own
// first, then those of consumers below it, in tree order.
func (v *Reserves) Rebuild(s *cluster.State, p *cluster.Plan) {
	d := &p.Deeds
	v.revision, v.dims, v.version = s.Revision, len(p.Parcels.Cap), v.version+1
	v.deed = cluster.Deeds{Keeper: slices.Clone(d.Keeper), KeptOn: slices.Clone(d.KeptOn)}
	for _, column := range d.KeptAmount {
		v.deed.KeptAmount = append(v.deed.KeptAmount, slices.Clone(column))
	}
	var list []reserve
	for i, c := range d.Keeper {
		if n, h := s.NodeOf[c], d.KeptOn[i]; n != plan.None && s.Host.Plan[h] == p.Index {
			list = v.lay(list, s, p, i, n)
		}
	}
	slices.SortFunc(list, func(a, b reserve) int {
		return cmp.Or(cmp.Compare(a.k, b.k), cmp.Compare(b.keeper, a.keeper))
	})
	v.first, v.parcel, v.keeper, v.amount = nil, v.parcel[:0], v.keeper[:0], v.amount[:0]
	if len(list) == 0 {
		return
	}
	v.first = make([]int32, p.Parcels.Len())
	for k := range v.first {
		v.first[k] = int32(len(list))
	}
	for i := len(list) - 1; i >= 0; i-- {
		v.first[list[i].k] = int32(i)
	}
	for _, r := range list {
		v.parcel, v.keeper, v.amount = append(v.parcel, r.k), append(v.keeper, r.keeper), append(v.amount, r.amount...)
	}
}

// lay lays one row of the deeds on the parcels of its host.
func (v *Reserves) lay(list []reserve, s *cluster.State, p *cluster.Plan, row int, n plan.Node) []reserve {
	left := make([]int64, v.dims)
	for d := range left {
		left[d] = p.Deeds.KeptAmount[d][row]
	}
	first := s.Host.Parcel[p.Deeds.KeptOn[row]]
	for k, end := first, p.Parcels.End(first); k < end; k++ {
		if p.Parcels.Owner[k] == cluster.NoID || !s.Policy.Within(s.NodeOf[p.Parcels.Owner[k]], n) {
			continue
		}
		amount, some := make([]int64, v.dims), false
		for d := range left {
			amount[d] = min(left[d], p.Parcels.Cap[d][k])
			left[d] -= amount[d]
			some = some || amount[d] > 0
		}
		if some {
			list = append(list, reserve{k, n, amount})
		}
	}
	return list
}

// Apply makes the view anew where the reserves of the last pass over ownership are others, or the amounts of parcels.
// O(rows of the deeds).
func (v *Reserves) Apply(s *cluster.State, p *cluster.Plan, r Span) {
	d := &p.Deeds
	same := slices.Equal(v.deed.Keeper, d.Keeper) && slices.Equal(v.deed.KeptOn, d.KeptOn) &&
		slices.EqualFunc(v.deed.KeptAmount, d.KeptAmount, slices.Equal)
	if !same || v.revision != s.Revision || len(d.Keeper) > 0 && r.resized(p.Index) {
		v.Rebuild(s, p)
	}
}

// resized tells whether a parcel of a plan has another capacity or state.
func (r Span) resized(p int32) bool {
	for i := r.From; i < r.To; i++ {
		if r.Log.Plan.At(i) == p && r.Log.Kind.At(i) == cluster.ChangeResized {
			return true
		}
	}
	return false
}
