// Package grant hands out what is free in a pool of an MD plan (MD-16, with MD-7 to MD-9, MD-18 and MD-20). Pool takes
// an environment and adds columns of decisions; it changes nothing of the state, reads no clock, and runs on
// one thread.
//
// A pool's turn: its parcels become lots, in the order in which they are used. The leaves below the pool that are short
// of something become a queue each. Then the pool is filled in rounds: a step of share usage is divided among the
// leaves, becomes whole units, and the units of all leaves are placed kind by kind. A leaf's own parcels are granted by
// the same function, unit by unit, as nobody else draws on them.
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
	race   race
	queue  pool.Queue
	only   *pool.Ask // nil: all; else the one gang that is served
	all    bool      // what that is promised, or lost in this cycle, counts for nothing
	formed bool      // some gang was given all of its min_units at once
	leaves []int32   // numbers of the leaves that are short, by line of the queue
	net    pool.Net
	seen   []bool  // by shape: scratch
	line   []int32 // by number of a node: its line in the queue
	lots   lots
	kind   []kind
	by     map[kindKey]int32
	masks  masks
	rounds rounds
	env    *Env
	top    plan.Node
	sets   Sets // nil: a pool has its turn
	moved  bool // parcels may have more room than they had

	rows   []room.Row // scratch of find, as the next two
	points [2][]uint64
	keys   []uint32
}

// New returns a Granter. It keeps no lots from turn to turn, so that eager says nothing to it.
func New(eager bool) Granter { return Granter{} }

// Pool hands out what is free in the pool of a consumer, or on a leaf's own parcels, as things are held now. The
// decisions are added to out; limits are brought up by them.
func (g *Granter) Pool(e *Env, top plan.Node, out *Decisions) {
	g.env, g.top = e, top
	if g.fill(false); len(g.leaves) == 0 {
		return
	}
	if g.layLots(g.least()); len(g.lots.list) == 0 {
		return
	}
	g.lookup()
	if e.State.Policy.Leaf(top) {
		g.fillOwn(out)
		return
	}
	g.fillInRounds(out)
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

// fillOwn gives a leaf the room of its own parcels, unit by unit, a gang at once, until nothing fits.
func (g *Granter) fillOwn(out *Decisions) {
	q := &g.queue
	for q.Advance(0) {
		at := q.Next(0)
		a := &q.Ask[at]
		units := g.give(a, out)
		a.Passed = units == 0 // nor will it fit later: room only falls
		a.Has += units
		if units > 0 {
			g.formed = g.formed || a.Least > 1
			a.Least = 1
		}
		q.Settle(0)
	}
}

// give takes room for as many units of an ask as are given at once, and returns their number: 0 where they do not fit.
func (g *Granter) give(a *pool.Ask, out *Decisions) (units int64) {
	if k := a.Kind; a.Least > 1 {
		if !g.fitsWhole(a) {
			return 0
		}
		defer g.anywhere(a, k)
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
	e := g.env
	leaf, size := plan.None, e.State.Shape.Size(a.Shape)
	if e.Limits != nil {
		leaf = e.State.Node(a.Sub)
		if over, _ := e.Limits.Over(&e.Env, leaf, g.top, size); over != plan.None {
			return 0, 0, false
		}
	}
	at, row := g.seek(a.Kind)
	if row == room.NoRow {
		return 0, 0, false
	}
	k, on = g.take(a.Kind, at, row)
	if e.Limits != nil {
		e.Limits.Add(&e.Env, leaf, g.top, size, 1)
	}
	return k, on, true
}

// seek returns the lot and the row for one unit of a kind, room.NoRow when nothing fits.
func (g *Granter) seek(i int32) (at int, row room.Row) {
	for k := &g.kind[i]; k.lot < len(g.lots.list); k.lot++ {
		if rows := g.find(i, k.lot, 1); len(rows) > 0 {
			return k.lot, rows[0]
		}
	}
	return 0, room.NoRow
}

// take takes room for a unit of a kind off a row of a lot, and returns the parcel and the devices there.
func (g *Granter) take(i int32, at int, row room.Row) (parcel cluster.ParcelID, on cluster.Devices) {
	k, l := &g.kind[i], g.lots.list[at]
	parcel = l.parcel[row]
	on = l.take(row, &k.unit[at].need)
	if k.on != nil {
		k.on[g.env.Plan.Parcels.Host[parcel]]++
	}
	return parcel, on
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
	g.seen = column.Zeros(g.seen, g.env.State.Shape.Len())
	for i := range g.queue.Ask {
		shape := g.queue.Ask[i].Shape
		if g.seen[shape] {
			continue
		}
		g.seen[shape] = true
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

// lookup gives each ask its kind.
func (g *Granter) lookup() {
	e := g.env
	g.kind, g.masks.key, g.masks.bits = g.kind[:0], g.masks.key[:0], g.masks.bits[:0]
	if g.by == nil {
		g.by = map[kindKey]int32{}
	}
	clear(g.by)
	for l, n := range g.queue.Leaf {
		key := kindKey{side: plan.None}
		if g.lots.mixed {
			if key.grace = e.State.Policy.ReclaimUS[n]; n != g.top {
				key.side = e.Toward(n, g.top)
			}
		}
		asks := g.queue.Asks(int32(l))
		last := kindKey{shape: cluster.NoID}
		for i := range asks {
			a := &asks[i]
			key.shape, key.need, key.sub = a.Shape, e.Views.Needs.Need(e.State, a.Sub), cluster.NoID
			own := a.Least > 1 || e.State.Sub.Together[a.Sub] != 0
			if own || e.State.Sub.MaxPerHost[a.Sub] != plan.Unlimited {
				key.sub = a.Sub
			}
			if key == last {
				a.Kind = asks[i-1].Kind
				continue
			}
			a.Kind, last = g.kindOf(key), key
		}
	}
}

// kindOf returns the number of a kind.
func (g *Granter) kindOf(key kindKey) int32 {
	at, ok := g.by[key]
	if !ok {
		at = int32(len(g.kind))
		g.by[key] = at
		g.open(key)
	}
	return at
}

// open adds a kind, in the memory of an earlier one where there is one.
func (g *Granter) open(key kindKey) {
	if len(g.kind) < cap(g.kind) {
		g.kind = g.kind[:len(g.kind)+1]
	} else {
		g.kind = append(g.kind, kind{})
	}
	k, e := &g.kind[len(g.kind)-1], g.env
	*k = kind{key: key, unit: k.unit}
	if key.sub != cluster.NoID && e.State.Sub.MaxPerHost[key.sub] != plan.Unlimited {
		k.most, k.on = e.State.Sub.MaxPerHost[key.sub], map[cluster.HostID]int64{}
		h := &e.State.Holding
		for q := e.State.Sub.First[key.sub]; q != cluster.NoID; q = h.NextOfSub[q] {
			k.on[e.Plan.Parcels.Host[h.Parcel[q]]] += h.Units[q]
		}
	}
	for i := range k.unit {
		k.unit[i].begun = false
	}
}
