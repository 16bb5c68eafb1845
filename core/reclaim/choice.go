//go:build !rounds

package reclaim

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/room"
	"github.com/stintd/stint/core/share"
)

// choice is how victims for a share are found in the pool in turn: by indexes of what parcels would have free if all
// gave what they may.
type choice struct {
	list   *waitList // of the pool's parcels
	offers [2]offers // of all above their quotas; of those alone that may be above by their bands
	units  map[plan.Node][]unit
	covers []uint64       // scratch: bitset of rows that may offer enough for the taker's unit
	some   map[int32]bool // scratch, by shape: whether a unit of it alone may make room anywhere
}

// offers is an index of what the pool's parcels would have free, net, if all of some leaves gave what they hold there.
type offers struct {
	from    *share.Order // the leaves
	known   bool
	counted []bool // by leaf: whether it is one of those
	index   room.Index
	set     room.Set
	hints   room.Hints[cluster.ShapeID]
}

// unit is units of a leaf that may be taken one day, in the order newest first.
type unit struct {
	granted int64
	sub     cluster.SubID
	parcel  cluster.ParcelID
	units   int64
	pair    int32 // the row of stakes
}

// begin readies the choice for the turns of a pool.
func (c *choice) begin(g *Stage, top plan.Node) {
	c.list, c.units, c.covers = g.waitsAt(top), map[plan.Node][]unit{}, column.Zeros(c.covers, g.p.Parcels.Words())
	c.offers[0].from, c.offers[1].from = &g.fair.givers, &g.fair.banded
	c.offers[0].known, c.offers[1].known = false, false
}

// offersNow is the offers of those who may give to the taker. O(parcels of the pool, and what
// those hold from it) for the first time in the pool's turns.
func (g *Stage) offersNow() *offers {
	c, o := &g.choice, &g.choice.offers[0]
	if !g.fair.taker.banded {
		o = &c.offers[1]
	}
	if o.known || len(o.from.List) == 0 {
		return o
	}
	o.known, o.counted = true, column.Zeros(o.counted, len(g.fair.v.stake))
	o.index.Reset(len(c.list.parcel), g.mostOf(c.list.parcel))
	o.set.Reset(len(c.list.parcel))
	o.hints.Reset()
	for row := range room.Row(len(c.list.parcel)) {
		copy(o.index.Free(row), c.list.index.Free(row))
	}
	for _, id := range o.from.List {
		o.counted[id] = true
		g.eachHeld(id, func(row room.Row, _ cluster.ParcelID, size []int64, units int64) {
			add(o.index.Free(row), size, units)
		})
	}
	for row, k := range c.list.parcel {
		if g.p.Parcels.IsOpen(k) {
			o.index.Put(room.Row(row), o.index.Free(room.Row(row)))
			o.set.Add(&o.index, room.Row(row))
		}
	}
	eachBit(g.altered, func(k cluster.ParcelID) {
		if row, ok := c.list.find(k); ok && g.p.Parcels.IsOpen(k) {
			g.offer(o, row, k)
		}
	})
	return o
}

// eachHeld calls f for what a leaf held from the pool in turn when the stage began, and was not under reclaim.
func (g *Stage) eachHeld(id int32, f func(row room.Row, k cluster.ParcelID, size []int64, units int64)) {
	held := g.Views.ByLeaf.From(g.fair.v.top+plan.Node(id), g.ID(g.fair.v.top))
	for i, key := range held.Key {
		if k := cluster.ParcelID(key.B); held.Units[i] > held.Leaving[i] {
			f(g.choice.list.row(k), k, g.s.Size(cluster.SubID(key.C)), held.Units[i]-held.Leaving[i])
		}
	}
}

// row is the row of a parcel that is in the list.
func (w *waitList) row(k cluster.ParcelID) room.Row {
	row, _ := w.find(k)
	return row
}

// find is the row of a parcel, ok false where it is not in the list.
func (w *waitList) find(k cluster.ParcelID) (row room.Row, ok bool) {
	if int(k) < len(w.parcel) && w.parcel[k] == k {
		return room.Row(k), true // all parcels are in it
	}
	at, ok := slices.BinarySearch(w.parcel, k)
	return room.Row(at), ok
}

// unitsOf is what a leaf holds from the pool in turn that was not under reclaim when the stage began, and is not
// young, the newest first.
func (g *Stage) unitsOf(leaf plan.Node) []unit {
	g.s.Yield()
	c, h := &g.choice, &g.s.Holding
	list, ok := c.units[leaf]
	if ok {
		return list
	}
	from := g.ID(g.fair.v.top)
	g.EachSub(leaf, func(sub cluster.SubID) {
		pair := g.fair.v.find(g, leaf, g.s.Sub.Shape[sub])
		for q := g.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
			k := h.Parcel[q]
			switch {
			case h.Pool[q] != from || h.Set[q] != cluster.NoID && !has(g.altered, int(k)):
			case g.isYoung(leaf, h.Granted[q]):
				g.out.Again, g.out.Young = true, true // it will not be for ever
			case h.Units[q] == g.coreOf(q): // a gang may not do without them
			default:
				list = append(list, unit{h.Granted[q], sub, k, h.Units[q] - g.coreOf(q), pair})
			}
		}
	})
	slices.SortFunc(list, g.newerUnit)
	for i := range list {
		if has(g.altered, int(list[i].parcel)) {
			list[i].units = g.staying(&list[i])
		}
	}
	c.units[leaf] = list
	return list
}

// offer adds up what a parcel offers, by what is held there now.
func (g *Stage) offer(o *offers, row room.Row, k cluster.ParcelID) {
	free := g.buffer[0]
	copy(free, g.choice.list.index.Free(row))
	for at := g.open(k); at > 0; at = g.row[at].next {
		if one := &g.row[at]; g.isInPool(one) && o.counted[one.leaf-g.fair.v.top] {
			add(free, g.s.Shape.Size(one.shape), one.units)
		}
	}
	o.hints.Put(&o.index, &o.set, row, free)
}

// updateOffers brings offers up to a parcel.
func (g *Stage) updateOffers(k cluster.ParcelID) {
	c := &g.choice
	if c.list == nil || !g.p.Parcels.IsOpen(k) || !g.tree.Within(g.Owner(k), g.fair.v.top) {
		return
	}
	for i := range c.offers {
		if o := &c.offers[i]; o.known {
			g.offer(o, c.list.row(k), k)
		}
	}
}

// recount takes all that a leaf holds into offers, where it has come to be above its quota, or out of them.
func (g *Stage) recount(leaf plan.Node) {
	id := int32(leaf - g.fair.v.top)
	for i := range g.choice.offers {
		o := &g.choice.offers[i]
		if !o.known || o.counted[id] == o.from.Has(id) {
			continue
		}
		sign := int64(-1)
		if o.counted[id] = !o.counted[id]; o.counted[id] {
			sign = 1
		}
		g.eachHeld(id, func(row room.Row, k cluster.ParcelID, size []int64, units int64) {
			switch {
			case g.first[k] != 0:
				g.offer(o, row, k)
			case o.set.Has(row):
				free := g.buffer[0]
				copy(free, o.index.Free(row))
				add(free, size, sign*units)
				o.hints.Put(&o.index, &o.set, row, free)
			}
		})
	}
}

// isInPool tells whether units stay that a leaf holds from the pool in turn.
func (g *Stage) isInPool(one *held) bool {
	top := g.fair.v.top
	return one.set == noSet && one.units > 0 && one.pool == g.ID(top) && g.within(one.leaf, top)
}

// giversOn lists the rows on a parcel that leaves above their quotas may give, in any order.
func (g *Stage) giversOn(k cluster.ParcelID) (rows []int32) {
	g.s.Yield()
	f := &g.fair
	for i := g.open(k); i > 0; i = g.row[i].next {
		one := &g.row[i]
		switch {
		case !g.isInPool(one) || one.core || one.leaf == f.taker.leaf || !f.givers.Has(int32(one.leaf-f.v.top)):
		case g.isYoung(one.leaf, one.granted):
			g.out.Again, g.out.Young = true, true // it will not be for ever
		default:
			rows = append(rows, i)
		}
	}
	return rows
}

// giverFirst orders rows as victims for a share: leaves by surplus ÷ ratio, of each the newest first.
func (g *Stage) giverFirst(a, b int32) int {
	x, y := &g.row[a], &g.row[b]
	if x.leaf == y.leaf {
		return g.newer(x, y)
	}
	return g.fair.givers.Before(int32(x.leaf-g.fair.v.top), int32(y.leaf-g.fair.v.top))
}

const (
	choicesMost = 16 // among how many parcels that of the fewest victims is chosen
	fewMost     = 64 // how many parcels at most are looked at one by one, wherever their units stand in order
)

// choose finds victims for the taker's unit.
func (g *Stage) choose(t *trial) (cluster.ParcelID, []victim) {
	g.s.Yield()
	o := g.offersNow()
	if len(o.from.List) == 0 {
		return cluster.NoID, nil
	}
	c, need := &g.choice, o.index.Need(g.s.Size(g.fair.taker.sub))
	covering, few := []cluster.ParcelID(nil), false
	if !t.single || !t.few {
		covering, few = g.covering(o, &need)
	}
	if !few {
		o.index.Mask(c.covers, &o.set, &need)
	}
	if !t.single {
		if k, victims := g.seekOne(covering, few); victims != nil {
			return k, victims
		}
		t.single = true
	}
	if t.few {
		covering, few = t.parcels, true
	}
	return g.seekSeveral(t, covering, few)
}

// covering lists the parcels that may offer enough for the taker's unit, few false when they are many.
func (g *Stage) covering(o *offers, need *room.Need) (list []cluster.ParcelID, few bool) {
	f, c := &g.fair, &g.choice
	mask := c.list.masks.of(g, f.taker.sub, f.v.top, c.list.parcel)
	row := o.hints.First(&o.index, &o.set, need, mask, g.s.Sub.Shape[f.taker.sub])
	for ; row != room.NoRow; row = o.index.First(&o.set, need, row+1, mask) {
		if k := c.list.parcel[row]; g.mayUse(f.taker.sub, k, f.v.top) {
			if list = append(list, k); len(list) > cmp.Or(g.Few, fewMost) {
				return nil, false
			}
		}
	}
	return list, true
}

// walk calls visit for the units of leaves above their quotas that are on covered rows, in the order in which victims
// are chosen, until it is done; of those leaves and sizes alone that may give.
func (g *Stage) walk(may func(leaf plan.Node, pair int32) bool, visit func(one *unit, row room.Row) (done bool)) {
	f, c := &g.fair, &g.choice
	for _, id := range f.givers.List {
		leaf, any := f.v.top+plan.Node(id), false
		for pair := f.v.start[id]; pair < f.v.start[id+1] && !any; pair++ {
			any = f.v.units[pair] > 0 && may(leaf, pair)
		}
		if leaf == f.taker.leaf || !any {
			continue
		}
		units, pair, is := g.unitsOf(leaf), int32(-1), false
		for i := range units {
			one := &units[i]
			if one.pair != pair { // those of one size mostly stand together
				pair, is = one.pair, may(leaf, one.pair)
			}
			if row := c.list.row(one.parcel); is && one.units > 0 && has(c.covers, int(row)) && visit(one, row) {
				return
			}
		}
	}
}

// mayAlone tells whether a leaf may give a unit of a row of stakes alone to the taker, and such units may make room
// for the taker's anywhere.
func (g *Stage) mayAlone(leaf plan.Node, row int32) bool {
	f, c := &g.fair, &g.choice
	shape := f.v.shape[row]
	some, known := c.some[int32(shape)]
	if !known {
		lacks, any, of := make([]int64, g.dims), false, g.s.Shape.Size(shape)
		for d, u := range g.s.Size(f.taker.sub) {
			lacks[d] = max(0, u-of[d])
			any = any || lacks[d] > 0
		}
		need := c.list.index.Need(lacks)
		key := sought{g.s.Sub.Shape[f.taker.sub], shape}
		some = !any || c.list.hints.First(&c.list.index, &c.list.open, &need, nil, key) != room.NoRow
		c.some[int32(shape)] = some
	}
	return some && g.givesAlone(leaf, row)
}

// mayMove tells whether a leaf may give a unit of a row of stakes to the taker, before any other.
func (g *Stage) mayMove(leaf plan.Node, row int32) bool {
	v := g.fair.v
	return v.units[row] > 0 && g.mayGive(leaf, -v.deficit(leaf), v.gives(row, 0))
}

// givesAlone tells whether a leaf may give a unit of a row of stakes to the taker, and that lowers the sum of squares.
func (g *Stage) givesAlone(leaf plan.Node, row int32) bool {
	f := &g.fair
	if f.v.units[row] <= 0 {
		return false
	}
	surplus, gives, sum := -f.v.deficit(leaf), f.v.gives(row, 0), f.taker.begin()
	sum.Add(surplus-share.Slack, gives)
	return g.mayGive(leaf, surplus, gives) && sum.Lower()
}

// strike takes units that are taken off the list of their leaf's.
func (g *Stage) strike(one *held, units int64) {
	if g.choice.list == nil || one.core {
		return
	}
	list := g.choice.units[one.leaf]
	at := unit{granted: one.granted, sub: one.sub, parcel: one.parcel}
	i, _ := slices.BinarySearchFunc(list, at, g.newerUnit)
	for ; i < len(list) && g.newerUnit(list[i], at) == 0; i++ {
		n := min(units, list[i].units)
		list[i].units, units = list[i].units-n, units-n
	}
}

// newerUnit orders units newest first.
func (g *Stage) newerUnit(a, b unit) int {
	seq := g.s.Sub.Seq
	return cmp.Or(cmp.Compare(b.granted, a.granted), cmp.Compare(seq[b.sub], seq[a.sub]),
		cmp.Compare(b.parcel, a.parcel))
}

// staying is how many of some units that the state has none has taken by now.
func (g *Stage) staying(one *unit) (units int64) {
	for i := g.open(one.parcel); i > 0; i = g.row[i].next {
		if at := &g.row[i]; at.sub == one.sub && at.granted == one.granted && at.set == noSet && !at.core {
			units += at.units
		}
	}
	return min(units, one.units)
}

// seekOne finds the first row in order of which a unit alone makes room for the taker's.
func (g *Stage) seekOne(covering []cluster.ParcelID, few bool) (cluster.ParcelID, []victim) {
	f, best := &g.fair, int32(0)
	for _, k := range covering {
		if i := g.aloneOn(k, nil); i > 0 && (best == 0 || g.giverFirst(i, best) < 0) {
			best = i
		}
	}
	if !few {
		size, c := g.s.Size(f.taker.sub), &g.choice
		c.some = map[int32]bool{}
		g.walk(g.mayAlone, func(one *unit, row room.Row) bool {
			if covers(c.list.index.Free(row), g.s.Size(one.sub), size) && g.mayUse(f.taker.sub, one.parcel, f.v.top) {
				best = g.aloneOn(one.parcel, one)
			}
			return best > 0
		})
	}
	if best == 0 {
		return cluster.NoID, nil
	}
	return g.row[best].parcel, []victim{{best, 1}}
}

// aloneOn is the first row on a parcel, among some units (nil: any), of which one alone makes room for the taker's, 0:
// none does.
func (g *Stage) aloneOn(k cluster.ParcelID, among *unit) (best int32) {
	g.s.Yield()
	f, size := &g.fair, g.s.Size(g.fair.taker.sub)
	for _, i := range g.giversOn(k) {
		one := &g.row[i]
		if among != nil && (one.sub != among.sub || one.granted != among.granted) ||
			best > 0 && g.giverFirst(best, i) < 0 {
			continue
		}
		gives := g.givesAlone(one.leaf, f.v.find(g, one.leaf, one.shape))
		if gives && covers(g.lesser(k, f.v.top), g.s.Shape.Size(one.shape), size) {
			best = i
		}
	}
	return best
}

// found is victims on a parcel who together make room for the taker's unit.
type found struct {
	parcel  cluster.ParcelID
	victims []victim
	units   int64
	first   int32 // of the rows there that may move, by which parcels stand in order
}

// seekSeveral finds victims that together make room for the taker's unit: of the first parcels in order where they do,
// on that which takes the fewest.
func (g *Stage) seekSeveral(t *trial, covering []cluster.ParcelID, few bool) (cluster.ParcelID, []victim) {
	f, list := &g.fair, []found(nil)
	try := func(k cluster.ParcelID) {
		if !g.mayUse(f.taker.sub, k, f.v.top) {
			return
		}
		rows := g.giversOn(k)
		victims := g.several(k, rows)
		first := slices.IndexFunc(rows, func(i int32) bool {
			return g.mayMove(g.row[i].leaf, f.v.find(g, g.row[i].leaf, g.row[i].shape))
		})
		if victims == nil || first < 0 {
			return
		}
		one := found{k, victims, 0, rows[first]}
		for _, v := range victims {
			one.units += v.units
		}
		list = append(list, one)
	}
	if few {
		for _, k := range covering {
			try(k)
		}
		slices.SortFunc(list, func(a, b found) int { return g.giverFirst(a.first, b.first) })
	} else {
		g.walk(g.mayMove, func(one *unit, row room.Row) bool {
			g.choice.covers[row>>6] &^= 1 << (uint(row) & 63) // once is enough
			try(one.parcel)
			return len(list) == choicesMost
		})
	}
	if len(list) < choicesMost { // the others do not count from now on
		t.few, t.parcels = true, t.parcels[:0]
		for i := range list {
			t.parcels = append(t.parcels, list[i].parcel)
		}
	}
	if len(list) == 0 {
		return cluster.NoID, nil
	}
	best := &list[0]
	for i := range list[:min(len(list), choicesMost)] {
		if list[i].units < best.units {
			best = &list[i]
		}
	}
	return best.parcel, best.victims
}
