package cluster

import (
	"maps"
	"slices"

	"github.com/bits-and-blooms/bitset"

	"github.com/stintd/stint/core/plan"
)

// Clone is a copy of the state that shares nothing with it but what nobody changes: policies, requirements, texts.
// Cycles on the copy decide what they would on the state, and leave the state as it is. O(everything), mostly the
// copying of columns: some 200 bytes a holding.
func (s *State) Clone() *State {
	c := *s
	c.Plans = slices.Clone(s.Plans)
	copyTables(c.tables(), s.tables())
	for i := range c.Plans {
		p := &c.Plans[i]
		copyTables(p.tables(), s.Plans[i].tables())
		p.Pairs.many = maps.Clone(p.Pairs.many)
	}
	c.Consumer, c.Source, c.Label = s.Consumer.clone(), s.Source.clone(), s.Label.clone()
	c.Need = Needs{Names: s.Need.Names.clone(), Parsed: slices.Clone(s.Need.Parsed)}
	c.Shape = Shapes{dims: s.Shape.dims, size: slices.Clone(s.Shape.size), of: maps.Clone(s.Shape.of)}
	c.Host.Names, c.Host.Attr, c.Host.words = s.Host.Names.clone(), slices.Clone(s.Host.Attr), maps.Clone(s.Host.words)
	for i := range c.Host.Attr {
		c.Host.Attr[i] = c.Host.Attr[i].clone()
	}
	c.Released, c.Reclaims = slices.Clone(s.Released), slices.Clone(s.Reclaims)
	c.Changes = s.Changes.clone()
	c.orphans, c.asked = slices.Clone(s.orphans), slices.Clone(s.asked)
	c.last, c.noted = slices.Clone(s.last), bitset.BitSet{}
	for i := range c.last {
		c.last[i].size = slices.Clone(c.last[i].size)
	}
	s.noted.CopyFull(&c.noted)
	// memory that is used again, nothing more
	c.victim, c.aged, c.parting, c.scratch = nil, [2][]aged{}, [2][]parting{}, demandScratch{}
	c.Accepted = false
	c.allocOf, c.subOf = maps.Clone(s.allocOf), maps.Clone(s.subOf)
	c.at = s.at.clone(&c)
	return &c
}

// cloned copies columns that stand in a slice.
func cloned[T any](from [][]T) [][]T {
	to := slices.Clone(from)
	for i := range to {
		to[i] = slices.Clone(to[i])
	}
	return to
}

// clone is the layout over the hosts of another state, which are the same.
func (l *layout) clone(s *State) *layout {
	if l == nil {
		return nil
	}
	c := &layout{order: cloned(l.order), members: cloned(l.members), warnings: slices.Clone(l.warnings)}
	c.slots, c.selects, c.selected = slices.Clone(l.slots), slices.Clone(l.selects), slices.Clone(l.selected)
	for _, bounds := range [][]*plan.Bound{c.slots, c.selects} {
		for i, b := range bounds {
			if b != nil {
				bounds[i] = b.On(s)
			}
		}
	}
	for i, set := range c.selected {
		if set != nil {
			c.selected[i] = set.Clone()
		}
	}
	return c
}
