package ownership

import "slices"

// listed takes the hosts of a list.
func (s *sweep) listed(c *claim) {
	c.unmet = false
	for _, h := range c.listed {
		cell := s.cell(s.d.node, h)
		if cell == nothing || zero(s.amountOf(cell)) {
			c.unmet = true
			continue
		}
		if s.full || s.part[cell].soiled {
			s.take(cell, s.leftAt(cell))
		}
		c.unmet = c.unmet || !slices.Equal(s.has(cell), s.amountOf(cell))
	}
	s.touched += int64(len(c.listed))
}

// has is what the consumer took of a cell so far.
func (s *sweep) has(c partID) []int64 {
	sum := s.scratch
	clear(sum)
	for p := s.part[c].first; p != nothing && s.place(p) <= s.at; p = s.piece[p].next {
		if s.piece[p].claim != nothing && s.part[s.piece[p].part].node == s.node {
			add(sum, s.givesOf(p))
		}
	}
	return sum
}

// cession says in favour of whom a claim gives up an idle host of its own, where another host serves the claim as well.
type cession uint8

const (
	keeps    cession = iota
	toLister         // another child lists the host
	toBetter         // the host is closed or, where hosts count, only a part of it is open to the claim
)

// cedes is how a claim leaves a cell of which it had something, when so much of the cell is open to it.
func (s *sweep) cedes(c *claim, cell, of partID, open []int64) cession {
	switch {
	case s.part[of].busy || !c.chooses():
		return keeps
	case s.shut(s.part[cell].host) || c.form != amount && !slices.Equal(open, s.amountOf(cell)):
		return toBetter
	case c.form != amount && s.d.listedBeside(s.part[cell].host, c.node):
		return toLister
	}
	return keeps
}

// count takes a number of hosts, whole if it can. It leaves an idle one that it cedes where another serves as well.
func (s *sweep) count(c *claim) {
	c.want = s.wanted(c)
	if s.openOwn()+c.count > c.want {
		s.pull(c)
		s.ownFirst()
	}
	s.takeOwn(c, keeps)
	if c.count < c.want {
		s.fill(c, key.best)
		s.ownFirst()
		s.takeOwn(c, toLister)
		s.fill(c, key.free)
		s.takeOwn(c, toBetter)
		s.fill(c, nil)
	}
	c.unmet = c.count < c.want
}

// takeOwn takes hosts again of which the claim had something: those that it cedes in that way.
func (s *sweep) takeOwn(c *claim, what cession) {
	for _, o := range s.own {
		if c.count >= c.want || !s.in(s.part[o.cell].host) || s.took(o.cell) {
			continue
		}
		if open := s.open(o.cell); s.cedes(c, o.cell, o.part, open) == what {
			s.take(o.cell, open)
		}
	}
}

// fill takes candidates until the claim has as many hosts as it wants: those of the first ranks, that serve; all when
// serves is nil.
func (s *sweep) fill(c *claim, serves func(key) bool) {
	if c.count >= c.want {
		return
	}
	if !s.full && s.missed > 0 { // it looked in vain through all that is clean
		for _, cell := range s.ranking() {
			if c.count < c.want && !s.took(cell) && s.serves(cell, serves) {
				s.take(cell, s.leftOf(cell))
			}
		}
		return
	}
	for f := s.search(nil); c.count < c.want; {
		cell := f.next()
		if cell == nothing || !s.serves(cell, serves) {
			return
		}
		if !s.took(cell) {
			s.take(cell, s.leftAt(cell))
		}
	}
}

// serves tells whether a candidate is of the ranks that serve, of any when that is nil.
func (s *sweep) serves(cell partID, serves func(key) bool) bool {
	return serves == nil || serves(s.rankNow(cell))
}

// openOwn is of how many of its own hosts, as far as they are soiled, the claim may take something without ceding them.
func (s *sweep) openOwn() (n int64) {
	for _, o := range s.own {
		open := s.open(o.cell)
		if s.in(s.part[o.cell].host) && !zero(open) && s.cedes(&s.claims[s.id], o.cell, o.part, open) == keeps {
			n++
		}
	}
	return n
}

// pull soils the clean cells of which the claim has something, and takes it back: it has to choose among all.
func (s *sweep) pull(c *claim) {
	if s.full {
		return
	}
	for p := c.first; p != nothing; {
		after := s.piece[p].after
		cell := s.part[s.piece[p].part].up
		s.soil(cell, s.at-1)
		s.giveUp(c, p)
		p = after
	}
	s.touched += int64(len(s.own))
}

// amounts takes hosts that fit in what is missing, and with `partial` parts of hosts for the rest. Before is what
// was missing when the claim had its last turn.
func (s *sweep) amounts(c *claim, before []int64) {
	short := s.shortOf(s.id)
	if s.full {
		s.ownFirst()
	}
	grown := s.full
	for _, o := range s.own {
		s.takeOwnFitting(c, o, keeps, short)
	}
	for i, v := range short {
		grown = grown || v > before[i]
	}
	fit := func(cell partID) { s.takeFitting(cell, s.leftAt(cell), short) }
	s.candidates(grown, short, key.free, fit)
	if owing(short) {
		s.ownFirst()
		for _, o := range s.own {
			s.takeOwnFitting(c, o, toBetter, short)
		}
	}
	s.candidates(grown, short, nil, fit)
	if s.rule.Partial && owing(short) {
		s.addRests(c)
		s.cuts(c, grown, short)
	}
	c.unmet = owing(short)
}

// cuts takes parts of hosts for what an amount is missing.
func (s *sweep) cuts(c *claim, grown bool, short []int64) {
	cut := func(cell partID) { s.takeCut(cell, short) }
	own := func(what cession) {
		s.ownFirst()
		for _, o := range s.own {
			if s.in(s.part[o.cell].host) && s.cedes(c, o.cell, o.part, nil) == what {
				cut(o.cell)
			}
		}
	}
	own(keeps)
	s.candidates(grown, nil, key.free, cut)
	own(toBetter)
	s.candidates(grown, nil, nil, cut)
}

// candidates goes through the candidates of an amount that serve as long as it is short: all of them when it is shorter
// than before, else the soiled ones, for on the others it found nothing when it was as short.
func (s *sweep) candidates(all bool, fitting []int64, serves func(key) bool, visit func(partID)) {
	short := s.shortOf(s.id)
	if !owing(short) {
		return
	}
	if !all {
		for _, cell := range s.ranking() {
			if owing(short) && s.serves(cell, serves) {
				visit(cell)
			}
		}
		return
	}
	for f := s.search(fitting); owing(short); {
		cell := f.next()
		if cell == nothing || !s.serves(cell, serves) {
			return
		}
		visit(cell)
	}
}

// takeOwnFitting takes a host again of which the claim had something and that it cedes in that way, if that fits.
func (s *sweep) takeOwnFitting(c *claim, o held, what cession, short []int64) {
	if s.in(s.part[o.cell].host) && s.cedes(c, o.cell, o.part, nil) == what {
		s.takeFitting(o.cell, least(s.scratch, s.hadOf(o), s.leftOf(o.cell)), short)
	}
}

func (s *sweep) takeFitting(c partID, v, short []int64) {
	if fits(v, short) {
		s.take(c, v)
		pay(short, s.taken)
	}
}

func (s *sweep) takeCut(c partID, short []int64) {
	if v := cut(s.scratch, short, s.leftAt(c)); !zero(v) {
		s.take(c, v)
		pay(short, s.taken)
	}
}

// addRests adds to the claim's own the clean cells of which it has a piece and something is left.
func (s *sweep) addRests(c *claim) {
	c.rests = s.valid(c.rests)
	for _, r := range c.rests {
		for p := s.part[r.cell].first; p != nothing; p = s.piece[p].next {
			if s.piece[p].claim == s.id {
				s.own = append(s.own, held{r.cell, s.piece[p].part, 0})
			}
		}
	}
	s.touched += int64(len(c.rests))
}

// parts takes of each host what the rule asks.
func (s *sweep) parts(c *claim) {
	cells := s.all
	if !s.full {
		cells = append(s.cells[:0], s.d.soiled...)
		s.cells = cells
		s.byHost(cells)
	}
	for _, cell := range cells {
		if !s.in(s.part[cell].host) {
			continue
		}
		ask := asked(s.ask, s.rule.PerHost, s.amountOf(cell))
		for i, v := range ask {
			s.asked[int(s.id)*s.dims+i].add(v)
		}
		give := least(s.scratch, ask, s.leftAt(cell))
		if !slices.Equal(give, ask) {
			c.short++
		}
		s.take(cell, give)
	}
	s.touched += int64(len(cells))
}

// rest takes all that is left, in host order.
func (s *sweep) rest() {
	cells := append(s.cells[:0], s.ranking()...)
	if s.full {
		cells = cells[:0]
		f := s.search(nil)
		for cell := f.next(); cell != nothing; cell = f.next() {
			cells = append(cells, cell)
		}
	}
	s.cells = cells
	s.byHost(cells)
	for _, cell := range cells {
		s.take(cell, s.leftAt(cell))
	}
}
