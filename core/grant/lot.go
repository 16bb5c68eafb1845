package grant

import (
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/room"
)

// lot is parcels that a pool gives units of in one order, as rows of an index of their room, in the order of parcels.
// Room is what those may have who draw on the pool: what is free, or less where lenders reserve more (MD-8).
// Invariant: while a pool grants, room only falls, save where a step is undone.
type lot struct {
	rules  *rules
	dims   int
	parcel []cluster.ParcelID // by row
	// by row: consumers below this child of the pool's consumer get nothing of the row; None: everybody may
	side  []plan.Node
	grace []int64 // by row: consumers with a longer grace get nothing of the row
	mixed bool    // sides or graces say something

	index  room.Index
	rows   room.Set // of open hosts; under stacked placement those in use
	unused room.Set // under stacked placement: the others
	point  []uint64 // by row: the coordinates of its room, under best fit
	device []int64  // by row and device: what is free on it; of plans with devices
	tree   []int64  // under balanced placement: the most weighted room of two below, from 1; rows from the width on

	free, rest, figures []int64 // scratch
}

// begin empties the lot.
func (l *lot) begin(r *rules, dims int) {
	l.rules, l.dims, l.mixed = r, dims, false
	l.parcel, l.side, l.grace = l.parcel[:0], l.side[:0], l.grace[:0]
}

// add adds a parcel, behind all that come before it in the order of parcels.
func (l *lot) add(k cluster.ParcelID, side plan.Node, grace int64) {
	l.parcel, l.side, l.grace = append(l.parcel, k), append(l.side, side), append(l.grace, grace)
}

// lay readies the lot. Of writes what a parcel has free, and what of that those may have who draw on it here.
func (l *lot) lay(p *cluster.Plan, of func(k cluster.ParcelID, free, rest []int64) (less bool)) {
	n := len(l.parcel)
	l.index.Reset(n, l.rules.devices.room(l.rules.most))
	l.rows.Reset(n)
	l.device = column.Zeros(l.device, n*l.rules.devices.most)
	l.tree, l.point = l.tree[:0], l.point[:0]
	switch l.rules.placement {
	case plan.BestFit:
		l.point = column.Zeros(l.point, n*l.rules.words)
	case plan.Stacked:
		l.unused.Reset(n)
	case plan.Balanced:
		l.tree = column.Zeros(l.tree, 2<<bits.Len(uint(max(1, n)-1)))
	}
	l.free, l.rest = column.Zeros(l.free, l.dims), column.Zeros(l.rest, l.dims)
	for row, k := range l.parcel {
		if !p.Parcels.IsOpen(k) {
			continue
		}
		of(k, l.free, l.rest)
		l.put(p, room.Row(row))
	}
	for i := len(l.tree)/2 - 1; i > 0; i-- {
		l.tree[i] = max(l.tree[2*i], l.tree[2*i+1])
	}
}

// put sets the room of a row whose host is open, from l.free and l.rest.
func (l *lot) put(p *cluster.Plan, row room.Row) {
	l.index.Put(row, l.withDevices(p, int(row), l.rest))
	set := &l.rows
	if l.rules.placement == plan.Stacked {
		set = &l.unused
		for d, free := range l.free {
			if free != p.Parcels.Cap[d][l.parcel[row]] {
				set = &l.rows
			}
		}
	}
	set.Add(&l.index, row)
	if len(l.tree) > 0 {
		l.tree[len(l.tree)/2+int(row)] = 1 + l.rules.weigh(l.index.Free(row)) // more than 0: there is a row
	}
	l.place(row)
}

// place brings the coordinates of a row up to its room.
func (l *lot) place(row room.Row) {
	if len(l.point) > 0 {
		l.rules.point(l.point[int(row)*l.rules.words:][:l.rules.words], l.index.Free(row))
	}
}

// take takes a unit off a row that has room for it, and returns the devices on which the unit lies.
func (l *lot) take(row room.Row, need *room.Need) (on cluster.Devices) {
	if l.rules.devices.per > 0 {
		on = l.takeDevices(row, need)
	} else {
		l.index.Take(row, need)
	}
	if l.rules.placement == plan.Stacked && l.unused.Has(row) {
		l.unused.Remove(row)
		l.rows.Add(&l.index, row)
	}
	l.changed(row)
	return on
}

// giveBack undoes take, save that the row stays in use.
func (l *lot) giveBack(row room.Row, need *room.Need, on cluster.Devices) {
	free := append(l.figures[:0], l.index.Free(row)...)
	for d, v := range need.Size()[:l.dims] {
		free[d] += v
	}
	if l.rules.devices.per > 0 {
		v, devices := &l.rules.devices, l.deviceFree(int(row))
		cluster.TakeOfDevices(devices, on, v.per, need.Size()[v.dimension], -1)
		free[l.dims], free[l.dims+1] = cluster.RoomOfDevices(devices, v.per)
	}
	l.figures = free
	l.index.Put(row, free)
	l.rows.Add(&l.index, row)
	l.changed(row)
}

// changed brings up the coordinates of a row, or the tree above it.
func (l *lot) changed(row room.Row) {
	l.place(row)
	if len(l.tree) == 0 {
		return
	}
	i := len(l.tree)/2 + int(row)
	l.tree[i] = 1 + l.rules.weigh(l.index.Free(row))
	for i /= 2; i > 0; i /= 2 {
		l.tree[i] = max(l.tree[2*i], l.tree[2*i+1])
	}
}

// inOrder returns the selected rows of the lot in the order of a requirement, nil where it has none. Turn is a parcel's
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
