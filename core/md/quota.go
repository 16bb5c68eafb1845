package md

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// quotas is what dividing usage quotas works with (MD-13, MD-14).
type quotas struct {
	divider share.Divider
	child   []plan.Node
	rank    []int32
	ratio   []int64
	limit   []int64
	part    []int64
}

// Quota computes usage demands and usage quotas of every pool from the usages after granting.
// O(sub-allocations × depth + consumers in pools × log children).
func (m *Planner) Quota() {
	p := &m.pools
	clear(p.demand)
	clear(p.quota)
	for i := range p.list {
		p.list[i].short = false
	}
	m.eachSub(func(sub cluster.SubID) {
		leaf := m.s.Node(sub)
		m.eachPool(sub, func(o *pool, held, outstanding int64) {
			if held+outstanding > 0 {
				at := &p.demand[o.at(leaf)]
				*at = share.Add(*at, share.Demand(held+outstanding, m.capacity(o, m.s.Sub.Shape[sub])))
				o.short = o.short || outstanding > 0
			}
		})
	})
	for i := range p.list {
		o := &p.list[i]
		m.sumIn(o, p.demand)
		if !o.short {
			m.keep(o)
			continue
		}
		if p.quota[o.figures] = p.usage[o.figures]; p.quota[o.figures] == 0 {
			continue
		}
		for node := o.node; node < o.end; node++ {
			if m.policy.First[node] != plan.None && p.quota[o.at(node)] > 0 {
				m.divide(o, node)
			}
		}
	}
}

// keep is the quotas of a pool in which nothing is outstanding: everyone deserves
// what it uses and is not to give back.
func (m *Planner) keep(o *pool) {
	for q := o.firstPair; q != cluster.NoID; q = m.pools.nextPair[q] {
		if units := m.p.Pairs.Units[q]; units > 0 {
			at := &m.pools.quota[o.at(m.p.Pairs.Leaf[q])]
			*at = share.Add(*at, share.Fraction(units-m.p.Pairs.Leaving[q], max(m.capacity(o, m.p.Pairs.Shape[q]), units)))
		}
	}
	m.sumIn(o, m.pools.quota)
}

// divide hands a consumer's usage quota in a pool down to its children.
func (m *Planner) divide(o *pool, node plan.Node) {
	q, p := &m.quota, &m.pools
	q.child, q.rank, q.ratio, q.limit = q.child[:0], q.rank[:0], q.ratio[:0], q.limit[:0]
	for c := m.policy.First[node]; c != plan.None; c = m.policy.Next[c] {
		if p.demand[o.at(c)] > 0 {
			q.child = append(q.child, c)
			q.rank = append(q.rank, m.set.Priority[c])
			q.ratio = append(q.ratio, m.set.Ratio[c])
			q.limit = append(q.limit, p.demand[o.at(c)])
		}
	}
	q.part = zeroed(q.part, len(q.child))
	q.divider.FillByPriority(p.quota[o.at(node)], q.rank, q.ratio, q.limit, q.part)
	for i, c := range q.child {
		p.quota[o.at(c)] = q.part[i]
	}
}

// amounts are the figures of the table amounts, by dimension, then Node.
type amounts struct {
	held  [][]int64
	owned [][]int64
	lent  [][]int64 // what outsiders hold on its parcels, or on those of consumers below it
	quota [][]int64 // static share quota
	leafy []bool    // by Node: a leaf of the plan, or above one
	part  []int64   // scratch
}

// Amounts computes what consumers hold and their static share quotas (MD-15, D-8):
// per dimension each pool's capacity, divided as if every leaf wanted without end.
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
		for i := range m.pools.list {
			m.splitPool(&m.pools.list[i], d)
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

// splitPool adds to consumers' static share quotas what a pool's capacity, as of the last refresh, gives them in a dimension.
func (m *Planner) splitPool(o *pool, d int) {
	a := &m.amounts
	a.part = zeroed(a.part, int(o.end-o.node))
	if o.node == plan.Root {
		for i, v := range m.public.capacity.column[d] {
			a.part[0] = share.Add(a.part[0], share.Mul(v, m.public.capacity.count[i]))
		}
	}
	if o.own < o.all {
		for i, v := range o.column[d] {
			a.part[0] = share.Add(a.part[0], share.Mul(v, o.count[i]))
		}
	}
	for node := o.node; node < o.end; node++ {
		v := a.part[node-o.node]
		if v > 0 && m.policy.First[node] != plan.None {
			m.split(a.part, o.node, node)
		}
		if node > o.node {
			a.quota[d][node] = share.Add(a.quota[d][node], v)
		}
	}
}

// split gives a node's part to its children of the highest share priority in
// proportion to their ratios, rounded down. Parts are by node, the first is that of from.
func (m *Planner) split(part []int64, from, node plan.Node) {
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
			part[c-from] = share.Part(part[node-from], m.set.Ratio[c], sum)
		}
	}
}
