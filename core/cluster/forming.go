package cluster

import (
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

// Gangs lists the gangs of a plan. O(sub-allocations).
func (s *State) Gangs(p *Plan, dst []SubID) []SubID {
	dst = dst[:0]
	for sub, least := range s.Sub.MinUnits {
		if least > 1 && s.Sub.Plan[sub] == p.Index && s.Sub.Alloc[sub] != NoID {
			dst = append(dst, SubID(sub))
		}
	}
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
