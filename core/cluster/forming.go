package cluster

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/decision"
)

// Staying is how many units of a sub-allocation are held and not under reclaim. O(what it holds).
func (s *State) Staying(sub SubID) int64 {
	units := s.Sub.Held[sub]
	for q := s.Sub.First[sub]; q != NoID; q = s.Holding.NextOfSub[q] {
		if s.Holding.Set[q] != NoID {
			units -= s.Holding.Units[q]
		}
	}
	return units
}

// Forming tells whether a sub-allocation is a gang that waits for all of its min_units (REQ-3). O(1), of a gang what it
// holds.
func (s *State) Forming(sub SubID) bool {
	least := s.Sub.MinUnits[sub]
	return least > 1 && s.Staying(sub) < least
}

// Gangs lists the gangs of a plan: leaf by leaf in the order of the tree, of each in the order of arrival. Time is
// O(sub-allocations + gangs × log gangs).
func (s *State) Gangs(p *Plan, dst []SubID) []SubID {
	dst = dst[:0]
	for sub := range s.Sub.Live() {
		if s.Sub.MinUnits[sub] > 1 && s.Sub.Plan[sub] == p.Index && !s.Sub.Orphan[sub] {
			dst = append(dst, sub)
		}
	}
	slices.SortFunc(dst, func(a, b SubID) int {
		x, y := s.Sub.Alloc[a], s.Sub.Alloc[b]
		return cmp.Or(cmp.Compare(s.Node(a), s.Node(b)), cmp.Compare(s.Alloc.Arrival[x], s.Alloc.Arrival[y]),
			cmp.Compare(s.Sub.Seq[a], s.Sub.Seq[b]))
	})
	return dst
}

// breakGangs releases what is left of gangs that hold something, but less than their min_units: of those of which
// something was released, or that were told something or are running since the last cycle. O(those).
func (s *State) breakGangs() {
	for i := range s.Released {
		s.breakGang(s.Released[i].Sub)
	}
	for _, was := range s.asked {
		s.breakGang(was.sub)
	}
	for _, sub := range s.excess {
		s.breakGang(sub)
	}
}

func (s *State) breakGang(sub SubID) {
	if least := s.Sub.MinUnits[sub]; least <= 1 || s.Sub.Alloc[sub] == NoID {
		return
	}
	if units := s.Staying(sub); units == 0 || units >= s.Sub.MinUnits[sub] {
		return
	}
	s.victim = s.newestFirst(s.victim, sub)
	for _, q := range slices.Clone(s.victim) {
		s.release(q, s.Holding.Units[q], decision.CauseGangBroken)
	}
}
