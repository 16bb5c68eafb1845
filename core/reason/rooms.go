package reason

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/room"
)

// rooms is the room of all parcels on open hosts, in the rows of view.Owned: a level for each depth in the tree, with
// what those have of a parcel who draw on it through the pool of the consumer at that depth on the way up from the
// owner. A leaf's own parcels are in the level of its own depth. Rooms are kept from cycle to cycle, and brought up by
// the change log.
type rooms struct {
	level []level
	open  []uint64 // bitset of rows
	most  []int64  // by dimension: the largest parcel
	per   int64    // what each device has; 0: the plan has no devices

	state    *cluster.State
	plan     string
	seen     int64 // rows of the log that the rooms know
	reserved int   // Reserves.Version that they know
	rebuilt  int   // how often they were made anew

	touched    []room.Row // scratch
	free, rest []int64    // scratch
}

// level is the rooms for those who draw on parcels through pools of one depth.
type level struct {
	index room.Index
	set   room.Set // rows with parcels that are in pools of the depth, on open hosts
}

// difference is what is not as it was when rooms were brought up.
type difference int

const (
	sameHosts  difference = iota // only what parcels have free
	otherHosts                   // the size or state of hosts
	otherRows                    // rows are other parcels
)

// follow brings the rooms up to the state, and calls moved for each row of a level that has other room. It calls it for
// none where rows or hosts are others. O(what changed × depth), or O(parcels × depth).
func (r *rooms) follow(e *Env, moved func(depth int32, row room.Row, was, is []int64)) difference {
	log := &e.State.Changes
	from, ok := log.Follow(r.seen, e.Plan.Index)
	ok = ok && r.state == e.State && r.plan == e.Plan.Name && r.reserved == e.Views.Reserves.Version()
	r.state, r.plan, r.seen, r.reserved = e.State, e.Plan.Name, log.Count(), e.Views.Reserves.Version()
	news := otherRows
	if ok {
		news = r.touch(e, from)
	}
	if news == otherRows {
		r.rebuild(e)
		return news
	}
	for _, row := range r.touched {
		r.bring(e, row, func(depth int32, was, is []int64) {
			if news == sameHosts {
				moved(depth, row, was[:len(r.most)], is[:len(r.most)])
			}
		})
	}
	return news
}

// touch lists the rows whose room may be another, by rows of the log. Where an amount is larger than any was, rooms are
// to be made anew.
func (r *rooms) touch(e *Env, from int) (news difference) {
	log, p := &e.State.Changes, &e.Plan.Parcels
	r.touched = r.touched[:0]
	for i := from; i < log.Kind.Len(); i++ {
		if log.Plan.At(i) != e.Plan.Index {
			continue
		}
		begin := p.Begin(log.Parcel.At(i)) // what one parcel of a host has too little may be missing on all
		for k := begin; k < p.End(begin); k++ {
			r.touched = append(r.touched, room.Row(e.Views.Owned.RowOf(k)))
		}
		if log.Kind.At(i) != cluster.ChangeResized {
			continue
		}
		news = otherHosts
		for d, most := range r.most {
			if p.Cap[d][log.Parcel.At(i)] > most {
				return otherRows
			}
		}
	}
	slices.Sort(r.touched)
	r.touched = slices.Compact(r.touched)
	return news
}

// rebuild makes all rooms anew.
func (r *rooms) rebuild(e *Env) {
	p, deepest := &e.Plan.Parcels, int32(0)
	r.rebuilt++
	r.most, r.open = r.most[:0], column.Zeros(r.open, p.Words())
	for _, column := range p.Cap {
		most := int64(0)
		for _, amount := range column {
			most = max(most, amount)
		}
		r.most = append(r.most, most)
	}
	r.free, r.rest = column.Zeros(r.free, len(r.most)), column.Zeros(r.rest, len(r.most))
	for k := range cluster.ParcelID(p.Len()) {
		deepest = max(deepest, e.State.Policy.Depth[e.Owner(k)])
	}
	for len(r.level) <= int(deepest) {
		r.level = append(r.level, level{})
	}
	r.level = r.level[:deepest+1]
	most := r.most
	if r.per = 0; e.Plan.HasDevices() {
		r.per = e.Plan.MD.DevicePer
		// the most that is free on a device, and how many are empty
		most = append(slices.Clip(most), r.per, int64(p.Stride))
	}
	for depth := range r.level {
		r.level[depth].index.Reset(p.Len(), most)
		r.level[depth].set.Reset(p.Len())
	}
	for row := range room.Row(p.Len()) {
		r.bring(e, row, func(int32, []int64, []int64) {})
	}
}

// bring brings a row up, in all levels, and calls moved for those in which it had other room.
func (r *rooms) bring(e *Env, row room.Row, moved func(depth int32, was, is []int64)) {
	k := e.Views.Owned.Parcel[row]
	open, bit := e.Plan.Parcels.IsOpen(k), uint64(1)<<(uint(row)&63)
	if r.open[row>>6] &^= bit; open {
		r.open[row>>6] |= bit
	}
	for n := e.Owner(k); n != plan.None; n = e.State.Policy.Parent[n] {
		depth := e.State.Policy.Depth[n]
		l := &r.level[depth]
		switch was := l.index.Free(row); {
		case !open && l.set.Has(row):
			l.index.Shut(row)
			l.set.Remove(row)
		case open:
			e.Promises.Room(k, n, r.free, r.rest)
			is := r.rest
			if r.per > 0 {
				most, empty := cluster.RoomOfDevices(e.Plan.Parcels.DeviceFree(k), r.per)
				is = append(is, most, empty)
			}
			if l.set.Has(row) && slices.Equal(was, is) {
				continue
			}
			moved(depth, was, is)
			l.index.Put(row, is)
			l.set.Add(&l.index, row)
		}
	}
}
