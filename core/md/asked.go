package md

import (
	"math"
	"math/bits"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// asked is a unit of a shape and requirement next to the parcels.
type asked struct {
	size  []int64
	need  []int    // dimensions in which size is not zero
	rung  []*rung  // as need: rows that have less
	count int      // rows that are open and that the requirement selects
	mask  []uint64 // those rows
	lacks []int32  // words of it that lack rows
	of    cluster.NeedID
	seen  int64         // sight.round when mask was laid
	round int64         // how often one was: what goes by it is of one round
	side  int           // which of two who judge
	borne []bearing     // that were found in this cycle
	sums  [][]sums      // by dimension, then place of a grace
	rows  []int         // by place of a grace: rows of mask that are within it; -1: not counted
	total map[int]tally // by place of a grace: of all rows through the public pool
	fits  []fitting     // where a unit fits through the public pool
	found bool          // whether fits was looked for
}

// fitting is the rows of a word with room for a unit.
type fitting struct {
	word int32
	rows uint64
}

// lay lays a unit next to the parcels, with rungs that are laid already, nil: that are not. O(dimensions), and O(parcels) for a requirement, and for
// each size that is new.
func (m *Planner) lay(a *asked, key ask, rungs []*rung) {
	v := &m.sight
	if a.seen != v.round || a.of != key.need {
		a.seen, a.round, a.of, a.rows = v.round, a.round+1, key.need, a.rows[:0]
		a.mask = append(a.mask[:0], v.open...)
		if set, _ := m.desk.Selected(key.need); set != nil {
			for row, k := range v.parcel {
				a.mask[row>>6] &^= (set[k>>6]>>(uint(k)&63)&1 ^ 1) << (uint(row) & 63)
			}
		}
		a.count, a.lacks = popcount(a.mask), a.lacks[:0]
		for w, rows := range a.mask {
			if rows != v.every[w] {
				a.lacks = append(a.lacks, int32(w))
			}
		}
	}
	if a.total == nil {
		a.total = map[int]tally{}
	}
	clear(a.total)
	a.fits, a.found = a.fits[:0], false
	a.size, a.need, a.rung = m.s.Shape.Size(key.shape), a.need[:0], append(a.rung[:0], rungs...)
	if rungs == nil {
		v.ask++
	}
	for d, u := range a.size {
		if u > 0 {
			if a.need = append(a.need, d); rungs == nil {
				a.rung = append(a.rung, v.rung(d, u))
			}
		}
	}
}

// without is how many rows there are beside blocked ones.
func (a *asked) without(blocked []uint64) (n int) {
	for w, mask := range a.mask {
		n += bits.OnesCount64(mask &^ blocked[w])
	}
	return n
}

// within is how many rows there are within a grace.
func (a *asked) within(g *grace) int {
	if g.rows == nil {
		return a.count
	}
	for len(a.rows) <= g.place {
		a.rows = append(a.rows, -1)
	}
	if a.rows[g.place] < 0 {
		n := 0
		for w, mask := range a.mask {
			n += bits.OnesCount64(mask & g.rows[w])
		}
		a.rows[g.place] = n
	}
	return a.rows[g.place]
}

// fitting is the rows of a word that have room for a unit, as a tier sees them; nil: as their owners do.
func (a *asked) fitting(t *tier, w int32) uint64 {
	fit, place := a.mask[w], t.place(w)
	for _, r := range a.rung {
		if fit &^= r.below[w]; place >= 0 {
			fit &^= r.tight[t.depth].below[place]
		}
		if fit == 0 {
			break
		}
	}
	return fit
}

// tally is how many of some rows there are: of the mask and within a grace, of these with room and without in each dimension needed, and
// with room but not within the grace.
type tally struct {
	rows, fit, beyond int
	below             [plan.DimensionsMax]int // as asked.need
}

func (t *tally) add(o *tally, sign int) {
	t.rows, t.fit, t.beyond = t.rows+sign*o.rows, t.fit+sign*o.fit, t.beyond+sign*o.beyond
	for i, n := range o.below {
		t.below[i] += sign * n
	}
}

// tally adds up the rows of a span, as a tier sees them; nil: as their owners do. Blocked, unless nil, are left aside.
// O(rows ÷ 64 × dimensions).
func (a *asked) tally(of *tier, o span, g *grace, blocked []uint64) (t tally) {
	o.each(func(w int32, mask uint64) {
		if mask &= a.mask[w]; blocked != nil {
			mask &^= blocked[w]
		}
		if mask == 0 {
			return
		}
		fit := a.fitting(of, w) & mask
		if g.rows != nil {
			t.beyond += bits.OnesCount64(fit &^ g.rows[w])
			mask &= g.rows[w]
			fit &= mask
		}
		t.rows += bits.OnesCount64(mask)
		t.fit += bits.OnesCount64(fit)
		if fit == mask {
			return
		}
		place := of.place(w)
		for i, r := range a.rung {
			below := r.below[w]
			if place >= 0 {
				below |= r.tight[of.depth].below[place]
			}
			t.below[i] += bits.OnesCount64(below & mask)
		}
	})
	return t
}

// all is the tally of all rows through the public pool.
func (m *Planner) all(a *asked, g *grace) (t tally) {
	v := &m.sight
	t.rows = a.within(g)
	for i, r := range a.rung {
		t.below[i] = v.totalBelow(r, a, g)
	}
	if !a.found {
		a.found = true
		a.findFits(v, &t)
	}
	for _, f := range a.fits {
		in := f.rows
		if g.rows != nil {
			in &= g.rows[f.word]
		}
		t.fit, t.beyond = t.fit+bits.OnesCount64(in), t.beyond+bits.OnesCount64(f.rows&^in)
	}
	return t
}

// findFits finds where a unit fits through the public pool. Most rows that it does not fit have less of what the tally says that most have
// less of: that is looked at first.
func (a *asked) findFits(v *sight, t *tally) {
	first, most := []uint64(nil), -1
	for i, r := range a.rung {
		if t.below[i] > most {
			first, most = r.below, t.below[i]
		}
	}
	for w, mask := range a.mask {
		if most >= 0 && mask&^first[w] == 0 {
			continue
		}
		if fit := a.fitting(&v.tier[0], int32(w)); fit != 0 {
			a.fits = append(a.fits, fitting{int32(w), fit})
		}
	}
}

// span is the rows of parcels on which a leaf draws through the pool of one consumer: from … to, without the hole.
type span struct {
	top              plan.Node
	depth            int32
	from, to         int32
	holeFrom, holeTo int32
}

// each calls f for the words that have rows of the span, with those.
func (o *span) each(f func(w int32, rows uint64)) {
	for _, part := range [2][2]int32{{o.from, o.holeFrom}, {o.holeTo, o.to}} {
		from, to := part[0], part[1]
		if from >= to {
			continue
		}
		for w := from >> 6; w <= (to-1)>>6; w++ {
			rows := ^uint64(0)
			if w == from>>6 {
				rows &^= 1<<(uint(from)&63) - 1
			}
			if w == (to-1)>>6 {
				rows &= ^uint64(0) >> (63 - uint(to-1)&63)
			}
			f(w, rows)
		}
	}
}

// eachSpan calls f for what a leaf may draw on: its own parcels, then from pool to pool up to the public one.
func (m *Planner) eachSpan(leaf plan.Node, f func(o span)) {
	from, to, _ := m.parcelRange(leaf)
	if from < to {
		f(span{leaf, m.policy.Depth[leaf], from, to, to, to})
	}
	for below, n := leaf, m.policy.Parent[leaf]; n != plan.None; below, n = n, m.policy.Parent[n] {
		o := span{top: n, depth: m.policy.Depth[n]}
		o.holeFrom, _, o.holeTo = m.parcelRange(below)
		if o.from, _, o.to = m.parcelRange(n); n == plan.Root {
			o.to = int32(len(m.sight.parcel))
		}
		if o.to-o.from > o.holeTo-o.holeFrom {
			f(o)
		}
	}
}

// sum adds up the room of a dimension on a span's rows, until there is as much as wanted.
func (v *sight) sum(a *asked, o span, g *grace, blocked []uint64, t *tier, d int, want int64) (sum int64) {
	o.each(func(w int32, mask uint64) {
		if blocked != nil {
			mask &^= blocked[w]
		}
		if sum < want {
			sum = share.Add(sum, v.sumWord(a, w, mask, g, t, d, want-sum))
		}
	})
	return sum
}

// sumWord is sum for rows of a word; no room counts for more than the most.
func (v *sight) sumWord(a *asked, w int32, mask uint64, g *grace, t *tier, d int, most int64) (sum int64) {
	if mask &= a.mask[w] & v.some[d][w]; g.rows != nil {
		mask &= g.rows[w]
	}
	var tight uint64
	var first int
	if place := t.place(w); place >= 0 {
		tight, first = t.isTight[place], int(t.first[place])
	}
	for ; mask != 0; mask &= mask - 1 {
		row := w<<6 + int32(bits.TrailingZeros64(mask))
		room := v.room[d][row]
		if bit := mask & -mask; tight&bit != 0 {
			room = max(0, t.left[d][first+bits.OnesCount64(tight&(bit-1))])
		}
		sum = share.Add(sum, min(room, most))
	}
	return sum
}

// sumSome is sum, but of the span's first rows only; of most units there is as much as wanted on few.
func (v *sight) sumSome(a *asked, o span, g *grace, t *tier, d int, want int64) int64 {
	o.holeFrom, o.to = min(o.holeFrom, o.from+summed), min(o.to, o.holeTo+summed)
	return v.sum(a, o, g, nil, t, d, want)
}

// summed is how many rows on either side of a hole are looked at before all are.
const summed = 1 << 10

// sums are the rooms of a dimension on the rows of all words before one, as the public pool sees them: of rows that are asked about and within a grace.
type sums struct {
	round  int64
	before []int64 // by word
}

// most is what a room counts for at most in sums: all of them together are a number. It matters to no unit that takes at most so much.
func (v *sight) most() int64 { return math.MaxInt64 / int64(len(v.parcel)+1) }

// sumAround is sum for what the public pool is to a leaf: all rows but those of the hole. O(rows of a word), and O(parcels) for the first of a
// requirement, dimension and grace.
func (v *sight) sumAround(a *asked, o span, g *grace, d int) (sum int64) {
	t := &v.tier[0]
	for len(a.sums) <= d {
		a.sums = append(a.sums, nil)
	}
	a.sums[d] = resized(a.sums[d], max(len(a.sums[d]), g.place+1))
	s := &a.sums[d][g.place]
	if s.round != a.round {
		s.round, s.before = a.round, append(s.before[:0], 0)
		for w := range int32(len(a.mask)) {
			s.before = append(s.before, s.before[w]+v.sumWord(a, w, ^uint64(0), g, t, d, v.most()))
		}
	}
	upTo := func(row int32) int64 {
		w := row >> 6
		if row&63 == 0 {
			return s.before[w]
		}
		return s.before[w] + v.sumWord(a, w, 1<<(uint(row)&63)-1, g, t, d, v.most())
	}
	return s.before[len(a.mask)] - upTo(o.holeTo) + upTo(o.holeFrom)
}
