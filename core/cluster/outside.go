package cluster

import "github.com/stintd/stint/core/plan"

// places gives demand that no plan has (ReportUnknown) its place in the plans of a new policy: to an allocation whose
// consumer is a leaf of just one plan now, if the plan has no other of its name and can count all its units. to are the
// new indices of the plans before. It comes before allocations are hung onto the plans, and gives those of such demand,
// NoID where there is none. O(allocations) where there is any.
func (s *State) places(byArrival []AllocID, to []int32) (plans map[AllocID]int32) {
	var taken map[allocKey]bool
	for _, a := range byArrival {
		if s.Alloc.Plan[a] >= 0 {
			continue
		}
		if taken == nil {
			taken, plans = s.takenBy(byArrival, to), map[AllocID]int32{}
		}
		plans[a] = NoID
		node := s.NodeOf[s.Alloc.Consumer[a]]
		if node == plan.None || !s.Policy.Leaf(node) {
			continue
		}
		key := allocKey{s.onlyPlan(node), s.Alloc.Consumer[a], s.Alloc.Name[a]}
		if key.plan < 0 || taken[key] || !s.countedBy(&s.Plans[key.plan], a) {
			continue
		}
		taken[key] = true
		plans[a] = key.plan
		for sub := s.Alloc.First[a]; sub != NoID; sub = s.Sub.Next[sub] {
			if s.Plans[key.plan].Slots != nil {
				s.resize(sub)
			}
		}
		s.outsideDirty = true
	}
	return plans
}

// takenBy is which names of allocations the new plans have.
func (s *State) takenBy(byArrival []AllocID, to []int32) map[allocKey]bool {
	taken := map[allocKey]bool{}
	for _, a := range byArrival {
		if p := s.Alloc.Plan[a]; p >= 0 && !s.Sub.Orphan[s.Alloc.First[a]] {
			taken[allocKey{to[p], s.Alloc.Consumer[a], s.Alloc.Name[a]}] = true
		}
	}
	return taken
}

// countedBy tells whether a plan can count all units that an allocation asks for: some figure of each is not 0, in a
// slot plan none but slots, and where the plan has devices no gang, nor units that lie on parts of several.
func (s *State) countedBy(p *Plan, a AllocID) bool {
	slots, hasSlots := s.Policy.Dimension("slots")
	some := false
	for sub := s.Alloc.First[a]; sub != NoID; sub = s.Sub.Next[sub] {
		if s.Sub.seen[sub] == unnamed {
			continue
		}
		some = true
		sized := p.Slots != nil
		for d, amount := range s.Size(sub) {
			if p.Slots != nil && amount > 0 && !(hasSlots && d == slots) {
				return false
			}
			sized = sized || amount > 0
		}
		if !sized || p.HasDevices() && (s.Sub.MinUnits[sub] > 1 ||
			!MayLieOn(p.MD.DevicePer, p.OnDevices(s.Size(sub)))) {
			return false
		}
	}
	return some
}

// resize makes a sub-allocation's size that of a unit of a slot plan. One that nobody names any more keeps its own
// where another has that.
func (s *State) resize(sub SubID) {
	was := subKey{s.Sub.Alloc[sub], s.Sub.Name[sub], s.Sub.Shape[sub]}
	s.scratch.size = append(s.scratch.size[:0], s.Size(sub)...)
	s.slotSize(s.scratch.size)
	is := subKey{was.alloc, was.name, s.Shape.Intern(s.scratch.size)}
	if is == was {
		return
	}
	if other, ok := s.subOf[is]; ok {
		if s.Sub.seen[sub] == unnamed {
			return
		}
		s.Sub.Shape[other], s.subOf[was] = was.shape, other // it is one that nobody names
	} else {
		delete(s.subOf, was)
	}
	s.Sub.Shape[sub], s.subOf[is] = is.shape, sub
}
