package slot

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// review looks at the sets under way (CYC-6): those of rules that no longer ask for it are
// cancelled, those of takers lapse as far as the taker no longer wants, fits or deserves what it was promised.
func (m *Planner) review() {
	m.giveUp()
	m.restore()
	m.setsOf = map[cluster.SubID][]cluster.SetID{}
	ids := m.sets(func(id cluster.SetID) bool { return m.s.Set.Taker[id] != cluster.NoID })
	for _, id := range ids {
		m.count1(id, -1)
	}
	so := soFar{keptAt: map[cluster.HostID]int64{}}
	if len(ids) > 0 {
		so.idle = m.openRoom(m.p.Parcels.Free[0])
	}
	for _, id := range ids {
		m.count1(id, 1)
		for m.s.Set.Units[id] > 0 && !m.stands(id, so) {
			m.lapse(id)
		}
		if m.s.Set.Units[id] > 0 {
			sub, kept := m.s.Set.Taker[id], m.s.Kept(id, 0)
			so.keptAt[m.s.Set.Target[id]] += kept
			so.idle -= kept
			m.setsOf[sub] = append(m.setsOf[sub], id)
		}
	}
}

// soFar is what the sets that were looked at leave: what they keep on each host, and what is idle beside them.
type soFar struct {
	keptAt map[cluster.HostID]int64
	idle   int64
}

// openRoom adds up what open hosts have free. O(parcels).
func (m *Planner) openRoom(free []int64) (idle int64) {
	for k, n := range free {
		if m.p.Parcels.IsOpen(cluster.ParcelID(k)) {
			idle += max(0, n)
		}
	}
	return idle
}

// sets lists the plan's sets of a kind in order of number.
func (m *Planner) sets(of func(id cluster.SetID) bool) (ids []cluster.SetID) {
	for id := range m.s.Set.Of(m.p) {
		if of(id) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b cluster.SetID) int { return cmp.Compare(m.s.Set.Number[a], m.s.Set.Number[b]) })
	return ids
}

// stands tells whether the taker of a set, which is counted, still wants, fits and deserves all of it.
func (m *Planner) stands(id cluster.SetID, so soFar) bool {
	m.s.Yield()
	t, sub := &m.s.Set, m.s.Set.Taker[id]
	leaf, host := m.s.Node(sub), t.Target[id]
	if m.promised[sub] > m.s.Short(sub) || m.s.Host.Plan[host] != m.p.Index {
		return false
	}
	k := m.s.Host.Parcel[host]
	if !m.usable(sub, k) || !m.perHost(sub, k, m.promisedAt(sub, host, id)) {
		return false
	}
	if m.whole {
		return m.standsHost(id)
	}
	if so.keptAt[host]+m.s.Kept(id, 0) > m.p.Parcels.Free[0][k] {
		return false
	}
	if !m.roomyNet(leaf, 0) {
		return false
	}
	if t.Reason[id] == decision.ReclaimRecall {
		return m.netOwn(leaf) >= 0
	}
	f := &m.figure
	if m.set.Policy[leaf] == plan.Hybrid {
		// What has come free may be needed for reserves by now.
		return f.net[kindHybrid][leaf]+f.roomHybrid[leaf] <= m.hybrid.quota[leaf] &&
			(m.leftOf(id) > 0 || max(0, m.hybridIdle()) >= m.hybrid.below[plan.Root])
	}
	return f.net[kindShare][leaf]+f.roomPool[leaf] <= m.quota.deserve[leaf] && m.netPool() >= 0 &&
		m.zeroesBear(leaf, 0, nothing) && m.covers(id, so)
}

// covers tells whether what is idle beside a set and those before it is as much as owners may claim, now or once all
// that is under reclaim is gone: else the room that it keeps is theirs (SLOT-10). Where hosts are lost the accounts
// may have more than that: S counts what is held on closed hosts, where nobody can be served in its place. O(1), where
// it is less now O(parcels + sets + leaves).
func (m *Planner) covers(id cluster.SetID, so soFar) bool {
	if so.idle-m.s.Kept(id, 0) >= m.figure.claims {
		return true
	}
	t, net := &m.s.Set, slices.Clone(m.p.Parcels.Free[0])
	for other, number := range t.Number {
		if host := t.Target[other]; number > 0 && t.Plan[other] == m.p.Index && m.s.Host.Plan[host] == m.p.Index {
			k := m.s.Host.Parcel[host]
			net[k] += m.leftOf(cluster.SetID(other))
			if taker := t.Taker[other]; taker != cluster.NoID && number <= t.Number[id] {
				net[k] -= t.Units[other] * m.slots(taker)
			}
		}
	}
	idle := m.openRoom(net)
	for _, leaf := range m.tree.leaves {
		idle -= max(0, m.netOwn(leaf))
	}
	return idle >= 0
}

// promisedAt is how many units a sub-allocation is promised on a host, by sets already looked at
// and the one given.
func (m *Planner) promisedAt(sub cluster.SubID, host cluster.HostID, id cluster.SetID) int64 {
	units := m.s.Set.Units[id]
	for _, other := range m.setsOf[sub] {
		if m.s.Set.Target[other] == host {
			units += m.s.Set.Units[other]
		}
	}
	return units
}

// usable tells whether a parcel may ever take a unit of a sub-allocation: open, meeting the
// requirement, large enough.
func (m *Planner) usable(sub cluster.SubID, k cluster.ParcelID) bool {
	selected, _ := m.desk.Selected(m.need(sub))
	return m.p.Parcels.IsOpen(k) && m.p.Parcels.Cap[0][k] >= m.slots(sub) && !m.p.TooSmall(m.s, sub) &&
		(selected == nil || selected[k>>6]>>(uint(k)&63)&1 == 1)
}

// perHost tells whether so many units more than a sub-allocation holds on a parcel are within its max_per_host.
func (m *Planner) perHost(sub cluster.SubID, k cluster.ParcelID, more int64) bool {
	most := m.s.Sub.MaxPerHost[sub]
	if most == plan.Unlimited {
		return true
	}
	for q := m.s.Sub.First[sub]; q != cluster.NoID; q = m.s.Holding.NextOfSub[q] {
		if m.s.Holding.Parcel[q] == k {
			more += m.s.Holding.Units[q]
		}
	}
	return more <= most
}

// lapse takes one unit off what a set promises. Nothing may be waiting to be booked. O(victims).
func (m *Planner) lapse(id cluster.SetID) {
	m.p.Continue() // what rules want, and sets before it, were looked at with this one as it was
	if m.whole {
		m.lapseHost(id)
		return
	}
	t := &m.s.Set
	parcel := m.s.Host.Parcel[t.Target[id]]
	was := m.availableAt(t, id, parcel)
	m.count1(id, -1)
	m.lower(id, max(0, t.Units[id]*m.slots(t.Taker[id])-m.leftOf(id)))
	m.lapses++
	if was != unknown {
		m.figure.idle += max(0, m.p.Parcels.Available(0, parcel)) - was
		m.desk.Field.Regain(parcel)
	}
}

// lower takes one unit off what a set promises, and cancels the victims that are not needed any more beside
// the idle part of its room. The set must not be counted; it is counted again. O(victims).
func (m *Planner) lower(id cluster.SetID, idle int64) {
	t := &m.s.Set
	units := t.Units[id] - 1
	left, room := m.leftOf(id), units*m.slots(t.Taker[id])
	m.s.Promise(id, units)
	for q := t.First[id]; q != cluster.NoID && t.Number[id] > 0; {
		next := m.s.Holding.NextOfSet[q]
		v, n := m.slots(m.s.Holding.Sub[q]), m.s.Holding.Units[q]
		if units > 0 {
			n = min(n, max(0, left+idle-room)/v)
		}
		if n > 0 && !m.leavesWhole(q) {
			m.cancel(q, n)
			left -= n * v
		}
		q = next
	}
	if units > 0 {
		m.count1(id, 1)
	}
}

// unknown is what availableAt gives for a host that may not get grants.
const unknown = -1

// availableAt is the free room of a set's target beside what is held, unknown where there are no grants.
func (m *Planner) availableAt(t *cluster.Sets, id cluster.SetID, k cluster.ParcelID) int64 {
	if m.s.Host.Plan[t.Target[id]] != m.p.Index || !m.p.Parcels.IsOpen(k) {
		return unknown
	}
	return max(0, m.p.Parcels.Available(0, k))
}

// leftOf is how many slots a set's victims still hold.
func (m *Planner) leftOf(id cluster.SetID) (slots int64) {
	for q := m.s.Set.First[id]; q != cluster.NoID; q = m.s.Holding.NextOfSet[q] {
		slots += m.s.Holding.Units[q] * m.slots(m.s.Holding.Sub[q])
	}
	return slots
}

// cancel leaves units under reclaim with their holder.
func (m *Planner) cancel(q cluster.HoldingID, units int64) {
	h, sub := &m.s.Holding, m.s.Holding.Sub[q]
	if !m.s.Sub.Orphan[sub] { // else they go as they would have
		m.book(m.s.Node(sub), h.Origin[q], m.lenderOf(h.Lender[q]), 0, units*m.slots(sub))
		m.figure.foreign = m.figure.foreign || m.strange(q)
	}
	m.s.Cancel(q, units)
}

// yield makes the latest set of a sub-allocation, all of whose short units are promised, lapse by
// the unit that is about to be given to it (CYC-7).
func (m *Planner) yield(sub cluster.SubID) {
	m.flush()
	ids := m.setsOf[sub]
	last := ids[len(ids)-1]
	m.lapse(last)
	if m.whole || m.s.Set.Units[last] == 0 {
		m.setsOf[sub] = ids[:len(ids)-1]
	}
}

// fulfil gives takers what was held for them, where it has come free (CYC-6).
func (m *Planner) fulfil() {
	for _, id := range m.sets(func(id cluster.SetID) bool { return m.s.Set.Taker[id] != cluster.NoID }) {
		sub := m.s.Set.Taker[id]
		leaf, k, at := m.s.Node(sub), m.slots(sub), m.s.Host.Parcel[m.s.Set.Target[id]]
		with := shareLabel
		if m.s.Set.Reason[id] == decision.ReclaimRecall {
			with = ownLabel
		} else if m.set.Policy[leaf] == plan.Hybrid {
			with = hybridLabel
		}
		if m.whole {
			m.fulfilHost(id, with)
			continue
		}
		if m.waits(sub) {
			continue // it gets all in its turn
		}
		given := cluster.HoldingID(cluster.NoID)
		for m.s.Set.Units[id] > 0 && m.ready(id, leaf, at, with, k) {
			given = m.fulfilOne(id, leaf, sub, at, with, k, given)
		}
	}
}

// ready tells whether the room of a set's next unit, and the account, are there.
func (m *Planner) ready(id cluster.SetID, leaf plan.Node, at cluster.ParcelID, with label, k int64) bool {
	kept := m.s.Kept(id, 0)
	// Beside what is held for it no owner's idle slot is taken (SLOT-10).
	kind, account := kindShare, min(m.poolFor(leaf), max(0, m.spare()))
	switch with {
	case ownLabel:
		kind, account = kindOwn, m.own0(leaf)
	case hybridLabel:
		kind, account = kindHybrid, m.hybridIdle()
	}
	_, roomy := m.roomy(leaf, k, true)
	if with == hybridLabel { // it is within the leaf's quota, whatever others have beyond theirs
		if below := m.hybrid.below[plan.Root]; below > 0 && account+kept-k < below {
			return false
		}
		account = max(0, account)
	}
	return roomy && m.p.Parcels.Available(0, at)+kept >= k && account+kept >= k && m.lasts(leaf, k, kind, plan.None)
}

// fulfilOne gives one unit of a set to its taker: it adds it to what it was given before, if that counts
// as the same. It tells what holding that is.
func (m *Planner) fulfilOne(id cluster.SetID, leaf plan.Node, sub cluster.SubID, at cluster.ParcelID, with label,
	k int64,
	given cluster.HoldingID) cluster.HoldingID {
	was := max(0, m.p.Parcels.Available(0, at))
	if with.origin == decision.OriginSharePool {
		with.whose = m.s.ConsumerOf[m.poolOf(leaf)]
	}
	m.count1(id, -1)
	kept, units := m.s.Kept(id, 0), m.s.Set.Units[id]-1
	h, row := &m.s.Holding, m.row(sub, with)
	if given != cluster.NoID && h.Origin[given] == row.Origin && h.Pool[given] == row.Pool &&
		h.Lender[given] == row.Lender {
		m.s.Grow(given, 1)
	} else {
		given = m.s.Hold(nil, row, []cluster.ParcelID{at})[0]
	}
	m.book(leaf, with.origin, plan.None, k, k)
	m.lower(id, max(0, kept-k))
	if units == 0 {
		m.forgetSet(sub, id)
	}
	m.figure.idle += max(0, m.p.Parcels.Available(0, at)) - was
	m.desk.Field.Regain(at)
	m.p.Continue()
	return given
}

// forgetSet takes a set that ended off the list of its taker's.
func (m *Planner) forgetSet(sub cluster.SubID, id cluster.SetID) {
	m.setsOf[sub] = slices.DeleteFunc(m.setsOf[sub], func(other cluster.SetID) bool { return other == id })
}
