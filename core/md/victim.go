package md

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// even is how many parts of 2⁻⁴⁸ shares may differ and still count as equal: each leaf and unit size below a consumer
// loses up to one to rounding, and what is equal in truth must not be decided by that.
const even = 1 << 16

// ahead tells whether a victim that gives and a taker that gets so much share of a pool may be so: the victim is of lower
// priority where their branches part, or of equal and then not worse off.
func (m *Planner) ahead(o *pool, victim, taker plan.Node, gives, gets int64) bool {
	a, b := m.part(victim, taker)
	return m.aheadAt(o, a, b, gives, gets)
}

// aheadAt is ahead where it is known at whom the branches part.
func (m *Planner) aheadAt(o *pool, a, b plan.Node, gives, gets int64) bool {
	if mutant == 48 {
		gives = 0
	}
	return m.leads(a, b, m.pools.stake[o.at(a)]-gives, m.pools.stake[o.at(b)]+gets, slackOf(gives))
}

// slackOf is how much shares may differ and still count as equal when a victim gives so much.
func slackOf(gives int64) int64 {
	if gives <= 0 {
		return even
	}
	return min(even, gives/2) // less than a unit, or two could take from each other for ever
}

// leads tells whether a sibling with so much share is ahead of another with so much, or short of it by no more than some slack.
func (m *Planner) leads(a, b plan.Node, x, y, slack int64) bool {
	if m.set.Priority[a] != m.set.Priority[b] {
		return m.set.Priority[a] < m.set.Priority[b]
	}
	if m.set.Ratio[a] == 0 || m.set.Ratio[b] == 0 {
		return m.set.Ratio[a] == 0 && m.set.Ratio[b] > 0
	}
	return x >= 0 && !share.Less(x+slack, m.set.Ratio[a], y, m.set.Ratio[b])
}

// part is where the ways up from two leaves part: the last consumers before they meet.
func (m *Planner) part(a, b plan.Node) (plan.Node, plan.Node) {
	for m.policy.Depth[a] > m.policy.Depth[b] {
		a = m.policy.Parent[a]
	}
	for m.policy.Depth[b] > m.policy.Depth[a] {
		b = m.policy.Parent[b]
	}
	for m.policy.Parent[a] != m.policy.Parent[b] {
		a, b = m.policy.Parent[a], m.policy.Parent[b]
	}
	return a, b
}

// eachVictim calls f for the leaves that might give something of a pool to a taker, with what those next to its way may, until it is false: where the
// branches part, from the pool's consumer down, those of lower priority first, then the most over-used (MD-17).
func (m *Planner) eachVictim(o *pool, taker plan.Node, gets int64, f func(leaf plan.Node, most *margin) bool) {
	path := m.fairness.path[:0]
	for n := taker; n != o.node; n = m.policy.Parent[n] {
		path = append(path, n)
	}
	m.fairness.path = path
	for i := len(path) - 1; i >= 0; i-- {
		toward := path[i]
		if c := &m.fairness.claim; !c.free && c.bear[m.policy.Depth[toward]].below < gets {
			continue // a pact keeps those further down from more
		}
		for _, c := range m.victimOrder(o, m.policy.Parent[toward]) {
			if c == toward || m.pools.stake[o.at(c)] == 0 || !m.ahead(o, c, toward, 0, gets) {
				continue
			}
			if !m.eachBelow(o, c, m.marginAt(o, c), f) {
				return
			}
		}
	}
}

// anyAhead tells whether eachVictim might find anyone.
func (m *Planner) anyAhead(o *pool, taker plan.Node, gets int64) bool {
	for n := taker; n != o.node; n = m.policy.Parent[n] {
		for c := m.policy.First[m.policy.Parent[n]]; c != plan.None; c = m.policy.Next[c] {
			if c != n && m.p.Terms.Member[c] && m.pools.stake[o.at(c)] > 0 && m.ahead(o, c, n, 0, gets) {
				return true
			}
		}
	}
	return false
}

// eachBelow calls f for the leaves below a consumer in the order of victims, until it is false; for those of which
// a unit may give so little that the margin next to the taker's way and the pacts bear it.
func (m *Planner) eachBelow(o *pool, n plan.Node, most *margin, f func(leaf plan.Node, most *margin) bool) bool {
	c := &m.fairness.claim
	if least := c.least[n-o.node]; !most.bears(least) || !c.free && m.boundOf(o, n).fall < least {
		return true
	}
	if m.policy.Leaf(n) {
		return f(n, most)
	}
	for _, c := range m.victimOrder(o, n) {
		if m.pools.stake[o.at(c)] > 0 && !m.eachBelow(o, c, most, f) {
			return false
		}
	}
	return true
}

// victimOrder is a consumer's children in the order in which they give: lower priority first, then the
// most over-used, ties last rank first. It is sorted anew when anything was taken since.
func (m *Planner) victimOrder(o *pool, n plan.Node) []plan.Node {
	order := m.fairness.order[n]
	if order == nil {
		order = []plan.Node{}
		for c := m.policy.First[n]; c != plan.None; c = m.policy.Next[c] {
			if m.p.Terms.Member[c] {
				order = append(order, c)
			}
		}
		m.fairness.order[n] = order
	}
	first := func(a, b plan.Node) int { return m.givesFirst(o, a, b) }
	if !slices.IsSortedFunc(order, first) {
		slices.SortFunc(order, first)
	}
	return order
}

// givesFirst orders siblings as victims.
func (m *Planner) givesFirst(o *pool, a, b plan.Node) int {
	if c := cmp.Compare(m.set.Priority[a], m.set.Priority[b]); c != 0 {
		return c
	}
	ra, rb, x, y := m.set.Ratio[a], m.set.Ratio[b], m.pools.stake[o.at(a)], m.pools.stake[o.at(b)]
	switch {
	case ra == 0 && rb > 0:
		return -1
	case rb == 0 && ra > 0:
		return 1
	case ra > 0 && share.Less(x, ra, y, rb):
		return 1
	case ra > 0 && share.Less(y, rb, x, ra):
		return -1
	}
	if mutant == 47 {
		a, b = b, a
	}
	return cmp.Compare(m.p.RankOrder[b], m.p.RankOrder[a])
}

// newest sorts holdings: the latest grant first, then the sub-allocation and the parcel that came last. Those that differ in nothing, as what is lent to an
// owner and what it was before may when the owner is gone, stand by their numbers.
func (m *Planner) newest(a, b cluster.HoldingID) int {
	h := &m.s.Holding
	return cmp.Or(cmp.Compare(h.Granted[b], h.Granted[a]), cmp.Compare(m.s.Sub.Seq[h.Sub[b]], m.s.Sub.Seq[h.Sub[a]]),
		cmp.Compare(h.Parcel[b], h.Parcel[a]), cmp.Compare(a, b))
}

// victimFirst orders holdings from a pool as victims for the taker of this round.
func (m *Planner) victimFirst(o *pool, a, b *giver) int {
	if a.leaf == b.leaf {
		return m.newest(a.q, b.q)
	}
	if x, y := m.policy.Depth[a.beside], m.policy.Depth[b.beside]; x != y {
		return cmp.Compare(x, y) // nearer to the root first
	}
	x, y := a.beside, b.beside // siblings
	if x == y {
		x, y = m.part(a.leaf, b.leaf)
	}
	return m.givesFirst(o, x, y)
}

// pairIn is the pair of units that a sub-allocation holds from a pool.
func (m *Planner) pairIn(o *pool, sub cluster.SubID) cluster.PairID { return m.s.PairOf(sub, o.id) }

// gain is what one unit more would add to the stake of a sub-allocation's leaf in a pool.
func (m *Planner) gain(o *pool, sub cluster.SubID) int64 {
	if q := m.s.FindPair(sub, o.id); q != cluster.NoID {
		return m.change(q, 1)
	}
	return share.Fraction(1, m.capacity(o, m.s.Sub.Shape[sub]))
}
