package md

import (
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/vecpack"
)

// ladder is the sizes of a dimension that units that are short take, ascending: shapes share them, so that there are far fewer than asks.
type ladder struct {
	size []int64
	rung []*rung
}

// rung is the rows with less room than one size, kept from cycle to cycle: what is free moves a row past few rungs.
type rung struct {
	size  int64
	used  int64    // the last ask that took it
	below []uint64 // bitset of rows
	rows  int      // how many they are
	tight []narrow // by depth of a tier
	among [2]among // for each of two who judge
}

// among is how many of a rung's rows are asked about, through the public pool.
type among struct {
	round int64 // asked.round, of which they are
	total []int // by place of a grace; -1: not counted
}

// narrow is the tight rows of a tier with less room than a size, in the tier's words.
type narrow struct {
	version int64 // of the tier
	below   []uint64
}

// lastBelow limits the memory of rungs that is kept: beyond it those that were not used for longest go. What one ask needs always stays.
const lastBelow = 64 << 20 / 8 // words

// find gives the place of the first rung with at least a size.
func (l *ladder) find(size int64) int {
	at, _ := slices.BinarySearch(l.size, size)
	return at
}

// move says that the room of a row was so much and is now another.
func (l *ladder) move(w int32, bit uint64, was, is int64) {
	if was > is {
		for i := l.find(is + 1); i < len(l.size) && l.size[i] <= was; i++ { // sizes over is
			l.rung[i].below[w] |= bit
			l.rung[i].rows++
		}
		return
	}
	for i := l.find(was + 1); i < len(l.size) && l.size[i] <= is; i++ {
		l.rung[i].below[w] &^= bit
		l.rung[i].rows--
	}
}

// moveTight is move for a tight row of a tier.
func (l *ladder) moveTight(t *tier, w int32, bit uint64, was, is int64) {
	for i := l.find(min(was, is) + 1); i < len(l.size) && l.size[i] <= max(was, is); i++ {
		r := l.rung[i]
		if int(t.depth) >= len(r.tight) || r.tight[t.depth].version != t.version {
			continue
		}
		if is < r.size {
			r.tight[t.depth].below[t.at[w]] |= bit
		} else {
			r.tight[t.depth].below[t.at[w]] &^= bit
		}
	}
}

// rung gives the rows with less than a size of a dimension, as of laySight. It is good until the next ask. O(parcels) for a size that is not known.
func (v *sight) rung(d int, size int64) *rung {
	l := &v.ladder[d]
	at := l.find(size)
	if at == len(l.size) || l.size[at] != size {
		for v.words+len(v.open) > lastBelow && v.forget() {
			at = l.find(size)
		}
		r := &rung{size: size, below: make([]uint64, len(v.open))}
		vecpack.Below(r.below, v.every, v.room[d], size)
		r.rows = popcount(r.below)
		l.size, l.rung = slices.Insert(l.size, at, size), slices.Insert(l.rung, at, r)
		v.words += len(v.open)
	}
	r := l.rung[at]
	r.used = v.ask
	v.tighten(r, d)
	return r
}

// isBare tells whether rooms are laid, but no rungs.
func (m *Planner) isBare() bool {
	v := &m.sight
	for d := range v.ladder {
		if len(v.ladder[d].size) > 0 {
			return false
		}
	}
	return v.known && m.isLaid()
}

// layRungs lays those that shapes take of which anything is outstanding, where so much is held, unless they are too many to be kept. It goes by rooms as
// they are laid. O(parcels × dimensions × log sizes + sizes × parcels ÷ 64).
func (m *Planner) layRungs(held []int64) {
	v, u := &m.sight, &m.s.Sub
	seen, sizes := make([]bool, m.s.Shape.Len()), make([][]int64, len(v.ladder))
	for sub, wanted := range u.Wanted {
		if seen[u.Shape[sub]] || wanted <= held[sub] || u.Plan[sub] != m.p.Index || u.Alloc[sub] == cluster.NoID || u.Orphan[sub] {
			continue
		}
		seen[u.Shape[sub]] = true
		for d, size := range m.s.Shape.Size(u.Shape[sub]) {
			if size > 0 {
				sizes[d] = append(sizes[d], size)
			}
		}
	}
	for d, list := range sizes {
		slices.Sort(list)
		if list = slices.Compact(list); len(list)*len(v.open) <= lastBelow-v.words {
			v.layLadder(d, list)
		}
	}
}

// layLadder lays all rungs of a dimension that has none, of sizes in order: a row is found its place among them, and is on the rung there and those above.
func (v *sight) layLadder(d int, sizes []int64) {
	l, words := &v.ladder[d], len(v.open)
	l.size, l.rung = sizes, make([]*rung, len(sizes))
	for i, size := range sizes {
		l.rung[i] = &rung{size: size, below: make([]uint64, words)}
	}
	v.words += len(sizes) * words
	for row, room := range v.room[d] {
		if i := l.find(room + 1); i < len(sizes) {
			l.rung[i].below[row>>6] |= 1 << (uint(row) & 63)
		}
	}
	for i, r := range l.rung {
		if i > 0 {
			for w, rows := range l.rung[i-1].below {
				r.below[w] |= rows
			}
		}
		r.rows = popcount(r.below)
	}
}

// tighten brings what a rung says of tight rows up to tiers whose rows are others than before.
func (v *sight) tighten(r *rung, d int) {
	r.tight = resized(r.tight, max(len(r.tight), len(v.tier)))
	for depth := range v.tier {
		t, n := &v.tier[depth], &r.tight[depth]
		if len(t.tight) == 0 || n.version == t.version {
			continue
		}
		v.words += len(t.isTight) - len(n.below)
		n.version, n.below = t.version, zeroed(n.below, len(t.isTight))
		for place, row := range t.tight {
			if t.left[d][place] < r.size {
				n.below[t.at[row>>6]] |= 1 << (uint(row) & 63)
			}
		}
	}
}

// forget drops the rung that was not used for longest, unless the ask at hand needs it; it tells whether there was one.
func (v *sight) forget() bool {
	dimension, place := -1, 0
	for d, l := range v.ladder {
		for i, r := range l.rung {
			if r.used < v.ask && (dimension < 0 || r.used < v.ladder[dimension].rung[place].used) {
				dimension, place = d, i
			}
		}
	}
	if dimension < 0 {
		return false
	}
	l := &v.ladder[dimension]
	r := l.rung[place]
	v.words -= len(r.below)
	for i := range r.tight {
		v.words -= len(r.tight[i].below)
	}
	l.size, l.rung = slices.Delete(l.size, place, place+1), slices.Delete(l.rung, place, place+1)
	return true
}

// totalBelow is how many of all rows asked about, that are within a grace, have less than a rung's size through the public pool.
func (v *sight) totalBelow(r *rung, a *asked, g *grace) (n int) {
	mask, known := a.mask, &r.among[a.side]
	if known.round != a.round {
		known.round, known.total = a.round, known.total[:0]
	}
	for len(known.total) <= g.place {
		known.total = append(known.total, -1)
	}
	if known.total[g.place] >= 0 {
		return known.total[g.place]
	}
	if n = r.rows; g.rows == nil && 4*len(a.lacks) < len(mask) { // nearly all are asked about
		for _, w := range a.lacks {
			n -= bits.OnesCount64(r.below[w] &^ mask[w])
		}
	} else {
		n = r.count(mask, g)
	}
	t := &v.tier[0]
	for place, w := range t.word { // what only reserves leave less on
		rows := r.tight[0].below[place] &^ r.below[w] & mask[w]
		if g.rows != nil {
			rows &= g.rows[w]
		}
		n += bits.OnesCount64(rows)
	}
	known.total[g.place] = n
	return n
}

// count is how many rows of a mask, that are within a grace, have less than the size. O(rows ÷ 64).
func (r *rung) count(mask []uint64, g *grace) (n int) {
	for w, rows := range mask {
		if rows &= r.below[w]; g.rows != nil {
			rows &= g.rows[w]
		}
		n += bits.OnesCount64(rows)
	}
	return n
}
