package ownership

import (
	"math"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// sweep carries out the claims of one domain in order. A full one carries out all of them; a partial one those that
// soiled cells concern, for on clean ones every claim takes what it had.
type sweep struct {
	*Assigner
	d      *domain
	full   bool
	all    []partID // the cells, in host order, of a full sweep
	at     int32    // place of the claim that has its turn
	id     claimID
	node   plan.Node
	rule   *plan.OwnRule
	missed int64    // by how many hosts the claim was short before
	turn   []partID // of a partial sweep: soiled cells of which the claim had something
	own    []held
	had    []int64             // vectors of own
	lost   map[lostPart]partID // parts of consumers that have claims to come
}

// held is a soiled cell of which the claim had something.
type held struct {
	cell, part partID
	had        int32 // row of sweep.had
}

type lostPart struct {
	cell partID
	node plan.Node
}

// events are what is to be done at places in the order of claims, a heap: place << 32, with the cell of which the
// claim had something, or trigger, which is nothing.
type events []uint64

const trigger = math.MaxUint32

func lessEvent(a, b uint64) bool { return a < b }

func (e *events) at(place int32, c partID) {
	*e = push(*e, uint64(place)<<32|uint64(uint32(c)), lessEvent)
}

// push and pop are those of a binary heap.
func push[T any](h []T, x T, less func(a, b T) bool) []T {
	h = append(h, x)
	for i := len(h) - 1; i > 0 && less(h[i], h[(i-1)/2]); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
	return h
}

func pop[T any](h []T, less func(a, b T) bool) (T, []T) {
	top, n := h[0], len(h)-1
	h[0] = h[n]
	h = h[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c+1 < n && less(h[c+1], h[c]) {
			c++
		}
		if c >= n || !less(h[c], h[i]) {
			return top, h
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

// run carries out what there is to carry out.
func (s *sweep) run() {
	s.epoch++
	s.begin()
	if s.full {
		for place := range s.d.order {
			s.carryOut(int32(place))
		}
	}
	for len(s.d.event) > 0 {
		place := int32(s.d.event[0] >> 32)
		s.turn = s.turn[:0]
		for len(s.d.event) > 0 && int32(s.d.event[0]>>32) == place {
			var e uint64
			if e, s.d.event = pop(s.d.event, lessEvent); uint32(e) != trigger {
				s.turn = append(s.turn, partID(uint32(e)))
			}
		}
		s.carryOut(place)
	}
	s.settle()
}

// begin makes the cells ready that are soiled from the start.
func (s *sweep) begin() {
	d := s.d
	d.waiting = false
	d.noted, s.pending = d.noted[:0], s.pending[:0]
	s.at = start
	if d.node == plan.Root && s.full {
		copy(d.count, s.members) // they were counted
	}
	for _, c := range s.all {
		if s.settleLoad(c); d.node != plan.Root {
			s.tally(c, 1)
		}
		if s.part[c].first != nothing {
			s.part[c].soiled = true
			d.soiled = append(d.soiled, c)
		}
	}
	for _, c := range d.soiled {
		if !s.full {
			s.settleLoad(c)
			s.tally(c, 1)
		}
		s.part[c].cursor = nothing
		copy(s.leftOf(c), s.amountOf(c))
		s.noteChain(c)
		s.pend(c)
	}
	s.touched += int64(len(s.all) + len(d.soiled))
	if s.full {
		d.index, s.spare = s.spare, d.index
		s.layIndex()
		return
	}
	for w, set := range d.unmet {
		for ; set != 0; set &= set - 1 {
			d.event.at(int32(w<<6+bits.TrailingZeros64(set)), nothing)
		}
	}
	for _, place := range d.percents {
		if c := &s.claims[d.order[place]]; s.wanted(c) != c.want {
			d.event.at(place, nothing)
		}
	}
}

// tally counts a cell, that is something, in its groups or no longer.
func (a *Assigner) tally(c partID, sign int64) {
	if zero(a.amountOf(c)) {
		return
	}
	at := &a.part[c]
	d := &a.domains[a.domainOf[at.node]]
	for g := range d.count {
		if a.belongs(at.host, g) {
			d.count[g] += sign
		}
	}
}

// wanted is how many hosts a claim of a number of hosts wants.
func (a *Assigner) wanted(c *claim) int64 {
	r := a.ruleOf(c)
	if c.form == hosts {
		return r.Hosts
	}
	d := &a.domains[a.domainOf[a.g.Tree.Parent[c.node]]]
	n, _ := share.Scale(d.count[r.Group], r.Percent, hundred)
	return n
}

// noteChain notes the parts of a cell that has just been soiled, and which claims have to do with it from here on.
func (s *sweep) noteChain(c partID) {
	for p := s.part[c].first; p != nothing; p = s.piece[p].next {
		s.note(s.piece[p].part)
		if place := s.place(p); !s.full && place > s.at {
			s.d.event.at(place, c)
		}
		s.touched++
	}
	if s.full {
		return
	}
	h := s.part[c].host
	for _, place := range s.d.every {
		if place > s.at && s.belongs(h, s.ruleOf(&s.claims[s.d.order[place]]).Group) {
			s.d.event.at(place, nothing)
		}
	}
	for _, l := range s.d.listing(h) {
		if l.place > s.at {
			s.d.event.at(l.place, nothing)
		}
	}
}

func (s *sweep) note(p partID) {
	if s.part[p].seen != s.epoch {
		s.part[p].seen = s.epoch
		s.d.noted = append(s.d.noted, p)
	}
}

// stain soils a cell before its capacity, groups, or what is held on it change, for the next partial sweep.
func (a *Assigner) stain(c partID) {
	at := &a.part[c]
	d := &a.domains[a.domainOf[at.node]]
	if at.soiled {
		return
	}
	if !d.laid { // until here all cells are as the full sweep left them
		a.lay(d, a.cellsOf[d.node])
		d.laid = true
	}
	a.tally(c, -1)
	a.unask(d, c, start)
	at.soiled = true
	at.version++
	d.soiled = append(d.soiled, c)
	if !d.waiting {
		d.waiting = true
		a.waiting.at(a.domainOf[at.node], nothing)
	}
}

// soil makes a clean cell that a claim takes from a soiled one; of its pieces those up to a place count as taken.
func (s *sweep) soil(c partID, upTo int32) {
	at := &s.part[c]
	if !s.full {
		s.unask(s.d, c, s.at)
	}
	at.soiled = true
	at.version++
	at.cursor = nothing
	left := s.leftOf(c)
	copy(left, s.amountOf(c))
	for p := at.first; p != nothing && s.place(p) <= upTo; p = s.piece[p].next {
		at.cursor = p
		for i, v := range s.givesOf(p) {
			left[i] -= v
		}
	}
	s.d.soiled = append(s.d.soiled, c)
	s.noteChain(c)
}

// unask takes a clean cell out of what claims behind a place, which ask something of each host, have noted.
func (a *Assigner) unask(d *domain, c partID, after int32) {
	for _, place := range d.every {
		id := d.order[place]
		of := &a.claims[id]
		if place <= after || of.form != perHost || !a.belongs(a.part[c].host, a.ruleOf(of).Group) {
			continue
		}
		ask := asked(a.scratch, a.ruleOf(of).PerHost, a.amountOf(c))
		var give []int64
		for p := a.part[c].first; p != nothing; p = a.piece[p].next {
			if a.piece[p].claim == id {
				give = a.givesOf(p)
			}
		}
		for i, v := range ask {
			a.asked[int(id)*a.dims+i].sub(v)
		}
		if !zero(ask) && !slices.Equal(give, ask) {
			of.short--
		}
	}
}

// in tells whether a host is of the claim's group.
func (s *sweep) in(h int32) bool { return s.belongs(h, s.rule.Group) }

// leftAt is what is left of a cell when the claim has its turn, after what it took. Good until the next call.
func (s *sweep) leftAt(c partID) []int64 {
	switch {
	case s.part[c].soiled:
		return s.leftOf(c)
	case s.part[c].first == nothing:
		return s.amountOf(c)
	}
	return s.leftBehind(c, s.at)
}

// leftBehind is what is left of a clean cell after the claims up to a place.
func (s *sweep) leftBehind(c partID, place int32) []int64 {
	left := s.behind
	copy(left, s.amountOf(c))
	for p := s.part[c].first; p != nothing && s.place(p) <= place; p = s.piece[p].next {
		for i, v := range s.givesOf(p) {
			left[i] -= v
		}
	}
	return left
}

// coming is the first piece of a cell that is to come, and whether something of the cell was taken.
func (s *sweep) coming(c partID) (first pieceID, begun bool) {
	at := &s.part[c]
	if at.soiled {
		return s.following(c), at.cursor != nothing
	}
	first = at.first
	for first != nothing && s.place(first) <= s.at {
		first, begun = s.piece[first].next, true
	}
	return first, begun
}

// pend has the index told how a soiled cell ranks now, before it is next asked.
func (s *sweep) pend(c partID) {
	s.part[c].version++
	s.pending = append(s.pending, c)
}

// flush tells the index.
func (s *sweep) flush() {
	if len(s.pending) > blockMax && len(s.pending) > s.d.ranked()/8 {
		s.layIndex()
	}
	for _, c := range s.pending {
		if s.part[c].soiled && !zero(s.leftOf(c)) {
			s.part[c].version++ // it may be pending twice
			s.insert(s.current(s.d, c))
		}
	}
	s.pending = s.pending[:0]
}

// insert puts an entry into the index of each of its host's groups.
func (s *sweep) insert(e entry) {
	for g := range s.d.index {
		if s.belongs(s.part[e.cell].host, g) {
			s.d.index[g].insert(e)
		}
	}
}

// ranked is the number of entries of all groups.
func (d *domain) ranked() (n int) {
	for g := range d.index {
		n += d.index[g].size()
	}
	return n
}

// current is the entry of a soiled cell.
func (a *Assigner) current(d *domain, c partID) entry {
	e := entry{cell: c, version: a.part[c].version, from: start, to: end}
	e.key = a.rank(d, plan.None, c, a.following(c), a.leftOf(c), a.part[c].cursor != nothing)
	return e
}

// layIndex lays the indexes anew: in a full sweep out of all cells, else out of the entries that hold, and what is
// pending.
func (s *sweep) layIndex() {
	if s.full {
		s.lay(s.d, s.all)
		s.pending = s.pending[:0]
		return
	}
	s.unlist(s.d)
	for g := range s.d.index {
		for i := range s.d.index[g].block {
			for _, e := range s.d.index[g].block[i].entry {
				if s.part[e.cell].version == e.version {
					s.lists[g] = append(s.lists[g], e)
				}
			}
		}
	}
	for _, c := range s.pending {
		if !zero(s.leftOf(c)) {
			s.part[c].version++
			s.list = append(s.list[:0], s.current(s.d, c))
			s.sort(c)
		}
	}
	s.pending = s.pending[:0]
	s.layLists(s.d)
}

// lay lays a domain's indexes out of its cells.
func (a *Assigner) lay(d *domain, cells []partID) {
	a.unlist(d)
	for _, c := range cells {
		if a.list = a.list[:0]; !a.part[c].soiled {
			a.list = a.entries(a.list, d, c)
		} else if !zero(a.leftOf(c)) {
			a.list = append(a.list, a.current(d, c))
		}
		a.sort(c)
	}
	a.layLists(d)
}

// unlist empties the lists out of which a domain's indexes are laid; each has memory for an entry of every cell.
func (a *Assigner) unlist(d *domain) {
	for g := range d.index {
		a.lists[g] = slices.Grow(a.lists[g][:0], int(d.count[g]))
	}
}

// sort adds a cell's entries to the lists of its groups.
func (a *Assigner) sort(c partID) {
	for g := range a.group {
		if a.belongs(a.part[c].host, g) {
			a.lists[g] = append(a.lists[g], a.list...)
		}
	}
}

// layLists lays a domain's indexes out of the lists.
func (a *Assigner) layLists(d *domain) {
	for g := range d.index {
		a.lists[g] = d.index[g].lay(a.lists[g])
	}
}
