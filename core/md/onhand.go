package md

import (
	"math"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
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
	most    uint64             // LaneMax in each
	round   uint32             // of takers
	touches int64              // State.Shifts.Touches, as of which rows are
	lap     int64              // counts rounds of takers and laid figures: what a unit gives is known as of one
	offer   [2]offers          // to takers as far below their quotas as their bands, and to others
	covers  []cluster.ParcelID // scratch
	word    []uint64           // by ShapeID: what a unit takes, packed
	place   [2][]places        // scratch, as all below
	grants  []grantOf
	subs    []cluster.SubID
	stale   []cluster.ParcelID
	found   [2][]cluster.HoldingID
	touched []cluster.HoldingID
	was     ofLeaf
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

// offers are what takers could be given on parcels, with what is free, packed, or more.
type offers struct {
	word []uint64 // by ParcelID; empty: not laid
	top  []uint64 // by word of parcels: the most in them, or more
}

// unclear is no packed word.
const unclear = math.MaxUint64

// stock is units of a pair on a parcel. It is small, as going through all that is held on many parcels takes as long as reading it.
type stock struct {
	pair  cluster.PairID
	shape uint16 // strange ones make the parcel one of which words cannot tell
	units uint8  // many: so many or more
	pool  uint8  // elsewhere: not of the root's pool, which come last
}

const (
	elsewhere = math.MaxUint8  // the pool of rows that are not held from the root's
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
	if o.node == plan.Root && !vecpack.Covers(one.all, v.want) {
		return false
	}
	return vecpack.Covers(m.offered(o, one, v.free[k]), v.want)
}

// offered is what is free on a parcel with what those above their quotas could give there for the taker of this round, packed.
func (m *Planner) offered(o *pool, one *onParcel, sum uint64) uint64 {
	v := &m.fairness.onHand
	for i := one.from; i < one.to; i++ {
		if most := m.mostOf(o, v.row[i].pair); most > 0 {
			sum += v.word[v.row[i].shape] * uint64(min(most, m.unitsOf(i)))
		}
	}
	return sum
}

// layOffers sums up what any taker could be given on each parcel of a pool, once for all its takers: shares are nearly even most of the time, so that
// few parcels offer a large unit anything. An offer stands until somebody may give more, as it is a bound. O(holdings).
func (m *Planner) layOffers(o *pool) {
	f := m.offersNow()
	f.word, f.top = resized(f.word, len(m.fairness.onHand.parcel)), zeroed(f.top, m.p.Parcels.Words())
	for k := range f.word {
		f.word[k] = m.offerOf(o, cluster.ParcelID(k))
		f.top[k>>6] = vecpack.Most(f.top[k>>6], f.word[k])
	}
}

// offersNow are the offers to takers like that of this round.
func (m *Planner) offersNow() *offers {
	if m.fairness.taker.banded {
		return &m.fairness.onHand.offer[0]
	}
	return &m.fairness.onHand.offer[1]
}

// offerOf is what any taker like that of this round could be given on a parcel of a pool, with what is free, packed, or more.
func (m *Planner) offerOf(o *pool, k cluster.ParcelID) uint64 {
	v, banded := &m.fairness.onHand, m.fairness.taker.banded
	one := m.current(k)
	if one.all == v.most {
		return v.most
	}
	sum := v.free[k]
	for i := one.from; i < one.to; i++ {
		pair := v.row[i].pair
		if m.p.Pairs.Pool[pair] != o.id || m.promise.net[pair] <= 0 {
			continue
		}
		leaf := m.p.Pairs.Leaf[pair]
		if surplus := -m.deficit(o, leaf); surplus > share.Slack && (banded || m.fairness.banded.Has(int32(leaf))) {
			sum += v.word[v.row[i].shape] * uint64(min(mostUnits(surplus, m.knownYield(pair).gives), m.unitsOf(i)))
		}
	}
	return sum
}

// mayOffer tells whether a parcel may offer the taker of this round enough. What is not known of it is found out.
func (m *Planner) mayOffer(o *pool, k cluster.ParcelID) bool {
	f := m.offersNow()
	if f.word[k] == m.fairness.onHand.most {
		f.word[k] = m.offerOf(o, k)
	}
	return vecpack.Covers(f.word[k], m.fairness.onHand.want)
}

// forgetOffers readies them for another pool.
func (v *onHand) forgetOffers() {
	for i := range v.offer {
		v.offer[i].word = v.offer[i].word[:0]
	}
}

// raise makes the offer on a parcel one that bounds nothing, where offers are laid.
func (v *onHand) raise(k cluster.ParcelID) {
	for i := range v.offer {
		if f := &v.offer[i]; len(f.word) > 0 && mutant != 82 {
			f.word[k], f.top[k>>6] = v.most, v.most
		}
	}
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

// giversOn lists the holdings on a parcel of which units may be taken for the taker of this round, after mayDo.
func (m *Planner) giversOn(o *pool, k cluster.ParcelID, rows []giver) []giver {
	v, h := &m.fairness.onHand, &m.s.Holding
	if one := &v.parcel[k]; one.all != v.most {
		for i := one.from; i < one.to; i++ {
			rows = m.addGiver(o, v.held[i], v.row[i].pair, rows)
		}
		return rows
	}
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		if h.Set[q] == cluster.NoID && h.Pool[q] == o.id && m.s.Node(h.Sub[q]) != plan.None {
			rows = m.addGiver(o, q, m.pairIn(o, h.Sub[q]), rows)
		}
	}
	return rows
}

// addGiver adds a holding of a pair, if it may give to the taker of this round.
func (m *Planner) addGiver(o *pool, q cluster.HoldingID, pair cluster.PairID, rows []giver) []giver {
	leaf := m.p.Pairs.Leaf[pair]
	if m.mostOf(o, pair) == 0 || m.young(leaf, q) {
		return rows
	}
	return append(rows, giver{q, pair, leaf, m.s.Holding.Units[q], m.s.Shape.Size(m.p.Pairs.Shape[pair])})
}

// doubt notes that what is free or net on a parcel may have changed.
func (v *onHand) doubt(k cluster.ParcelID) {
	if int(k) < len(v.parcel) && mutant != 62 {
		v.free[k] = unclear
		v.raise(k)
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
	v.lap++
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

// taken tells whether all units of a holding that was none under reclaim were taken since.
func (m *Planner) taken(at spotOf) bool { return has(m.fairness.onHand.gave, at.k) && m.isTaken(at.q) }

// isTaken tells whether a holding that was none under reclaim is, or is none any more.
func (m *Planner) isTaken(q cluster.HoldingID) bool {
	return m.s.Holding.Sub[q] == cluster.NoID || m.s.Holding.Set[q] != cluster.NoID
}
