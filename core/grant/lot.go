//go:build !rounds

package grant

import (
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/room"
	"github.com/stintd/stint/vecpack"
)

// lot is parcels that a pool gives units of in one order, as rows of an index of their free room, in the order of
// parcels. While a pool grants, free room only falls: what fits nowhere in a lot will not fit there later.
type lot struct {
	rules  *Rules
	dims   int
	parcel []cluster.ParcelID // by row
	// by row: who is below this child of the pool's consumer gets nothing of it; None: everybody may
	side  []plan.Node
	grace []int64 // by row: who may take longer gets nothing of it
	mixed bool    // sides or graces say something
	// what is free, or less where a lender's reserve leaves less; of plans with devices two figures more
	index   room.Index
	device  []int64 // by row and device: what is free on it; of plans with devices
	slack   []int64 // by row, then dimension: how much more is free; nil: nothing
	whole   []int64 // scratch, as the next three
	now     []int64
	rest    []int64
	figures []int64

	class   []int16           // by row
	sets    [classesMax]int32 // numbers in set, from 1; 0: no row was in the class yet
	set     []room.Set
	used    int
	arrived [classesMax]uint32 // how often a row came into the class
	shape   [classesMax / fullnesses]bool
	shapes  []uint8                         // those in which a row was, in order of coming
	crest   [classesMax / fullnesses]uint64 // no row of the shape has more
	// under balanced: the most weighted free room of two below, from 1; rows from the width on
	tree []int64
}

// begin empties the lot.
func (l *lot) begin(r *Rules, dims int) {
	l.rules, l.dims, l.mixed, l.slack = r, dims, false, nil
	l.parcel, l.side, l.grace = l.parcel[:0], l.side[:0], l.grace[:0]
}

// add adds a parcel, behind all that come before it in the order of parcels.
func (l *lot) add(k cluster.ParcelID, side plan.Node, grace int64) {
	l.parcel, l.side, l.grace = append(l.parcel, k), append(l.side, side), append(l.grace, grace)
}

// lay readies the lot. Of gives what a parcel has free, and what of that those may have who draw on it here.
func (l *lot) lay(p *cluster.Plan, of roomOfParcel) {
	n := len(l.parcel)
	l.index.Reset(n, l.rules.devices.room(l.rules.most))
	l.device = column.Zeros(l.device, n*l.rules.devices.most)
	l.class, l.used, l.shapes = column.Zeros(l.class, n), 0, l.shapes[:0]
	clear(l.sets[:])
	clear(l.shape[:])
	clear(l.crest[:])
	l.tree = l.tree[:0]
	if l.rules.placement == plan.Balanced {
		l.tree = column.Zeros(l.tree, 2<<bits.Len(uint(max(1, n)-1)))
	}
	l.now, l.rest = column.Zeros(l.now, l.dims), column.Zeros(l.rest, l.dims)
	for row, k := range l.parcel {
		if l.class[row] = -1; p.Parcels.IsOpen(k) {
			l.put(p, row, of)
		}
	}
	for i := len(l.tree)/2 - 1; i > 0; i-- {
		l.tree[i] = max(l.tree[2*i], l.tree[2*i+1])
	}
}

// roomOfParcel gives what a parcel has free, and what of that those may have who draw on it; less tells whether that is
// less.
type roomOfParcel func(k cluster.ParcelID, free, rest []int64) (less bool)

// put sets the room of a row whose host is open.
func (l *lot) put(p *cluster.Plan, row int, of roomOfParcel) {
	less := of(l.parcel[row], l.now, l.rest)
	if less && l.slack == nil {
		l.slack = make([]int64, len(l.parcel)*l.dims)
	}
	for d, free := range l.now {
		if l.slack != nil {
			l.slack[row*l.dims+d] = free - l.rest[d]
		}
	}
	l.index.Put(room.Row(row), l.withDevices(p, row, l.rest))
	if len(l.tree) > 0 {
		l.tree[len(l.tree)/2+row] = 1 + l.rules.weigh(l.now) // more than 0: there is a row
		return
	}
	begun := false
	for d, free := range l.now {
		begun = begun || free != p.Parcels.Cap[d][l.parcel[row]]
	}
	l.move(room.Row(row), l.rules.class(l.now, begun))
}

// bring brings a row up to what its parcel has now. O(log rows).
func (l *lot) bring(p *cluster.Plan, row int, of roomOfParcel) {
	if p.Parcels.IsOpen(l.parcel[row]) {
		l.put(p, row, of)
	} else {
		l.index.Shut(room.Row(row))
		switch {
		case len(l.tree) > 0:
			l.tree[len(l.tree)/2+row] = 0
		case l.class[row] >= 0:
			l.set[l.sets[l.class[row]]-1].Remove(room.Row(row))
			l.class[row] = -1
		}
	}
	l.climb(row)
}

// climb brings the tree above a row up.
func (l *lot) climb(row int) {
	for i := (len(l.tree)/2 + row) / 2; i > 0 && len(l.tree) > 0; i /= 2 {
		l.tree[i] = max(l.tree[2*i], l.tree[2*i+1])
	}
}

// move puts a row into a class.
func (l *lot) move(row room.Row, class int) {
	if was := l.class[row]; was >= 0 {
		l.set[l.sets[was]-1].Remove(row)
	}
	if l.sets[class] == 0 {
		if l.used == len(l.set) {
			l.set = append(l.set, room.Set{})
		}
		l.set[l.used].Reset(len(l.parcel))
		l.used++
		l.sets[class], l.arrived[class] = int32(l.used), 0
	}
	l.class[row] = int16(class)
	l.arrived[class]++
	l.set[l.sets[class]-1].Add(&l.index, row)
	shape := class / fullnesses
	if l.crest[shape] = vecpack.Most(l.crest[shape], l.index.Word(row)); !l.shape[shape] {
		l.shape[shape] = true
		l.shapes = append(l.shapes, uint8(shape))
	}
}

// lower brings what the rows of each shape have at most down to what their sets say, which searches lower.
func (l *lot) lower() {
	clear(l.crest[:])
	for class, at := range l.sets {
		if at > 0 {
			shape := class / fullnesses
			l.crest[shape] = vecpack.Most(l.crest[shape], l.set[at-1].Most())
		}
	}
}

// take takes a unit off a row that it fits, and gives the devices on which it lies.
func (l *lot) take(row room.Row, need *room.Need) (on cluster.Devices) {
	if l.rules.devices.per > 0 {
		on = l.takeDevices(row, need)
	} else {
		l.index.Take(row, need)
	}
	if len(l.tree) > 0 {
		l.tree[len(l.tree)/2+int(row)] = 1 + l.rules.weigh(l.free(row))
		l.climb(int(row))
		return on
	}
	class := 0 // it is in use
	if l.rules.placement == plan.BestFit {
		class = l.rules.bestFit(l.free(row))
	}
	if class != int(l.class[row]) {
		l.move(row, class)
	}
	return on
}

// free is what is free on the parcel of a row, reserves left aside, in memory that is used again.
func (l *lot) free(row room.Row) []int64 {
	free := l.index.Free(row)
	if l.slack == nil {
		return free
	}
	sum := l.whole[:0]
	for d, v := range free {
		sum = append(sum, v+l.slack[int(row)*l.dims+d])
	}
	l.whole = sum
	return sum
}

// inOrder is the selected rows of the lot in the order of a requirement, nil where it has none. Turn is a parcel's
// place in the order.
func (l *lot) inOrder(selected []uint64, turn []int32) []room.Row {
	if turn == nil {
		return nil
	}
	order := make([]room.Row, 0, len(l.parcel))
	for row, k := range l.parcel {
		if selected[k>>6]>>(uint(k)&63)&1 == 1 {
			order = append(order, room.Row(row))
		}
	}
	slices.SortFunc(order, func(a, b room.Row) int { return int(turn[l.parcel[a]] - turn[l.parcel[b]]) })
	return order
}
