package view

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// Needs is which parcels the requirements of sub-allocations select, and in which order they take them (REQ-1); and of
// which of an MD plan's groups each host is. A requirement is evaluated when it is asked for first, and again when
// hosts or their attributes are others.
type Needs struct {
	tables int64 // State.HostTables that the answers were made at
	codes  cluster.HostCodes
	of     []*plan.Requirement // by NeedID: whose answer it is, as ids may be given anew
	bits   [][]uint64          // by NeedID: bitset of parcels
	turn   [][]int32           // by NeedID: a parcel's place in the order, of requirements that have one
	groups []int32             // by HostID: the first of the plan's groups that has it; empty: not known yet
}

// Rebuild forgets all answers.
func (v *Needs) Rebuild(s *cluster.State, _ *cluster.Plan) {
	v.tables, v.of, v.bits, v.turn, v.groups = s.HostTables, v.of[:0], v.bits[:0], v.turn[:0], v.groups[:0]
}

// Apply forgets all answers where hosts or attributes are others.
func (v *Needs) Apply(s *cluster.State, p *cluster.Plan, _ Span) {
	if v.tables != s.HostTables {
		v.Rebuild(s, p)
	}
}

// Group is the first of a plan's groups that has a host, by its place in the plan.
func (v *Needs) Group(s *cluster.State, p *cluster.Plan, h cluster.HostID) int32 {
	if len(v.groups) == 0 {
		v.groups = zeros(v.groups, s.Host.Len())
		for i := len(p.MD.Groups) - 1; i >= 0; i-- {
			for _, member := range s.Members(p.MD.Groups[i].Group) {
				v.groups[member] = int32(i)
			}
		}
	}
	return v.groups[h]
}

// Of is the bitset of the parcels that a requirement selects, nil for no requirement, and by parcel the place in its
// order, nil where it has none. O(parcels) on first sight.
func (v *Needs) Of(s *cluster.State, p *cluster.Plan, need cluster.NeedID) (selected []uint64, turn []int32) {
	if need == cluster.NoID {
		return nil, nil
	}
	for int(need) >= len(v.bits) {
		v.of, v.bits, v.turn = append(v.of, nil), append(v.bits, nil), append(v.turn, nil)
	}
	if r := s.Need.Parsed[need]; v.of[need] != r {
		v.of[need] = r
		v.find(s, p, need, r)
	}
	return v.bits[need], v.turn[need]
}

// Selects tells whether a requirement selects a parcel.
func (v *Needs) Selects(s *cluster.State, p *cluster.Plan, need cluster.NeedID, k cluster.ParcelID) bool {
	selected, _ := v.Of(s, p, need)
	return selected == nil || selected[k>>6]>>(uint(k)&63)&1 == 1
}

// find evaluates a requirement. One that names what no host has any more selects nothing.
func (v *Needs) find(s *cluster.State, p *cluster.Plan, need cluster.NeedID, r *plan.Requirement) {
	host := p.Parcels.Host
	v.bits[need], v.turn[need] = make([]uint64, p.Parcels.Words()), nil
	bound, err := r.Bind(s)
	if err != nil {
		return
	}
	v.codes.Reset(s)
	var order []int32
	selector := bound.Selector(&v.codes, s.Host.Len())
	for k, h := range host {
		if selector.Match(int(h)) {
			v.bits[need][k>>6] |= 1 << (k & 63)
			order = append(order, int32(k))
		}
	}
	if !r.Ordered() {
		return
	}
	slices.SortStableFunc(order, func(a, b int32) int { return bound.Compare(int(host[a]), int(host[b])) })
	v.turn[need] = make([]int32, len(host))
	for i, k := range order {
		v.turn[need][k] = int32(i)
	}
}

// Preference is a consumer's preference in a window for the first of the plan's groups that has a parcel's host (MD-6).
func (v *Needs) Preference(s *cluster.State, p *cluster.Plan, w *plan.MDWindow, n plan.Node, k cluster.ParcelID) int8 {
	return w.Preference[v.Group(s, p, p.Parcels.Host[k])][n]
}
