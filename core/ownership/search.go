package ownership

import (
	"slices"

	"github.com/stintd/stint/core/plan"
)

// search goes through the candidates of a claim, the best first. While it does, its claim may take of
// the cells that it gave; of others nothing may change.
type search struct {
	s     *sweep
	block int
	entry int
	own   []entry // a heap: cells that were ranked for this claim, not for strangers
	short []int64 // what an amount is missing; nil: any host will do
}

func lessEntry(a, b entry) bool { return a.compare(b.key) < 0 }

// search begins a search for the claim that has its turn. Cells of which the consumer itself has something to come, and
// those that it lists, rank otherwise for it than for strangers: these are ranked first. O(what is pending + those).
func (s *sweep) search(short []int64) *search {
	s.flush()
	s.searches++
	f := &s.finder
	*f = search{s: s, own: f.own[:0], short: short, entry: nothing}
	for id := s.base[s.node]; id < s.base[s.node+1]; id++ {
		c := &s.claims[id]
		if c.place > s.at && s.overlap(s.ruleOf(c).Group, s.rule.Group) {
			for p := c.first; p != nothing; p = s.piece[p].after {
				f.rank(s.part[s.piece[p].part].up)
			}
		}
		for _, h := range c.listed {
			if cell := s.cell(s.d.node, h); cell != nothing {
				f.rank(cell)
			}
		}
	}
	for p := s.unclaimed[s.node]; p != nothing; p = s.piece[p].after {
		f.rank(s.part[s.piece[p].part].up)
	}
	return f
}

// rank ranks a cell for this claim, if something of it is left.
func (f *search) rank(c partID) {
	s := f.s
	if s.part[c].special == s.searches {
		return
	}
	s.part[c].special = s.searches
	s.touched++
	if left := s.leftAt(c); s.in(s.part[c].host) && !zero(left) {
		f.own = push(f.own, entry{key: s.rankNow(c), cell: c}, lessEntry)
	}
}

// next is the best candidate that was not given yet, nothing when there is none. With an amount, some that do
// not fit in what is missing are passed over.
func (f *search) next() partID {
	for {
		e, ok := f.peek()
		if len(f.own) > 0 && (!ok || f.own[0].compare(e.key) < 0) {
			e, f.own = pop(f.own, lessEntry)
			return e.cell
		}
		if !ok {
			return nothing
		}
		f.entry++
		f.s.touched++
		switch at := &f.s.part[e.cell]; {
		case at.version != e.version || at.special == f.s.searches:
		case f.s.at < e.from || f.s.at >= e.to:
		case e.to == bounded:
			f.rank(e.cell)
		default:
			return e.cell
		}
	}
}

// peek is the next entry of the index, as it stands.
func (f *search) peek() (e entry, ok bool) {
	s, x := f.s, &f.s.d.index[f.s.rule.Group]
	for f.block < len(x.block) {
		if f.entry == nothing {
			if f.skips(&x.block[f.block]) {
				f.block++
				continue
			}
			if !x.sift(f.block, &s.store) {
				continue
			}
			f.entry = 0
		}
		if b := &x.block[f.block]; f.entry < len(b.entry) {
			return b.entry[f.entry], true
		}
		f.block, f.entry = f.block+1, nothing
	}
	return e, false
}

// skips tells whether none of a block's entries can be of use.
func (f *search) skips(b *block) bool {
	s := f.s
	s.skipped++
	if b.from > s.at || b.to <= s.at {
		return true
	}
	if f.short == nil {
		return false
	}
	if !b.known {
		s.lowest(b)
	}
	for i, want := range f.short {
		if want != plan.Unlimited && b.low[i] > want {
			return true
		}
	}
	return false
}

// lowest finds of how much of each dimension none of a block's cells has less left.
func (s *sweep) lowest(b *block) {
	b.low, b.known = append(b.low[:0], s.scratch...), true
	for i := range b.low {
		b.low[i] = 1<<63 - 1
	}
	for i := range b.entry {
		e := &b.entry[i]
		if s.part[e.cell].version != e.version {
			continue
		}
		left := s.leftOf(e.cell)
		if !s.part[e.cell].soiled {
			at := e.from
			if e.to == bounded {
				at = end
			}
			left = s.leftBehind(e.cell, at)
		}
		for d, v := range left {
			b.low[d] = min(b.low[d], v)
		}
	}
	s.touched += int64(len(b.entry))
}

// ranking are the soiled cells of the claim's group of which something is left, the best first. All other cells
// are as they were when the claim looked through them in vain.
func (s *sweep) ranking() []partID {
	s.list = s.list[:0]
	for _, c := range s.d.soiled {
		if s.in(s.part[c].host) && !zero(s.leftOf(c)) {
			s.list = append(s.list, entry{key: s.rankNow(c), cell: c})
		}
	}
	s.touched += int64(len(s.d.soiled))
	slices.SortFunc(s.list, func(a, b entry) int { return a.compare(b.key) })
	s.cells = s.cells[:0]
	for _, e := range s.list {
		s.cells = append(s.cells, e.cell)
	}
	return s.cells
}

// rankNow is the key of a cell for the consumer whose claim has its turn.
func (s *sweep) rankNow(c partID) key {
	first, begun := s.coming(c)
	return s.Assigner.rank(s.d, s.node, c, first, s.leftAt(c), begun)
}
