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

// choice is how victims for a share are found in the pool in turn: by an index of what parcels would have free if all
// leaves with a surplus gave what they hold there.
type choice struct {
	list  *waitList // of the pool's parcels
	all   offers    // of leaves with a surplus
	keen  offers    // of those of them that have keen units
	units map[plan.Node][]unit

	// Scratch.
	tried   []uint64 // bitset of rows
	pieces  []piece
	firsts  []piece
	parcels []cluster.ParcelID
	pairs   []int32
	victims []victim
	need    need
	tallies [2]tally
}

// offers is an index of what the pool's parcels would have free, net, if all of some leaves gave what they hold there.
type offers struct {
	known   bool
	counts  func(leaf plan.Node) bool // whether a leaf is one of those
	counted []bool                    // by leaf: whether it is in the index
	index   room.Index
	set     room.Set
	hints   room.Hints[cluster.ShapeID]
}

// unit is units of a leaf on a parcel that may be taken one day. Units that a gang may not do without have the place of
// the newest of them (MD-17.7).
type unit struct {
	granted int64
	since   int64 // the cycle of its own grant
	place   cluster.ParcelID
	sub     cluster.SubID
	parcel  cluster.ParcelID
	units   int64
	core    bool
}

// begin readies the choice for the turns of a pool.
func (c *choice) begin(g *Stage, top plan.Node) {
	c.list, c.units = g.waitsAt(top), map[plan.Node][]unit{}
	c.tried = column.Zeros(c.tried, (len(c.list.parcel)+63)/64)
	c.all.known, c.all.counts = false, func(leaf plan.Node) bool { return g.fair.givers.has(leaf) }
	c.keen.known, c.keen.counts = false, func(leaf plan.Node) bool { return g.fair.keen[leaf-top] > 0 }
}

// offersFor returns the offers of leaves of which units may be in an allowed move for the taker, and maybe of others.
func (g *Stage) offersFor() *offers {
	if f := &g.fair; f.free || g.lowerGives() {
		return g.layOffers(&g.choice.all)
	}
	return g.layOffers(&g.choice.keen)
}

// layOffers lays out the offers of some leaves with a surplus. O(parcels of the pool, and what those hold from it) for
// the first time in the pool's turns.
func (g *Stage) layOffers(o *offers) *offers {
	c, f := &g.choice, &g.fair
	if o.known {
		return o
	}
	o.known, o.counted = true, column.Zeros(o.counted, len(f.v.stake))
	o.index.Reset(len(c.list.parcel), g.mostOf(c.list.parcel))
	o.set.Reset(len(c.list.parcel))
	o.hints.Reset()
	for row := range room.Row(len(c.list.parcel)) {
		copy(o.index.Free(row), c.list.index.Free(row))
	}
	f.givers.backward(func(leaf plan.Node) bool {
		if !o.counts(leaf) {
			return false
		}
		o.counted[leaf-f.v.top] = true
		g.eachHeld(leaf, func(row room.Row, _ cluster.ParcelID, size []int64, units int64) {
			add(o.index.Free(row), size, units)
		})
		return false
	})
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
func (g *Stage) eachHeld(leaf plan.Node, f func(row room.Row, k cluster.ParcelID, size []int64, units int64)) {
	held := g.Views.ByLeaf.From(leaf, g.ID(g.fair.v.top))
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

// unitsOf is what a leaf holds from the pool in turn that was not under reclaim when the stage began, and may be taken,
// the newest first.
func (g *Stage) unitsOf(leaf plan.Node) []unit {
	c, h := &g.choice, &g.s.Holding
	list, ok := c.units[leaf]
	if ok {
		return list
	}
	from := g.ID(g.fair.v.top)
	g.EachSub(leaf, func(sub cluster.SubID) {
		for q := g.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
			k := h.Parcel[q]
			if h.Pool[q] != from || h.Set[q] != cluster.NoID && !has(g.altered, int(k)) {
				continue
			}
			gang, youngGang := g.gangOf(sub), g.isYoungGang(sub)
			core := gang.core[q]
			if core > 0 && !youngGang {
				list = append(list, unit{
					granted: h.Granted[gang.newest], since: h.Granted[q], place: h.Parcel[gang.newest], sub: sub,
					parcel: k, units: core, core: true,
				})
			}
			young := g.isYoung(leaf, h.Granted[q])
			if rest := h.Units[q] - core; rest > 0 && !young {
				list = append(list, unit{granted: h.Granted[q], place: k, sub: sub, parcel: k, units: rest})
			}
			g.noteYoung(young || youngGang)
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

// noteYoung notes that units were left alone that are young: they will not be for ever.
func (g *Stage) noteYoung(young bool) {
	if young {
		g.out.Again, g.out.Young = true, true
	}
}

// strike takes units that are taken off the list of their leaf's.
func (g *Stage) strike(one *held, units int64) {
	if g.choice.list == nil {
		return
	}
	list := g.choice.units[one.leaf]
	i := 0
	if !one.core {
		at := unit{granted: one.granted, sub: one.sub, place: one.parcel}
		i, _ = slices.BinarySearchFunc(list, at, g.newerUnit)
	}
	for ; i < len(list) && units > 0; i++ {
		if u := &list[i]; u.sub == one.sub && u.parcel == one.parcel && u.core == one.core &&
			(u.core || u.granted == one.granted) {
			n := min(units, u.units)
			u.units, units = u.units-n, units-n
		}
	}
}

// newerUnit orders units newest first.
func (g *Stage) newerUnit(a, b unit) int {
	seq := g.s.Sub.Seq
	if c := cmp.Or(cmp.Compare(b.granted, a.granted), cmp.Compare(seq[b.sub], seq[a.sub]),
		cmp.Compare(b.place, a.place)); c != 0 {
		return c
	}
	switch {
	case a.core && b.core:
		return cmp.Or(cmp.Compare(b.since, a.since), cmp.Compare(b.parcel, a.parcel))
	case a.core:
		return 1
	case b.core:
		return -1
	}
	return 0
}

// isRow reports whether a row is of some units, and stays.
func (u *unit) isRow(at *held) bool {
	return at.sub == u.sub && at.set == noSet && at.core == u.core && (u.core || at.granted == u.granted)
}

// staying is how many of some units that the state has none has taken by now.
func (g *Stage) staying(one *unit) (units int64) {
	for i := g.open(one.parcel); i > 0; i = g.row[i].next {
		if at := &g.row[i]; one.isRow(at) {
			units += at.units
		}
	}
	return min(units, one.units)
}

const (
	choicesMost = 16 // among how many parcels with a move the least one is chosen
	fewMost     = 64 // how many parcels at most are looked at one by one, wherever their units stand in order
)

// choose finds the move that serves the taker's unit, nil: there is none.
func (g *Stage) choose() *move {
	f := &g.fair
	if !g.anyGives() {
		return nil
	}
	over := g.passed(f.taker.leaf, f.v.top, g.s.Size(f.taker.sub))
	switch k := g.fits(); {
	case k != cluster.NoID && len(over) == 0:
		return nil // it has room, and waits for no one
	case k != cluster.NoID:
		return g.moveFor(k, over)
	}
	o := g.offersFor()
	need := o.index.Need(g.s.Size(f.taker.sub))
	var best *move
	found := 0
	try := func(k cluster.ParcelID) (done bool) {
		m := g.moveOn(k, over)
		if m == nil {
			return false
		}
		if best == nil || m.before(best) {
			best = m
		}
		found++
		return found == choicesMost
	}
	if !g.covering(o, &need) {
		g.walk(o, try)
		return best
	}
	c := &g.choice
	c.firsts = c.firsts[:0]
	for _, k := range c.parcels {
		if pieces := g.piecesOn(k); len(pieces) > 0 {
			c.firsts = append(c.firsts, slices.MinFunc(pieces, g.inOrderOf))
		}
	}
	slices.SortFunc(c.firsts, func(a, b piece) int {
		return cmp.Or(g.inOrderOf(a, b), g.newer(&g.row[a.row], &g.row[b.row]))
	})
	for i := range c.firsts {
		if try(g.row[c.firsts[i].row].parcel) {
			break
		}
	}
	return best
}

// lowerGives reports whether a leaf with a surplus is below a sibling of lower share priority (MD-17.4, (i)).
func (g *Stage) lowerGives() bool {
	r := &g.fair.givers
	for i := int32(g.fair.taker.leaf - r.top); i > 0; i = r.up(i) {
		list := r.list[r.up(i)]
		if len(list) > 0 && r.priorityOf(list[len(list)-1]) < r.priorityOf(i) {
			return true
		}
	}
	return false
}

// anyGives reports whether any unit may be in an allowed move for the taker. O(depth), and siblings with a surplus
// where some are keen.
func (g *Stage) anyGives() bool {
	f, r := &g.fair, &g.fair.givers
	for i := int32(f.taker.leaf - r.top); i > 0; i = r.up(i) {
		up := r.up(i)
		own := r.priorityOf(i)
		for _, j := range slices.Backward(r.list[up]) {
			priority := r.priorityOf(j)
			if priority > own || priority == own && (f.pass == byPriority || !f.free && f.keen[up] == f.keen[i]) {
				break
			}
			if j != i && (priority < own || f.free || f.keen[j] > 0) {
				return true
			}
		}
	}
	return false
}

// mayGive reports whether units of a row of stakes, or a whole gang among these, may be in an allowed move for the
// taker (MD-17.3).
func (g *Stage) mayGive(leaf plan.Node, row int32, gang bool) bool {
	f := &g.fair
	a, b := g.parting(f.taker.leaf, leaf)
	switch c := cmp.Compare(g.Window.Priority[a], g.Window.Priority[b]); {
	case c > 0:
		return true
	case c < 0 || f.pass == byPriority:
		return false
	case gang:
		return f.within
	}
	return f.free || g.isKeen(leaf, row)
}

// isKeen reports whether the surplus of a leaf is its band for a unit of a row of stakes: then such a unit may be in an
// allowed move whatever the taker's deficit.
func (g *Stage) isKeen(leaf plan.Node, row int32) bool {
	v := g.fair.v
	return v.units[row] > 0 && v.surplus(leaf)+share.Slack >= g.band(v, leaf, v.gives(row, 0, 1))
}

// beginTaker notes who looks for victims.
func (g *Stage) beginTaker(t taker) {
	f := &g.fair
	f.taker = t
	f.within = t.gets <= t.deficit+share.Slack
	f.free = f.within || t.deficit+share.Slack >= g.band(f.v, t.leaf, t.gets)
}

// countKeen brings up whether a leaf has a surplus and keen units.
func (g *Stage) countKeen(leaf plan.Node) {
	f, r := &g.fair, &g.fair.givers
	keen := int32(0)
	if r.has(leaf) && g.anyKeen(leaf) {
		keen = 1
	}
	i := int32(leaf - r.top)
	change := keen - f.keen[i]
	if change == 0 {
		return
	}
	for ; i > 0; i = r.up(i) {
		f.keen[i] += change
	}
	f.keen[0] += change
}

// anyKeen reports whether any unit of a leaf is keen.
func (g *Stage) anyKeen(leaf plan.Node) bool {
	return g.fair.v.eachRow(leaf, func(row int32) bool { return g.isKeen(leaf, row) })
}

// fits is the first parcel on which the taker's unit fits but for share limits, NoID: there is none.
func (g *Stage) fits() cluster.ParcelID {
	w, sub, top := g.choice.list, g.fair.taker.sub, g.fair.v.top
	need := w.index.Need(g.s.Size(sub))
	mask := w.masks.of(g, sub, top, w.parcel)
	next := func(from room.Row) room.Row { return w.index.First(&w.open, &need, from, mask) }
	for row := next(0); row != room.NoRow; row = next(row + 1) {
		if k := w.parcel[row]; g.mayUse(sub, k, top) && covers(g.lesser(k, top), g.none(), g.s.Size(sub)) {
			return k
		}
	}
	return cluster.NoID
}

// covering lists the parcels that may offer enough for the taker's unit, few false when they are many.
func (g *Stage) covering(o *offers, need *room.Need) (few bool) {
	f, c := &g.fair, &g.choice
	mask := c.list.masks.of(g, f.taker.sub, f.v.top, c.list.parcel)
	row := o.hints.First(&o.index, &o.set, need, mask, g.s.Sub.Shape[f.taker.sub])
	c.parcels = c.parcels[:0]
	for ; row != room.NoRow; row = o.index.First(&o.set, need, row+1, mask) {
		if k := c.list.parcel[row]; g.mayUse(f.taker.sub, k, f.v.top) {
			c.parcels = append(c.parcels, k)
			if len(c.parcels) > cmp.Or(g.Few, fewMost) {
				return false
			}
		}
	}
	return true
}

// walk calls try for the parcels that may offer enough for the taker's unit, in the order of the first victim on them,
// until it is done.
func (g *Stage) walk(o *offers, try func(k cluster.ParcelID) (done bool)) {
	f, c := &g.fair, &g.choice
	size := g.s.Size(f.taker.sub)
	clear(c.tried)
	g.eachGiver(func(leaf plan.Node, all bool) bool {
		units := g.unitsOf(leaf)
		for i := range units {
			one := &units[i]
			row := c.list.row(one.parcel)
			if one.units == 0 || has(c.tried, int(row)) {
				continue
			}
			may := o.set.Has(row) && covers(o.index.Free(row), g.none(), size)
			if may && !g.isVictim(leaf, one, all) {
				continue // another unit there may be one
			}
			c.tried[row>>6] |= 1 << (uint(row) & 63)
			if may && g.mayUse(f.taker.sub, one.parcel, f.v.top) && try(one.parcel) {
				return true
			}
		}
		return false
	})
}

// isVictim reports whether units of a leaf that eachGiver visits may be in an allowed move.
func (g *Stage) isVictim(leaf plan.Node, one *unit, all bool) bool {
	f := &g.fair
	switch {
	case all:
		return true
	case one.core:
		return f.within
	}
	return f.free || g.isKeen(leaf, f.v.find(g, leaf, g.s.Sub.Shape[one.sub]))
}

// eachGiver calls visit, in the order of the mirrored walk, for the leaves with a surplus of which units may be in an
// allowed move for the taker, until it is done. All: each of the leaf's units may, as it is of lower share priority.
func (g *Stage) eachGiver(visit func(leaf plan.Node, all bool) (done bool)) { g.giversBelow(0, visit) }

// giversBelow is eachGiver below a consumer on the taker's way.
func (g *Stage) giversBelow(up int32, visit func(leaf plan.Node, all bool) bool) (done bool) {
	f, r := &g.fair, &g.fair.givers
	at := f.v.top + plan.Node(up)
	if r.tree.Leaf(at) {
		return false // the taker
	}
	own := int32(g.Toward(f.taker.leaf, at) - f.v.top)
	for _, i := range slices.Backward(r.list[up]) {
		switch lower := r.priorityOf(i) < r.priorityOf(own); {
		case i == own:
			done = g.giversBelow(i, visit)
		case lower:
			done = r.backwardFrom(i, func(leaf plan.Node) bool { return visit(leaf, true) })
		case r.priorityOf(i) > r.priorityOf(own):
			return false // so are all that follow
		case f.pass > byPriority && (f.free || f.keen[i] > 0):
			done = r.backwardFrom(i, func(leaf plan.Node) bool {
				return (f.free || f.keen[leaf-f.v.top] > 0) && visit(leaf, false)
			})
		}
		if done {
			return true
		}
	}
	return false
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
	for _, o := range [...]*offers{&c.all, &c.keen} {
		if o.known {
			g.offer(o, c.list.row(k), k)
		}
	}
}

// recount takes all that a leaf holds into offers, where it has come to count, or out of them.
func (g *Stage) recount(leaf plan.Node) {
	g.recountIn(&g.choice.all, leaf)
	g.recountIn(&g.choice.keen, leaf)
}

// recountIn is recount for one of them.
func (g *Stage) recountIn(o *offers, leaf plan.Node) {
	id := leaf - g.fair.v.top
	if !o.known || o.counted[id] == o.counts(leaf) {
		return
	}
	sign := int64(-1)
	o.counted[id] = !o.counted[id]
	if o.counted[id] {
		sign = 1
	}
	g.eachHeld(leaf, func(row room.Row, k cluster.ParcelID, size []int64, units int64) {
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

// isInPool tells whether units stay that a leaf holds from the pool in turn.
func (g *Stage) isInPool(one *held) bool {
	top := g.fair.v.top
	return one.set == noSet && one.units > 0 && one.pool == g.ID(top) && g.within(one.leaf, top)
}
