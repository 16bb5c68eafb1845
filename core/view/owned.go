package view

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
)

// Row is a place in the order of Owned.
type Row int32

// Owned is the parcels in the order of their owners in the tree, those that nobody owns first, as the root's: what a
// consumer and all below it own is one range of rows.
type Owned struct {
	Parcel []cluster.ParcelID // by Row
	row    []Row              // by ParcelID
	first  []Row              // by Node: where its own parcels begin; one more at the end
	end    []plan.Node        // by Node: one past the last consumer below it
}

// Own is the rows of a consumer's own parcels, of the root those that nobody owns.
func (v *Owned) Own(n plan.Node) (from, to Row) { return v.first[n], v.first[n+1] }

// Below is the rows of what a consumer and all below it own.
func (v *Owned) Below(n plan.Node) (from, to Row) { return v.first[n], v.first[v.end[n]] }

// RowOf is where a parcel is in the order.
func (v *Owned) RowOf(k cluster.ParcelID) Row { return v.row[k] }

// Rebuild makes the view of the state. O(parcels + consumers).
func (v *Owned) Rebuild(s *cluster.State, p *cluster.Plan) {
	n := p.Parcels.Len()
	v.Parcel, v.row, v.end = column.Zeros(v.Parcel, n), column.Zeros(v.row, n), s.Policy.End
	v.first = column.Zeros(v.first, s.Policy.Len()+1)
	for _, owner := range p.Parcels.Owner {
		v.first[ownerNode(s, owner)+1]++
	}
	for i := range s.Policy.Len() {
		v.first[i+1] += v.first[i]
	}
	next := append([]Row(nil), v.first...)
	for k, owner := range p.Parcels.Owner {
		at := &next[ownerNode(s, owner)]
		v.Parcel[*at], v.row[k] = cluster.ParcelID(k), *at
		*at++
	}
}

// Apply does nothing: who owns what changes only with the parcels' numbers.
func (v *Owned) Apply(*cluster.State, *cluster.Plan, Span) {}

// ownerNode is an owner's place in the tree; the root's where nobody owns, or nobody whom the policy has.
func ownerNode(s *cluster.State, owner cluster.ConsumerID) plan.Node {
	if owner == cluster.NoID || s.NodeOf[owner] == plan.None {
		return plan.Root
	}
	return s.NodeOf[owner]
}
