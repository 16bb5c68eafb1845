package cluster

import (
	"github.com/stintd/stint/core/plan"
)

// want sets how many units a sub-allocation wants. A gang that wants fewer than its least number is one of so many from
// then on, as where some of its units are done (D-157).
func (s *State) want(id SubID, units int64) {
	if s.Sub.Wanted[id] != units {
		s.note(id)
		s.Sub.Wanted[id] = units
	}
	s.Sub.MinUnits[id] = max(1, min(s.Sub.MinUnits[id], units))
	if s.Sub.Held[id] > units || units == 0 {
		s.excess = append(s.excess, id)
	}
}

// asked is what a sub-allocation asked for in the last cycle, of one that has been told another thing since.
type asked struct {
	sub                 SubID
	need                NeedID
	wanted, most, least int64
	together            int32
}

// note comes before what a sub-allocation asks for changes.
func (s *State) note(id SubID) {
	if p := s.Sub.Plan[id]; p >= 0 {
		s.Plans[p].Dirty = true
	} else {
		s.outsideDirty = true
	}
	if b := &s.Sub; !b.noted[id] {
		b.noted[id] = true
		s.asked = append(s.asked, asked{id, b.Need[id], b.Wanted[id], b.MaxPerHost[id], b.MinUnits[id], b.Together[id]})
	}
}

// heed stirs the plans in which something else is asked for than in the last cycle: what one input takes back of
// another counts for nothing (docs/ownership.md, docs/shares.md). Leaves that ask for something else may take again.
// O(sub-allocations noted).
func (s *State) heed() {
	b := &s.Sub
	var forgiven map[leafOf]bool // a leaf is forgiven once, however many of its own ask for something else
	for _, was := range s.asked {
		id := was.sub
		same := b.Wanted[id] == was.wanted &&
			(was.wanted == 0 || b.Need[id] == was.need && b.MaxPerHost[id] == was.most && b.MinUnits[id] == was.least &&
				b.Together[id] == was.together)
		if b.noted[id] = false; b.Plan[id] >= 0 && !same {
			p := &s.Plans[b.Plan[id]]
			p.Stirred = true
			if leaf := (leafOf{p.Index, s.Node(id)}); p.Turned && leaf.node != plan.None && !forgiven[leaf] {
				if forgiven == nil {
					forgiven = map[leafOf]bool{}
				}
				forgiven[leaf] = true
				s.forgiveLeaf(p, leaf.node)
			}
		}
	}
	s.asked = s.asked[:0]
}

// leafOf is a leaf in a plan.
type leafOf struct {
	plan int32
	node plan.Node
}

// allocation finds an allocation, or adds it behind all of its leaf's.
func (s *State) allocation(src SourceID, key allocKey) AllocID {
	if a, ok := s.allocOf[key]; ok {
		return a
	}
	l := &s.Alloc
	if rows := more(len(l.First)); len(l.free) == 0 {
		l.free = spare(l.free, l.schema().Spare(rows), rows)
	}
	a := take(&l.free)
	s.arrival++
	l.Plan[a], l.Consumer[a] = max(key.plan, NoID), key.consumer
	l.Source[a], l.Name[a], l.Arrival[a] = src, key.name, s.arrival
	l.First[a], l.Last[a], l.Next[a], l.prev[a] = NoID, NoID, NoID, NoID
	s.allocOf[key] = a
	if key.plan >= 0 {
		s.Plans[key.plan].append(s, a)
	}
	return a
}

// append puts an allocation behind all of its leaf's.
func (p *Plan) append(s *State, a AllocID) {
	leaf := s.NodeOf[s.Alloc.Consumer[a]]
	last := p.LastAlloc[leaf]
	if s.Alloc.prev[a] = last; last != NoID {
		s.Alloc.Next[last] = a
	} else {
		p.FirstAlloc[leaf] = a
	}
	p.LastAlloc[leaf] = a
}

// newSub adds a sub-allocation that wants nothing yet.
func (s *State) newSub(key subKey) SubID {
	b, a := &s.Sub, key.alloc
	if rows := more(len(b.Alloc)); len(b.free) == 0 {
		b.free = spare(b.free, b.schema().Spare(rows), rows)
	}
	id := take(&b.free)
	s.sequence++
	b.Source[id], b.Plan[id], b.Consumer[id], b.Alloc[id] = s.Alloc.Source[a], s.Alloc.Plan[a], s.Alloc.Consumer[a], a
	b.Name[id], b.Shape[id], b.Need[id], b.MaxPerHost[id], b.MinUnits[id] = key.name, key.shape, NoID, plan.Unlimited, 1
	b.Together[id], b.ShortSince[id] = 0, 0
	b.Wanted[id], b.Held[id], b.First[id], b.Next[id], b.Seq[id], b.Pair[id] = 0, 0, NoID, NoID, s.sequence, NoID
	b.Orphan[id], b.Turns[id], b.FirstSeen[id] = false, 0, s.Cycle+1
	s.subOf[key] = id
	last := s.Alloc.Last[a]
	if b.prev[id] = last; last != NoID {
		b.Next[last] = id
	} else {
		s.Alloc.First[a] = id
	}
	s.Alloc.Last[a] = id
	s.enlist(id)
	if p := b.Plan[id]; p >= 0 {
		b.Pair[id] = s.Plans[p].pair(s.NodeOf[b.Consumer[id]], key.shape, s.ConsumerOf[plan.Root])
	}
	return id
}

// forget drops a sub-allocation that no source names and that holds nothing, and
// its allocation with the last of them. O(1).
func (s *State) forget(id SubID) {
	b, a := &s.Sub, s.Sub.Alloc[id]
	delete(s.subOf, subKey{a, b.Name[id], b.Shape[id]})
	prev, next := b.prev[id], b.Next[id]
	if prev == NoID {
		s.Alloc.First[a] = next
	} else {
		b.Next[prev] = next
	}
	if next == NoID {
		s.Alloc.Last[a] = prev
	} else {
		b.prev[next] = prev
	}
	s.delist(id)
	b.Alloc[id] = NoID
	b.free = append(b.free, id)
	if s.Alloc.First[a] != NoID {
		return
	}
	l := &s.Alloc
	if key := (allocKey{l.Plan[a], l.Consumer[a], l.Name[a]}); s.allocOf[key] == a {
		delete(s.allocOf, key)
	}
	if p := l.Plan[a]; p >= 0 && !b.Orphan[id] {
		s.Plans[p].remove(s, a)
	}
	l.free = append(l.free, a)
}

// remove takes an allocation off its leaf's list. O(1).
func (p *Plan) remove(s *State, a AllocID) {
	leaf, prev, next := s.NodeOf[s.Alloc.Consumer[a]], s.Alloc.prev[a], s.Alloc.Next[a]
	if prev == NoID {
		p.FirstAlloc[leaf] = next
	} else {
		s.Alloc.Next[prev] = next
	}
	if next == NoID {
		p.LastAlloc[leaf] = prev
	} else {
		s.Alloc.prev[next] = prev
	}
}

// enlist puts a new sub-allocation on the list of its source. O(1).
func (s *State) enlist(id SubID) {
	b, src := &s.Sub, s.Sub.Source[id]
	for len(s.ofSource) <= int(src) {
		s.ofSource = append(s.ofSource, NoID)
	}
	next := s.ofSource[src]
	if b.before[id], b.after[id] = NoID, next; next != NoID {
		b.before[next] = id
	}
	s.ofSource[src] = id
}

// delist takes a sub-allocation off the list of its source. O(1).
func (s *State) delist(id SubID) {
	b := &s.Sub
	if next := b.after[id]; next != NoID {
		b.before[next] = b.before[id]
	}
	if prev := b.before[id]; prev != NoID {
		b.after[prev] = b.after[id]
	} else {
		s.ofSource[b.Source[id]] = b.after[id]
	}
}

// eachOfSource calls f for the sub-allocations of a source, in no order. O(those).
func (s *State) eachOfSource(src SourceID, f func(sub SubID)) {
	if int(src) >= len(s.ofSource) {
		return
	}
	for sub := s.ofSource[src]; sub != NoID; sub = s.Sub.after[sub] {
		f(sub)
	}
}
