package reclaim

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
)

// held is units of one holding that are alike: all of them stay, or all are under one set.
type held struct {
	sub          cluster.SubID
	shape        cluster.ShapeID
	leaf         plan.Node // plan.None: an orphan's
	pool, lender cluster.ConsumerID
	parcel       cluster.ParcelID
	set          int32 // noSet: they stay
	next         int32 // of the parcel; 0 and below: none
	granted      int64
	units, due   int64
	chosen       int64 // among the victims of a set: the later the larger
	core         bool  // a gang may not do without them (REQ-3)
	on           int32 // on which devices each lies: its place in ledger.devices, 0: on none
}

// noSet is the set of what stays.
const noSet = -1

// ledger is what is held on the parcels that were looked at, and the room of all parcels, as the stage has decided
// so far.
type ledger struct {
	first   []int32  // by ParcelID: its first row, 0: it was not looked at, -1: it has none
	row     []held   // from 1 on
	chosen  int64    // counts victims
	free    []int64  // by ParcelID, then dimension: free beside what sets keep, and what is missing on the host
	stay    []int64  // likewise: what units that stay leave; may be below 0
	due     []int64  // likewise: what sets promise there, and those who join: nil: nothing
	below   []uint64 // bitset of parcels of which more is held than they have
	leaves  int64    // units under reclaim
	altered []uint64 // bitset of parcels where the stage has decided anything about what stays
	short   []uint64 // bitset of parcels on hosts with parcels of which more is held than they have; nil: none
	buffer  [3][]int64
	devices []cluster.Devices // that units lie on, each once

	source
	seen    int64    // rows of the log that rooms and wait lists know
	touched []uint64 // bitset of parcels of which they say anything that the state does not, or did not
	laid    []uint64 // bitset of those that were laid when the stage began
}

// source is what rooms, and lists of them, are kept of from one beginning to the next.
type source struct {
	state    *cluster.State
	plan     string
	window   *plan.MDWindow
	tables   int64 // State.HostTables
	reserves int   // Reserves.Version
}

// layLedger lays out the room of parcels, sets and joins left aside: of those alone on which anything changed since the
// stage began last, or was decided then, where the log tells all; else it is false. O(parcels ÷ 64 and those), or
// O(parcels × dimensions).
func (g *Stage) layLedger() (kept bool) {
	l, p, n := &g.ledger, &g.p.Parcels, g.p.Parcels.Len()
	l.first, l.row, l.chosen, l.leaves = column.Zeros(l.first, n), append(l.row[:0], held{}), 0, 0
	l.devices = append(l.devices[:0], 0)
	l.altered = column.Zeros(l.altered, p.Words())
	for i := range l.buffer {
		l.buffer[i] = column.Zeros(l.buffer[i], g.dims)
	}
	if kept = g.followLog(); !kept {
		for _, rooms := range []*[]int64{&l.free, &l.stay, &l.due} {
			*rooms = column.Zeros(*rooms, n*g.dims)
		}
		for _, set := range []*[]uint64{&l.touched, &l.laid, &l.below} {
			*set = column.Zeros(*set, p.Words())
		}
		for k := range cluster.ParcelID(n) {
			g.layRoom(k)
		}
	} else {
		eachBit(l.touched, func(k cluster.ParcelID) {
			for at, end := p.Begin(k), p.End(k); at < end; at++ { // what one has too little is missing on all of a host
				g.touch(at)
				g.layRoom(at)
			}
		})
		l.laid, l.touched = l.touched, column.Zeros(l.laid, p.Words())
	}
	l.short = nil
	eachBit(l.below, func(k cluster.ParcelID) {
		if l.short == nil {
			l.short = make([]uint64, p.Words())
		}
		for at, end := p.Begin(k), p.End(k); at < end; at++ {
			l.short[at>>6] |= 1 << (uint(at) & 63)
		}
	})
	return kept
}

// followLog touches the parcels that rows of the log name; it is false where the log does not tell all that is not as
// it was.
func (g *Stage) followLog() (kept bool) {
	l, log := &g.ledger, &g.s.Changes
	now := source{g.s, g.p.Name, g.Window, g.s.HostTables, g.Views.Reserves.Version()}
	from, ok := log.Follow(l.seen, g.p.Index)
	ok = ok && l.source == now
	l.source, l.seen = now, log.Count()
	for i := from; ok && i < log.Kind.Len(); i++ {
		if log.Plan.At(i) == g.p.Index {
			ok = log.Kind.At(i) != cluster.ChangeResized
			g.touch(log.Parcel.At(i))
		}
	}
	return ok
}

// layRoom lays out the room of one parcel.
func (g *Stage) layRoom(k cluster.ParcelID) {
	l, p, below := &g.ledger, &g.p.Parcels, false
	free, stay := g.of(l.free, k), g.of(l.stay, k)
	clear(g.of(l.due, k))
	for d := range stay {
		stay[d], free[d] = p.Free[d][k], p.Available(d, k)
		below = below || stay[d] < 0
	}
	if l.below[k>>6] &^= 1 << (uint(k) & 63); below && p.Owned {
		l.below[k>>6] |= 1 << (uint(k) & 63)
	}
}

// touch notes that something is decided on a parcel, or changed there.
func (g *Stage) touch(k cluster.ParcelID) { g.touched[k>>6] |= 1 << (uint(k) & 63) }

// eachBit calls f for the parcels of a bitset, in order; for those, too, that f adds behind its own.
func eachBit(set []uint64, f func(k cluster.ParcelID)) {
	for w := range set {
		for i := bits.TrailingZeros64(set[w]); i < 64; i += 1 + bits.TrailingZeros64(set[w]>>(i+1)) {
			f(cluster.ParcelID(w<<6 + i))
		}
	}
}

// of is a parcel's part of a column of rooms.
func (g *Stage) of(column []int64, k cluster.ParcelID) []int64 {
	at := int(k) * g.dims
	return column[at : at+g.dims : at+g.dims]
}

// netFree computes what will be free on a parcel once sets under way are done, reserves left aside: what is missing on
// the host then, as other parcels hold more than they have, is taken off (docs/ownership.md).
func (g *Stage) netFree(k cluster.ParcelID, dst []int64) {
	l := &g.ledger
	stay, due := g.of(l.stay, k), g.of(l.due, k)
	for d := range dst {
		dst[d] = stay[d] - due[d]
	}
	if l.short == nil || !has(l.short, int(k)) {
		return
	}
	begin, end := g.p.Parcels.Begin(k), g.p.Parcels.End(k)
	for d := range dst {
		missing := int64(0)
		for i := begin; i < end; i++ {
			missing += max(0, -g.of(l.stay, i)[d])
		}
		for i := begin; i < k; i++ {
			missing -= min(missing, max(0, g.of(l.stay, i)[d]))
		}
		dst[d] -= min(missing, max(0, stay[d]))
	}
}

// open takes down what is held on a parcel, the first time, and gives its first row.
func (g *Stage) open(k cluster.ParcelID) int32 {
	l, h := &g.ledger, &g.s.Holding
	if l.first[k] != 0 {
		return l.first[k]
	}
	l.first[k] = -1
	for q := g.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		sub := h.Sub[q]
		one := held{
			sub: sub, shape: g.s.Sub.Shape[sub], leaf: g.s.Node(sub), pool: h.Pool[q], lender: h.Lender[q], parcel: k,
			granted: h.Granted[q], units: h.Units[q], set: noSet,
		}
		if on := h.On(q); on != 0 {
			one.on = l.placeOf(on)
		}
		if core := g.coreOf(q); core > 0 {
			rest := one
			one.core, one.units = true, core
			if rest.units -= core; rest.units > 0 {
				g.insert(rest)
			}
		}
		if id := h.Set[q]; id != cluster.NoID {
			one.set, one.due = g.sets.of[id], h.Due[q]
			for at := g.s.Set.First[id]; at != q; at = h.NextOfSet[at] {
				one.chosen--
			}
		}
		g.insert(one)
	}
	return l.first[k]
}

// placeOf is the place of some devices in the list of those that units lie on. There are few that differ.
func (l *ledger) placeOf(on cluster.Devices) int32 {
	at := slices.Index(l.devices, on)
	if at < 0 {
		at = len(l.devices)
		l.devices = append(l.devices, on)
	}
	return int32(at)
}

// insert adds a row to its parcel.
func (g *Stage) insert(one held) int32 {
	l := &g.ledger
	at := int32(len(l.row))
	one.next = l.first[one.parcel]
	l.row, l.first[one.parcel] = append(l.row, one), at
	return at
}

// split makes a row of so many of a row's units, unless those are all.
func (g *Stage) split(i int32, units int64) int32 {
	one := g.row[i]
	if units == one.units {
		return i
	}
	g.row[i].units -= units
	one.units = units
	return g.insert(one)
}

// tell is the row of decisions about a row's units.
func (g *Stage) tell(kind Kind, i int32, set, other cluster.SetID) {
	g.tellOf(kind, i, g.row[i].units, set, other)
}

// tellOf is the row of decisions about so many of a row's units.
func (g *Stage) tellOf(kind Kind, i int32, units int64, set, other cluster.SetID) {
	one := &g.row[i]
	g.out.add(Row{
		Kind: kind, Set: set, Other: other, Sub: one.sub, Parcel: one.parcel, Pool: one.pool, Lender: one.lender,
		Granted: one.granted, Units: units, Due: one.due, On: g.ledger.devices[one.on],
	})
}

// take puts units of a row that stays under a set, due at a time. What was granted in this cycle is not granted at all
// (CYC-1); the caller spends the budget.
func (g *Stage) take(i int32, units int64, set int32, due int64) {
	if last := g.first[g.row[i].parcel]; units < g.row[i].units && g.goesWith(last, i, set, due) {
		g.row[i].units -= units
		g.row[last].units += units
		i = last
	} else {
		i = g.split(i, units)
	}
	one := &g.row[i]
	g.touch(one.parcel)
	g.altered[one.parcel>>6] |= 1 << (uint(one.parcel) & 63)
	g.strike(one, units)
	size := g.s.Shape.Size(one.shape)
	add(g.of(g.stay, one.parcel), size, units)
	g.count(one.pool, one.leaf, one.sub, -units)
	if g.isFresh(one) {
		add(g.of(g.free, one.parcel), size, units)
		g.undone[subPool{one.sub, one.pool}] += units
		g.undone[subPool{one.sub, cluster.NoID}] += units
		g.Cycle.Undone[one.sub], g.out.Again = true, true
		g.tell(Undone, i, cluster.NoID, cluster.NoID)
		one.units = 0
		return
	}
	if one.set == noSet {
		g.chosen++
		one.set, one.chosen, one.due = set, g.chosen, due
	}
	g.leaves += units
	g.tellOf(Reclaimed, i, units, g.sets.list[set].id, cluster.NoID)
}

// goesWith tells whether units of a row that stays can go into another, that of the victim chosen last, since they come
// under the same set, alike in all. So a set that takes a million units of a host one by one has one row of them.
func (g *Stage) goesWith(last, i, set int32, due int64) bool {
	a, b := &g.row[last], &g.row[i]
	return a.set == set && a.chosen == g.chosen && a.due == due &&
		a.core == b.core && a.sub == b.sub && a.granted == b.granted && a.pool == b.pool && a.lender == b.lender &&
		a.on == b.on
}

// cancel lets units of a row under a set stay; what orphans hold goes at the same time without a taker.
func (g *Stage) cancel(i int32, units int64) {
	i = g.split(i, units)
	one := &g.row[i]
	g.tell(Cancelled, i, g.sets.list[one.set].id, cluster.NoID)
	g.out.Again = true
	if one.leaf == plan.None {
		one.set = g.sets.rule
		return
	}
	one.set, one.due = noSet, 0
	g.leaves -= units
	g.touch(one.parcel)
	g.altered[one.parcel>>6] |= 1 << (uint(one.parcel) & 63)
	add(g.of(g.stay, one.parcel), g.s.Shape.Size(one.shape), -units)
	g.count(one.pool, one.leaf, one.sub, units)
}

// isFresh tells whether units were granted in this cycle.
func (g *Stage) isFresh(one *held) bool { return one.granted > g.s.Cycle }

// deadline is when units are to be given back that are put under reclaim now: after their holder's grace, and no
// longer than that of the parcel in the pool that they are held from (MD-9).
func (g *Stage) deadline(one *held) int64 {
	us := int64(0)
	if one.leaf != plan.None {
		us = g.s.Policy.ReclaimUS[one.leaf]
	}
	if one.pool != cluster.NoID {
		us = min(us, g.Grace(g.Owner(one.parcel), g.s.NodeOf[one.pool]))
	}
	return g.NowUS + us
}

// depth is how deep the consumer is through whose pool units are held: those of a parcel with less depth than a
// consumer above its owner are held by outsiders of that one.
func (g *Stage) depth(one *held) int32 {
	if one.pool == cluster.NoID {
		return g.tree.Depth[g.Owner(one.parcel)]
	}
	return g.tree.Depth[g.s.NodeOf[one.pool]]
}

// rank is a leaf's place in rank order; orphans come after all.
func (g *Stage) rank(leaf plan.Node) int32 {
	if leaf == plan.None {
		return int32(len(g.p.RankOrder))
	}
	return g.p.RankOrder[leaf]
}

// newer orders rows newest first (docs/decisions.md, D-10).
func (g *Stage) newer(a, b *held) int {
	if c := cmp.Or(cmp.Compare(b.granted, a.granted), cmp.Compare(g.s.Sub.Seq[b.sub], g.s.Sub.Seq[a.sub])); c != 0 {
		return c
	}
	if p := &g.p.Parcels; p.Host[a.parcel] != p.Host[b.parcel] {
		return cmp.Compare(b.parcel, a.parcel)
	}
	return cmp.Or(cmp.Compare(g.node(b.lender), g.node(a.lender)), cmp.Compare(g.node(b.pool), g.node(a.pool)),
		cmp.Compare(b.set, a.set), cmp.Compare(b.chosen, a.chosen),
		cmp.Compare(g.ledger.devices[b.on], g.ledger.devices[a.on]))
}

// node is a consumer's place in the tree, plan.None for NoID.
func (g *Stage) node(c cluster.ConsumerID) plan.Node {
	if c == cluster.NoID {
		return plan.None
	}
	return g.s.NodeOf[c]
}

// lastRank orders rows last rank first, then newest first.
func (g *Stage) lastRank(a, b *held) int {
	return cmp.Or(cmp.Compare(g.rank(b.leaf), g.rank(a.leaf)), g.newer(a, b))
}

// weakest orders rows that stay as CYC-5 takes them: borrowed ones, shared ones, owned ones; last rank first; newest
// first.
func (g *Stage) weakest(a, b *held) int {
	return cmp.Or(cmp.Compare(claim(a), claim(b)), g.lastRank(a, b))
}

func claim(one *held) int {
	switch {
	case one.lender != cluster.NoID:
		return 0
	case one.pool != cluster.NoID:
		return 1
	}
	return 2
}
