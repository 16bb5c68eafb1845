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
// others filled them, are told by the field's logs and kept in a heap. Of classes that
// it likes less than all that it looked at so far the finder reads nothing before it comes to them.
type Finder struct {
	field *Field
	*form
	rows    *sorted  // what it looks among: the field's parcels
	common  bool     // it looks among all parcels that a desk's finders may use
	allowed []uint64 // bitset of rows, nil: all
	order   []cluster.ParcelID
	end     int // of the words of rows
	next    int // in order
	gained  int // of the field, when next was last set back
	// by rank of a class: place of its shape × fullnesses + fullness; good as far as edge
	mark     []mark
	edge     int                     // the first rank that was never looked at
	live     [classesMax / 64]uint64 // bitset of ranks below edge: the class may have rows that the unit fits
	late     []uint64                // heap of rank<<32 | row behind the cursor
	seen     int                     // of the rows' log
	best     int32                   // the row that Find said last
	bestRank int                     // of its class, then
	// how many parcels the field had regained when nothing was left for anyone, from 1; 0: something may be
	dry int
}

// mark is how far a finder is with a class.
type mark struct {
	cursor int32 // rows before it are in the heap, unless the unit does not fit them
	seen   int32 // of the class's log
}

// Reset makes the finder look for a unit size anew. allowed is a bitset of the
// parcels that may be used (nil: all); Forbid clears bits in it. order, unless
// nil, lists the parcels in the order of preference instead of the field's.
func (q *Finder) Reset(f *Field, size []int64, allowed []uint64, order []cluster.ParcelID) {
	q.reset(f, f.form(size), allowed, order)
}

// reset is Reset for a unit that the field has seen.
func (q *Finder) reset(f *Field, unit *form, allowed []uint64, order []cluster.ParcelID) {
	q.field, q.rows, q.common = f, &f.sorted, false
	q.look(unit, allowed, order)
}

// look readies the finder for the rows that it has.
func (q *Finder) look(unit *form, allowed []uint64, order []cluster.ParcelID) {
	f := q.field
	q.form, q.allowed, q.order, q.next = unit, allowed, order, 0
	q.late, q.seen, q.live, q.best, q.dry = q.late[:0], len(q.rows.entered), [classesMax / 64]uint64{}, cluster.NoID, 0
	q.end, q.edge = q.rows.words(), 0
	if !q.unit.never && q.byClass() {
		q.mark = resize(q.mark, f.shapes*fullnesses)
	}
}

// byClass tells whether the finder goes through the classes of its rows; else it goes by the order or the tree of
// parcels.
func (q *Finder) byClass() bool { return q.order == nil && q.field.placement != plan.Balanced }

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
	if q.isDry() {
		return cluster.NoID
	}
	if q.catchUp(); q.stands() {
		return cluster.ParcelID(q.best)
	}
	if q.best = q.search(); q.best == cluster.NoID {
		q.dryUp()
	}
	return cluster.ParcelID(q.best)
}

// isDry tells whether nothing was left for anyone, and no parcel has gained room since: what did not fit once never
// fits again.
func (q *Finder) isDry() bool { return q.dry == 1+len(q.field.regained) }

// dryUp notes that nothing is left for anyone.
func (q *Finder) dryUp() { q.dry = 1 + len(q.field.regained) }

// stands tells whether what Find said last is still what it was; nothing better came since.
func (q *Finder) stands() bool {
	return q.best != cluster.NoID && q.rows.class[q.best] == q.classOf(q.bestRank) && q.has(q.best)
}

// search is Find by cursors and heap.
func (q *Finder) search() int32 {
	for r := q.nextLive(0); r >= 0; r = q.nextLive(r + 1) {
		if row := q.first(r); row >= 0 {
			q.bestRank = r
			return row
		}
		q.live[r>>6] &^= 1 << (r & 63)
		if q.common {
			c := q.classOf(r)
			q.barren[c] = q.rows.gain[c]
		}
	}
	return cluster.NoID
}

// first is the first row of the class of a rank that the unit fits, NoID when there is none.
func (q *Finder) first(r int) int32 {
	q.readLog(r)
	if row := q.top(r); row >= 0 {
		return row
	}
	row := q.scan(r)
	if q.mark[r].cursor = row; row < 0 {
		q.mark[r].cursor = int32(q.end << 6)
	}
	return row
}

// nextLive is the first rank from r on whose class may have rows that the unit fits, -1 when there is none.
func (q *Finder) nextLive(r int) int {
	for w := r >> 6; w <= (q.edge-1)>>6; w++ {
		live := q.live[w]
		if w == r>>6 {
			live &^= 1<<(uint(r)&63) - 1
		}
		if live != 0 {
			return w<<6 + bits.TrailingZeros64(live)
		}
	}
	return q.widen()
}

// widen goes on to the next rank whose class has rows now that the unit may fit, -1 when there is none: whatever enters
// a class that was left out is heard of.
func (q *Finder) widen() int {
	s := q.rows
	for q.edge < len(q.mark) {
		c := q.classOf(q.edge)
		if q.edge%fullnesses == 0 {
			if shape := c / fullnesses; !vecpack.Covers(s.crest[shape], q.unit.word) {
				q.pass(int(shape))
				continue
			}
		}
		q.mark[q.edge] = mark{seen: int32(len(s.logOf[c]))} // the cursor will see what is there
		if q.edge++; s.count[c] > 0 && vecpack.Covers(s.peak[c], q.unit.word) &&
			!(q.common && q.barren[c] == s.gain[c]) {
			r := q.edge - 1
			q.live[r>>6] |= 1 << (r & 63)
			return r
		}
	}
	return -1
}

// pass leaves out all ranks of a shape.
func (q *Finder) pass(shape int) {
	list := q.mark[q.edge:][:fullnesses]
	q.edge += fullnesses
	clear(list)
	if q.rows.latest[shape] > 0 {
		for i := range list {
			list[i].seen = int32(len(q.rows.logOf[shape*fullnesses+i]))
		}
	}
}

// inOrder is Find over an explicit order.
func (q *Finder) inOrder() cluster.ParcelID {
	if n := len(q.field.regained); q.gained != n {
		q.gained, q.next = n, 0
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
	s, c, from := q.rows, q.classOf(r), int(q.mark[r].cursor)
	if from>>6 >= q.end || !vecpack.Covers(s.peak[c], q.unit.word) {
		return cluster.NoID
	}
	for from>>6 < q.end {
		row := vecpack.FirstCover(s.set[c][:q.end], s.some[c], q.allowed, s.top[c], from, s.word, q.unit.word)
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
	return q.field.exact || q.field.roomFor(cluster.ParcelID(row), &q.unit)
}

// fits is has for a parcel, where the finder goes by parcels.
func (q *Finder) fits(k cluster.ParcelID) bool {
	if q.allowed != nil && q.allowed[k>>6]>>(uint(k)&63)&1 == 0 {
		return false
	}
	return q.field.fits(k, &q.unit)
}

// Take takes a unit off the parcel that Find found.
func (q *Finder) Take(k cluster.ParcelID) { q.field.Take(k, &q.unit) }

// catchUp looks at the classes that rows came into since, as far as the finder looked at them before: those that it
// fits have something again, and may be better than what Find said last. Where more rows came than there are shapes to
// ask it asks those.
func (q *Finder) catchUp() {
	at, to := q.seen, len(q.rows.entered)
	if q.seen = to; q.edge == 0 || at == to {
		return
	}
	last := (q.edge - 1) / fullnesses
	if to-at > last {
		for place, shape := range q.shape[:last+1] {
			if int(q.rows.latest[shape]) > at {
				q.ask(place * fullnesses)
			}
		}
		return
	}
	for i, c := range q.rows.entered[at:] {
		if int(q.place[uint8(uint16(c)/fullnesses)]) <= last {
			q.hear(c, &q.rows.log[at+i])
		}
	}
}

// ask looks at the classes of a shape from a rank on. Of those behind what Find said last it only notes that they have
// news.
func (q *Finder) ask(from int) {
	for r := from; r < min(q.edge, from+fullnesses); r++ {
		if r > q.bestRank || q.best == cluster.NoID {
			if len(q.rows.logOf[q.classOf(r)]) > int(q.mark[r].seen) {
				q.live[r>>6] |= 1 << (r & 63)
			}
			continue
		}
		if row := q.readLog(r); row >= 0 {
			q.live[r>>6] |= 1 << (r & 63)
			if r < q.bestRank || row < q.best {
				q.best = cluster.NoID
			}
		}
	}
}

// hear looks at a row that came into a class.
func (q *Finder) hear(class int16, m *move) {
	r := q.rankOf(class)
	if r >= q.edge || !vecpack.Covers(m.word, q.unit.word) {
		return
	}
	q.live[r>>6] |= 1 << (r & 63)
	if r < q.bestRank || r == q.bestRank && m.row < q.best {
		q.best = cluster.NoID
	}
}

// readLog looks at the rows that came into the class of a rank since, and gives the first that the unit fits, NoID when
// there is none: those behind the cursor go into the heap, those before it the scan will see.
func (q *Finder) readLog(r int) int32 {
	c, at, first := q.classOf(r), &q.mark[r], int32(cluster.NoID)
	news := q.rows.logOf[c][at.seen:]
	at.seen += int32(len(news))
	for i := range news {
		row := news[i].row
		if !vecpack.Covers(news[i].word, q.unit.word) || q.rows.class[row] != c || !q.has(row) {
			continue
		}
		if row < at.cursor {
			q.push(uint64(r)<<32 | uint64(row))
		}
		if uint32(row) < uint32(first) {
			first = row
		}
	}
	return first
}

// top is the first of the heap that still stands in the class of a rank and fits, NoID when there is none. What is
// there of ranks before is not good any more.
func (q *Finder) top(r int) int32 {
	for len(q.late) > 0 && int(q.late[0]>>32) <= r {
		row := int32(uint32(q.late[0]))
		if int(q.late[0]>>32) == r && q.rows.class[row] == q.classOf(r) && q.has(row) {
			return row
		}
		q.pop()
	}
	return cluster.NoID
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
