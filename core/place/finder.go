package place

import (
	"math/bits"
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
	allowed   []uint64 // bitset of parcels, nil: all
	order     []cluster.ParcelID
	lot       *Lot                    // whose parcels it looks among, nil: the field's
	from, end int                     // no parcel before from is allowed, nor one behind so many words
	next      int                     // in order
	gained    int                     // of the field, when next was last set back
	cursor    []int32                 // by rank of a class: place of its shape × fullnesses + fullness
	live      [classesMax / 64]uint64 // bitset of ranks: the class has parcels that the cursor has not passed
	late      []uint64                // heap of rank<<32 | parcel behind the cursor
	seen      int                     // of the field's log
	best      cluster.ParcelID        // what Find said last
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
	q.field, q.form, q.allowed, q.order, q.next, q.lot = f, unit, allowed, order, 0, nil
	q.late, q.seen, q.live, q.best = q.late[:0], len(f.log), [classesMax / 64]uint64{}, cluster.NoID
	q.from, q.end = 0, f.parcels.Words()
	if q.unit.never || order != nil || f.placement == plan.Balanced {
		return
	}
	q.cursor = resize(q.cursor, f.shapes*fullnesses)
	clear(q.cursor)
	for c, n := range f.count[:f.shapes*fullnesses] {
		if n > 0 {
			r := q.rankOf(int16(c))
			q.live[r>>6] |= 1 << (r & 63)
		}
	}
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
	if !q.catchUp() && q.best != cluster.NoID && q.field.class[q.best] == q.bestClass && q.fits(q.best) {
		return q.best // nothing better came, and it is what it was
	}
	q.best = q.search()
	if q.best != cluster.NoID {
		q.bestClass = q.field.class[q.best]
	}
	return q.best
}

// search is Find by cursors and heap.
func (q *Finder) search() cluster.ParcelID {
	for {
		k, late := q.top()
		r := q.first()
		if late >= 0 && (r < 0 || late <= r) {
			return k
		}
		if r < 0 {
			return cluster.NoID
		}
		if k := q.scan(r); k >= 0 {
			q.cursor[r] = int32(k)
			return cluster.ParcelID(k)
		}
		q.cursor[r] = int32(q.field.parcels.Len())
		q.live[r>>6] &^= 1 << (r & 63)
	}
}

// first is the first rank whose class the cursor has not passed, -1 when there is none.
func (q *Finder) first() int {
	for w, live := range q.live[:] {
		if live != 0 {
			return w<<6 + bits.TrailingZeros64(live)
		}
	}
	return -1
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

// scan is the first parcel of the class of a rank, from its cursor on, that the unit fits; -1 when there is none.
func (q *Finder) scan(r int) int {
	f, c := q.field, q.classOf(r)
	if !vecpack.Covers(f.peak[c], q.unit.word) {
		return -1
	}
	from, top := max(q.from, int(q.cursor[r])), f.top[c]
	for from>>6 < q.end {
		k := vecpack.FirstCover(f.set[c][:q.end], q.allowed, top, from, f.word, q.unit.word)
		if k < 0 {
			break
		}
		if (f.exact || f.roomFor(cluster.ParcelID(k), &q.unit)) && (q.lot == nil || q.lot.spares(cluster.ParcelID(k), &q.unit)) {
			return k
		}
		from = k + 1
	}
	f.lower(c)
	return -1
}

// fits tells whether a parcel is allowed and has room for a unit.
func (q *Finder) fits(k cluster.ParcelID) bool {
	if q.allowed != nil && q.allowed[k>>6]>>(uint(k)&63)&1 == 0 {
		return false
	}
	return q.field.fits(k, &q.unit) && (q.lot == nil || q.lot.spares(k, &q.unit))
}

// Take takes a unit off the parcel that Find found.
func (q *Finder) Take(k cluster.ParcelID) { q.field.Take(k, &q.unit) }

// catchUp looks at the parcels that came into a class since: one behind the cursor
// goes into the heap, one before it the scan will see. It tells whether there was any.
func (q *Finder) catchUp() (any bool) {
	news := q.field.log[q.seen:]
	q.seen += len(news)
	for i := range news {
		m := &news[i]
		if !vecpack.Covers(m.word, q.unit.word) || q.field.class[m.parcel] != m.class || !q.fits(m.parcel) {
			continue
		}
		if r := q.rankOf(m.class); int32(m.parcel) < q.cursor[r] {
			q.push(uint64(r)<<32 | uint64(m.parcel))
		} else {
			q.live[r>>6] |= 1 << (r & 63)
		}
		any = true
	}
	return any
}

// top is the first of the heap that still stands in its class and fits, with its rank; -1 when there is none.
func (q *Finder) top() (k cluster.ParcelID, r int) {
	for len(q.late) > 0 {
		k, r = cluster.ParcelID(uint32(q.late[0])), int(q.late[0]>>32)
		if q.field.class[k] == q.classOf(r) && q.fits(k) {
			return k, r
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
