package md

import (
	"math"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/vecpack"
)

// onHand is what is held on parcels and what leaves hold from pools, less what is under reclaim, each in one piece of memory for those who look for
// victims. It is kept from cycle to cycle: what changed since is seen by the state's Shifts.
type onHand struct {
	want    uint64              // the taker's unit, packed
	shift   [vecpack.Lanes]uint // by dimension, of the first ones: amounts are packed shifted right by so much
	parcel  []onParcel          // by ParcelID
	stand   []standing          // by ParcelID
	free    []uint64            // by ParcelID: what is free and what is net, the less of both, packed; the most: words cannot tell; unclear
	fresh   []uint64            // bitset by ParcelID: looked at in this round, and nothing changed since
	gave    []uint64            // bitset by ParcelID: what was taken there in this round
	row     []stock             // of all parcels
	held    []cluster.HoldingID // by row
	dead    int                 // rows of which no parcel knows any more
	leaf    []ofLeaf            // by pool and consumer: see pool.at
	news    news
	most    uint64                // LaneMax in each
	part    [partsMost + 1]uint64 // by number: so many of these a lane holds
	round   uint32                // of takers
	touches int64                 // State.Shifts.Touches, as of which rows are
	tops    tops
	offer   offer
	word    []uint64    // by ShapeID: what a unit takes, packed
	place   [2][]places // scratch, as all below
	grants  []grantOf
	subs    []cluster.SubID
	stale   []cluster.ParcelID
	found   [2][]cluster.HoldingID
	touched []cluster.HoldingID
	was     ofLeaf
	next    []spotOf
	read    uint8 // so that what is fetched is used
}

// onParcel is which rows are a parcel's. It is small for the same reason as its rows.
type onParcel struct {
	all      uint64 // what is free, and what is held there from the root's pool, packed; the most: words cannot tell
	from, to int32
}

// standing is how the rows of a parcel stand.
type standing struct {
	shifts uint64 // of its host when they were taken down, and one more; 0: they were not
	room   int32  // rows from the first on that are its own
}

// partsMost is of how many units at most, of one size, fromTops adds up what they take.
const partsMost = 8

// unclear is no packed word.
const unclear = math.MaxUint64

// stock is units of a pair on a parcel. It is small, as going through all that is held on many parcels takes as long as reading it.
type stock struct {
	pair  cluster.PairID
	shape uint16 // strange ones make the parcel one of which words cannot tell
	units uint8  // many: so many or more
	top   uint8  // whose leaf it is: see tops; elsewhere: not of the root's pool. In this order
}

const (
	elsewhere = math.MaxUint8  // the top of rows that are not held from the root's pool
	many      = math.MaxUint8  // units of rows that stand in the holding alone
	strange   = math.MaxUint16 // the shape of those whose number is no less
)

// forget readies it for pools and parcels that were laid out anew.
func (v *onHand) forget(p *cluster.Parcels, figures int) {
	v.parcel, v.row, v.dead, v.word = zeroed(v.parcel, p.Len()), v.row[:0], 0, v.word[:0]
	v.stand, v.free = zeroed(v.stand, p.Len()), zeroed(v.free, p.Len())
	v.fresh, v.gave = zeroed(v.fresh, p.Words()), zeroed(v.gave, p.Words())
	v.leaf = resized(v.leaf, figures)
	for i := range v.leaf {
		v.leaf[i].known, v.leaf[i].looked = false, v.round
	}
	v.most = vecpack.Pack([]int64{vecpack.LaneMax, vecpack.LaneMax, vecpack.LaneMax, vecpack.LaneMax})
	for n := int64(1); n <= partsMost; n++ {
		v.part[n] = vecpack.Pack([]int64{vecpack.LaneMax / n, vecpack.LaneMax / n, vecpack.LaneMax / n, vecpack.LaneMax / n})
	}
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
	one := m.current(k)
	if one.all == v.most {
		return true
	}
	if o.node == plan.Root {
		return m.mightDo(o, one) && vecpack.Covers(v.free[k]+m.fromTops(o, one), v.want)
	}
	sum := v.free[k]
	for i := one.from; i < one.to; i++ {
		sum += v.word[v.row[i].shape] * uint64(min(m.mostOf(o, v.row[i].pair), m.unitsOf(i)))
	}
	return vecpack.Covers(sum, v.want)
}

// mightDo is mayDo for who takes from the root's pool, by what is free and held on a parcel less what may not be given: first by the margins of
// those that rows name, which are at hand, then by what each may give.
func (m *Planner) mightDo(o *pool, one *onParcel) bool {
	v, c, all := &m.fairness.onHand, &m.fairness.claim, one.all
	if !vecpack.Covers(all, v.want) {
		return false
	}
	m.layTopMargins(o)
	list := v.row[one.from:one.to]
	for i := range list { // without asking what it is: that would cost more than the sums
		of := &list[i]
		units := uint64(of.units)
		if units == many {
			units = uint64(m.unitsOf(one.from + int32(i)))
		}
		lost := v.word[of.shape] * units
		if c.ofShape[of.shape] <= c.limit[of.top] {
			lost = 0
		}
		all -= lost
	}
	if !vecpack.Covers(all, v.want) {
		return false
	}
	for i := range list {
		of := &list[i]
		if of.top == elsewhere {
			break
		}
		if c.ofShape[of.shape] > c.limit[of.top] {
			continue
		}
		if most, units := m.mostOf(o, of.pair), m.unitsOf(one.from+int32(i)); most < units {
			if all -= v.word[of.shape] * uint64(units-most); !vecpack.Covers(all, v.want) {
				return false
			}
		}
	}
	return true
}

// unitsOf is the units of a row.
func (m *Planner) unitsOf(row int32) int64 {
	v := &m.fairness.onHand
	if units := v.row[row].units; units < many {
		return int64(units)
	}
	return m.s.Holding.Units[v.held[row]]
}

// current is what is on hand on a parcel, brought up to date.
func (m *Planner) current(k cluster.ParcelID) *onParcel {
	v := &m.fairness.onHand
	one, stand := &v.parcel[k], &v.stand[k]
	if has(v.fresh, k) {
		return one
	}
	v.fresh[k>>6] |= 1 << (uint(k) & 63)
	if shifts := m.s.Shifts.OnHost(m.p.Parcels.Host[k]) + 1; stand.shifts != shifts && (mutant != 61 || stand.shifts == 0) {
		stand.shifts = shifts
		m.takeDown(k, one)
	} else if v.free[k] == unclear {
		m.sumUpFree(k)
	}
	return one
}

// givers lists the holdings on a parcel of which a unit may be taken for the taker of this round, after mayDo.
func (m *Planner) givers(o *pool, k cluster.ParcelID, rows []giver) []giver {
	v, c := &m.fairness.onHand, &m.fairness.claim
	if one := &v.parcel[k]; one.all != v.most && mutant != 44 {
		for i := one.from; i < one.to; i++ {
			of := &v.row[i]
			if o.node == plan.Root && (of.top == elsewhere || c.ofShape[of.shape] > c.limit[of.top]) {
				continue // as mightDo saw without a look at the pair
			}
			if m.mayGive(o, of.pair) {
				rows = append(rows, m.giverOf(o, v.held[i], of.pair))
			}
		}
		return rows
	}
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = m.s.Holding.NextOnParcel[q] {
		if m.mayTake(o, q) {
			rows = append(rows, m.giverOf(o, q, m.pairIn(o, m.s.Holding.Sub[q])))
		}
	}
	return rows
}

// fromTops is what all who may give of what is held on a parcel, those below one consumer of the first level together, could give to one who takes from
// the root's pool, packed: none below such a consumer more units than its margin leaves.
func (m *Planner) fromTops(o *pool, one *onParcel) (sum uint64) {
	v, c := &m.fairness.onHand, &m.fairness.claim
	list := v.row[one.from:one.to]
	for i := 0; i < len(list) && list[i].top != elsewhere; {
		at := v.tops.firstOf[list[i].top]
		top := &c.first[at]
		all, most, least := uint64(0), uint64(0), int64(math.MaxInt64)
		for ; i < len(list) && list[i].top != elsewhere && v.tops.firstOf[list[i].top] == at; i++ {
			of := &list[i]
			if c.ofShape[of.shape] > c.limit[of.top] {
				continue
			}
			if units := min(m.mostOf(o, of.pair), m.unitsOf(one.from+int32(i))); units > 0 {
				all += v.word[of.shape] * uint64(units)
				most, least = vecpack.Most(most, v.word[of.shape]), min(least, c.ofShape[of.shape])
			}
		}
		if most != 0 {
			if units := max(0, top.units(max(least, c.least[v.tops.firsts[at]]))); units == 0 || units <= partsMost && vecpack.Covers(v.part[units], most) {
				most *= uint64(units)
				all = all + most - vecpack.Most(all, most) // the lesser in each
			}
			sum += all
		}
	}
	return sum
}

// doubt notes that what is free or net on a parcel may have changed.
func (v *onHand) doubt(k cluster.ParcelID) {
	if int(k) < len(v.parcel) && mutant != 62 {
		v.free[k] = unclear
		v.fresh[k>>6] &^= 1 << (uint(k) & 63)
	}
}

// doubtAll is doubt for some parcels.
func (v *onHand) doubtAll(list []cluster.ParcelID) {
	for _, k := range list {
		v.doubt(k)
	}
}

// beginTakers brings up rows that changed, or looks at parcels anew on which something did, where that is not known, and takes all down when
// most of the rows are nobody's, or none is known.
func (m *Planner) beginTakers() {
	v := &m.fairness.onHand
	v.round++
	clear(v.gave)
	v.doubtAll(m.p.Changed)
	if m.followHoldings() {
		return
	}
	m.weighShapes()
	touched, ok := m.s.Shifts.Touched(v.touches)
	m.tellLeaves(touched, ok)
	v.touches = m.s.Shifts.Touches()
	clear(v.fresh)
	if m.layStale(); len(v.row) == 0 || 2*v.dead > len(v.row) || 4*len(v.stale) > len(v.parcel) {
		m.takeAllDown()
	} else {
		m.takeStaleDown()
	}
}

// followHoldings brings rows and leaves' lists up to the holdings that were touched since the last time. It is false, and nothing is done, where
// these are not known, or so many that looking at the parcels is no more.
func (m *Planner) followHoldings() bool {
	v := &m.fairness.onHand
	touched, ok := m.s.Shifts.Touched(v.touches)
	if !ok || len(v.row) == 0 || 2*v.dead > len(v.row) || len(touched) >= len(v.parcel) {
		return false
	}
	m.weighShapes()
	m.tellLeaves(touched, true)
	v.touches = m.s.Shifts.Touches()
	m.touchUp(touched)
	return true
}

// weighShapes packs what units of shapes that are new take.
func (m *Planner) weighShapes() {
	v := &m.fairness.onHand
	for shape := cluster.ShapeID(len(v.word)); int(shape) < m.s.Shape.Len(); shape++ {
		v.word = append(v.word, v.pack(m.s.Shape.Size(shape), true))
	}
}

// ahead is how many parcels are looked at together.
const ahead = 16

// spotOf is where something is held.
type spotOf struct {
	k cluster.ParcelID
	q cluster.HoldingID
}

// fetch reads what mayDo will read on some parcels, all at once and without asking what it is: one after the other they would wait for memory.
func (v *onHand) fetch(list []spotOf) {
	read, last := v.read, int32(len(v.row)-1)
	for _, at := range list {
		read += uint8(v.parcel[at.k].all)
	}
	for _, at := range list {
		one := &v.parcel[at.k]
		read += v.row[min(one.from, last)].units + v.row[min((one.from+one.to)/2, last)].units + v.row[min(one.to, last)].units
	}
	v.read = read
}

// taken tells whether all units of a holding that was none under reclaim were taken since.
func (m *Planner) taken(at spotOf) bool { return has(m.fairness.onHand.gave, at.k) && m.isTaken(at.q) }

// isTaken tells whether a holding that was none under reclaim is, or is none any more.
func (m *Planner) isTaken(q cluster.HoldingID) bool {
	return m.s.Holding.Sub[q] == cluster.NoID || m.s.Holding.Set[q] != cluster.NoID
}
