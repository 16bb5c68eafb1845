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

// keepAll computes the usage quotas of leaves in pools in which nothing is outstanding, of pairs as they stand in memory, after countAll. O(pairs).
func (m *Planner) keepAll(pairs *cluster.Pairs) {
	clear(m.pools.quota)
	for q := range pairs.Units {
		if o := m.poolOf(pairs.Pool[q]); o != nil && !o.short {
			m.keepPair(pairs, o, cluster.PairID(q))
		}
	}
}

// Quota computes the usage quotas of every pool from usages after granting and from demands, after keepAll and sumPools.
// O(consumers in pools × log children).
func (m *Planner) Quota() {
	for i := range m.pools.list {
		o := &m.pools.list[i]
		if o.again = false; o.short {
			m.quotaOf(o)
		} else {
			m.sumIn(o, m.pools.quota)
		}
	}
}

// quotaAgain computes them for the pools whose figures were corrected since.
func (m *Planner) quotaAgain() {
	for i := range m.pools.list {
		o := &m.pools.list[i]
		if !o.again || mutant == 72 {
			continue
		}
		if clear(m.pools.quota[o.figures:][:o.end-o.node]); o.short {
			m.quotaOf(o)
			continue
		}
		for q := o.firstPair; q != cluster.NoID; q = m.pools.nextPair[q] {
			m.keepPair(&m.p.Pairs, o, q)
		}
		m.sumIn(o, m.pools.quota)
	}
}

// quotaOf divides what is used of a pool.
func (m *Planner) quotaOf(o *pool) {
	p := &m.pools
	if p.quota[o.figures] = p.usage[o.figures]; p.quota[o.figures] == 0 {
		return
	}
	for node := o.node; node < o.end; node++ {
		if m.policy.First[node] != plan.None && p.quota[o.at(node)] > 0 {
			m.quota.divide(m, o, node, p.demand, p.quota)
		}
	}
}

// keepPair adds what a pair adds to its leaf's quota in a pool in which nothing is outstanding: everyone deserves what it uses and is not to
// give back.
func (m *Planner) keepPair(pairs *cluster.Pairs, o *pool, q cluster.PairID) {
	if units := pairs.Units[q]; units > 0 {
		at := &m.pools.quota[o.at(pairs.Leaf[q])]
		*at = share.Add(*at, share.Fraction(units-pairs.Leaving[q], max(m.capacityNow(o, pairs.Shape[q]), units)))
	}
}

// divide hands a consumer's usage quota in a pool down to its children.
func (q *quotas) divide(m *Planner, o *pool, node plan.Node, demand, quota []int64) {
	q.child, q.rank, q.ratio, q.limit = q.child[:0], q.rank[:0], q.ratio[:0], q.limit[:0]
	for c := m.policy.First[node]; c != plan.None; c = m.policy.Next[c] {
		if demand[o.at(c)] > 0 {
			q.child = append(q.child, c)
			q.rank = append(q.rank, m.set.Priority[c])
			q.ratio = append(q.ratio, m.set.Ratio[c])
			q.limit = append(q.limit, demand[o.at(c)])
		}
	}
	q.part = zeroed(q.part, len(q.child))
	q.divider.FillByPriority(quota[o.at(node)], q.rank, q.ratio, q.limit, q.part)
	for i, c := range q.child {
		quota[o.at(c)] = q.part[i]
	}
}

// amounts are the figures of the table amounts, by dimension, then Node. What goes by the plan's parcels and settings alone is kept
// until these are others.
type amounts struct {
	held  [][]int64
	owned [][]int64
	lent  [][]int64 // what outsiders hold on its parcels, or on those of consumers below it
	quota [][]int64 // static share quota
	leafy []bool    // by Node: a leaf of the plan, or above one

	set   *plan.MDWindow // that leafy, owned and parts are of; nil: nothing is kept
	split []int64        // by pool: rests.version of which its parts are, NoID: none yet
	parts [][]int64      // by dimension, then pool.at: what of the pool's capacity is a consumer's
}

// Amounts computes what leaves hold, and the static share quotas (MD-15, D-8):
// per dimension each pool's capacity, divided as if every leaf wanted without end.
// O(pairs × dimensions + consumers in pools × dimensions), besides pools whose capacity changed.
func (m *Planner) Amounts(pairs *cluster.Pairs) {
	a, n, dims := &m.amounts, m.policy.Len(), len(m.policy.Dimensions)
	a.held, a.owned, a.lent, a.quota = resized(a.held, dims), resized(a.owned, dims), resized(a.lent, dims), resized(a.quota, dims)
	if a.set != m.set {
		m.layAmounts()
	}
	for d := range dims {
		a.held[d], a.lent[d], a.quota[d] = zeroed(a.held[d], n), zeroed(a.lent[d], n), zeroed(a.quota[d], n)
	}
	for q := range pairs.Leaf {
		m.holdPair(pairs, cluster.PairID(q))
	}
	for i := range m.pools.list {
		o := &m.pools.list[i]
		if a.split[i] != o.version || o.node == plan.Root {
			a.split[i] = o.version
			for d := range dims {
				m.splitPool(o, d)
			}
		}
		for d, parts := range a.parts {
			for node := o.node + 1; node < o.end; node++ {
				a.quota[d][node] = share.Add(a.quota[d][node], parts[o.at(node)])
			}
		}
	}
}

// holdPair adds what is held of a pair to what its leaf holds.
func (m *Planner) holdPair(pairs *cluster.Pairs, q cluster.PairID) {
	units, leaf := pairs.Units[q], pairs.Leaf[q]
	if units <= 0 {
		return
	}
	for d, u := range m.s.Shape.Size(pairs.Shape[q]) {
		held := m.amounts.held[d]
		held[leaf] = share.Add(held[leaf], share.Mul(units, u))
	}
}

// sumAmounts adds up what consumers hold of what their leaves do, and what they lend. After canvass and Amounts. O(consumers × dimensions).
func (m *Planner) sumAmounts() {
	for _, held := range m.amounts.held {
		m.sumUp(held)
	}
	m.lend()
}

// layAmounts finds out which consumers have leaves, adds up what is owned, and forgets how pools were split.
func (m *Planner) layAmounts() {
	a, n := &m.amounts, m.policy.Len()
	a.set, a.leafy = m.set, zeroed(a.leafy, n)
	for node := plan.Node(n - 1); node > plan.Root; node-- {
		if m.p.Terms.Member[node] && (m.policy.Leaf(node) || a.leafy[node]) {
			a.leafy[node], a.leafy[m.policy.Parent[node]] = true, true
		}
	}
	a.parts, a.split = resized(a.parts, len(a.owned)), resized(a.split, len(m.pools.list))
	for i := range a.split {
		a.split[i] = cluster.NoID
	}
	for d := range a.owned {
		a.owned[d], a.parts[d] = zeroed(a.owned[d], n), zeroed(a.parts[d], len(m.pools.usage))
		for i, c := range m.p.Deeds.Consumer {
			a.owned[d][m.s.NodeOf[c]] += m.p.Deeds.Amount[d][i]
		}
	}
}

// splitPool gives consumers their parts of what a pool's capacity is in a dimension, as of the last refresh.
func (m *Planner) splitPool(o *pool, d int) {
	part := m.amounts.parts[d][o.figures:][:o.end-o.node]
	clear(part)
	if o.node == plan.Root {
		for i, v := range m.public.capacity.column[d] {
			part[0] = share.Add(part[0], share.Mul(v, m.public.capacity.count[i]))
		}
	}
	if o.own < o.all {
		for _, v := range m.pools.restOf[m.policy.Depth[o.node]].rest[d][o.own:o.all] {
			part[0] = share.Add(part[0], v)
		}
	}
	for node := o.node; node < o.end; node++ {
		if part[node-o.node] > 0 && m.policy.First[node] != plan.None {
			m.split(part, o.node, node)
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
