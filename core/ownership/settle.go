package ownership

import (
	"slices"

	"github.com/stintd/stint/core/plan"
)

// settle closes a sweep: what the children have of soiled cells is now theirs, and the cells are clean. After a full
// one the domain has no indexes: they are laid when a cell is first stained, of many domains never.
func (s *sweep) settle() {
	d := s.d
	if s.full {
		s.handDown()
	} else {
		s.settleParts()
	}
	for _, c := range d.soiled {
		at := &s.part[c]
		at.soiled, at.cursor = false, nothing
		at.version++
		s.settleCell(c)
	}
	s.touched += int64(len(d.noted) + len(d.soiled))
	if s.full {
		d.index, s.spare, d.laid = s.spare, d.index, false
	} else {
		for _, c := range d.soiled {
			s.list = s.entries(s.list[:0], d, c)
			for _, e := range s.list {
				s.insert(e)
			}
		}
	}
	d.soiled = d.soiled[:0]
	clear(s.lost)
}

// settleParts gives parts what they have now. When that is not what one had, its children's sweep has to look at it.
func (s *sweep) settleParts() {
	for _, p := range s.d.noted {
		clear(s.leftOf(p)) // of a part, not of a cell, for the time being: what it has now
	}
	for _, c := range s.d.soiled {
		for p := s.part[c].first; p != nothing; p = s.piece[p].next {
			add(s.leftOf(s.piece[p].part), s.givesOf(p))
			s.touched++
		}
	}
	for _, p := range s.d.noted {
		at := &s.part[p]
		now, was := s.leftOf(p), s.amountOf(p)
		s.moved = append(s.moved, uint64(at.node)<<32|uint64(uint32(at.host)))
		if zero(now) {
			s.dead = append(s.dead, p)
		}
		if s.domainOf[at.node] != nothing && !slices.Equal(now, was) {
			s.stain(p)
		}
		copy(was, now)
		s.settleBusy(p)
	}
}

// handDown gives parts what they have after a full sweep, before which they had no amounts yet, and lines up the cells
// of the children's domains, in host order.
func (s *sweep) handDown() {
	for n := s.g.Tree.First[s.d.node]; n != plan.None; n = s.g.Tree.Next[n] {
		if pieces := int64(0); s.domainOf[n] != nothing {
			for id := s.base[n]; id < s.base[n+1]; id++ {
				pieces += s.claims[id].count
			}
			s.cellsOf[n] = slices.Grow(s.cellsOf[n], int(pieces))
		}
	}
	for _, c := range s.all {
		for p := s.part[c].first; p != nothing; p = s.piece[p].next {
			of := s.piece[p].part
			add(s.amountOf(of), s.givesOf(p))
			n := s.part[of].node
			if list := s.cellsOf[n]; s.domainOf[n] != nothing && (len(list) == 0 || list[len(list)-1] != of) {
				s.cellsOf[n] = append(list, of)
			}
			s.touched++
		}
	}
	for _, p := range s.d.noted {
		if s.settleBusy(p); zero(s.amountOf(p)) {
			s.dead = append(s.dead, p)
		}
	}
}

// settleCell notes which claims may get more of a clean cell, and whether another pass would leave it as it is: a claim
// of a number of hosts takes what is open, and that may have changed since it did; one that chooses may cede a host.
func (s *sweep) settleCell(c partID) {
	left := s.behind
	copy(left, s.amountOf(c))
	settled := true
	for p := s.part[c].first; p != nothing; p = s.piece[p].next {
		of := &s.claims[s.piece[p].claim]
		if of.chooses() {
			open := s.openBehind(p, left)
			settled = settled && (of.form == amount || slices.Equal(open, s.givesOf(p))) &&
				s.cedes(of, c, s.piece[p].part, open) == keeps
		}
		for i, v := range s.givesOf(p) {
			left[i] -= v
		}
		if of.form == amount && s.ruleOf(of).Partial && !zero(left) {
			if of.rests = append(of.rests, stamp{c, s.part[c].version}); len(of.rests) > 16 &&
				int64(len(of.rests)) > 2*of.count {
				of.rests = s.valid(of.rests)
			}
		}
	}
	if !settled {
		s.unsettled = append(s.unsettled, stamp{c, s.part[c].version})
	}
}

// openBehind is what would be open on a clean cell to the claim of a piece, of what is left then.
func (s *sweep) openBehind(p pieceID, left []int64) []int64 {
	if s.piece[p].next == nothing {
		return left
	}
	kept := s.scratch
	clear(kept)
	for q := s.piece[p].next; q != nothing; q = s.piece[q].next {
		if s.part[s.piece[q].part].busy {
			add(kept, s.givesOf(q))
		}
	}
	for i, v := range left {
		kept[i] = v - min(v, kept[i])
	}
	return kept
}

// valid keeps the stamps that hold.
func (s *store) valid(list []stamp) []stamp {
	return slices.DeleteFunc(list, func(one stamp) bool { return s.part[one.cell].version != one.version })
}
