package ownership

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// carryOut lets the claim at a place take what it can.
func (s *sweep) carryOut(place int32) {
	s.at, s.id = place, s.d.order[place]
	c := &s.claims[s.id]
	s.node, s.rule, s.missed = c.node, s.ruleOf(c), c.want-c.count
	s.turns++
	short := append(s.before[:0], s.shortOf(s.id)...)
	s.before = short
	s.release(c)
	switch c.form {
	case list:
		s.listed(c)
	case hosts, percent:
		s.count(c)
	case amount:
		s.amounts(c, short)
	case perHost:
		s.parts(c)
	case remaining:
		s.rest()
	}
	if place == s.last[s.node] {
		s.forget()
	}
	if s.d.unmet[place>>6] &^= 1 << (place & 63); c.unmet && c.form != list {
		s.d.unmet[place>>6] |= 1 << (place & 63)
	}
}

// shortOf is what an amount is missing, by dimension; Unlimited where it names none.
func (a *Assigner) shortOf(id claimID) []int64 { return vector(a.short, int(id), a.dims) }

// release takes back what the claim had of soiled cells; own tells what that was.
func (s *sweep) release(c *claim) {
	s.own, s.had = s.own[:0], s.had[:0]
	if s.full {
		for p := c.first; p != nothing; {
			after := s.piece[p].after
			s.giveUp(c, p)
			p = after
		}
		s.unclaim(c)
	}
	for _, cell := range s.turn {
		s.giveUp(c, s.following(cell))
	}
	s.touched += int64(len(s.own))
}

// giveUp takes a piece of the claim out of its cell's chain, of which it is the next.
func (s *sweep) giveUp(c *claim, p pieceID) {
	of := s.piece[p].part
	cell := s.part[of].up
	gives := s.givesOf(p)
	s.hold(cell, of, gives)
	s.unchain(cell)
	s.unlink(&c.first, p)
	if !s.full { // what was had when a full sweep begins is not counted
		c.count--
		for i, v := range gives {
			s.got[int(s.id)*s.dims+i].sub(v)
		}
		if c.form == amount {
			for i, short := range s.shortOf(s.id) {
				if short != plan.Unlimited {
					s.shortOf(s.id)[i] = short + gives[i]
				}
			}
		}
	}
	s.freePiece = append(s.freePiece, p)
	s.pend(cell)
}

// hold notes that the claim had something of a cell.
func (s *sweep) hold(cell, of partID, v []int64) {
	s.own = append(s.own, held{cell, of, int32(len(s.own))})
	s.had = append(s.had, v...)
	at := &s.part[cell]
	at.mine, at.turn = of, s.turns
	if s.at < s.last[s.node] {
		s.lost[lostPart{cell, s.node}] = of
	}
}

// unclaim has the consumer's pieces of no claim count as had by this claim too.
func (s *sweep) unclaim(c *claim) {
	if s.unclaimed[s.node] == nothing {
		return
	}
	row := map[partID]int32{}
	for _, o := range s.own {
		row[o.cell] = o.had
	}
	for p := s.unclaimed[s.node]; p != nothing; p = s.piece[p].after {
		of := s.piece[p].part
		if r, also := row[s.part[of].up]; also {
			add(vector(s.had, int(r), s.dims), s.givesOf(p))
		} else {
			row[s.part[of].up] = int32(len(s.own))
			s.hold(s.part[of].up, of, s.givesOf(p))
		}
	}
}

// forget drops the consumer's pieces of no claim, after its last claim. Each is the next of its cell.
func (s *sweep) forget() {
	for p := s.unclaimed[s.node]; p != nothing; p = s.piece[p].after {
		cell := s.part[s.piece[p].part].up
		s.unchain(cell)
		s.freePiece = append(s.freePiece, p)
		s.pend(cell)
	}
	s.unclaimed[s.node] = nothing
}

// link and unlink keep a claim's pieces together.
func (a *Assigner) link(first *pieceID, p pieceID) {
	a.piece[p].before, a.piece[p].after = nothing, *first
	if *first != nothing {
		a.piece[*first].before = p
	}
	*first = p
}

func (a *Assigner) unlink(first *pieceID, p pieceID) {
	before, after := a.piece[p].before, a.piece[p].after
	if before == nothing {
		*first = after
	} else {
		a.piece[before].after = after
	}
	if after != nothing {
		a.piece[after].before = before
	}
}

// take gives the claim something of a cell, if it is something.
func (s *sweep) take(c partID, v []int64) {
	if zero(v) {
		return
	}
	if s.spent() {
		s.cramped = true
		return
	}
	v = append(s.taken[:0], v...)
	s.taken = v
	if !s.part[c].soiled {
		s.soil(c, s.at)
	}
	of := &s.claims[s.id]
	if p := s.part[c].cursor; p != nothing && s.piece[p].claim == s.id {
		add(s.givesOf(p), v)
	} else {
		p = s.newPiece(s.mine(c), s.id, v)
		s.chain(c, p)
		s.link(&of.first, p)
		of.count++
	}
	left := s.leftOf(c)
	for i, x := range v {
		left[i] -= x
		s.got[int(s.id)*s.dims+i].add(x)
	}
	s.pend(c)
	s.touched++
}

// mine is the consumer's part of a cell of which it takes something; a new one when it had none.
func (s *sweep) mine(c partID) partID {
	if at := &s.part[c]; at.turn == s.turns {
		return at.mine
	}
	if s.base[s.node]+1 < s.base[s.node+1] || s.unclaimed[s.node] != nothing {
		if of := s.partOf(c, s.node); of != nothing {
			return of
		}
		if of, ok := s.lost[lostPart{c, s.node}]; ok {
			return of
		}
	}
	of := s.newPart(s.node, s.part[c].host, c, s.next)
	s.next++
	s.note(of)
	return of
}

// ownFirst sorts the claim's own: busy ones first, the most loaded first; then idle ones; of either those that are not
// closed before those that are; ties in host order.
func (s *sweep) ownFirst() {
	slices.SortFunc(s.own, func(a, b held) int {
		x, y := &s.part[a.cell], &s.part[b.cell]
		busy, also := s.part[a.part].busy, s.part[b.part].busy
		load := 0
		if busy && also {
			load = cmp.Compare(y.load, x.load)
		}
		return cmp.Or(cmp.Compare(bit(also), bit(busy)), cmp.Compare(bit(s.shut(x.host)), bit(s.shut(y.host))), load,
			cmp.Compare(x.host, y.host))
	})
}

// hadOf is what the claim had of a cell of its own.
func (s *sweep) hadOf(o held) []int64 { return vector(s.had, int(o.had), s.dims) }

// open is what is left of a soiled cell less what is kept on it.
func (s *sweep) open(c partID) []int64 {
	kept := s.scratch
	clear(kept)
	for p := s.following(c); p != nothing; p = s.piece[p].next {
		owner := &s.part[s.piece[p].part]
		if owner.busy && (s.piece[p].claim != nothing || owner.node != s.node) {
			add(kept, s.givesOf(p))
		}
	}
	for i, v := range s.leftOf(c) {
		kept[i] = v - min(v, kept[i])
	}
	return kept
}

// took tells whether the claim has something of a cell by now.
func (s *sweep) took(c partID) bool {
	at := &s.part[c]
	if at.soiled {
		return at.cursor != nothing && s.piece[at.cursor].claim == s.id
	}
	for p := at.first; p != nothing && s.place(p) <= s.at; p = s.piece[p].next {
		if s.piece[p].claim == s.id {
			return true
		}
	}
	return false
}

// byHost puts cells in host order.
func (s *sweep) byHost(cells []partID) {
	slices.SortFunc(cells, func(a, b partID) int { return cmp.Compare(s.part[a].host, s.part[b].host) })
}
