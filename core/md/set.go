package md

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// promises are the sets under way that have takers (CYC-6): units that are to go to a
// sub-allocation once others have given them back. What is net counts units under reclaim as given back
// and promised ones as held (CYC-7), each in its pool.
type promises struct {
	units []int64 // by SubID: promised, by sets and by joining them in this cycle
	ofSub map[cluster.SubID][]cluster.SetID
	net   []int64 // by PairID: units
	moved bool    // whether grants were made besides those that are booked

	firstOn []cluster.SetID // by ParcelID: the sets there, chained by nextOn; some may have ended
	nextOn  []cluster.SetID // by SetID
	listed  []cluster.ParcelID
}

// tally adds up what is net. O(pairs + sets).
func (m *Planner) tally() {
	v := &m.promise
	v.units, v.ofSub, v.moved = zeroed(v.units, len(m.s.Sub.Wanted)), nil, false
	v.net = resized(v.net, len(m.p.Pairs.Units))
	for q := range v.net {
		v.net[q] = m.p.Pairs.Units[q] - m.p.Pairs.Leaving[q]
	}
	m.enlist()
	v.firstOn, v.nextOn, v.listed = v.firstOn[:0], v.nextOn[:0], v.listed[:0]
	for _, id := range m.takers() {
		sub := m.s.Set.Taker[id]
		v.units[sub] += m.s.Set.Units[id]
		q := m.s.PairOf(sub, m.poolOfSet(id))
		m.known()
		v.net[q] += m.s.Set.Units[id]
		if k := m.s.Aim(id); k != cluster.NoID {
			m.noteSet(id, k)
		}
	}
}

// poolOfSet is the pool from which a set's taker is to hold what it gets, NoID: it is its own.
func (m *Planner) poolOfSet(id cluster.SetID) cluster.ConsumerID {
	leaf := m.p.Pairs.Leaf[m.s.Sub.Pair[m.s.Set.Taker[id]]]
	_, pool, _ := m.s.CountsAs(leaf, m.s.Set.Owner[id])
	return pool
}

// takers lists the plan's sets that have takers, in order of number.
func (m *Planner) takers() (ids []cluster.SetID) {
	t := &m.s.Set
	for id, number := range t.Number {
		if number > 0 && t.Plan[id] == m.p.Index && t.Taker[id] != cluster.NoID {
			ids = append(ids, cluster.SetID(id))
		}
	}
	slices.SortFunc(ids, func(a, b cluster.SetID) int { return cmp.Compare(t.Number[a], t.Number[b]) })
	return ids
}

// change is how much units more or less of a pair change its leaf's stake in their pool.
func (m *Planner) change(q cluster.PairID, units int64) int64 {
	c, n := m.capacity(m.poolOf(m.p.Pairs.Pool[q]), m.p.Pairs.Shape[q]), m.promise.net[q]
	return share.Fraction(n+units, c) - share.Fraction(n, c)
}

// count adds units to what is net of a pair, and to the stakes in its pool of its leaf and all above it, where they are kept up
// to date. O(depth).
func (m *Planner) count(q cluster.PairID, units int64) {
	m.known()
	if o := m.poolOf(m.p.Pairs.Pool[q]); o != nil && o.live {
		delta := m.change(q, units)
		for n := m.p.Pairs.Leaf[q]; n >= o.node && n != plan.None; n = m.policy.Parent[n] {
			m.pools.stake[o.at(n)] += delta
		}
	}
	m.promise.net[q] += units
	m.fairness.forgetYield(q)
}

// known takes in pairs that were added since what is net was added up.
func (m *Planner) known() {
	v, pairs := &m.promise, &m.p.Pairs
	if len(v.net) == len(pairs.Units) {
		return
	}
	for q := len(v.net); q < len(pairs.Units); q++ {
		v.net = append(v.net, pairs.Units[q]-pairs.Leaving[q])
	}
	m.enlistNew()
}

// review lets sets lapse as far as their takers no longer want or fit what they were promised; for what they want, and for limits, sets count
// once they were reviewed. Then those for a share lapse as far as what they move does not lower the sum of squares any more, the latest first, as
// it moved what mattered least.
func (m *Planner) review() {
	ids := m.takers()
	v := &m.promise
	v.ofSub = map[cluster.SubID][]cluster.SetID{}
	if m.Reviewed {
		for _, id := range ids {
			if sub := m.s.Set.Taker[id]; m.s.Set.Units[id] > 0 {
				v.ofSub[sub] = append(v.ofSub[sub], id)
			}
		}
		return
	}
	counted := func(id cluster.SetID, units int64) {
		sub := m.s.Set.Taker[id]
		v.units[sub] += units
		m.shift(sub, m.poolOfSet(id), units)
	}
	for _, id := range ids {
		counted(id, -m.s.Set.Units[id])
	}
	for _, id := range ids {
		sub := m.s.Set.Taker[id]
		counted(id, m.s.Set.Units[id])
		for m.s.Set.Units[id] > 0 && !m.stands(id) {
			m.lapseOne(id, sub)
		}
		if m.s.Set.Units[id] > 0 {
			v.ofSub[sub] = append(v.ofSub[sub], id)
		}
	}
	ids = slices.DeleteFunc(ids, func(id cluster.SetID) bool {
		return m.s.Set.Units[id] == 0 || m.s.Set.Reason[id] != decision.ReclaimFairShare
	})
	m.deserveOf(ids)
	for _, id := range slices.Backward(ids) {
		sub := m.s.Set.Taker[id]
		for m.s.Set.Units[id] > 0 && !m.justified(id) {
			m.lapseOne(id, sub)
		}
		if m.s.Set.Units[id] == 0 {
			m.forgetSet(sub, id)
		}
	}
}

// lapseOne lowers a set by a unit, and counts whose turn it was.
func (m *Planner) lapseOne(id cluster.SetID, sub cluster.SubID) {
	if m.lapse(id); m.s.Set.Reason[id] == decision.ReclaimFairShare {
		m.s.Turn(sub, true)
	}
}

// unpromise takes units off what a sub-allocation is promised from a pool.
func (m *Planner) unpromise(sub cluster.SubID, pool cluster.ConsumerID, units int64) {
	m.promise.units[sub] -= units
	m.count(m.s.PairOf(sub, pool), -units)
	m.shift(sub, pool, -units)
}

// stands tells whether the taker of a set still wants, fits and deserves all of it.
func (m *Planner) stands(id cluster.SetID) bool {
	t, sub := &m.s.Set, m.s.Set.Taker[id]
	host, k, leaf := t.Target[id], m.s.Aim(id), m.s.Node(t.Taker[id])
	if m.promise.units[sub] > m.s.Short(sub) || k == cluster.NoID {
		return false
	}
	if !m.usable(sub, k) || !m.perHost(sub, k, m.promisedAt(sub, host)+t.Units[id]) {
		return false
	}
	top := m.meet(leaf, k)
	if top != leaf && (m.barred(leaf, top) || m.overAny(leaf, top) || m.policy.ReclaimUS[leaf] > m.grace(t.Owner[id], top) && mutant != 49) {
		return false
	}
	return m.keeps(id, k, top) && m.victimsThere(id, k, top)
}

// keeps tells whether what a set keeps on its parcel is there, beside what all others keep and reserves leave.
func (m *Planner) keeps(id cluster.SetID, k cluster.ParcelID, top plan.Node) bool {
	var least []int64
	if m.reserved(k, top) {
		least = make([]int64, len(m.p.Parcels.Cap))
		m.spare(k, top, false, least)
	}
	for d := range m.p.Parcels.Cap {
		if m.s.Kept(id, d) > 0 && (m.p.Parcels.Available(d, k) < 0 || least != nil && least[d] < 0) {
			return false
		}
	}
	return true
}

// victimsThere tells whether a set's victims are all still on its parcel and, if it is for a share, below the pool's consumer.
func (m *Planner) victimsThere(id cluster.SetID, k cluster.ParcelID, top plan.Node) bool {
	t, h := &m.s.Set, &m.s.Holding
	for q := t.First[id]; q != cluster.NoID; q = h.NextOfSet[q] {
		victim := m.s.Node(h.Sub[q])
		if h.Parcel[q] != k || t.Reason[id] == decision.ReclaimFairShare && (victim == plan.None || !m.policy.Within(victim, top)) {
			return false
		}
	}
	return true
}

// justified tells whether what a set for a share moves still lowers the sum of the squares of distances from quotas (MD-17), as long as
// anything of it is still to come.
func (m *Planner) justified(id cluster.SetID) bool {
	t, h := &m.s.Set, &m.s.Holding
	if t.First[id] == cluster.NoID || mutant == 50 {
		return true
	}
	sub := t.Taker[id]
	top := m.meet(m.s.Node(sub), m.s.Aim(id))
	o, sub := m.poolAt(top), t.Taker[id]
	gets := -m.change(m.s.PairOf(sub, o.id), -t.Units[id])
	sum := share.Squares{}
	sum.Add(m.deficit(o, m.s.Node(sub))+gets+share.Slack, gets)
	moved := m.fairness.moved[:0]
	for q := t.First[id]; q != cluster.NoID; q = h.NextOfSet[q] {
		if h.Pool[q] == o.id {
			moved = addMoved(moved, m.pairIn(o, h.Sub[q]), h.Units[q])
		}
	}
	m.fairness.moved = moved
	m.eachGiver(moved, 1, func(leaf plan.Node, gives int64) {
		sum.Add(gives-m.deficit(o, leaf)+share.Slack, gives)
	})
	return sum.Lower()
}

// barred tells whether a leaf gets nothing from a pool: a ratio of 0 on its way up to it (D-6).
func (m *Planner) barred(leaf, top plan.Node) bool {
	for n := leaf; n != top; n = m.policy.Parent[n] {
		if m.set.Ratio[n] == 0 {
			return true
		}
	}
	return false
}

// overAny tells whether a leaf, or one above it below a pool, is over a share limit with what it is promised.
func (m *Planner) overAny(leaf, top plan.Node) bool {
	for n := leaf; n != top; n = m.policy.Parent[n] {
		for d := range m.pooled {
			if m.over(n, d) > 0 {
				return true
			}
		}
	}
	return false
}

// promisedAt is how many units sets already reviewed promise a sub-allocation on a host.
func (m *Planner) promisedAt(sub cluster.SubID, host cluster.HostID) (units int64) {
	for _, id := range m.promise.ofSub[sub] {
		if m.s.Set.Target[id] == host {
			units += m.s.Set.Units[id]
		}
	}
	return units
}

// usable tells whether a parcel may ever take a unit of a sub-allocation.
func (m *Planner) usable(sub cluster.SubID, k cluster.ParcelID) bool {
	selected, _ := m.desk.Selected(m.s.Sub.Need[sub])
	if !m.p.Parcels.IsOpen(k) || !has(selected, k) || m.p.TooSmall(m.s, sub) {
		return false
	}
	for d, u := range m.s.Size(sub) {
		if m.p.Parcels.Cap[d][k] < u {
			return false
		}
	}
	return true
}

// perHost tells whether so many units more than a sub-allocation holds on the host of a parcel are within its max_per_host.
func (m *Planner) perHost(sub cluster.SubID, k cluster.ParcelID, more int64) bool {
	most := m.s.Sub.MaxPerHost[sub]
	if most == plan.Unlimited {
		return true
	}
	for q := m.s.Sub.First[sub]; q != cluster.NoID; q = m.s.Holding.NextOfSub[q] {
		if m.p.Parcels.Host[m.s.Holding.Parcel[q]] == m.p.Parcels.Host[k] {
			more += m.s.Holding.Units[q]
		}
	}
	return more <= most
}

// lapse takes one unit off what a set promises, and cancels the victims that are not needed any more: the
// last chosen first, each if what is left and what is idle then still cover the taker's room.
func (m *Planner) lapse(id cluster.SetID) {
	t, sub := &m.s.Set, m.s.Set.Taker[id]
	dims := len(m.p.Parcels.Cap)
	spare := make([]int64, dims) // what victims and idle room cover beyond the taker's room
	size := m.s.Size(sub)
	for d := range dims {
		left := int64(0)
		for q := t.First[id]; q != cluster.NoID; q = m.s.Holding.NextOfSet[q] {
			left += m.s.Size(m.s.Holding.Sub[q])[d] * m.s.Holding.Units[q]
		}
		spare[d] = max(left, size[d]*t.Units[id]) - size[d]*(t.Units[id]-1)
	}
	m.unpromise(sub, m.poolOfSet(id), 1)
	m.p.Continue() // sets before it were reviewed with this one as it was
	rest := t.Units[id] - 1
	m.s.Promise(id, rest)
	for q := t.First[id]; q != cluster.NoID && t.Number[id] > 0; {
		next := m.s.Holding.NextOfSet[q]
		units := m.s.Holding.Units[q]
		v := m.s.Size(m.s.Holding.Sub[q])
		for d := range dims {
			if rest > 0 && v[d] > 0 {
				units = min(units, spare[d]/v[d])
			}
		}
		if units > 0 {
			m.cancel(q, units)
			for d := range dims {
				spare[d] -= v[d] * units
			}
		}
		q = next
	}
	m.regain(id)
}

// cancel leaves units under reclaim with their holder.
func (m *Planner) cancel(q cluster.HoldingID, units int64) {
	sub, pool := m.s.Holding.Sub[q], m.s.Holding.Pool[q]
	m.count(m.s.PairOf(sub, pool), units)
	m.shift(sub, pool, units)
	m.s.Cancel(q, units)
}

// regain brings the desk up to a set's parcel, on which room came free.
func (m *Planner) regain(id cluster.SetID) {
	if k := m.s.Aim(id); k != cluster.NoID {
		m.desk.Field.Regain(k)
		m.fairness.regain = append(m.fairness.regain, k)
	}
}

// fulfil gives takers what was held for them, where it has come free.
func (m *Planner) fulfil() {
	t := &m.s.Set
	for _, id := range m.takers() {
		sub, k := t.Taker[id], m.s.Aim(id) // reviewed just before: it is there
		given := cluster.HoldingID(cluster.NoID)
		for t.Units[id] > 0 && m.ready(id, sub, k) {
			rest := t.Units[id] - 1
			if given == cluster.NoID {
				given = m.s.Hold(nil, m.row(sub, k), []cluster.ParcelID{k})[0]
			} else {
				m.s.Grow(given, 1)
			}
			m.stir(k, len(m.pools.restOf))
			m.promise.units[sub]--
			m.promise.moved = true
			m.s.Promise(id, rest)
			for rest == 0 && t.Number[id] > 0 {
				q := t.First[id]
				m.cancel(q, m.s.Holding.Units[q])
			}
			m.p.Continue()
		}
		if t.Units[id] == 0 {
			m.forgetSet(sub, id)
		}
		m.desk.Field.Regain(k)
	}
}

// ready tells whether the room of a set's next unit is there: room with what the set keeps.
func (m *Planner) ready(id cluster.SetID, sub cluster.SubID, k cluster.ParcelID) bool {
	kept := zeroed(m.kept, len(m.p.Parcels.Cap))
	m.kept = kept
	for d := range kept {
		kept[d] = m.s.Kept(id, d)
	}
	return m.roomFor(k, m.meet(m.s.Node(sub), k), m.s.Size(sub), kept)
}

// row is how units of a sub-allocation that are given now count on a parcel.
func (m *Planner) row(sub cluster.SubID, k cluster.ParcelID) cluster.Holding {
	row := cluster.Holding{Sub: sub, Granted: m.s.Cycle + 1}
	row.Origin, row.Pool, row.Lender = m.s.CountsAs(m.s.Node(sub), m.p.Parcels.Owner[k])
	if mutant == 24 {
		row.Lender = cluster.NoID
	}
	return row
}
