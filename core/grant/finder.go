//go:build !rounds

package grant

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/room"
	"github.com/stintd/stint/vecpack"
)

// search is where units of one size with one requirement, of leaves that may have the same parcels, look for room: lot
// after lot, each until nothing fits there any more. Sub-allocations with a max_per_host have searches of their own.
type search struct {
	key  searchKey
	lot  int                      // that it is at: nothing fits those before it
	unit []finder                 // by lot
	on   map[cluster.HostID]int64 // how many units are on each host, where max_per_host is set
	most int64
}

// searchKey is what searches are shared by.
type searchKey struct {
	shape cluster.ShapeID
	need  cluster.NeedID
	side  plan.Node // the child of the pool's consumer that the leaf is below
	grace int64
	sub   cluster.SubID // that has a max_per_host, else NoID
}

// finder finds the row of a lot that takes the next unit of one size (MD-20). Under best fit it asks shape after
// shape, the most like the unit first, of each class after class, the fullest first, of each the first row with room.
// A class in which there was none is asked again when a row has come into it.
type finder struct {
	need   room.Need
	mask   []uint64 // rows that it may use; nil: all
	rank   []uint8  // all shapes, the most like first
	live   []uint8  // of these, those in which a row was
	known  int      // how many of the lot's shapes that goes by
	vain   []uint32 // by set of the lot: how many rows had come into the class when nothing fitted
	from   []found  // by set of the lot: where the last search ended
	order  []room.Row
	next   int // in order: no row before it has room
	ranked bool
	begun  bool
}

// found is a row of a class, before which nothing fits or may be used until another row has come into the class.
type found struct {
	row     room.Row
	arrived uint32 // rows that had come into the class by then
}

// begin points a finder at a lot. Order, unless nil, is the rows in the order that a requirement gives them.
func (f *finder) begin(l *lot, shape cluster.ShapeID, size []int64, mask []uint64, order []room.Row, ordered bool) {
	f.need, f.mask = l.index.Need(l.rules.devices.need(size)), mask
	f.order, f.next, f.ranked, f.begun = order, 0, ordered, true
	if l.rules.placement == plan.BestFit && !ordered {
		f.rank = l.rules.rank(shape, size)
	}
	f.live, f.known = f.live[:0], 0
	f.vain, f.from = f.vain[:0], f.from[:0]
}

// find is the row for the next unit, room.NoRow when there is none.
func (f *finder) find(l *lot) room.Row {
	switch {
	case f.need.Never():
		return room.NoRow
	case f.ranked:
		for ; f.next < len(f.order); f.next++ {
			if row := f.order[f.next]; f.allows(row) && l.index.Fits(row, &f.need) {
				return row
			}
		}
		return room.NoRow
	case l.rules.placement == plan.Balanced:
		return f.roomiest(l, 1)
	case l.rules.placement == plan.Stacked:
		if row := f.inClass(l, 0); row != room.NoRow {
			return row
		}
		return f.inClass(l, 1)
	}
	if f.known != len(l.shapes) {
		f.relive(l)
	}
	for _, shape := range f.live {
		if !vecpack.Covers(l.crest[shape], f.need.Word()) {
			continue
		}
		for class := int(shape) * fullnesses; class < (int(shape)+1)*fullnesses; class++ {
			if row := f.inClass(l, class); row != room.NoRow {
				return row
			}
		}
	}
	return room.NoRow
}

// inClass is find for one class.
func (f *finder) inClass(l *lot, class int) room.Row {
	at := int(l.sets[class])
	if at == 0 || at <= len(f.vain) && f.vain[at-1] == l.arrived[class] {
		return room.NoRow
	}
	for len(f.from) < at {
		f.from = append(f.from, found{})
	}
	last := &f.from[at-1]
	if last.arrived != l.arrived[class] {
		*last = found{arrived: l.arrived[class]}
	}
	row := l.index.First(&l.set[at-1], &f.need, last.row, f.mask)
	if row != room.NoRow {
		last.row = row
		return row
	}
	for len(f.vain) < at {
		f.vain = append(f.vain, 0)
	}
	f.vain[at-1] = l.arrived[class]
	return row
}

// relive lists the shapes in which a row was, the most like the unit first.
func (f *finder) relive(l *lot) {
	f.known, f.live = len(l.shapes), f.live[:0]
	for _, shape := range f.rank {
		if l.shape[shape] {
			f.live = append(f.live, shape)
		}
	}
}

func (f *finder) allows(row room.Row) bool {
	return f.mask == nil || f.mask[row>>6]>>(uint(row)&63)&1 == 1
}

// roomiest is the row below a node of the lot's tree that has room and the most weighted free room, ties by the order
// of rows: the side with more first, the other only where it may have more than what was found.
func (f *finder) roomiest(l *lot, node int) room.Row {
	width := len(l.tree) / 2
	if l.tree[node] == 0 {
		return room.NoRow
	}
	if node >= width {
		if row := room.Row(node - width); f.allows(row) && l.index.Fits(row, &f.need) {
			return row
		}
		return room.NoRow
	}
	near, far := 2*node, 2*node+1
	if l.tree[far] > l.tree[near] {
		near, far = far, near
	}
	best := f.roomiest(l, near)
	if best != room.NoRow && (l.tree[width+int(best)] > l.tree[far] ||
		l.tree[width+int(best)] == l.tree[far] && near < far) {
		return best
	}
	other := f.roomiest(l, far)
	if best == room.NoRow || other != room.NoRow && better(l, other, best) {
		return other
	}
	return best
}

// better tells whether a row has more weighted free room than another, or as much and comes before it.
func better(l *lot, a, b room.Row) bool {
	x, y := l.tree[len(l.tree)/2+int(a)], l.tree[len(l.tree)/2+int(b)]
	return x > y || x == y && a < b
}

// masks are the rows of a lot that those with one requirement, side and grace may use.
type masks struct {
	key  []maskKey
	bits [][]uint64 // nil: all
}

type maskKey struct {
	lot   int
	need  cluster.NeedID
	side  plan.Node
	grace int64
}

// of is the mask of a key. O(rows) for the first time.
func (m *masks) of(l *lot, key maskKey, selected []uint64) []uint64 {
	if !l.mixed {
		key.side, key.grace = plan.None, 0
	}
	if selected == nil && !l.mixed {
		return nil
	}
	if i := slices.Index(m.key, key); i >= 0 {
		return m.bits[i]
	}
	set := make([]uint64, (len(l.parcel)+63)/64)
	for row, k := range l.parcel {
		switch {
		case selected != nil && selected[k>>6]>>(uint(k)&63)&1 == 0:
		case l.mixed && (l.side[row] == key.side && key.side != plan.None || key.grace > l.grace[row]):
		default:
			set[row>>6] |= 1 << (row & 63)
		}
	}
	m.key, m.bits = append(m.key, key), append(m.bits, set)
	return set
}
