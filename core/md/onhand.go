package md

import (
	"cmp"
	"math"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/vecpack"
)

// onHand is what is held on parcels and what leaves hold from pools, less what is under reclaim, each in one piece of memory for those who look for
// victims. It is kept from cycle to cycle: what changed since is seen by the state's Shifts.
type onHand struct {
	want   uint64              // the taker's unit, packed
	shift  [vecpack.Lanes]uint // by dimension, of the first ones: amounts are packed shifted right by so much
	parcel []onParcel          // by ParcelID
	row    []stock             // of all parcels
	dead   int                 // rows of which no parcel knows any more
	leaf   []ofLeaf            // by pool and consumer: see pool.at
	most   uint64              // LaneMax in each
	half   uint64              // half of it: two of these a lane holds
	round  uint32              // of takers
	tops   []plan.Node         // the consumers of the first level, from 1
	topOf  []uint16            // by Node: which of them it is or is below
	word   []uint64            // by ShapeID: what a unit takes, packed
	free   []int64             // scratch
	subs   []cluster.SubID
	read   uint16 // so that what is fetched is used
}

// onParcel is which rows are a parcel's.
type onParcel struct {
	shifts   uint64 // of its host when they were taken down, and one more; 0: something else changed
	free     uint64 // what is free and what is net, the less of both, packed
	from, to int32
	room     int32  // rows from from on that are its own
	looked   uint32 // in which round of takers shifts was compared
}

// stock is units of a pair on a parcel. It is small, as going through all that is held on many parcels takes as long as reading it.
type stock struct {
	pair  cluster.PairID
	shape cluster.ShapeID
	q     cluster.HoldingID
	units uint16 // more make the parcel one of which words cannot tell
	top   uint16 // whose leaf it is, of the consumers of the first level: see tops
}

// ofLeaf is what a leaf holds from a pool, newest first. It stays as it is while takers are served: what is gone of it meanwhile is
// passed by.
type ofLeaf struct {
	shifts uint64 // of the leaf when it was listed, and one more
	looked uint32 // in which round of takers shifts was compared
	parcel []cluster.ParcelID
	held   []cluster.HoldingID // as parcel
	same   []sameKind
}

// sameKind is some of one unit size that were granted in turn.
type sameKind struct {
	pair     cluster.PairID
	from, to int32
}

// forget readies it for pools and parcels that were laid out anew.
func (v *onHand) forget(p *cluster.Parcels, figures int) {
	v.parcel, v.row, v.dead, v.word = zeroed(v.parcel, p.Len()), v.row[:0], 0, v.word[:0]
	v.leaf = resized(v.leaf, figures)
	for i := range v.leaf {
		v.leaf[i].shifts, v.leaf[i].looked = 0, v.round
	}
	v.most = vecpack.Pack([]int64{vecpack.LaneMax, vecpack.LaneMax, vecpack.LaneMax, vecpack.LaneMax})
	v.half = vecpack.Pack([]int64{vecpack.LaneMax / 2, vecpack.LaneMax / 2, vecpack.LaneMax / 2, vecpack.LaneMax / 2})
	for d := range min(len(p.Cap), len(v.shift)) {
		most := int64(0)
		for _, c := range p.Cap[d] {
			most = max(most, c)
		}
		for v.shift[d] = 0; most>>v.shift[d] > vecpack.LaneMax/2; {
			v.shift[d]++ // half a lane is left for what rounding adds
		}
	}
}

// pack packs the first of some amounts rounded down or up; below 0 counts as 0, and what is too large as the most.
func (v *onHand) pack(amount []int64, up bool) uint64 {
	var lane [vecpack.Lanes]int64
	for d := range min(len(amount), len(lane)) {
		n := max(0, amount[d])
		if up {
			n += 1<<v.shift[d] - 1
		}
		lane[d] = min(n>>v.shift[d], vecpack.LaneMax)
	}
	return vecpack.Pack(lane[:])
}

// mayDo tells whether a parcel might have room for a unit from a pool if all who may give did; it may say so where it has not.
// O(what is held there), in order.
func (m *Planner) mayDo(o *pool, k cluster.ParcelID) bool {
	v := &m.fairness.onHand
	one := &v.parcel[k]
	if one.looked != v.round {
		one.looked = v.round
		if shifts := m.s.Shifts.OnHost(m.p.Parcels.Host[k]) + 1; one.shifts != shifts {
			one.shifts = shifts
			m.takeDown(k, one)
		}
	}
	list := v.row[one.from:one.to]
	if o.node != plan.Root {
		sum := one.free
		for _, of := range list {
			sum += v.word[of.shape] * uint64(min(m.mostOf(o, of.pair), int64(of.units)))
		}
		return vecpack.Covers(sum, v.want)
	}
	return vecpack.Covers(one.free+m.fromTops(o, list), v.want)
}

// givers lists the holdings on a parcel of which a unit may be taken for the taker of this round, after mayDo.
func (m *Planner) givers(o *pool, k cluster.ParcelID, rows []cluster.HoldingID) []cluster.HoldingID {
	v := &m.fairness.onHand
	if one := &v.parcel[k]; (one.to > one.from || one.free != v.most) && mutant != 44 {
		for _, of := range v.row[one.from:one.to] {
			if m.mayGive(o, of.pair) {
				rows = append(rows, of.q)
			}
		}
		return rows
	}
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = m.s.Holding.NextOnParcel[q] {
		if m.mayTake(o, q) {
			rows = append(rows, q)
		}
	}
	return rows
}

// fromTops is what all who may give of some rows, those below one consumer of the first level together, could give to one who takes from
// the root's pool, packed: none below such a consumer more units than its margin leaves.
func (m *Planner) fromTops(o *pool, list []stock) (sum uint64) {
	v, c := &m.fairness.onHand, &m.fairness.claim
	for i := 0; i < len(list); {
		at := list[i].top
		top := &c.top[at]
		if top.round != c.round {
			*top = m.topMargin(o, at)
		}
		all, most := uint64(0), uint64(0)
		for ; i < len(list) && list[i].top == at; i++ {
			of := &list[i]
			if !top.bears(c.ofShape[of.shape]) {
				continue
			}
			if units := min(m.mostOf(o, of.pair), int64(of.units)); units > 0 {
				all += v.word[of.shape] * uint64(units)
				most = vecpack.Most(most, v.word[of.shape])
			}
		}
		if most != 0 {
			if units := top.units(c.least[v.tops[at]]); units <= 1 || units == 2 && vecpack.Covers(v.half, most) {
				most *= uint64(units)
				all = all + most - vecpack.Most(all, most) // the lesser in each
			}
			sum += all
		}
	}
	return sum
}

// takeDown takes down what is held on a parcel, in the place of what was, if there is room for it.
func (m *Planner) takeDown(k cluster.ParcelID, one *onParcel) {
	v, h := &m.fairness.onHand, &m.s.Holding
	n := int32(0)
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		n++
	}
	if n > one.room {
		v.dead += int(one.room)
		one.from, one.room = int32(len(v.row)), n
		v.row = resized(v.row, len(v.row)+int(n))
	}
	one.to = one.from
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		if h.Set[q] == cluster.NoID && m.s.Node(h.Sub[q]) != plan.None {
			v.row[one.to] = m.stockOf(h.Sub[q], h.Pool[q], h.Units[q])
			v.row[one.to].q = q
			one.to++
		}
	}
	slices.SortFunc(v.row[one.from:one.to], func(a, b stock) int { return cmp.Compare(a.top, b.top) })
	m.sumUpFree(k, one)
}

// takeAllDown takes down what is held on all parcels. O(parcels × dimensions + holdings).
func (m *Planner) takeAllDown() {
	v, h := &m.fairness.onHand, &m.s.Holding
	clear(v.parcel)
	m.eachSub(func(sub cluster.SubID) {
		for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
			if h.Set[q] == cluster.NoID {
				v.parcel[h.Parcel[q]].room++
			}
		}
	})
	rows := int32(0)
	for k := range v.parcel {
		one := &v.parcel[k]
		one.from, one.to = rows, rows
		rows += one.room
	}
	v.row, v.dead = resized(v.row, int(rows)), 0
	m.eachSub(func(sub cluster.SubID) {
		var last stock
		pool := cluster.ConsumerID(cluster.NoID - 1)
		for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
			if h.Set[q] != cluster.NoID {
				continue
			}
			if h.Pool[q] != pool {
				pool, last = h.Pool[q], m.stockOf(sub, h.Pool[q], 0)
			}
			last.q, last.units = q, uint16(min(h.Units[q], math.MaxUint16))
			one := &v.parcel[h.Parcel[q]]
			v.row[one.to] = last
			one.to++
		}
	})
	for k := range v.parcel {
		one := &v.parcel[k]
		one.shifts, one.looked = m.s.Shifts.OnHost(m.p.Parcels.Host[k])+1, v.round
		m.sumUpFree(cluster.ParcelID(k), one)
	}
}

// stockOf is units of a sub-allocation from a pool as a row.
func (m *Planner) stockOf(sub cluster.SubID, pool cluster.ConsumerID, units int64) stock {
	return stock{pair: m.s.PairOf(sub, pool), shape: m.s.Sub.Shape[sub], units: uint16(min(units, math.MaxUint16)), top: m.fairness.onHand.topOf[m.s.Node(sub)]}
}

// layTops numbers the consumers of the first level.
func (m *Planner) layTops() {
	v := &m.fairness.onHand
	v.tops, v.topOf = append(v.tops[:0], plan.Root), resized(v.topOf, m.policy.Len())
	for n := plan.Root + 1; int(n) < m.policy.Len(); n++ {
		if m.policy.Depth[n] > 1 {
			v.topOf[n] = v.topOf[m.policy.Parent[n]]
		} else if v.topOf[n] = 0; len(v.tops) <= math.MaxUint16 {
			v.topOf[n] = uint16(len(v.tops))
			v.tops = append(v.tops, n)
		}
	}
	m.fairness.claim.top = resized(m.fairness.claim.top, len(v.tops))
}

// sumUpFree sets what is free on a parcel. One on which more is held than words can add up, or than it has, counts as having room for
// anything: rounding adds no more than one a unit.
func (m *Planner) sumUpFree(k cluster.ParcelID, one *onParcel) {
	v, p := &m.fairness.onHand, &m.p.Parcels
	free, units, over := zeroed(v.free, len(p.Cap)), int64(0), false
	v.free = free
	for d := range free {
		free[d] = min(m.fairness.room[d][k], p.Available(d, k))
		over = over || p.Free[d][k] < 0 || d < vecpack.Lanes && p.Cap[d][k]>>v.shift[d] > vecpack.LaneMax/2
	}
	for _, of := range v.row[one.from:one.to] {
		units += int64(of.units)
	}
	if one.free = v.pack(free, true); over || units >= vecpack.LaneMax/2 {
		one.free, one.to = v.most, one.from
	}
}

// doubt notes that what is held on a parcel, free or net, may have changed.
func (v *onHand) doubt(k cluster.ParcelID) {
	if int(k) < len(v.parcel) {
		v.parcel[k].shifts, v.parcel[k].looked = 0, v.round-1
	}
}

// doubtAll is doubt for some parcels.
func (v *onHand) doubtAll(list []cluster.ParcelID) {
	for _, k := range list {
		v.doubt(k)
	}
}

// beginTakers looks at parcels anew on which something changed, and takes all down when most of the rows are nobody's, or none is known.
func (m *Planner) beginTakers() {
	v := &m.fairness.onHand
	v.round++
	v.doubtAll(m.p.Changed)
	for shape := cluster.ShapeID(len(v.word)); int(shape) < m.s.Shape.Len(); shape++ {
		v.word = append(v.word, v.pack(m.s.Shape.Size(shape), true))
	}
	if len(v.row) == 0 || 2*v.dead > len(v.row) {
		m.takeAllDown()
	}
}

// holdsOf lists what a leaf holds from a pool and is not under reclaim, newest first, as it was when it was first asked for while takers are
// served; what comes one after the other and is of the same size is together. O(1) when nothing changed since the cycle before.
func (m *Planner) holdsOf(o *pool, leaf plan.Node) *ofLeaf {
	v, h := &m.fairness.onHand, &m.s.Holding
	one := &v.leaf[o.at(leaf)]
	if one.looked == v.round {
		return one
	}
	one.looked = v.round
	shifts := m.s.Shifts.Of(m.s.ConsumerOf[leaf]) + 1
	if one.shifts == shifts {
		return one
	}
	subs, rows := v.subs[:0], one.held[:0]
	for a := m.p.FirstAlloc[leaf]; a != cluster.NoID; a = m.s.Alloc.Next[a] {
		for sub := m.s.Alloc.First[a]; sub != cluster.NoID; sub = m.s.Sub.Next[sub] {
			subs = append(subs, sub)
		}
	}
	for _, sub := range slices.Backward(subs) { // so they are in order already, mostly
		for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
			if h.Set[q] == cluster.NoID && h.Pool[q] == o.id {
				rows = append(rows, q)
			}
		}
	}
	v.subs, one.held = subs, rows
	slices.SortFunc(rows, m.newest)
	one.shifts, one.parcel, one.same = shifts, one.parcel[:0], one.same[:0]
	for from := 0; from < len(rows); {
		pair, begin := m.pairIn(o, h.Sub[rows[from]]), int32(from)
		for from < len(rows) && m.pairIn(o, h.Sub[rows[from]]) == pair {
			one.parcel = append(one.parcel, h.Parcel[rows[from]])
			from++
		}
		one.same = append(one.same, sameKind{pair, begin, int32(from)})
	}
	return one
}

// ahead is how many parcels are fetched at once.
const ahead = 16

// fetch reads what mayDo will read of some parcels, all at once: one after the other they would wait for memory.
func (v *onHand) fetch(list []cluster.ParcelID) {
	for _, k := range list {
		if from := v.parcel[k].from; int(from) < len(v.row) {
			v.read += v.row[from].units
		}
	}
}
