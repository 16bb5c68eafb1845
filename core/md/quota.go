package md

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// quotas are the shares that consumers deserve, by Node (MD-13, MD-14).
type quotas struct {
	demand []int64 // usage demand
	quota  []int64 // usage quota
	short  bool    // whether anything in the pool is outstanding

	divider share.Divider
	child   []plan.Node
	rank    []int32
	ratio   []int64
	limit   []int64
	part    []int64
}

// Quota computes usage demands and usage quotas from the usages after granting.
// O(sub-allocations + consumers × log children).
func (m *Planner) Quota() {
	q, n := &m.quota, m.policy.Len()
	q.demand, q.quota, q.short = zeroed(q.demand, n), zeroed(q.quota, n), false
	m.eachSub(func(sub cluster.SubID) {
		leaf, units := m.s.Node(sub), m.public.holds(m.s, m.p, sub)+m.s.Short(sub)
		q.demand[leaf] = share.Add(q.demand[leaf], share.Demand(units, m.public.capacity.of(m.s.Sub.Shape[sub])))
		q.short = q.short || m.s.Short(sub) > 0
	})
	m.sumUp(q.demand)
	if !q.short {
		m.keep()
		return
	}
	q.quota[plan.Root] = m.public.usage[plan.Root]
	for node := range plan.Node(n) {
		if m.policy.First[node] != plan.None && q.quota[node] > 0 {
			m.divide(node)
		}
	}
}

// keep is the quotas of a pool in which nothing is outstanding: everyone deserves
// what it uses and is not to give back.
func (m *Planner) keep() {
	for q, leaf := range m.p.Pairs.Leaf {
		if m.p.Pairs.Pool[q] != m.public.id {
			continue
		}
		stays := m.p.Pairs.Units[q] - m.p.Pairs.Leaving[q]
		usage := share.Fraction(stays, max(m.public.capacity.of(m.p.Pairs.Shape[q]), m.p.Pairs.Units[q]))
		m.quota.quota[leaf] = share.Add(m.quota.quota[leaf], usage)
	}
	m.sumUp(m.quota.quota)
}

// divide hands a consumer's usage quota down to its children.
func (m *Planner) divide(node plan.Node) {
	q := &m.quota
	q.child, q.rank, q.ratio, q.limit = q.child[:0], q.rank[:0], q.ratio[:0], q.limit[:0]
	for c := m.policy.First[node]; c != plan.None; c = m.policy.Next[c] {
		if q.demand[c] > 0 {
			q.child = append(q.child, c)
			q.rank = append(q.rank, m.set.Priority[c])
			q.ratio = append(q.ratio, m.set.Ratio[c])
			q.limit = append(q.limit, q.demand[c])
		}
	}
	q.part = zeroed(q.part, len(q.child))
	q.divider.FillByPriority(q.quota[node], q.rank, q.ratio, q.limit, q.part)
	for i, c := range q.child {
		q.quota[c] = q.part[i]
	}
}

// amounts are the figures of the table amounts, by dimension, then Node.
type amounts struct {
	held  [][]int64
	owned [][]int64
	lent  [][]int64 // what outsiders hold on its parcels, or on those of consumers below it
	quota [][]int64 // static share quota
	leafy []bool    // by Node: a leaf of the plan, or above one
}

// Amounts computes what consumers hold and their static share quotas (MD-15, D-8):
// per dimension the pool's capacity, divided as if every leaf wanted without end.
// O(consumers × dimensions × log children).
func (m *Planner) Amounts() {
	a, n := &m.amounts, m.policy.Len()
	a.leafy = zeroed(a.leafy, n)
	for node := plan.Node(n - 1); node > plan.Root; node-- {
		if m.p.Terms.Member[node] && (m.policy.Leaf(node) || a.leafy[node]) {
			a.leafy[node], a.leafy[m.policy.Parent[node]] = true, true
		}
	}
	dims := len(m.policy.Dimensions)
	a.held, a.owned, a.lent, a.quota = resized(a.held, dims), resized(a.owned, dims), resized(a.lent, dims), resized(a.quota, dims)
	for d := range m.policy.Dimensions {
		a.held[d], a.owned[d] = zeroed(a.held[d], n), zeroed(a.owned[d], n)
		a.lent[d], a.quota[d] = zeroed(a.lent[d], n), zeroed(a.quota[d], n)
		for i, c := range m.p.Deeds.Consumer {
			a.owned[d][m.s.NodeOf[c]] += m.p.Deeds.Amount[d][i]
		}
		for q, leaf := range m.p.Pairs.Leaf {
			a.held[d][leaf] = share.Add(a.held[d][leaf], share.Mul(m.p.Pairs.Units[q], m.s.Shape.Size(m.p.Pairs.Shape[q])[d]))
		}
		m.sumUp(a.held[d])
		for i, v := range m.public.capacity.column[d] {
			a.quota[d][plan.Root] = share.Add(a.quota[d][plan.Root], share.Mul(v, m.public.capacity.count[i]))
		}
		for node := range plan.Node(n) {
			if m.policy.First[node] != plan.None && a.quota[d][node] > 0 {
				m.split(a.quota[d], node)
			}
		}
	}
	if m.p.Parcels.Owned {
		m.lend()
	}
}

// lend adds up what is held on parcels by outsiders of those that own them.
func (m *Planner) lend() {
	p, h := &m.p.Parcels, &m.s.Holding
	for k, owner := range p.Owner {
		for q := p.First[k]; q != cluster.NoID && owner != cluster.NoID; q = h.NextOnParcel[q] {
			leaf := m.p.Pairs.Leaf[m.s.Sub.Pair[h.Sub[q]]]
			for n := m.s.NodeOf[owner]; n != plan.Root && !m.policy.Within(leaf, n); n = m.policy.Parent[n] {
				for d, u := range m.s.Size(h.Sub[q]) {
					m.amounts.lent[d][n] = share.Add(m.amounts.lent[d][n], share.Mul(h.Units[q], u))
				}
			}
		}
	}
}

// split gives a node's figure to its children of the highest share priority in
// proportion to their ratios, rounded down.
func (m *Planner) split(figure []int64, node plan.Node) {
	var sum int64
	var first int32
	for c := m.policy.First[node]; c != plan.None; c = m.policy.Next[c] {
		if !m.amounts.leafy[c] || m.set.Ratio[c] == 0 {
			continue
		}
		if p := m.set.Priority[c]; sum == 0 || p > first {
			first, sum = p, 0
		}
		if m.set.Priority[c] == first {
			sum = share.Add(sum, m.set.Ratio[c])
		}
	}
	for c := m.policy.First[node]; c != plan.None; c = m.policy.Next[c] {
		if m.amounts.leafy[c] && m.set.Ratio[c] > 0 && m.set.Priority[c] == first {
			figure[c] = share.Part(figure[node], m.set.Ratio[c], sum)
		}
	}
}
