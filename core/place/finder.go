package place

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/vecpack"
)

// Finder finds the parcel for the next unit of one size, among the parcels that a
// requirement allows. It is good for one grant stage: while granting, free room
// only falls, so what did not fit once never fits again and the finder's cursors
// only go forward. Parcels that come into a class behind the cursor, because
// others filled them, are told by the field's log and kept in a heap.
type Finder struct {
	field *Field
	*form
	rows      *sorted  // what it looks among: the field's parcels, or the items of a lot
	lot       *Lot     // whose; nil: the field's
	allowed   []uint64 // bitset of rows, nil: all
	order     []cluster.ParcelID
	from, end int                     // no row before from is allowed, nor one behind so many words
	next      int                     // in order
	gained    int                     // of the field, when next was last set back
	cursor    []int32                 // by rank of a class: place of its shape × fullnesses + fullness
	live      [classesMax / 64]uint64 // bitset of ranks: the class has rows that the cursor has not passed
	late      []uint64                // heap of rank<<32 | row behind the cursor
	seen      int                     // of the rows' log
	best      int32                   // the row that Find said last
	bestClass int16
}

// Reset makes the finder look for a unit size anew. allowed is a bitset of the
// parcels that may be used (nil: all); Forbid clears bits in it. order, unless
// nil, lists the parcels in the order of preference instead of the field's.
func (q *Finder) Reset(f *Field, size []int64, allowed []uint64, order []cluster.ParcelID) {
	q.reset(f, f.form(size), allowed, order)
}

// reset is Reset for a unit that the field has seen.
func (q *Finder) reset(f *Field, unit *form, allowed []uint64, order []cluster.ParcelID) {
	q.field, q.rows, q.lot = f, &f.sorted, nil
	q.look(unit, allowed, order)
}

// look readies the finder for the rows that it has.
func (q *Finder) look(unit *form, allowed []uint64, order []cluster.ParcelID) {
	f := q.field
	q.form, q.allowed, q.order, q.next = unit, allowed, order, 0
	q.late, q.seen, q.live, q.best = q.late[:0], len(q.rows.log), [classesMax / 64]uint64{}, cluster.NoID
	q.from, q.end = 0, q.rows.words()
	if q.unit.never || !q.byClass() {
		return
	}
	q.cursor = resize(q.cursor, f.shapes*fullnesses)
	clear(q.cursor)
	for c, n := range q.rows.count[:f.shapes*fullnesses] {
		if n > 0 {
			r := q.rankOf(int16(c))
			q.live[r>>6] |= 1 << (r & 63)
		}
	}
}

// byClass tells whether the finder goes through the classes of its rows; else it goes by the order or the tree of parcels.
func (q *Finder) byClass() bool { return q.order == nil && q.field.placement != plan.Balanced }

// parcel is the parcel of a row.
func (q *Finder) parcel(row int32) cluster.ParcelID {
	if q.lot == nil || row == cluster.NoID {
		return cluster.ParcelID(row)
	}
	return q.lot.item[row].Parcel
}

// Forbid takes a parcel out of those that may be used. The finder must have been
// given a bitset of its own.
func (q *Finder) Forbid(k cluster.ParcelID) { q.allowed[k>>6] &^= 1 << (uint(k) & 63) }

// Find is the parcel that the next unit goes to, NoID when it fits nowhere.
func (q *Finder) Find() cluster.ParcelID {
	switch {
	case q.unit.never:
		return cluster.NoID
	case q.order != nil:
		return q.inOrder()
	case q.field.placement == plan.Balanced:
		return q.field.tree.find(q)
	}
	if !q.catchUp() && q.best != cluster.NoID && q.rows.class[q.best] == q.bestClass && q.has(q.best) {
		return q.parcel(q.best) // nothing better came, and it is what it was
	}
	q.best = q.search()
	if q.best != cluster.NoID {
		q.bestClass = q.rows.class[q.best]
	}
	return q.parcel(q.best)
}

// search is Find by cursors and heap.
func (q *Finder) search() int32 {
	for {
		row, late := q.top()
		r := q.nextLive(0)
		if late >= 0 && (r < 0 || late <= r) {
			return row
		}
		if r < 0 {
			return cluster.NoID
		}
		if row := q.scan(r); row >= 0 {
			q.cursor[r] = row
			return row
		}
		q.pass(r)
	}
}

// pass notes that the cursor has passed all rows of the class of a rank.
func (q *Finder) pass(r int) {
	q.cursor[r] = int32(len(q.rows.word))
	q.live[r>>6] &^= 1 << (r & 63)
}

// inOrder is Find over an explicit order.
func (q *Finder) inOrder() cluster.ParcelID {
	if q.gained != q.field.gained {
		q.gained, q.next = q.field.gained, 0
	}
	for ; q.next < len(q.order); q.next++ {
		if k := q.order[q.next]; q.field.parcels.IsOpen(k) && q.fits(k) {
			return k
		}
	}
	return cluster.NoID
}

// scan is the first row of the class of a rank, from its cursor on, that the unit fits; NoID when there is none.
func (q *Finder) scan(r int) int32 {
	s, c := q.rows, q.classOf(r)
	if !vecpack.Covers(s.peak[c], q.unit.word) {
		return cluster.NoID
	}
	for from := max(q.from, int(q.cursor[r])); from>>6 < q.end; {
		row := vecpack.FirstCover(s.set[c][:q.end], q.allowed, s.top[c], from, s.word, q.unit.word)
		if row < 0 {
			break
		}
		if q.exactly(int32(row)) {
			return int32(row)
		}
		from = row + 1
	}
	s.lower(c)
	return cluster.NoID
}

// has tells whether a row is allowed and has room for a unit.
func (q *Finder) has(row int32) bool {
	if q.allowed != nil && q.allowed[row>>6]>>(uint(row)&63)&1 == 0 {
		return false
	}
	return vecpack.Covers(q.rows.word[row], q.unit.word) && q.exactly(row)
}

// exactly tells of a row whose word covers the unit whether it has room for it.
func (q *Finder) exactly(row int32) bool {
	if !q.field.exact && !q.field.roomFor(q.parcel(row), &q.unit) {
		return false
	}
	return q.lot == nil || q.lot.leaves(&q.lot.item[row], &q.unit)
}

// fits is has for a parcel, where the finder goes by parcels.
func (q *Finder) fits(k cluster.ParcelID) bool {
	if q.allowed != nil && q.allowed[k>>6]>>(uint(k)&63)&1 == 0 {
		return false
	}
	return q.field.fits(k, &q.unit) && (q.lot == nil || q.lot.leaves(&q.lot.item[q.lot.at[k]], &q.unit))
}

// Take takes a unit off the parcel that Find found.
func (q *Finder) Take(k cluster.ParcelID) { q.field.Take(k, &q.unit) }

// catchUp looks at the rows that came into a class since: one behind the cursor
// goes into the heap, one before it the scan will see. It tells whether there was any.
func (q *Finder) catchUp() (any bool) {
	news := q.rows.log[q.seen:]
	q.seen += len(news)
	for i := range news {
		m := &news[i]
		if !vecpack.Covers(m.word, q.unit.word) || q.rows.class[m.row] != m.class || !q.has(m.row) {
			continue
		}
		if r := q.rankOf(m.class); m.row < q.cursor[r] {
			q.push(uint64(r)<<32 | uint64(m.row))
		} else {
			q.live[r>>6] |= 1 << (r & 63)
		}
		any = true
	}
	return any
}

// top is the first of the heap that still stands in its class and fits, with its rank; -1 when there is none.
func (q *Finder) top() (row int32, r int) {
	for len(q.late) > 0 {
		row, r = int32(uint32(q.late[0])), int(q.late[0]>>32)
		if q.rows.class[row] == q.classOf(r) && q.has(row) {
			return row, r
		}
		q.pop()
	}
	return cluster.NoID, -1
}

func (q *Finder) push(v uint64) {
	q.late = append(q.late, v)
	i := len(q.late) - 1
	for i > 0 && q.late[(i-1)/2] > v {
		q.late[i] = q.late[(i-1)/2]
		i = (i - 1) / 2
	}
	q.late[i] = v
}

func (q *Finder) pop() {
	n := len(q.late) - 1
	v := q.late[n]
	q.late = q.late[:n]
	if n == 0 {
		return
	}
	i := 0
	for {
		c := 2*i + 1
		if c+1 < n && q.late[c+1] < q.late[c] {
			c++
		}
		if c >= n || q.late[c] >= v {
			break
		}
		q.late[i] = q.late[c]
		i = c
	}
	q.late[i] = v
}

// Order sorts the parcels that a requirement allows by its order keys, ties in
// host order. at gives the host of a parcel.
func Order(b *plan.Bound, p *cluster.Parcels, allowed []uint64) []cluster.ParcelID {
	order := make([]cluster.ParcelID, 0, p.Len())
	for k := range p.Len() {
		if allowed == nil || allowed[k>>6]>>(uint(k)&63)&1 == 1 {
			order = append(order, cluster.ParcelID(k))
		}
	}
	slices.SortStableFunc(order, func(a, c cluster.ParcelID) int {
		return b.Compare(int(p.Host[a]), int(p.Host[c]))
	})
	return order
}
