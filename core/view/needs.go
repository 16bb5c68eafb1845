package view

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
)

// Needs is which parcels the requirements of sub-allocations select, and in which order they take them (REQ-1); and of
// which of an MD plan's groups each host is. A requirement is evaluated when it is asked for first, and again when
// hosts or their attributes are others.
type Needs struct {
	cluster.Bonds // what gangs require that are together

	tables int64 // State.HostTables that the answers were made at
	codes  cluster.HostCodes
	own    answers // by NeedID
	bound  answers // of requirements of gangs that are held to a value
	groups []int32 // by HostID: the first of the plan's groups that has it; empty: not known yet
}

// answers are what requirements select.
type answers struct {
	of   []*plan.Requirement // whose answer it is, as ids may be given anew
	bits [][]uint64          // bitset of parcels
	turn [][]int32           // a parcel's place in the order, of requirements that have one
}

// reset forgets all answers.
func (a *answers) reset() { a.of, a.bits, a.turn = a.of[:0], a.bits[:0], a.turn[:0] }

// Rebuild forgets all answers.
func (v *Needs) Rebuild(s *cluster.State, _ *cluster.Plan) {
	v.tables, v.groups = s.HostTables, v.groups[:0]
	v.own.reset()
	v.bound.reset()
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
		v.groups = column.Zeros(v.groups, s.Host.Len())
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
	a, at := &v.own, int(need)
	if place, ok := cluster.Bound(need); ok {
		a, at = &v.bound, place
	}
	for at >= len(a.bits) {
		a.of, a.bits, a.turn = append(a.of, nil), append(a.bits, nil), append(a.turn, nil)
	}
	if r := v.Requirement(s, need); a.of[at] != r {
		a.of[at] = r
		a.bits[at], a.turn[at] = v.find(s, p, r)
	}
	return a.bits[at], a.turn[at]
}

// Selects tells whether a requirement selects a parcel.
func (v *Needs) Selects(s *cluster.State, p *cluster.Plan, need cluster.NeedID, k cluster.ParcelID) bool {
	selected, _ := v.Of(s, p, need)
	return selected == nil || selected[k>>6]>>(uint(k)&63)&1 == 1
}

// find evaluates a requirement. One that names what no host has any more selects nothing.
func (v *Needs) find(s *cluster.State, p *cluster.Plan, r *plan.Requirement) (selected []uint64, turn []int32) {
	host := p.Parcels.Host
	selected = make([]uint64, p.Parcels.Words())
	bound, err := r.Bind(s)
	if err != nil {
		return selected, nil
	}
	v.codes.Reset(s)
	var order []int32
	selector := bound.Selector(&v.codes, s.Host.Len())
	for k, h := range host {
		if selector.Match(int(h)) {
			selected[k>>6] |= 1 << (k & 63)
			order = append(order, int32(k))
		}
	}
	if !r.Ordered() {
		return selected, nil
	}
	slices.SortStableFunc(order, func(a, b int32) int { return bound.Compare(int(host[a]), int(host[b])) })
	turn = make([]int32, len(host))
	for i, k := range order {
		turn[k] = int32(i)
	}
	return selected, turn
}

// Preference is a consumer's preference in a window for the first of the plan's groups that has a parcel's host (MD-6).
func (v *Needs) Preference(s *cluster.State, p *cluster.Plan, w *plan.MDWindow, n plan.Node, k cluster.ParcelID) int8 {
	return w.Preference[v.Group(s, p, p.Parcels.Host[k])][n]
}
