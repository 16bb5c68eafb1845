package md

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// promises are the sets under way that have takers (CYC-6): units that are to go to a
// sub-allocation once others have given them back. What is net counts units under reclaim as given back
// and promised ones as held (CYC-7).
type promises struct {
	units []int64 // by SubID: promised, by sets and by joining them in this cycle
	ofSub map[cluster.SubID][]cluster.SetID
	net   []int64 // by PairID: units
	moved bool    // whether grants were made or taken back besides those of the loop
}

// tally adds up what is net. O(pairs + sets + consumers).
func (m *Planner) tally() {
	v := &m.promise
	v.units, v.ofSub, v.moved = zeroed(v.units, len(m.s.Sub.Wanted)), nil, false
	v.net, m.public.stake = resized(v.net, len(m.p.Pairs.Units)), zeroed(m.public.stake, m.policy.Len())
	for q := range v.net {
		v.net[q] = m.p.Pairs.Units[q] - m.p.Pairs.Leaving[q]
	}
	for _, id := range m.takers() {
		v.units[m.s.Set.Taker[id]] += m.s.Set.Units[id]
		v.net[m.s.Sub.Pair[m.s.Set.Taker[id]]] += m.s.Set.Units[id]
	}
	for q, leaf := range m.p.Pairs.Leaf {
		if m.p.Pairs.Pool[q] != m.public.id {
			continue
		}
		m.public.stake[leaf] = share.Add(m.public.stake[leaf], share.Fraction(v.net[q], m.public.capacity.of(m.p.Pairs.Shape[q])))
	}
	m.sumUp(m.public.stake)
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

// step is how much units more or less of a pair change its leaf's share.
func (m *Planner) change(q cluster.PairID, units int64) int64 {
	c, n := m.public.capacity.of(m.p.Pairs.Shape[q]), m.promise.net[q]
	return share.Fraction(n+units, c) - share.Fraction(n, c)
}

// count adds units to what is net of a pair, and to the stakes in its pool of its leaf and all above it. O(depth).
func (m *Planner) count(q cluster.PairID, units int64) {
	m.known()
	if m.p.Pairs.Pool[q] != m.public.id {
		m.promise.net[q] += units
		return
	}
	delta := m.change(q, units)
	m.promise.net[q] += units
	for n := m.p.Pairs.Leaf[q]; n != plan.None; n = m.policy.Parent[n] {
		m.public.stake[n] += delta
	}
}

// known takes in pairs that were added since what is net was added up.
func (m *Planner) known() {
	v, pairs := &m.promise, &m.p.Pairs
	for q := len(v.net); q < len(pairs.Units); q++ {
		v.net = append(v.net, pairs.Units[q]-pairs.Leaving[q])
	}
}

// review lets sets lapse as far as their takers no longer want, fit or deserve what they were promised.
func (m *Planner) review() {
	ids := m.takers()
	v := &m.promise
	v.ofSub = map[cluster.SubID][]cluster.SetID{}
	for _, id := range ids {
		m.unpromise(m.s.Set.Taker[id], m.s.Set.Units[id])
	}
	for _, id := range ids {
		sub := m.s.Set.Taker[id]
		m.unpromise(sub, -m.s.Set.Units[id])
		for m.s.Set.Units[id] > 0 && !m.stands(id) {
			m.lapse(id)
		}
		if m.s.Set.Units[id] > 0 {
			v.ofSub[sub] = append(v.ofSub[sub], id)
		}
	}
}

// unpromise takes units off what a sub-allocation is promised.
func (m *Planner) unpromise(sub cluster.SubID, units int64) {
	m.promise.units[sub] -= units
	m.count(m.s.Sub.Pair[sub], -units)
	m.shift(sub, m.public.id, -units)
}

// stands tells whether the taker of a set still wants, fits and deserves all of it.
func (m *Planner) stands(id cluster.SetID) bool {
	t, sub := &m.s.Set, m.s.Set.Taker[id]
	host, k := t.Target[id], m.s.Aim(id)
	if m.promise.units[sub] > m.s.Short(sub) || k == cluster.NoID || m.barred(m.s.Node(sub)) {
		return false
	}
	if !m.usable(sub, k) || !m.perHost(sub, k, m.promisedAt(sub, host)+t.Units[id]) || m.overAny(m.s.Node(sub)) {
		return false
	}
	for d := range m.p.Parcels.Cap {
		if m.p.Parcels.Available(d, k) < 0 && m.s.Kept(id, d) > 0 {
			return false
		}
	}
	for q := t.First[id]; q != cluster.NoID; q = m.s.Holding.NextOfSet[q] {
		if !m.ahead(m.s.Node(m.s.Holding.Sub[q]), m.s.Node(sub), 0, 0) {
			return false
		}
	}
	return true
}

// barred tells whether a leaf gets nothing from pools: a ratio of 0 on its way up (D-6).
func (m *Planner) barred(leaf plan.Node) bool {
	for n := leaf; n != plan.Root; n = m.policy.Parent[n] {
		if m.set.Ratio[n] == 0 {
			return true
		}
	}
	return false
}

// overAny tells whether a leaf, or one above it, is over a share limit with what it is promised.
func (m *Planner) overAny(leaf plan.Node) bool {
	for n := leaf; n != plan.Root; n = m.policy.Parent[n] {
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

// usable tells whether a parcel of the public pool may ever take a unit of a sub-allocation.
func (m *Planner) usable(sub cluster.SubID, k cluster.ParcelID) bool {
	selected, _ := m.desk.Selected(m.s.Sub.Need[sub])
	if !m.p.Parcels.IsOpen(k) || !has(m.public.parcels, k) || !has(selected, k) {
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
	m.unpromise(sub, 1)
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
	}
}

// fulfil gives takers what was held for them, where it has come free.
func (m *Planner) fulfil() {
	t := &m.s.Set
	for _, id := range m.takers() {
		sub, k := t.Taker[id], m.s.Aim(id) // reviewed just before: it is there
		for t.Units[id] > 0 && m.ready(id, sub, k) {
			rest := t.Units[id] - 1
			m.s.Hold(nil, m.public.row(sub, m.s.Cycle+1), []cluster.ParcelID{k})
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
			m.promise.ofSub[sub] = slices.DeleteFunc(m.promise.ofSub[sub], func(other cluster.SetID) bool { return other == id })
		}
		m.desk.Field.Regain(k)
	}
}

// ready tells whether the room of a set's next unit is there.
func (m *Planner) ready(id cluster.SetID, sub cluster.SubID, k cluster.ParcelID) bool {
	for d, u := range m.s.Size(sub) {
		if u > 0 && m.p.Parcels.Available(d, k)+m.s.Kept(id, d) < u {
			return false
		}
	}
	return true
}
