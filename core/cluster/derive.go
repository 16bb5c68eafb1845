package cluster

import (
	"errors"
	"fmt"

	"github.com/stintd/stint/core/plan"
)

// index makes the index of names whose bytes were loaded.
func (n *Names) index() error {
	if len(n.end) > 1<<31-2 {
		return errors.New("more names than there can be")
	}
	n.slot = nil
	n.Reserve(0)
	var from uint64
	for _, end := range n.end {
		if end < from || end > uint64(len(n.bytes)) {
			return errors.New("a name that ends before it begins, or behind all")
		}
		from = end
	}
	if from != uint64(len(n.bytes)) {
		return errors.New("bytes behind the last name")
	}
	if len(n.end) == 0 {
		return nil
	}
	n.room(0)
	for id := range n.end {
		name := n.Bytes(int32(id))
		hash := hashOf(name)
		s, is := n.probe(name, hash)
		if is >= 0 {
			return fmt.Errorf("the name %q twice", name)
		}
		n.slot[s] = hash | uint64(id+1)
	}
	return nil
}

// keyOf is by what an allocation is found.
func (s *State) keyOf(a AllocID) allocKey {
	return allocKey{s.Alloc.Plan[a], s.Alloc.Consumer[a], s.Alloc.Name[a]}
}

// keyed tells whether a key may find an allocation: it has sub-allocations, and is no orphan's.
func (s *State) keyed(a AllocID) bool {
	first := s.Alloc.First[a]
	return first != NoID && !s.Sub.Orphan[first]
}

// hidden are the allocations that their key does not find, since another of the same key came after them: mostly none.
// O(orphans), or where there are any O(allocations).
func (s *State) hidden() (hidden []AllocID) {
	if !s.anyHidden() {
		return nil
	}
	for a := range s.Alloc.First {
		if a := AllocID(a); s.keyed(a) {
			if found, ok := s.allocOf[s.keyOf(a)]; !ok || found != a {
				hidden = append(hidden, a)
			}
		}
	}
	return hidden
}

// anyHidden tells whether there are hidden allocations. O(orphans).
func (s *State) anyHidden() bool {
	orphans := map[AllocID]bool{}
	for _, o := range s.orphans {
		orphans[s.Sub.Alloc[o.sub]] = true
	}
	return len(s.Alloc.First)-len(s.Alloc.free)-len(orphans) != len(s.allocOf)
}

// derive computes the fields that Save leaves out from the fields that Save writes.
func (s *State) derive(hidden []AllocID) error {
	if err := s.derivePlans(); err != nil {
		return err
	}
	s.Shape.of = make(map[string]ShapeID, s.Shape.Len())
	for i := range ShapeID(s.Shape.Len()) {
		key := s.Shape.keyOf(s.Shape.Size(i))
		if _, ok := s.Shape.of[string(key)]; !ok { // of equal ones the first has the name: see Shapes.measure
			s.Shape.of[string(key)] = i
		}
	}
	for id := range int32(s.Need.Len()) {
		r, err := plan.ParseRequirement(s.Need.String(id))
		if err != nil {
			return fmt.Errorf("requirement %d: %w", id, err)
		}
		s.Need.Parsed = append(s.Need.Parsed, r)
	}
	s.allocOf = make(map[allocKey]AllocID, len(s.Alloc.First))
	passed := make(map[AllocID]bool, len(hidden))
	for _, a := range hidden {
		passed[a] = true
	}
	for a := range s.Alloc.First {
		if a := AllocID(a); s.keyed(a) && !passed[a] {
			s.allocOf[s.keyOf(a)] = a
		}
	}
	for i := range s.last {
		s.noted.Set(uint(s.last[i].host))
	}
	s.Sub.noted = make([]bool, len(s.Sub.Alloc))
	for _, a := range s.asked {
		s.Sub.noted[a.sub] = true
	}
	s.subOf = make(map[subKey]SubID, len(s.Sub.Alloc))
	for sub := range s.Sub.Live() {
		s.subOf[subKey{s.Sub.Alloc[sub], s.Sub.Name[sub], s.Sub.Shape[sub]}] = sub
	}
	s.deriveLists()
	at, err := s.hostOrder(s.Policy)
	if err != nil {
		return fmt.Errorf("the hosts do not fit the policy: %w", err)
	}
	s.at = at
	s.Holding.lay(s.anyDevices())
	for i := range s.Plans {
		s.layDevices(&s.Plans[i])
	}
	return nil
}

// deriveLists makes the ways back of the lists of allocations and sub-allocations, and the lists of sources.
func (s *State) deriveLists() {
	s.Alloc.prev = filled[AllocID](len(s.Alloc.First))
	for i := range s.Plans {
		for _, a := range s.Plans[i].FirstAlloc {
			for prev := AllocID(NoID); a != NoID; prev, a = a, s.Alloc.Next[a] {
				s.Alloc.prev[a] = prev
			}
		}
	}
	n := len(s.Sub.Alloc)
	s.Sub.prev, s.Sub.after, s.Sub.before = filled[SubID](n), filled[SubID](n), filled[SubID](n)
	for _, sub := range s.Alloc.First {
		for prev := SubID(NoID); sub != NoID; prev, sub = sub, s.Sub.Next[sub] {
			s.Sub.prev[sub] = prev
		}
	}
	for sub := range s.Sub.Live() {
		s.enlist(sub)
	}
	for i := range s.Plans {
		s.Plans[i].Pairs.index(s.Plans[i].FirstPair)
	}
}

// derivePlans gives the plans their settings in the policy.
func (s *State) derivePlans() error {
	plans := s.newPlans()
	if len(plans) != len(s.Plans) {
		return fmt.Errorf("%d plans, %d in the policy", len(s.Plans), len(plans))
	}
	for i := range plans {
		from, p := &plans[i], &s.Plans[i]
		if from.Name != p.Name {
			return fmt.Errorf("plan %q where the policy has %q", p.Name, from.Name)
		}
		p.Index, p.MD, p.Slots, p.Terms, p.Owns = int32(i), from.MD, from.Slots, from.Terms, from.Owns
		if p.MD != nil && p.MD.HalfLifeUS > 0 {
			p.History.lay(&s.Policy.Tree)
		}
	}
	return nil
}
