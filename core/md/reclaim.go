package md

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// limit is the most of a dimension that a consumer may hold from pools (MD-18).
func (m *Planner) limit(n plan.Node, d int) int64 {
	if m.set.Ratio[n] == 0 {
		return 0
	}
	return m.set.Limit[d][n]
}

// over tells by how much a consumer is over its share limit in a dimension.
func (m *Planner) over(n plan.Node, d int) int64 {
	if most := m.limit(n, d); most != plan.Unlimited {
		return max(0, m.pooled[d][n]-most)
	}
	return 0
}

// Reclaim takes back, in this order, what rules ask for, whether or not anyone waits for it; what owners want of what they
// lent (MD-10); what is held beyond fair shares (MD-17). Meanwhile, which goes by nothing of that, is called beside it or behind it.
func (m *Planner) Reclaim(meanwhile func()) {
	granted := make([][]int64, len(m.pooled)) // what explain goes by: nothing is granted in its place before the next cycle (CYC-1)
	for d := range m.pooled {
		granted[d] = slices.Clone(m.pooled[d])
	}
	m.vacate()
	m.crowded()
	m.guard()
	m.overLimits()
	if m.nears() {
		m.readyFigures()
		m.beginFigures()
		m.makeWay()
		m.sortShort()
		meanwhile()
	} else {
		cluster.Both(m.p.Parcels.Owned, func() {
			m.layRoom()
			if len(m.grant.hungry.leaf) > 0 {
				m.followHoldings()
			}
			m.readyFigures()
		}, func() {
			m.lookOut()
			m.layEarly()
		})
		m.beginFigures()
		m.recall()
		m.fair(func() {
			if m.figures.begun && m.isBare() {
				m.layRungs(m.figures.held)
			}
			m.sortShort()
			meanwhile()
		})
	}
	m.pooled, m.claimed = granted, m.pooled
	if m.grant.gave && len(m.takers()) > 0 {
		m.p.Continue() // by what was granted, sets that stood may not stand any more
	}
}

// spent tells whether the cycle has used any of the plan's reclaim budget.
func (m *Planner) spent() bool {
	return m.p.Terms.ReclaimBudget != plan.Unlimited && m.budget < m.p.Terms.ReclaimBudget
}

// overLimits takes back what consumers hold over their share limits (MD-18): children before their parents, of each the units
// granted last, just enough to be within the limit in every dimension. O(consumers × dimensions), and the
// holdings of those over.
func (m *Planner) overLimits() {
	for n := plan.Node(m.policy.Len() - 1); n > plan.Root; n-- {
		for d := range m.pooled {
			if m.over(n, d) > 0 {
				m.giveBack(n)
				break
			}
		}
	}
}

// vacate puts under reclaim what is held on hosts that drain or left the plan (REQ-2, MD-4). O(parcels ÷ 64 + those that are not open).
func (m *Planner) vacate() {
	p, end := &m.p.Parcels, cluster.ParcelID(0)
	for w, open := range p.Open[:p.Words()] {
		for shut := ^open; shut != 0; shut &= shut - 1 {
			if k := cluster.ParcelID(w<<6 + bits.TrailingZeros64(shut)); k >= end && int(k) < p.Len() { // the first of its host
				end = p.End(k)
				m.vacateHost(k, end)
			}
		}
	}
}

// vacateHost is vacate for a host that is not open, whose parcels are from one to another.
func (m *Planner) vacateHost(k, end cluster.ParcelID) {
	p, reason := &m.p.Parcels, decision.ReclaimDrain
	switch {
	case int(k) >= p.Len()-p.Left:
		reason = decision.ReclaimOwnershipChange
	case m.s.Host.State[p.Host[k]] != cluster.Draining:
		return
	}
	for _, q := range m.s.LastFirst(m.p, k, end) {
		if m.s.Holding.Set[q] == cluster.NoID {
			m.takeBack(q, m.s.Holding.Units[q], reason)
		}
	}
}

// crowded puts under reclaim what is too much on parcels since their hosts were split anew (docs/ownership.md):
// in CYC-5's order what takes something of a dimension of which net more is held than there is. O(those), after seekBelow.
func (m *Planner) crowded() {
	p := &m.p.Parcels
	m.seekBelow()
	for _, k := range m.fairness.below {
		if int(k) < p.Len()-p.Left && m.overfull(k) && mutant != 53 {
			m.relieve(k, m.netOver(k), plan.Root, decision.ReclaimOwnershipChange)
		}
	}
}

// relieve puts under reclaim, in CYC-5's order, units on a parcel that take something of what is too much there, by
// dimension: those of outsiders of a consumer, or all for the root.
func (m *Planner) relieve(k cluster.ParcelID, over []int64, keeper plan.Node, reason int32) {
	h, depth := &m.s.Holding, m.policy.Depth[keeper]
	for _, q := range m.s.LastFirst(m.p, k, k+1) {
		if h.Set[q] != cluster.NoID || keeper != plan.Root && m.depthOf(q) >= depth {
			continue
		}
		size, units := m.s.Size(h.Sub[q]), int64(0)
		for d, u := range size {
			if u > 0 && over[d] > 0 {
				units = max(units, (over[d]+u-1)/u)
			}
		}
		units = min(units, h.Units[q])
		add(over, size, -units)
		m.takeBack(q, units, reason)
	}
}

// guard takes back what outsiders hold of what is reserved (INV-3): on a parcel for its owner first, then for those above. O(what is reserved,
// and what is held on parcels of hosts on which something changed).
func (m *Planner) guard() {
	r, dims := &m.reserve, len(m.p.Parcels.Cap)
	if len(r.safe) != len(r.parcel) || m.p.Resized {
		r.safe = zeroed(r.safe, len(r.parcel))
	}
	for i, k := range r.parcel {
		if int(k) >= m.p.Parcels.Len()-m.p.Parcels.Left || mutant == 18 {
			continue
		}
		shifts := m.s.Shifts.OnHost(m.p.Parcels.Host[k]) + 1
		if r.safe[i] == shifts || mutant == 64 && r.safe[i] > 0 {
			continue
		}
		over, some := m.outside(k, r.node[i], true), false
		for d := range over {
			over[d] += r.amount[i*dims+d] - m.p.Parcels.Cap[d][k]
			some = some || over[d] > 0
		}
		if !some {
			r.safe[i] = shifts
		} else {
			m.relieve(k, slices.Clone(over), r.node[i], decision.ReclaimReserve)
		}
	}
}

// overfull tells whether more is held on a parcel than it has.
func (m *Planner) overfull(k cluster.ParcelID) bool {
	for _, free := range m.p.Parcels.Free {
		if free[k] < 0 {
			return true
		}
	}
	return false
}

// netOver is by how much what is held on a parcel and is not under reclaim is more than it has, by dimension; below
// 0 where it is less.
func (m *Planner) netOver(k cluster.ParcelID) []int64 {
	over := make([]int64, len(m.p.Parcels.Free))
	for d, free := range m.p.Parcels.Free {
		over[d] = -free[k]
	}
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = m.s.Holding.NextOnParcel[q] {
		if m.s.Holding.Set[q] != cluster.NoID && mutant != 54 {
			add(over, m.s.Size(m.s.Holding.Sub[q]), -m.s.Holding.Units[q])
		}
	}
	return over
}

// roomBack is what a parcel has for units whose reclaim is cancelled, by dimension: beside all that is held there but for what
// rules reclaim, and what is kept there. So no set of a taker can lapse and leave too much there again.
func (m *Planner) roomBack(k cluster.ParcelID) []int64 {
	p, h := &m.p.Parcels, &m.s.Holding
	room := make([]int64, len(p.Free))
	for d, free := range p.Free {
		if room[d] = free[k]; p.Kept != nil {
			room[d] -= p.Kept[d][k]
		}
	}
	for q := p.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		if h.Set[q] != cluster.NoID && m.s.Set.Taker[h.Set[q]] == cluster.NoID {
			add(room, m.s.Size(h.Sub[q]), h.Units[q])
		}
	}
	return room
}

// takeBack puts units of a holding under reclaim for a rule, as far as the plan's budget goes:
// each unit is a set of its own (CYC-4). What was granted in this cycle is not granted at all (CYC-1).
func (m *Planner) takeBack(q cluster.HoldingID, units int64, reason int32) {
	m.takeBackBy(q, units, m.due(q), reason)
}

// takeBackBy is takeBack with a deadline.
func (m *Planner) takeBackBy(q cluster.HoldingID, units, due int64, reason int32) {
	h := &m.s.Holding
	sub, pool, now := h.Sub[q], h.Pool[q], h.Granted[q] > m.s.Cycle
	if !now {
		units = min(units, m.budget)
	}
	if units <= 0 {
		return
	}
	m.count(m.s.PairOf(sub, pool), -units)
	m.shift(sub, pool, -units)
	if now {
		m.undo(q, units)
		return
	}
	m.budget -= units
	m.s.Reclaim(q, units, m.nowUS, due-m.nowUS, reason)
}

// undo takes back units that were granted in this cycle as if they had not been; their sub-allocation gets nothing more in it.
func (m *Planner) undo(q cluster.HoldingID, units int64) {
	m.fairness.undone[m.s.Holding.Sub[q]] = true
	m.fairness.regain = append(m.fairness.regain, m.s.Holding.Parcel[q])
	m.s.Shrink(q, units)
	m.p.Continue()
}

// returned cancels reclaims on hosts that came back to the plan, or do not drain any more, and of what is not too much
// on its parcel any more: there the latest first, as far as the parcel bears them.
func (m *Planner) returned() {
	t, p := &m.s.Set, &m.p.Parcels
	var partly []cluster.SetID
	for id, number := range t.Number {
		if number == 0 || t.Plan[id] != m.p.Index || t.Taker[id] != cluster.NoID {
			continue
		}
		q := t.First[id]
		k := m.s.Holding.Parcel[q]
		in := int(k) < p.Len()-p.Left
		switch reason := t.Reason[id]; {
		case !in || m.s.Host.State[p.Host[k]] == cluster.Draining:
		case reason == decision.ReclaimOwnershipChange:
			partly = append(partly, cluster.SetID(id))
		case reason == decision.ReclaimDrain:
			for q != cluster.NoID { // several, where a split moved some of the units; tally comes after
				next := m.s.Holding.NextOfSet[q]
				m.s.Cancel(q, m.s.Holding.Units[q])
				q = next
			}
		}
	}
	slices.SortFunc(partly, func(a, b cluster.SetID) int { return cmp.Compare(t.Number[b], t.Number[a]) })
	for _, id := range partly {
		for q := t.First[id]; q != cluster.NoID; {
			next := m.s.Holding.NextOfSet[q]
			units := m.s.Holding.Units[q]
			for d, room := range m.roomBack(m.s.Holding.Parcel[q]) {
				if u := m.s.Size(m.s.Holding.Sub[q])[d]; u > 0 {
					units = min(units, max(0, room)/u)
				}
			}
			if units > 0 {
				m.s.Cancel(q, units)
			}
			q = next
		}
	}
}

// borne is how many of a holding's units, taken back for a reserve, its parcel bears beside what outsiders hold net and its
// lenders reserve.
func (m *Planner) borne(q cluster.HoldingID) int64 {
	k, size, units := m.s.Holding.Parcel[q], m.s.Size(m.s.Holding.Sub[q]), m.s.Holding.Units[q]
	if mutant == 19 {
		return 0
	}
	r, dims, depth := &m.reserve, len(size), m.depthOf(q)
	for i := m.firstReserve(k); i != cluster.NoID && int(i) < len(r.parcel) && r.parcel[i] == k; i++ {
		if m.policy.Depth[r.node[i]] <= depth {
			continue
		}
		out := m.outside(k, r.node[i], true)
		for d, u := range size {
			if u > 0 {
				units = min(units, max(0, m.p.Parcels.Cap[d][k]-r.amount[int(i)*dims+d]-out[d])/u)
			}
		}
	}
	return units
}

// giveBack puts under reclaim what brings one consumer within its limit.
func (m *Planner) giveBack(n plan.Node) {
	for _, q := range m.lastGranted(n) {
		size := m.s.Size(m.s.Holding.Sub[q])
		var units int64
		for d, u := range size {
			if o := m.over(n, d); o > 0 && u > 0 {
				units = max(units, (o+u-1)/u)
			}
		}
		if units = min(units, m.s.Holding.Units[q]); units == 0 {
			continue // nothing in a dimension that is exceeded
		}
		m.takeBack(q, units, decision.ReclaimOverLimit)
	}
}

// shift adds units to what their leaf, and all above it that are below a pool, hold from there.
func (m *Planner) shift(sub cluster.SubID, pool cluster.ConsumerID, units int64) {
	if len(m.pooled) == 0 || pool == cluster.NoID {
		return
	}
	top, size := m.s.NodeOf[pool], m.s.Size(sub)
	for n := m.s.Node(sub); n != plan.None && n != top; n = m.policy.Parent[n] {
		for d := range m.pooled {
			m.pooled[d][n] += size[d] * units
		}
	}
}

// from tells whether units that are held from a pool count for a share limit of a consumer: those of pools above it.
func (m *Planner) from(pool cluster.ConsumerID, n plan.Node) bool {
	if pool == cluster.NoID {
		return false
	}
	at := m.s.NodeOf[pool]
	return at != n && m.policy.Within(n, at) && (mutant != 26 || at == plan.Root)
}

// lastGranted lists what the leaves below a consumer hold from pools above it and is not under reclaim: the
// latest cycle first, then last rank, then the sub-allocation and the host that came last.
func (m *Planner) lastGranted(n plan.Node) (rows []cluster.HoldingID) {
	h := &m.s.Holding
	for leaf := n; leaf < m.policy.End[n]; leaf++ {
		for a := m.p.FirstAlloc[leaf]; a != cluster.NoID; a = m.s.Alloc.Next[a] {
			for sub := m.s.Alloc.First[a]; sub != cluster.NoID; sub = m.s.Sub.Next[sub] {
				for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
					if h.Set[q] == cluster.NoID && m.from(h.Pool[q], n) {
						rows = append(rows, q)
					}
				}
			}
		}
	}
	slices.SortFunc(rows, func(a, b cluster.HoldingID) int {
		sa, sb := h.Sub[a], h.Sub[b]
		return cmp.Or(cmp.Compare(h.Granted[b], h.Granted[a]),
			cmp.Compare(m.p.RankOrder[m.s.Node(sb)], m.p.RankOrder[m.s.Node(sa)]), m.s.Newer(a, b))
	})
	return rows
}

// restore cancels reclaims for limits and reserves that no longer demand them (CYC-6), the
// latest first, before anything is granted in their place.
func (m *Planner) restore() {
	t := &m.s.Set
	var sets []cluster.SetID
	for id, number := range t.Number {
		if number > 0 && t.Plan[id] == m.p.Index && t.Taker[id] == cluster.NoID &&
			(t.Reason[id] == decision.ReclaimOverLimit || t.Reason[id] == decision.ReclaimReserve) {
			sets = append(sets, cluster.SetID(id))
		}
	}
	slices.SortFunc(sets, func(a, b cluster.SetID) int { return cmp.Compare(t.Number[b], t.Number[a]) })
	for _, id := range sets {
		for q := t.First[id]; q != cluster.NoID; { // several, where a split moved some of the units
			next, sub, pool := m.s.Holding.NextOfSet[q], m.s.Holding.Sub[q], m.s.Holding.Pool[q]
			units := int64(0)
			if t.Reason[id] == decision.ReclaimReserve {
				units = m.borne(q)
			} else {
				units = m.bearable(q)
			}
			if units > 0 {
				m.s.Cancel(q, units)
				m.count(m.s.PairOf(sub, pool), units)
				m.shift(sub, pool, units)
			}
			q = next
		}
	}
}

// bearable is how many of a holding's units its leaf may hold more without anyone on its way up to their pool being over a limit.
func (m *Planner) bearable(q cluster.HoldingID) int64 {
	sub, units := m.s.Holding.Sub[q], m.s.Holding.Units[q]
	size := m.s.Size(sub)
	for n := m.s.Node(sub); n != plan.Root && m.from(m.s.Holding.Pool[q], n); n = m.policy.Parent[n] {
		for d := range m.pooled {
			if most := m.limit(n, d); most != plan.Unlimited && size[d] > 0 {
				units = min(units, max(0, most-m.pooled[d][n])/size[d])
			}
		}
	}
	return units
}
