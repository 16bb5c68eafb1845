package reclaim

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
)

// set is a reclaim under way (CYC-6).
type set struct {
	id     cluster.SetID
	reason int32
	taker  cluster.SubID    // NoID: a rule
	parcel cluster.ParcelID // NoID: it is gone
	via    cluster.ConsumerID
	units  int64              // of the taker, still to be given to it
	counts bool               // they count as promised: before its review a set does not
	also   []cluster.ParcelID // on which the stage has chosen victims beside its own
	next   int32              // one more than the next set on the parcel, 0: none
}

// sets are those of the plan in the order of their numbers.
type sets struct {
	list     []set
	of       []int32 // by SetID of the state
	kept     []int64 // by set, then dimension: what it keeps on its parcel beside its victims
	firstOn  []int32 // by ParcelID: one more than the latest set for a taker there, 0: none
	promised []int64 // by SubID: by sets that count, and by joining
	rule     int32   // stands for the sets of rules that orphans' units go over to
	last     int32   // made by issue
	units    int64   // of takers, of all sets
}

// listSets lists the sets under way, and takes what they take back and promise into the room of parcels.
func (g *Stage) listSets() {
	v, t, h := &g.sets, &g.s.Set, &g.s.Holding
	v.list, v.kept, v.of, v.rule, v.last = v.list[:0], v.kept[:0], column.Zeros(v.of, len(t.Number)), noSet-1, noSet
	v.units = 0
	v.firstOn, v.promised = column.Zeros(v.firstOn, g.p.Parcels.Len()), column.Zeros(v.promised, len(g.s.Sub.Wanted))
	var ids []cluster.SetID
	for id, number := range t.Number {
		if number > 0 && t.Plan[id] == g.p.Index {
			ids = append(ids, cluster.SetID(id))
		}
	}
	slices.SortFunc(ids, func(a, b cluster.SetID) int { return cmp.Compare(t.Number[a], t.Number[b]) })
	for _, id := range ids {
		one := set{id: id, reason: t.Reason[id], taker: t.Taker[id], parcel: cluster.NoID, via: cluster.NoID}
		for q := t.First[id]; q != cluster.NoID; q = h.NextOfSet[q] {
			g.touch(h.Parcel[q])
			add(g.of(g.stay, h.Parcel[q]), g.s.Size(h.Sub[q]), h.Units[q])
			g.leaves += h.Units[q]
		}
		if one.taker != cluster.NoID {
			one.parcel = g.s.Aim(id)
			if leaf := g.s.Node(one.taker); leaf != plan.None {
				one.via = g.via(leaf, t.Owner[id])
			}
		}
		i := g.addSet(one)
		v.of[id] = i
		for d := range g.dims {
			v.kept[int(i)*g.dims+d] = g.s.Kept(id, d)
		}
		g.promise(i, t.Units[id])
		if one.taker != cluster.NoID && t.Number[id] > g.Cycle.before {
			v.last = i
		}
	}
}

// addSet adds a set behind all others.
func (g *Stage) addSet(one set) int32 {
	v := &g.sets
	i := int32(len(v.list))
	if one.counts = true; one.parcel != cluster.NoID && one.taker != cluster.NoID {
		one.next, v.firstOn[one.parcel] = v.firstOn[one.parcel], i+1
	}
	v.list = append(v.list, one)
	for range g.dims {
		v.kept = append(v.kept, 0)
	}
	return i
}

// keptBy is what a set keeps on its parcel, by dimension.
func (g *Stage) keptBy(i int32) []int64 {
	at := int(i) * g.dims
	return g.sets.kept[at : at+g.dims]
}

// promise adds units to those that a set's taker is to get of it.
func (g *Stage) promise(i int32, units int64) {
	one := &g.sets.list[i]
	if one.taker == cluster.NoID {
		return
	}
	one.units += units
	g.sets.units += units
	g.sets.promised[one.taker] += units
	if one.parcel != cluster.NoID {
		g.touch(one.parcel)
		add(g.of(g.due, one.parcel), g.s.Size(one.taker), units)
	}
	g.count(one.via, g.s.Node(one.taker), one.taker, units)
}

// keep brings what a set keeps up to its units and victims: the room of its units less what its victims still hold.
func (g *Stage) keep(i int32) {
	one := &g.sets.list[i]
	if one.taker == cluster.NoID || one.parcel == cluster.NoID {
		return
	}
	size, left := g.s.Size(one.taker), g.left(i)
	kept, free := g.keptBy(i), g.of(g.free, one.parcel)
	for d, u := range size {
		now := max(0, u*one.units-left[d])
		free[d] += kept[d] - now
		kept[d] = now
	}
}

// left is what a set's victims on its parcel still hold, by dimension.
func (g *Stage) left(i int32) []int64 {
	left := make([]int64, g.dims)
	for _, v := range g.victims(i) {
		if one := &g.row[v]; one.parcel == g.sets.list[i].parcel {
			add(left, g.s.Shape.Size(one.shape), one.units)
		}
	}
	return left
}

// victims are the rows under a set, the last chosen first. Those of one that the state has may lie on several parcels
// of its host.
func (g *Stage) victims(i int32) (rows []int32) {
	one, h := &g.sets.list[i], &g.s.Holding
	var on []cluster.ParcelID
	if one.parcel != cluster.NoID {
		on = append(on, one.parcel)
	}
	for _, k := range one.also {
		if !slices.Contains(on, k) {
			on = append(on, k)
		}
	}
	if int(one.id) < len(g.s.Set.Number) {
		for q := g.s.Set.First[one.id]; q != cluster.NoID; q = h.NextOfSet[q] {
			if !slices.Contains(on, h.Parcel[q]) {
				on = append(on, h.Parcel[q])
			}
		}
	}
	for _, k := range on {
		for r := g.open(k); r > 0; r = g.row[r].next {
			if g.row[r].set == i && g.row[r].units > 0 {
				rows = append(rows, r)
			}
		}
	}
	slices.SortFunc(rows, func(a, b int32) int { return cmp.Compare(g.row[b].chosen, g.row[a].chosen) })
	return rows
}

// lapse takes a unit off a set, and lets the victims stay that are not needed any more: the last chosen first, each if
// what is left and what is idle then still cover the room of its units.
func (g *Stage) lapse(i int32) {
	one := &g.sets.list[i]
	spare, size := g.left(i), g.s.Size(one.taker)
	for d, u := range size {
		spare[d] = max(spare[d], u*one.units) - u*(one.units-1)
	}
	g.promise(i, -1)
	g.out.Again = true
	g.out.add(Row{Kind: Promised, Set: one.id, Sub: one.taker, Parcel: one.parcel, Units: one.units})
	for _, v := range g.victims(i) {
		row := &g.row[v]
		units, of, here := row.units, g.s.Shape.Size(row.shape), row.parcel == one.parcel
		if one.units > 0 && row.leaf != plan.None {
			units = g.withinLimits(row)
		}
		for d, u := range of {
			if one.units > 0 && u > 0 && here {
				units = min(units, spare[d]/u)
			}
		}
		if units > 0 {
			if here {
				add(spare, of, -units)
			}
			g.cancel(v, units)
			g.changed(row.parcel)
		}
	}
	g.keep(i)
}

// victim is units of a row that are chosen.
type victim struct {
	row   int32
	units int64
	gang  bool // a gang may not do without them, and gives all that stay as one
}

// issue makes a set of victims for a unit of a sub-allocation on a parcel, or adds to the one made last when it is
// for the same. Sets that are dissolved for it end; of their victims, those that are chosen go over to it. It is
// false, and nothing is done, when the budget does not bear it.
func (g *Stage) issue(reason int32, sub cluster.SubID, k cluster.ParcelID, victims []victim, dissolved []int32) bool {
	units := int64(0)
	for _, v := range victims {
		if one := &g.row[v.row]; one.set == noSet && !g.isFresh(one) {
			units += v.units
		}
	}
	if !g.Cycle.affords(units) {
		g.Cycle.Denied[sub] = true
		return false
	}
	g.Cycle.spend(units)
	i := g.setFor(reason, sub, k)
	if reason == decision.ReclaimFairShare {
		g.turn(sub, false)
	}
	for _, v := range victims {
		if g.row[v.row].set != noSet {
			g.handOver(v.row, v.units, i)
			continue
		}
		// also for what is not granted: two could take it from each other for ever
		if reason == decision.ReclaimFairShare {
			g.turn(g.row[v.row].sub, true)
		}
		on := g.row[v.row].parcel
		g.take(v.row, v.units, i, g.deadline(&g.row[v.row]))
		if on != k {
			g.sets.list[i].also = append(g.sets.list[i].also, on)
			g.changed(on)
		}
	}
	for _, other := range dissolved {
		g.dissolve(other)
	}
	g.promise(i, 1)
	g.keep(i)
	one := &g.sets.list[i]
	g.out.add(Row{Kind: Promised, Set: one.id, Sub: sub, Parcel: k, Units: one.units})
	g.changed(k)
	return true
}

// setFor is the set made last when that is for the same, else a new one.
func (g *Stage) setFor(reason int32, sub cluster.SubID, k cluster.ParcelID) int32 {
	v := &g.sets
	if v.last != noSet {
		if one := &v.list[v.last]; one.taker == sub && one.parcel == k && one.reason == reason && one.units > 0 {
			return v.last
		}
	}
	id := g.out.open(reason, sub, k)
	v.last = g.addSet(set{id: id, reason: reason, taker: sub, parcel: k,
		via: g.via(g.s.Node(sub), g.p.Parcels.Owner[k])})
	return v.last
}

// handOver moves units of a victim over to another set; they keep their deadline.
func (g *Stage) handOver(i int32, units int64, to int32) {
	i = g.split(i, units)
	one := &g.row[i]
	g.tell(HandedOver, i, g.sets.list[to].id, g.sets.list[one.set].id)
	g.chosen++
	one.set, one.chosen = to, g.chosen
}

// dissolve ends a set; victims that no other set took over stay.
func (g *Stage) dissolve(i int32) {
	one := &g.sets.list[i]
	for _, v := range g.victims(i) {
		if g.cancel(v, g.row[v].units); g.row[v].parcel != one.parcel {
			g.changed(g.row[v].parcel)
		}
	}
	g.promise(i, -one.units)
	g.keep(i)
	g.out.add(Row{Kind: Promised, Set: one.id, Sub: one.taker, Parcel: one.parcel})
	g.out.Again = true
}

// expect takes in that a unit joins what is under way on a parcel.
func (g *Stage) expect(j pool.Join) {
	g.touch(j.Parcel)
	add(g.of(g.due, j.Parcel), g.s.Size(j.Sub), 1)
	g.sets.promised[j.Sub]++
	leaf := g.s.Node(j.Sub)
	g.count(g.via(leaf, g.p.Parcels.Owner[j.Parcel]), leaf, j.Sub, 1)
	if g.Views.Reserves.Any(j.Parcel) {
		g.joined[j.Parcel] = append(g.joined[j.Parcel], j.Sub)
	}
}

// turnsMost is how often fair reclaim takes for a sub-allocation and from it in turn before it takes no more for it,
// until the input changes (INV-10).
const turnsMost = 5

// turn notes that fair reclaim takes for a sub-allocation, or from it.
func (g *Stage) turn(sub cluster.SubID, from bool) {
	n := g.turnsOf(sub)
	if (n&1 == 1) == from {
		return
	}
	units := int64(0)
	if from {
		units = 1
	}
	g.turns[sub] = n + 1
	g.out.add(Row{Kind: Turned, Set: cluster.NoID, Sub: sub, Units: units})
}

// turnsOf is how many turns a sub-allocation had.
func (g *Stage) turnsOf(sub cluster.SubID) int8 {
	if n, ok := g.turns[sub]; ok {
		return n
	}
	return g.s.Sub.Turns[sub]
}

// changed brings up what is kept of a parcel's room, and of its host's others where these lack what it has too much.
func (g *Stage) changed(k cluster.ParcelID) {
	if g.short == nil || !has(g.short, int(k)) {
		g.update(k)
		return
	}
	for i, end := g.p.Parcels.Begin(k), g.p.Parcels.End(k); i < end; i++ {
		g.update(i)
	}
}

func (g *Stage) update(k cluster.ParcelID) {
	for n := g.Owner(k); n != plan.None; n = g.tree.Parent[n] {
		if w := g.waits[n]; w != nil {
			g.updateWait(w, k)
		}
		if l := g.lenders[n]; l != nil {
			g.updateLender(l, k)
		}
	}
	g.updateOffers(k)
}
