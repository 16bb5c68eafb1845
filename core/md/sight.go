package md

import (
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
	"github.com/stintd/stint/vecpack"
)

// sight is the plan's parcels as reasons of shortfalls see them, in rows: those with owners in the order of owners.parcel, so that what
// a consumer and those below it own is a range of rows, then the others. It is good for one cycle.
type sight struct {
	parcel   []cluster.ParcelID // by row
	row      []int32            // by ParcelID
	owned    int32              // rows of parcels with owners
	open     []uint64           // bitset of rows
	room     [][]int64          // by dimension, then row: what is free beside what sets keep and what is missing on the host
	some     [][]uint64         // by dimension: rows with room
	tier     []tier             // by depth of the consumer through whose pool parcels are drawn on
	selected [][]uint64         // by NeedID
}

// tier is the parcels as those see them who draw on them through pools of one depth.
type tier struct {
	tight   []int32   // rows that lenders' reserves leave less room on, ascending
	left    [][]int64 // by dimension, then place in tight: that room
	isTight []uint64
	least   []int64            // by Node, for owners of that depth and more: the grace of their parcels
	within  map[int64][]uint64 // by reclaim_grace: rows whose grace it is within
}

// laySight looks at the parcels as they are after granting. O(parcels × dimensions + consumers × depth).
func (m *Planner) laySight() {
	v, p := &m.sight, &m.p.Parcels
	n := p.Len()
	v.parcel, v.row = append(v.parcel[:0], m.owners.parcel...), resized(v.row, n)
	if !p.Owned {
		v.parcel = v.parcel[:0]
	}
	v.owned = int32(len(v.parcel))
	for k := range cluster.ParcelID(n) {
		if p.Owner[k] == cluster.NoID {
			v.parcel = append(v.parcel, k)
		}
	}
	v.open, v.selected = zeroed(v.open, p.Words()), v.selected[:0]
	for row, k := range v.parcel {
		v.row[k] = int32(row)
		if p.IsOpen(k) {
			v.open[row>>6] |= 1 << (uint(row) & 63)
		}
	}
	v.room, v.some = resized(v.room, len(p.Free)), resized(v.some, len(p.Free))
	for d := range v.room {
		v.room[d], v.some[d] = resized(v.room[d], n), zeroed(v.some[d], p.Words())
		for row, k := range v.parcel {
			room := p.Available(d, k)
			if v.room[d][row] = room; room > 0 {
				v.some[d][row>>6] |= 1 << (uint(row) & 63)
			}
		}
	}
	v.tier = v.tier[:0]
	for depth := int32(0); depth == 0 || int(depth) < len(m.pools.restOf); depth++ {
		v.tier = append(v.tier, m.layTier(depth))
	}
}

// layTier looks at the parcels through the pools of a depth.
func (m *Planner) layTier(depth int32) tier {
	v, p, tree := &m.sight, &m.p.Parcels, &m.policy.Tree
	t := tier{within: map[int64][]uint64{}, least: make([]int64, m.policy.Len()), left: make([][]int64, len(p.Free))}
	for n := range plan.Node(m.policy.Len()) {
		switch at := tree.Depth[n]; {
		case at == depth:
			t.least[n] = m.poolGrace(n)
		case at > depth:
			t.least[n] = min(t.least[tree.Parent[n]], unlessSet(m.set.LendGraceUS[n]))
		}
	}
	if m.reserve.first == nil {
		return t
	}
	t.isTight = make([]uint64, p.Words())
	vector := make([]int64, len(p.Free))
	for row, k := range v.parcel[:v.owned] {
		top := m.s.NodeOf[p.Owner[k]]
		for tree.Depth[top] > depth {
			top = tree.Parent[top]
		}
		if tree.Depth[top] == depth && m.reserved(k, top) {
			m.spare(k, top, false, vector)
			t.tight = append(t.tight, int32(row))
			t.isTight[row>>6] |= 1 << (uint(row) & 63)
			for d, left := range vector {
				t.left[d] = append(t.left[d], min(left, v.room[d][row]))
			}
		}
	}
	return t
}

// withinGrace is the rows that leaves of a reclaim_grace may have through pools of a depth; nil: all.
func (m *Planner) withinGrace(depth int32, us int64) []uint64 {
	t, v := &m.sight.tier[depth], &m.sight
	if set, ok := t.within[us]; ok {
		return set
	}
	set, all := make([]uint64, len(v.open)), true
	allow := func(from, to int32, least int64) {
		if us > least {
			all = false
			return
		}
		for row := from; row < to; row++ {
			set[row>>6] |= 1 << (uint(row) & 63)
		}
	}
	for n := range plan.Node(m.policy.Len()) {
		if from, to, _ := m.parcelRange(n); from < to && m.policy.Depth[n] >= depth {
			allow(from, to, t.least[n])
		}
	}
	if depth == 0 {
		allow(v.owned, int32(len(v.parcel)), t.least[plan.Root])
	}
	if all {
		set = nil
	}
	t.within[us] = set
	return set
}

// asked is a unit of a shape and requirement next to the parcels, as bitsets of rows.
type asked struct {
	size  []int64
	need  []int           // dimensions in which size is not zero
	mask  []uint64        // rows that are open and that the requirement selects
	count int             // of them
	at    []marks         // by depth of the pool; the last for a leaf's own parcels, of which reserves take nothing
	total map[int64]tally // by reclaim_grace: of all rows through the public pool
}

// own is the marks of rows for who owns them.
func (a *asked) own() *marks { return &a.at[len(a.at)-1] }

// without is how many rows there are beside blocked ones.
func (a *asked) without(blocked []uint64) (n int) {
	for w, mask := range a.mask {
		n += bits.OnesCount64(mask &^ blocked[w])
	}
	return n
}

// marks says of rows whether a unit fits, and in which dimension it does not.
type marks struct {
	fit   []uint64
	below [][]uint64 // as asked.need
}

// lay lays a unit next to the parcels. O(parcels × dimensions).
func (m *Planner) lay(key ask) *asked {
	v, a := &m.sight, &m.reason.asked
	a.size, a.need, a.total = m.s.Shape.Size(key.shape), a.need[:0], map[int64]tally{}
	for d, u := range a.size {
		if u > 0 {
			a.need = append(a.need, d)
		}
	}
	a.mask = append(a.mask[:0], v.open...)
	for w, set := range m.selectedRows(key.need) {
		a.mask[w] &= set
	}
	a.count = popcount(a.mask)
	a.at = resized(a.at, len(v.tier)+1)
	base := a.own()
	base.fit, base.below = append(base.fit[:0], a.mask...), resized(base.below, len(a.need))
	for i, d := range a.need {
		base.below[i] = resized(base.below[i], len(a.mask))
		vecpack.Below(base.below[i], a.mask, v.room[d], a.size[d])
		for w, set := range base.below[i] {
			base.fit[w] &^= set
		}
	}
	for depth := range v.tier {
		if t := &v.tier[depth]; len(t.tight) > 0 {
			a.at[depth].tighten(base, t, a)
		} else {
			a.at[depth] = *base
		}
	}
	return a
}

// tighten makes the marks others, but for rows on which reserves leave less.
func (b *marks) tighten(base *marks, t *tier, a *asked) {
	b.fit, b.below = append([]uint64(nil), base.fit...), make([][]uint64, len(a.need))
	for i := range a.need {
		b.below[i] = append([]uint64(nil), base.below[i]...)
	}
	for place, row := range t.tight {
		w, bit := row>>6, uint64(1)<<(uint(row)&63)
		if a.mask[w]&bit == 0 {
			continue
		}
		for i, d := range a.need {
			if t.left[d][place] < a.size[d] {
				b.below[i][w] |= bit
				b.fit[w] &^= bit
			}
		}
	}
}

// selectedRows is the rows that a requirement selects, nil for none.
func (m *Planner) selectedRows(need cluster.NeedID) []uint64 {
	set, _ := m.desk.Selected(need)
	if set == nil {
		return nil
	}
	v := &m.sight
	for int(need) >= len(v.selected) {
		v.selected = append(v.selected, nil)
	}
	if v.selected[need] == nil {
		rows := make([]uint64, len(v.open))
		for row, k := range v.parcel {
			rows[row>>6] |= set[k>>6] >> (uint(k) & 63) & 1 << (uint(row) & 63)
		}
		v.selected[need] = rows
	}
	return v.selected[need]
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

// tally adds up the rows of a span. within nil: all are; blocked, unless nil, are left aside. O(rows ÷ 64 × dimensions).
func (a *asked) tally(b *marks, o span, within, blocked []uint64) (t tally) {
	o.each(func(w int32, mask uint64) {
		if mask &= a.mask[w]; blocked != nil {
			mask &^= blocked[w]
		}
		if mask == 0 {
			return
		}
		fit := b.fit[w] & mask
		if within != nil {
			t.beyond += bits.OnesCount64(fit &^ within[w])
			mask &= within[w]
			fit &= mask
		}
		t.rows += bits.OnesCount64(mask)
		t.fit += bits.OnesCount64(fit)
		if fit == mask {
			return
		}
		for i, below := range b.below {
			t.below[i] += bits.OnesCount64(below[w] & mask)
		}
	})
	return t
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
func (v *sight) sum(a *asked, o span, within, blocked []uint64, t *tier, d int, want int64) (sum int64) {
	o.each(func(w int32, mask uint64) {
		if mask &= a.mask[w] & v.some[d][w]; within != nil {
			mask &= within[w]
		}
		if blocked != nil {
			mask &^= blocked[w]
		}
		for ; mask != 0 && sum < want; mask &= mask - 1 {
			row := w<<6 + int32(bits.TrailingZeros64(mask))
			room := v.room[d][row]
			if t != nil && t.isTight != nil && t.isTight[w]&(mask&-mask) != 0 {
				place, _ := slices.BinarySearch(t.tight, row)
				room = max(0, t.left[d][place])
			}
			sum = share.Add(sum, room)
		}
	})
	return sum
}
