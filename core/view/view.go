// Package view keeps what the state of a plan implies: what is held on each parcel and by each leaf, what consumers
// use of pools, what is lent, how much pools have in units of each size. Each view is a file with two functions:
// Rebuild makes it of the state alone, Apply brings it up by rows of the state's change log. After any changes both
// give the same; a test holds that for all views. Between cycles nothing else of a plan is kept.
package view

import (
	"github.com/stintd/stint/core/cluster"
)

// Span is rows of the change log, from … to-1 of its columns.
type Span struct {
	Log      *cluster.ChangeLog
	From, To int
}

// view is one of the views of a plan.
type view interface {
	Rebuild(s *cluster.State, p *cluster.Plan)
	Apply(s *cluster.State, p *cluster.Plan, rows Span)
}

// Views are all views of one plan. The zero value is ready; Follow comes first.
type Views struct {
	Owned    Owned
	ByParcel ByParcel
	ByLeaf   ByLeaf
	Usage    Usage
	Loans    Loans
	Reserves Reserves
	Capacity Capacity
	Needs    Needs

	state   *cluster.State
	name    string
	seen    int64 // rows of the log that the views know, but that of capacities
	counted int64 // those that it knows
	other   bool  // it knows another state or plan
	rebuilt int   // how often they were made anew
}

// held are the views but that of capacities, each behind those that it goes by.
func (v *Views) held() []view {
	v.Capacity.views, v.ByLeaf.on, v.Usage.on, v.Loans.on = v, &v.ByParcel, &v.ByParcel, &v.ByParcel
	return []view{&v.Owned, &v.ByParcel, &v.ByLeaf, &v.Usage, &v.Loans, &v.Reserves, &v.Needs}
}

// Follow brings the views up to a plan of a state. O(rows of the log since the last time), or O(what is held) where
// these are many, where the log does not have them all any more, where parcels have other numbers, or for another state
// or plan.
func (v *Views) Follow(s *cluster.State, p *cluster.Plan) {
	v.FollowHeld(s, p)
	from, ok := s.Changes.Follow(v.counted, p.Index)
	if ok = ok && !v.other; ok {
		v.Capacity.Apply(s, p, Span{&s.Changes, from, s.Changes.Kind.Len()})
	} else {
		v.Capacity.Rebuild(s, p)
	}
	v.counted, v.other = s.Changes.Count(), false
}

// smallLog is how many rows of the log are applied however little is held.
const smallLog = 1 << 10

// FollowHeld is Follow but for capacities: for shares and reasons of a cycle those count that its grants went by,
// whatever of these was taken back since (docs/shares.md, "Capacity").
func (v *Views) FollowHeld(s *cluster.State, p *cluster.Plan) {
	from, ok := s.Changes.Follow(v.seen, p.Index)
	rows := Span{&s.Changes, from, s.Changes.Kind.Len()}
	ok = ok && v.state == s && v.name == p.Name
	v.state, v.name, v.seen = s, p.Name, s.Changes.Count()
	if !ok {
		v.rebuilt++
		v.other = true
	}
	n := rows.To - rows.From
	// else most of what is held came since: reading it takes less
	few := ok && (n <= smallLog || 2*n <= s.Holding.Used())
	for _, one := range v.held() {
		if few {
			one.Apply(s, p, rows)
		} else {
			one.Rebuild(s, p)
		}
	}
}

// Rebuilt is how often the views were made anew.
func (v *Views) Rebuilt() int { return v.rebuilt }

// each calls f for the rows of a plan that tell of units.
func (r Span) each(plan int32, f func(row int)) {
	for i := r.From; i < r.To; i++ {
		if r.Log.Plan.At(i) == plan && r.Log.Kind.At(i) < cluster.ChangeResized {
			f(i)
		}
	}
}
