//go:build !rounds

// Package grant hands out what is free in a pool of an MD plan (MD-16, with MD-7 to MD-9 and MD-18): unit by unit,
// always to the consumer that has least for its share, always to the parcel that the rules of placement name. Pool is
// given an environment and gives back columns of decisions; it changes nothing of the state, knows no clock, and runs
// on one thread.
//
// A pool's turn: its parcels become lots, in the order in which they are used; the leaves below it that are short of
// something become a queue each; then the loop. A leaf's own parcels are granted by the same function, the leaf being
// the pool's consumer.
package grant

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/room"
)

// Env is what a pool's turn goes by.
type Env struct {
	pool.Env
	Promises *pool.Promises
	Limits   *pool.Limits           // nil: the plan sets no share limit
	Undone   map[cluster.SubID]bool // grants of them were taken back in this cycle: they get nothing more in it (CYC-1)
}

// Decisions are units that are granted, a row for each, in the order in which they were.
type Decisions struct {
	Sub    column.Vector[cluster.SubID]
	Parcel column.Vector[cluster.ParcelID]
	On     column.Vector[cluster.Devices] // where the plan has devices, else without rows
}

// add adds a row.
func (d *Decisions) add(e *Env, sub cluster.SubID, k cluster.ParcelID, on cluster.Devices) {
	d.Sub.Add(sub)
	if d.Parcel.Add(k); e.Plan.HasDevices() {
		d.On.Add(on)
	}
}

// Granter is the memory of pools' turns. The zero value is ready. What a pool is given is booked before its next turn.
type Granter struct {
	Eager bool // what saves time where parcels are many is done wherever it may be. It decides nothing

	race   race
	queue  pool.Queue
	given  int32     // the ask that was served last
	units  int64     // that it was given
	only   *pool.Ask // nil: all; else the one gang that is served
	all    bool      // what that is promised, or lost in this cycle, counts for nothing
	formed bool      // some gang was given all of its min_units at once
	leaves []int32   // numbers of the leaves that are short, by line of the queue
	kinds  kinds
	net    pool.Net
	stake  []int64
	line   []int32 // by number of a node: its queue
	lots   []*lot  // of the pool in turn
	shelf  shelf
	search []search
	masks  masks
	by     map[searchKey]int32
	env    *Env
	top    plan.Node
	mixed  bool // some lot is
	sets   Sets // nil: a pool has its turn
	moved  bool // parcels may have more room than they had
}

// New returns a Granter. With eager it keeps lots wherever it may.
func New(eager bool) Granter { return Granter{Eager: eager} }

// Pool hands out what is free in the pool of a consumer, or on a leaf's own parcels, as things are held now. The
// decisions are added to out; limits are brought up by them. O(units × (depth × log children + what finding a parcel
// takes), parcels and sub-allocations below the consumer).
func (g *Granter) Pool(e *Env, top plan.Node, out *Decisions) {
	g.env, g.top = e, top
	if g.fill(false); len(g.leaves) == 0 {
		return
	}
	if g.layLots(g.least()); len(g.lots) == 0 {
		return
	}
	g.net.Sum(&e.Env, e.Promises, top)
	g.lookup()
	if e.State.Policy.Leaf(top) {
		for g.serve(0, out) {
		}
		return
	}
	g.stake = g.net.Stakes(&e.Env, g.stake)
	g.kinds.fill(e, &g.queue, &g.net, top)
	if !g.race.begin(&e.Env, top, g.leaves, g.stake) {
		return
	}
	g.line = column.Zeros(g.line, len(g.stake))
	for l, leaf := range g.leaves {
		g.line[leaf] = int32(l)
	}
	for leaf := g.race.next(); leaf != nobody; leaf = g.race.next() {
		l, usage := g.line[leaf], int64(0)
		given := g.serve(l, out)
		if given {
			usage = g.kinds.next(g.queue.Ask[g.given].Kind)
			for range g.units - 1 {
				usage += g.kinds.next(g.queue.Ask[g.given].Kind)
			}
		}
		g.race.served(leaf, usage, given && g.queue.Advance(l))
	}
}

// fill lists what the leaves of the pool are short of beside what they are promised, of those that may draw on it; with
// all, what is promised besides. O(sub-allocations below the pool's consumer).
func (g *Granter) fill(all bool) {
	e, t, top := g.env, g.env.State.Policy, g.top
	g.queue.Reset()
	g.leaves = g.leaves[:0]
	has := func(sub cluster.SubID) int64 {
		switch held := e.State.Sub.Held[sub]; {
		case g.all && g.only.Sub == sub:
			return held
		case e.Undone[sub] || g.only != nil && g.only.Sub != sub:
			return e.State.Sub.Wanted[sub]
		case all:
			return held
		default:
			return held + e.Promises.Units[sub]
		}
	}
	grace := e.Grace(top, top)
	for leaf := top; leaf < t.End[top]; leaf++ {
		if g.only != nil && leaf != e.State.Node(g.only.Sub) {
			continue
		}
		if t.Leaf(leaf) && e.Plan.Terms.Member[leaf] && t.ReclaimUS[leaf] <= grace && !e.Barred(top, leaf) &&
			g.queue.Add(&e.Env, leaf, has) {
			g.leaves = append(g.leaves, int32(leaf-top))
		}
	}
}

// serve gives a leaf one unit, or all of a gang's min_units, of the ask whose turn it is or, where nothing of that
// fits, of the next; false when nothing fits.
func (g *Granter) serve(l int32, out *Decisions) bool {
	q := &g.queue
	for q.Advance(l) {
		at := q.Next(l)
		a := &q.Ask[at]
		units := g.give(a, out)
		if units > 0 {
			a.Has += units
			g.formed = g.formed || a.Least > 1
			a.Least, g.given, g.units = 1, at, units
		} else {
			a.Passed = true // nor will it in this loop: free room only falls
		}
		if q.Settle(l); units > 0 {
			return true
		}
	}
	return false
}

// give takes room for as many units of an ask as are given at once, and gives their number: 0 where they do not fit.
func (g *Granter) give(a *pool.Ask, out *Decisions) (units int64) {
	if search := a.Search; a.Least > 1 {
		if !g.fitsWhole(a) {
			return 0
		}
		defer g.anywhere(a, search)
	}
	for units < a.Least {
		k, on, ok := g.place(a)
		if !ok {
			break
		}
		out.add(g.env, a.Sub, k, on)
		units++
	}
	if units > 0 && units < a.Least {
		panic(fmt.Sprintf("BUG: %d of a gang of %d units fit", units, a.Least))
	}
	return units
}

// place takes room for one unit of an ask; false when there is none, or a share limit stands against it.
func (g *Granter) place(a *pool.Ask) (k cluster.ParcelID, on cluster.Devices, ok bool) {
	g.env.State.Yield()
	e := g.env
	leaf := plan.None
	if e.Limits != nil {
		leaf = e.State.Node(a.Sub)
		if over, _ := e.Limits.Over(&e.Env, leaf, g.top, e.State.Shape.Size(a.Shape)); over != plan.None {
			return 0, 0, false
		}
	}
	s := &g.search[a.Search]
	for ; s.lot < len(g.lots); s.lot++ {
		row := g.seek(s, s.lot)
		if row == room.NoRow {
			continue
		}
		if k, on = g.take(s, s.lot, row); e.Limits != nil {
			e.Limits.Add(&e.Env, leaf, g.top, e.State.Shape.Size(a.Shape), 1)
		}
		return k, on, true
	}
	return 0, 0, false
}

// seek is the row of a lot for one unit of a search, room.NoRow when nothing fits there.
func (g *Granter) seek(s *search, at int) room.Row {
	l, f := g.lots[at], g.finder(s, at)
	for {
		row := f.find(l)
		if row == room.NoRow || s.on == nil || s.on[g.env.Plan.Parcels.Host[l.parcel[row]]] < s.most {
			return row
		}
		f.mask[row>>6] &^= 1 << (uint(row) & 63)
	}
}

// take takes room for a unit of a search off a row of a lot, and gives the parcel and the devices there.
func (g *Granter) take(s *search, at int, row room.Row) (k cluster.ParcelID, on cluster.Devices) {
	l := g.lots[at]
	k = l.parcel[row]
	if on = l.take(row, &s.unit[at].need); s.on != nil {
		s.on[g.env.Plan.Parcels.Host[k]]++
	}
	return k, on
}

// room is what a parcel has free for the pool's turn.
func (g *Granter) room(k cluster.ParcelID, free, rest []int64) (less bool) {
	if g.sets != nil {
		return g.sets.Room(k, g.top, free, rest)
	}
	return g.env.Promises.Room(k, g.top, free, rest)
}

// least is, by dimension, the least that any ask takes: a parcel with less is of no use.
func (g *Granter) least() []int64 {
	var least []int64
	seen := column.Zeros(g.kinds.last, g.env.State.Shape.Len())
	g.kinds.last = seen
	for i := range g.queue.Ask {
		shape := g.queue.Ask[i].Shape
		if seen[shape] > 0 {
			continue
		}
		seen[shape] = 1
		size := g.env.State.Shape.Size(shape)
		if least == nil {
			least = slices.Clone(size)
		}
		for d, v := range size {
			least[d] = min(least[d], v)
		}
	}
	return least
}

// preference is a consumer's for the first of the plan's groups that has a parcel's host.
func (e *Env) preference(n plan.Node, k cluster.ParcelID) int8 {
	return e.Views.Needs.Preference(e.State, e.Plan, e.Window, n, k)
}

// lookup gives each ask its search, at the first lot.
func (g *Granter) lookup() {
	e := g.env
	g.search, g.masks.key, g.masks.bits = g.search[:0], g.masks.key[:0], g.masks.bits[:0]
	g.by = map[searchKey]int32{}
	for l, n := range g.queue.Leaf {
		key := searchKey{side: plan.None, sub: cluster.NoID}
		if g.mixed {
			if key.grace = e.State.Policy.ReclaimUS[n]; n != g.top {
				key.side = e.Toward(n, g.top)
			}
		}
		asks := g.queue.Asks(int32(l))
		for i := range asks {
			a := &asks[i]
			key.shape, key.need, key.sub = a.Shape, e.Views.Needs.Need(e.State, a.Sub), cluster.NoID
			if e.State.Sub.MaxPerHost[a.Sub] != plan.Unlimited {
				key.sub = a.Sub
			}
			a.Search = g.searchOf(key)
		}
	}
}

// searchOf is the number of the search of a key.
func (g *Granter) searchOf(key searchKey) int32 {
	at, ok := g.by[key]
	if !ok {
		at = int32(len(g.search))
		g.by[key] = at
		g.open(key)
	}
	return at
}

// open adds a search, in the memory of an earlier one where there is one.
func (g *Granter) open(key searchKey) {
	if len(g.search) < cap(g.search) {
		g.search = g.search[:len(g.search)+1]
	} else {
		g.search = append(g.search, search{})
	}
	s, e := &g.search[len(g.search)-1], g.env
	s.key, s.lot, s.on = key, 0, nil
	if key.sub != cluster.NoID {
		s.most, s.on = e.State.Sub.MaxPerHost[key.sub], map[cluster.HostID]int64{}
		h := &e.State.Holding
		for q := e.State.Sub.First[key.sub]; q != cluster.NoID; q = h.NextOfSub[q] {
			s.on[e.Plan.Parcels.Host[h.Parcel[q]]] += h.Units[q]
		}
	}
	for i := range s.unit {
		s.unit[i].begun = false
	}
}

// finder is where a search is in a lot.
func (g *Granter) finder(s *search, at int) *finder {
	for len(s.unit) <= at {
		s.unit = append(s.unit, finder{})
	}
	f := &s.unit[at]
	if f.begun {
		return f
	}
	l, e := g.lots[at], g.env
	selected, turn := e.Views.Needs.Of(e.State, e.Plan, s.key.need)
	mask := g.masks.of(l, maskKey{at, s.key.need, s.key.side, s.key.grace}, selected)
	if s.on != nil { // it gets bits of its own, as hosts fill up for it
		own := make([]uint64, (len(l.parcel)+63)/64)
		for i := range own {
			own[i] = ^uint64(0)
			if mask != nil {
				own[i] = mask[i]
			}
		}
		mask = own
	}
	f.begin(l, s.key.shape, e.State.Shape.Size(s.key.shape), mask, l.inOrder(selected, turn), turn != nil)
	return f
}
