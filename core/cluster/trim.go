package cluster

import (
	"slices"

	"github.com/bits-and-blooms/bitset"

	"github.com/stintd/stint/core/decision"
)

// parting is units of a holding, which is not under reclaim, that are released; whether all of it goes.
type parting struct {
	q     HoldingID
	sub   SubID
	k     ParcelID
	all   bool
	units int64
}

// trimAll releases what sub-allocations hold beyond what they want, of each newest first. O(what they hold).
func (s *State) trimAll() {
	if !s.trimAtOnce() {
		for _, sub := range s.excess {
			s.trim(sub)
		}
	}
}

// forgetExcess lists those of trimAll that hold and want nothing any more, to be forgotten as the cycle ends.
func (s *State) forgetExcess() {
	for _, sub := range s.excess {
		if s.Sub.Alloc[sub] != NoID && s.Sub.seen[sub] == unnamed && s.Sub.Held[sub] == 0 {
			s.gone = append(s.gone, sub)
		}
	}
	s.excess = s.excess[:0]
}

// trim is trimAll for one of them.
func (s *State) trim(sub SubID) {
	over := s.Sub.Held[sub] - s.Sub.Wanted[sub]
	if s.Sub.Alloc[sub] == NoID || over <= 0 {
		return
	}
	s.victim = s.newestFirst(s.victim, sub)
	for _, q := range s.victim {
		n := min(over, s.Holding.Units[q])
		s.release(q, n, decision.CauseDemandGone)
		if over -= n; over == 0 {
			return
		}
	}
}

// partMin is from how many sub-allocations on they are trimmed in two halves at once.
const partMin = 1 << 5

// trimAtOnce is trim for all: what goes is found in two halves, then it is taken off parcels and, at once where they
// are many, off sub-allocations. It is false, and nothing is done, where one is listed
// twice, or something of it is under reclaim: what a set keeps on its parcel goes by both.
func (s *State) trimAtOnce() bool {
	if len(s.excess) == 0 || s.repeated() {
		return false
	}
	many, half, plain := len(s.excess) >= partMin, len(s.excess)/2, [2]bool{}
	s.both(many, func() { plain[0] = s.findParting(0, s.excess[:half]) }, func() {
		plain[1] = s.findParting(1, s.excess[half:])
	})
	if !plain[0] || !plain[1] {
		return false
	}
	s.both(many, func() {
		s.partOnParcels(s.parting[0])
		s.partOnParcels(s.parting[1])
	}, func() {
		s.partOfSubs(s.parting[0])
		s.partOfSubs(s.parting[1])
	})
	return true
}

// repeated tells whether a sub-allocation is listed more than once among those that hold too much.
func (s *State) repeated() bool {
	listed := bitset.New(uint(len(s.Sub.Wanted)))
	for _, sub := range s.excess {
		if listed.Test(uint(sub)) {
			return true
		}
		listed.Set(uint(sub))
	}
	return false
}

// findParting lists what goes of some sub-allocations, in one of two lists. It is
// false when something of it is under reclaim.
func (s *State) findParting(at int, subs []SubID) bool {
	list, h := s.parting[at][:0], &s.Holding
	for _, sub := range subs {
		over := s.Sub.Held[sub] - s.Sub.Wanted[sub]
		if s.Sub.Alloc[sub] == NoID || over <= 0 {
			continue
		}
		s.aged[at] = s.newest(s.aged[at], sub)
		for i := 0; over > 0; i++ {
			one := &s.aged[at][i]
			if h.Set[one.q] != NoID {
				return false
			}
			n := min(over, h.Units[one.q])
			list = append(list, parting{one.q, sub, one.k, n == h.Units[one.q], n})
			over -= n
		}
	}
	s.parting[at] = list
	return true
}

// partOnParcels frees the room of what goes, and takes rows of which all goes off the lists of their parcels.
func (s *State) partOnParcels(list []parting) {
	for i := range list {
		one := &list[i]
		p := &s.Plans[s.Sub.Plan[one.sub]]
		p.Parcels.take(one.k, s.Size(one.sub), -one.units)
		p.takeDevices(one.k, s.Holding.On(one.q), s.Size(one.sub), -one.units)
		p.Changed, p.Dirty = append(p.Changed, one.k), true
		if one.all {
			s.unlinkOnParcel(p, one.q, one.k)
		}
	}
}

// partOfSubs takes what goes off what sub-allocations hold, and notes why.
func (s *State) partOfSubs(list []parting) {
	h := &s.Holding
	s.Released = slices.Grow(s.Released, len(list))
	for i := range list {
		one := &list[i]
		s.noteRelease(one.q, one.sub, one.k, one.units, 0, decision.CauseDemandGone)
		s.record(ChangeReleased, one.sub, one.k, h.Pool[one.q], h.Lender[one.q], -one.units, 0)
		h.Units[one.q] -= one.units
		s.count(one.sub, h.Pool[one.q], h.Lender[one.q], -one.units)
		if one.all {
			s.unlinkOfSub(one.q, one.sub)
			h.drop(one.q)
		}
	}
}
