package md

import (
	"cmp"
	"math"
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

// Reclaim takes back what consumers hold over their share limits (MD-18), whether
// or not anyone waits for it: children before their parents, of each the units
// granted last, just enough to be within the limit in every dimension. Their
// holders' grace applies. O(consumers × dimensions), and the holdings of those over.
func (m *Planner) Reclaim() {
	if m.budget = m.p.Terms.ReclaimBudget; m.budget == plan.Unlimited {
		m.budget = math.MaxInt64
	}
	granted := make([][]int64, len(m.pooled)) // what explain goes by: nothing is granted in its place before the next cycle (CYC-1)
	for d := range m.pooled {
		granted[d] = slices.Clone(m.pooled[d])
	}
	m.vacate()
	m.overLimits()
	m.fair()
	m.pooled, m.claimed = granted, m.pooled
	if len(m.grant.given) > 0 && len(m.takers()) > 0 {
		m.p.Continue() // by what was granted, sets that stood may not stand any more
	}
}

// spent tells whether the cycle has used any of the plan's reclaim budget.
func (m *Planner) spent() bool {
	return m.p.Terms.ReclaimBudget != plan.Unlimited && m.budget < m.p.Terms.ReclaimBudget
}

// overLimits takes back what consumers hold over their share limits.
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

// vacate puts under reclaim what is held on hosts that drain or left the plan (REQ-2, MD-4).
func (m *Planner) vacate() {
	p := &m.p.Parcels
	for k := range p.Len() {
		reason := decision.ReclaimDrain
		switch {
		case p.IsOpen(cluster.ParcelID(k)) || p.First[k] == cluster.NoID:
			continue
		case k >= p.Len()-p.Left:
			reason = decision.ReclaimOwnershipChange
		case m.s.Host.State[p.Host[k]] != cluster.Draining:
			continue
		}
		for _, q := range m.s.LastFirst(m.p, cluster.ParcelID(k)) {
			if m.s.Holding.Set[q] == cluster.NoID {
				m.takeBack(q, m.s.Holding.Units[q], reason)
			}
		}
	}
}

// takeBack puts units of a holding under reclaim for a rule, as far as the plan's budget goes:
// each unit is a set of its own (CYC-4).
func (m *Planner) takeBack(q cluster.HoldingID, units int64, reason int32) {
	if units = min(units, m.budget); units <= 0 {
		return
	}
	m.budget -= units
	leaf, size := m.s.Node(m.s.Holding.Sub[q]), m.s.Size(m.s.Holding.Sub[q])
	m.count(m.s.Sub.Pair[m.s.Holding.Sub[q]], -units)
	m.s.Reclaim(q, units, m.nowUS, m.policy.ReclaimUS[leaf], reason)
	m.shift(leaf, size, -units)
}

// returned cancels reclaims on hosts that came back to the plan, or do not drain any more.
func (m *Planner) returned() {
	t, p := &m.s.Set, &m.p.Parcels
	for id, number := range t.Number {
		if number == 0 || t.Plan[id] != m.p.Index || t.Taker[id] != cluster.NoID {
			continue
		}
		q := t.First[id]
		in := int(m.s.Holding.Parcel[q]) < p.Len()-p.Left
		if in && m.s.Host.State[t.Target[id]] != cluster.Draining &&
			(t.Reason[id] == decision.ReclaimOwnershipChange || t.Reason[id] == decision.ReclaimDrain) {
			m.s.Cancel(q, m.s.Holding.Units[q]) // tally comes after
		}
	}
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

// shift adds units to what a leaf and all above it hold from the pool.
func (m *Planner) shift(leaf plan.Node, size []int64, units int64) {
	for n := leaf; n != plan.None; n = m.policy.Parent[n] {
		for d := range m.pooled {
			m.pooled[d][n] += size[d] * units
		}
	}
}

// lastGranted lists what the leaves below a consumer hold and is not under reclaim: the
// latest cycle first, then last rank, then the sub-allocation and the host that came last.
func (m *Planner) lastGranted(n plan.Node) (rows []cluster.HoldingID) {
	h := &m.s.Holding
	for leaf := n; leaf < m.policy.End[n]; leaf++ {
		for a := m.p.FirstAlloc[leaf]; a != cluster.NoID; a = m.s.Alloc.Next[a] {
			for sub := m.s.Alloc.First[a]; sub != cluster.NoID; sub = m.s.Sub.Next[sub] {
				for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
					if h.Set[q] == cluster.NoID {
						rows = append(rows, q)
					}
				}
			}
		}
	}
	slices.SortFunc(rows, func(a, b cluster.HoldingID) int {
		sa, sb := h.Sub[a], h.Sub[b]
		return cmp.Or(cmp.Compare(h.Granted[b], h.Granted[a]),
			cmp.Compare(m.p.RankOrder[m.s.Node(sb)], m.p.RankOrder[m.s.Node(sa)]),
			cmp.Compare(m.s.Sub.Seq[sb], m.s.Sub.Seq[sa]), cmp.Compare(h.Parcel[b], h.Parcel[a]))
	})
	return rows
}

// restore cancels reclaims for limits that no longer demand them (CYC-6), the
// latest first, before anything is granted in their place.
func (m *Planner) restore() {
	t := &m.s.Set
	var sets []cluster.SetID
	for id, number := range t.Number {
		if number > 0 && t.Plan[id] == m.p.Index && t.Reason[id] == decision.ReclaimOverLimit {
			sets = append(sets, cluster.SetID(id))
		}
	}
	slices.SortFunc(sets, func(a, b cluster.SetID) int { return cmp.Compare(t.Number[b], t.Number[a]) })
	for _, id := range sets {
		q := t.First[id]
		sub := m.s.Holding.Sub[q]
		leaf, size := m.s.Node(sub), m.s.Size(sub)
		if units := m.bearable(leaf, size, m.s.Holding.Units[q]); units > 0 {
			m.s.Cancel(q, units)
			m.count(m.s.Sub.Pair[sub], units)
			m.shift(leaf, size, units)
		}
	}
}

// bearable is how many of so many units a leaf may hold more without anyone above it being over a limit.
func (m *Planner) bearable(leaf plan.Node, size []int64, units int64) int64 {
	for n := leaf; n != plan.Root; n = m.policy.Parent[n] {
		for d := range m.pooled {
			if most := m.limit(n, d); most != plan.Unlimited && size[d] > 0 {
				units = min(units, max(0, most-m.pooled[d][n])/size[d])
			}
		}
	}
	return units
}
