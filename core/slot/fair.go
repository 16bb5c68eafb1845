package slot

import (
	"math/bits"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// fairShare takes back what leaves hold from the pools beyond their quotas, for those below
// theirs (SLOT-5 ⑤): takers in turns by usage ÷ ratio, each unit from the leaf then furthest above; where all
// share by ratio, from the leaf that then has most to give of what is asked of all (SLOT-15).
func (m *Planner) fairShare() {
	if m.whole {
		m.fairHosts()
		return
	}
	r := &m.reclaim
	above := func(leaf plan.Node) bool { return m.excess(leaf) > 0 && m.figure.net[kindShare][leaf] > 0 }
	r.crowd = m.gather(above)
	m.layClaims()
	if r.givers = nil; m.tree.shares {
		m.divideAsked(kindShare)
		r.givers = m.gather(above)
		r.givers.key = func(leaf plan.Node) int64 { return m.hybrid.gives[leaf] }
		r.givers.heap()
	}
	m.reopen()
	m.inTurns(func(leaf plan.Node) (int64, bool) {
		for {
			for sub := m.line.next(leaf); sub != cluster.NoID; sub = m.line.next(leaf) {
				k, bound := m.slots(sub), m.quota.deserve[leaf]
				if m.waits(sub) {
					if was := m.figure.usage[leaf]; m.promiseAllShare(leaf, sub) {
						m.line.settle(leaf)
						return m.figure.usage[leaf] - was, m.line.advance(leaf)
					}
				} else if m.figure.usage[leaf]+k <= bound &&
					m.promise(leaf, sub, decision.ReclaimFairShare, kindShare, nil, m.fairVictims) {
					m.settleCrowds()
					m.line.settle(leaf)
					return k, m.line.advance(leaf)
				}
				m.line.pass(leaf)
			}
			if !m.line.advance(leaf) {
				return 0, false
			}
		}
	})
}

// promiseAllShare promises a gang its first units: each of its own slots, of what it lent, else of the pools within its
// quota.
func (m *Planner) promiseAllShare(leaf plan.Node, sub cluster.SubID) bool {
	return m.promiseAll(sub, func() {}, func() bool {
		if m.netOwn(leaf)-m.reclaim.joinedOwn[leaf] > 0 || m.figure.net[kindLent][leaf] > 0 {
			loans := m.loansOf(leaf)
			if m.promise(leaf, sub, decision.ReclaimRecall, kindLent, loans,
				func(w *want) []victim { return m.loanVictims(w, loans) }) {
				m.layClaims()
				return true
			}
		}
		if m.figure.usage[leaf]+m.slots(sub) > m.quota.deserve[leaf] ||
			!m.promise(leaf, sub, decision.ReclaimFairShare, kindShare, nil, m.fairVictims) {
			return false
		}
		m.settleCrowds()
		return true
	})
}

// layClaims computes what owners may still claim, net. O(leaves).
func (m *Planner) layClaims() {
	m.reclaim.claims = 0
	for _, leaf := range m.tree.leaves {
		m.reclaim.claims += max(0, m.netOwn(leaf)-m.reclaim.joinedOwn[leaf])
	}
}

// settleCrowds brings the heaps to order after victims were taken.
func (m *Planner) settleCrowds() {
	r := &m.reclaim
	switch {
	case r.givers == nil:
		r.crowd.settle()
	case r.asked:
		r.givers.settle()
	default:
		r.givers.heap()
	}
}

// fairVictims chooses among what leaves have to give of what is asked of all, if that is divided; where the units of
// those do not serve, or it is not, among all that they hold beyond their quotas.
func (m *Planner) fairVictims(w *want) (found []victim) {
	r := &m.reclaim
	if r.asked = r.givers != nil; r.asked {
		if found = m.victimsOf(r.givers, w); found != nil {
			return found
		}
		clear(w.failed)
		r.crowd.heap()
	}
	r.asked = false
	return m.victimsOf(r.crowd, w)
}

// victimsOf chooses from the leaf of a crowd that comes first, its newest first, on the first
// host where that and others make enough room.
func (m *Planner) victimsOf(c *crowd, w *want) (found []victim) {
	var aside []plan.Node
	for len(c.leaf) > 0 && found == nil {
		leaf := c.leaf[0]
		if c.key(leaf) <= 0 {
			break
		}
		for _, q := range c.of(leaf) {
			k := m.s.Holding.Parcel[q]
			if !c.gives(q, leaf) || !m.mayLose(q, 0) || !m.tryHost(w, k) || !m.mayGive(w, q, nil) {
				continue
			}
			if found = m.enoughShared(c, w, k); found != nil {
				break
			}
			w.failed[k] = true
		}
		if found == nil {
			aside = append(aside, c.pop())
		}
	}
	lone := len(aside) == 0
	for _, v := range found {
		lone = lone && m.s.Node(m.s.Holding.Sub[v.q]) == c.leaf[0]
	}
	m.reclaim.lone = lone
	c.push(aside)
	return found
}

// mayGive tells whether one more unit of a leaf may be taken for a taker, so many slots of the
// leaf being chosen already: it stays at or above its quota, or is not worse off than the taker then.
func (m *Planner) mayGive(w *want, q cluster.HoldingID, chosen map[plan.Node]int64) bool {
	m.s.Yield()
	sub := m.s.Holding.Sub[q]
	leaf, v := m.s.Node(sub), m.slots(sub)
	x := m.excess(leaf) - chosen[leaf]
	if x <= 0 || leaf == w.leaf {
		return false
	}
	return x >= v || m.notWorse(leaf, v, chosen, w)
}

// notWorse compares a victim that gives so many slots with the taker that gets its unit, in usage ÷
// ratio where their branches part.
func (m *Planner) notWorse(leaf plan.Node, slots int64, chosen map[plan.Node]int64, w *want) bool {
	a, b := leaf, w.leaf
	for m.policy.Depth[a] > m.policy.Depth[b] {
		a = m.policy.Parent[a]
	}
	for m.policy.Depth[b] > m.policy.Depth[a] {
		b = m.policy.Parent[b]
	}
	for m.policy.Parent[a] != m.policy.Parent[b] {
		a, b = m.policy.Parent[a], m.policy.Parent[b]
	}
	x, y := m.figure.usage[a]-slots, m.figure.usage[b]+w.k
	for victim, given := range chosen { // sums do not depend on the order
		if m.below0(victim, a) {
			x -= given
		}
		if m.below0(victim, b) {
			y -= given
		}
	}
	if x < 0 {
		return false
	}
	xh, xl := bits.Mul64(uint64(x), uint64(m.weight(b)))
	yh, yl := bits.Mul64(uint64(y), uint64(m.weight(a)))
	return xh > yh || xh == yh && xl >= yl
}

// enoughShared takes units of one host, each from the leaf of a crowd that then comes first.
func (m *Planner) enoughShared(c *crowd, w *want, k cluster.ParcelID) []victim {
	return m.enoughOf(w, k, c.key, func(q cluster.HoldingID, chosen map[plan.Node]int64) bool {
		leaf := m.s.Node(m.s.Holding.Sub[q])
		return c.gives(q, leaf) && c.key(leaf)-chosen[leaf] > 0 && m.mayGive(w, q, chosen)
	})
}
