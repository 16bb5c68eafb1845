package cluster

import (
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
)

// NamesUsed is at most how many names of allocations, sub-allocations and sources the state needs; NamesKnown is how
// many it has. Names are never taken away while cycles run, as ids must go on meaning the same: see Forget. O(1).
func (s *State) NamesUsed() int {
	return len(s.Alloc.First) - len(s.Alloc.free) + len(s.Sub.Alloc) - len(s.Sub.free) + len(s.silent) + 1
}

// NamesKnown is how many names of allocations, sub-allocations and sources there are. O(1).
func (s *State) NamesKnown() int { return s.Label.Len() + s.Source.Len() }

// namesSpare is how many needless names are kept before any is forgotten.
const namesSpare = 1 << 14

// MayForget tells whether needless names are more than half of all, and more than namesSpare. Names that the state
// uses, and so many others, are not needless. O(1).
func (s *State) MayForget(others int) bool {
	return s.NamesKnown() > 2*(s.NamesUsed()+others)+namesSpare
}

// MayForgetNeeds tells the same of requirements. O(1).
func (s *State) MayForgetNeeds() bool {
	return s.Need.Len() > 2*(len(s.Sub.Alloc)-len(s.Sub.free))+needsSpare
}

// needsSpare is how many requirements too many are nothing to speak of.
const needsSpare = 1 << 10

// ForgetNeeds drops the requirements that no sub-allocation has any more; those that stay get new ids, in the same
// order. A Runner makes new planners for the next cycle, which know nothing yet (Renumbered): it takes as long as a
// first one. O(requirements and sub-allocations).
func (s *State) ForgetNeeds() {
	used := usedNames(&s.Need.Names)
	used.useAll(ofNeeds, s.Sub.schema())
	for i := range s.asked {
		used.use(int32(s.asked[i].need))
	}
	ids, names := used.renamed(&s.Need.Names)
	parsed := make([]*plan.Requirement, 0, names.Len())
	for id, to := range ids {
		if to != NoID {
			parsed = append(parsed, s.Need.Parsed[id])
		}
	}
	s.Need = Needs{Names: names, Parsed: parsed}
	s.scratch.steps.known = s.scratch.steps.known[:0]
	s.Sub.schema().Renumber(ofNeeds, NoID, func(id int32) int32 { return ids[id] })
	for i := range s.asked {
		if need := &s.asked[i].need; *need != NoID {
			*need = NeedID(ids[*need])
		}
	}
	s.Renumbered = true
}

// Forget drops the names of allocations, sub-allocations and sources that nothing has any more. keep, unless nil, calls
// label and source for the ids of others that are still to be known. Those that stay get new ids, in the same order,
// and new dictionaries: Frozen ones of before stay as they are. It gives the new ids by the old ones, NoID for names
// that went. No decision depends on these ids; tables that a Runner goes on borrowing are made anew in the next cycle
// (Renamed). O(names, allocations and sub-allocations).
func (s *State) Forget(keep func(label, source func(id int32))) (labels, sources []int32) {
	label, source := usedNames(&s.Label), usedNames(&s.Source)
	label.use(0) // that of sub-allocations without a name: it stays where it is
	tables := []column.Schema{s.Alloc.schema(), s.Sub.schema(), s.lists()}
	label.useAll(ofLabels, tables...)
	source.useAll(ofSources, tables...)
	for i := range s.asked {
		label.use(s.asked[i].together)
	}
	if keep != nil {
		keep(label.use, source.use)
	}
	labels, s.Label = label.renamed(&s.Label)
	sources, s.Source = source.renamed(&s.Source)
	s.rename(labels, sources)
	s.Renamed = true
	return labels, sources
}

// rename gives what the state has the new ids of names; rows that are free get none that could be wrong.
func (s *State) rename(labels, sources []int32) {
	for _, t := range []column.Schema{s.Alloc.schema(), s.Sub.schema(), s.lists()} {
		t.Renumber(ofLabels, 0, func(id int32) int32 { return labels[id] })
		t.Renumber(ofSources, NoID, func(id int32) int32 { return sources[id] })
	}
	for i := range s.asked {
		s.asked[i].together = labels[s.asked[i].together]
	}
	firsts := s.ofSource
	s.ofSource = nil
	for src, first := range firsts {
		if first == NoID {
			continue
		}
		for to := int(sources[src]); len(s.ofSource) <= to; {
			s.ofSource = append(s.ofSource, NoID)
		}
		s.ofSource[sources[src]] = first
	}
	allocOf := make(map[allocKey]AllocID, len(s.allocOf))
	for key, a := range s.allocOf {
		key.name = labels[key.name]
		allocOf[key] = a
	}
	subOf := make(map[subKey]SubID, len(s.subOf))
	for key, sub := range s.subOf {
		key.name = labels[key.name]
		subOf[key] = sub
	}
	s.allocOf, s.subOf = allocOf, subOf
	was := s.scratch.told
	s.scratch.told = nil
	for src, t := range was {
		if to := sources[src]; to != NoID {
			for len(s.scratch.told) <= int(to) {
				s.scratch.told = append(s.scratch.told, told{})
			}
			s.scratch.told[to] = t
		}
	}
}

// nameUse is which names of a dictionary are used.
type nameUse []bool

func usedNames(n *Names) nameUse { return make(nameUse, n.Len()) }

func (u nameUse) use(id int32) {
	if id >= 0 {
		u[id] = true
	}
}

// useAll uses what rows of tables name of a dictionary.
func (u nameUse) useAll(dictionary string, tables ...column.Schema) {
	for _, t := range tables {
		t.Renumber(dictionary, NoID, func(id int32) int32 { u.use(id); return id })
	}
}

// renamed makes a dictionary of the names used of another, and gives their ids in it by the old ones, NoID for the
// rest.
func (u nameUse) renamed(old *Names) (ids []int32, names Names) {
	used := 0
	for _, is := range u {
		if is {
			used++
		}
	}
	names.Reserve(used)
	ids = make([]int32, len(u))
	for id, is := range u {
		if ids[id] = NoID; is {
			ids[id] = names.Intern(old.Bytes(int32(id)))
		}
	}
	return ids, names
}
