package slot

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// reclaimHybrid takes back what hybrid leaves hold above their quotas, for those below theirs, for
// reserves, and for owners beside them (SLOT-27, SLOT-30).
func (m *Planner) reclaimHybrid() {
	if !m.tree.hybrid {
		m.lapsePartial()
		return
	}
	m.reopen()
	if m.tree.mixed && m.overPart() > 0 {
		m.forOwners()
	}
	m.layClaims()
	m.divideAsked(kindHybrid)
	m.forTakers(decision.ReclaimFairShare, func(leaf plan.Node, k int64) bool {
		f := &m.figure
		return m.isHybrid(leaf) && f.net[kindHybrid][leaf]+f.roomHybrid[leaf]+k <= m.hybrid.quota[leaf]
	})
	m.lapsePartial()
	m.forReserves()
}

// overPart is what hybrid leaves hold beyond what hybrid branches have.
func (m *Planner) overPart() int64 { return m.figure.hybridNet - m.owned.hybrid }

// forReserves takes back what reserves need that others hold: below each limit that they count against, the deepest
// first, at last of all (SLOT-26, SLOT-27).
func (m *Planner) forReserves() {
	f, want := &m.figure, m.wanting()
	for n := plan.Node(m.policy.Len() - 1); n >= plan.Root; n-- {
		most := m.tree.most[n]
		switch {
		case want.below[n] == 0:
		case n == plan.Root:
			m.byRule(n, want, func() int64 { return want.below[n] - m.netHybrid() })
		case m.isHybrid(n) && most != plan.Unlimited:
			m.byRule(n, want, func() int64 { return f.stays[n] + want.below[n] - most })
		}
	}
}

// wanting is how many slots of reserves nobody will hold once all sets under way are done (CYC-7), by hybrid consumer.
type wanting struct {
	parent []plan.Node
	lacks  []int64 // its reserve less the slots that will be held or are promised below it; may be below zero
	below  []int64 // the slots that the reserves below it want, together
}

// wanting computes the slots that reserves want, in place of those computed before. O(consumers).
func (m *Planner) wanting() *wanting {
	n, w := m.policy.Len(), &m.hybrid.wanting
	w.parent, w.lacks, w.below = m.policy.Parent, column.Zeros(w.lacks, n), column.Zeros(w.below, n)
	for c := plan.Node(n - 1); c > plan.Root; c-- {
		if !m.isHybrid(c) {
			continue
		}
		if m.policy.Leaf(c) {
			w.lacks[c] -= m.figure.net[kindHybrid][c] + m.figure.roomOwn[c] // promised as long as the leaf was an owner
		}
		w.lacks[w.parent[c]] += w.lacks[c] // as yet the slots held, below zero
		w.lacks[c] += m.hybrid.reserve[c] - m.figure.roomHybrid[c]
		w.below[w.parent[c]] += w.of(c)
	}
	return w
}

// of is how many slots the reserves of a consumer and of all below it want.
func (w *wanting) of(c plan.Node) int64 { return max(0, w.below[c], w.lacks[c]) }

// spare is how many slots of a leaf could be given back before the reserves below a consumer want more. O(depth).
func (w *wanting) spare(n, leaf plan.Node) int64 {
	least := int64(unbound)
	for c := leaf; c != n; c = w.parent[c] {
		least = min(least+w.of(c)-w.below[c], w.of(c)-w.lacks[c])
	}
	return least
}

// give counts so many slots of a leaf as given back. O(depth).
func (w *wanting) give(leaf plan.Node, slots int64) {
	more := int64(0) // slots that reserves below a consumer want more than before
	for c := leaf; c != plan.Root; c = w.parent[c] {
		was := w.of(c)
		w.below[c] += more
		w.lacks[c] += slots
		more = w.of(c) - was
	}
	w.below[plan.Root] += more
}

// takesPart tells whether a consumer is one of those among whom what is asked of a kind of units is divided.
func (m *Planner) takesPart(c plan.Node, kind int) bool {
	return m.p.Terms.Member[c] && (kind == kindShare || m.isHybrid(c))
}

// measureAbove computes how far each consumer is above what it may keep of a kind of units.
func (m *Planner) measureAbove(kind int) {
	h := &m.hybrid
	clear(h.above)
	for c := plan.Node(len(h.above) - 1); c > plan.Root; c-- {
		if !m.takesPart(c, kind) {
			continue
		}
		switch {
		case !m.policy.Leaf(c):
		case kind == kindShare:
			h.above[c] = max(0, m.excess(c))
		default:
			h.above[c] = max(0, m.figure.net[kindHybrid][c]-m.keeps(c))
		}
		h.above[m.policy.Parent[c]] += h.above[c]
	}
}

// keeps is what a hybrid leaf may hold without giving: its quota, or what it owns as configured where
// shrinkage alone took it away and the plan does not reclaim for that.
func (m *Planner) keeps(leaf plan.Node) int64 {
	keeps := m.hybrid.quota[leaf]
	if m.p.Slots.NoShrinkReclaim && m.owned.hybrid < m.hybrid.configured {
		keeps = max(keeps, m.set.Owns[leaf])
	}
	return keeps
}

// divideAsked says who gives how much of a kind of units for those below their quotas: as much as they are below, less
// what is idle. Where a limit keeps a branch from what is idle, those in it give (SLOT-15, SLOT-27). O(consumers).
func (m *Planner) divideAsked(kind int) {
	h, f := &m.hybrid, &m.figure
	m.measureAbove(kind)
	clear(h.gives)
	need, bears := make([]int64, len(h.gives)), m.budgetBears()
	for n := plan.Node(len(need) - 1); n >= plan.Root; n-- {
		head := int64(unbound)
		switch {
		case n == plan.Root && kind == kindShare:
			head = max(0, m.netShared())
		case n == plan.Root:
			head = max(0, m.netHybrid())
		case !m.takesPart(n, kind):
			continue
		case m.policy.Leaf(n) && kind == kindShare:
			need[n] = max(0, m.quota.deserve[n]-f.usage[n])
		case m.policy.Leaf(n):
			need[n] = max(0, h.quota[n]-f.net[kindHybrid][n]-f.roomHybrid[n])
		}
		if n != plan.Root {
			if kind == kindHybrid {
				need[n] = max(need[n], h.quota[n]-f.stays[n]) // a reserve of more than all below it can use
			}
			if most := m.tree.most[n]; most != plan.Unlimited {
				head = max(0, most-f.stays[n])
			}
		}
		if inside := min(need[n]-head, h.above[n]-h.gives[n]); inside > 0 {
			m.spread(n, min(inside, bears), kind)
			need[n], bears = need[n]-inside, max(0, bears-inside)
		}
		if n != plan.Root {
			need[m.policy.Parent[n]] += need[n]
		}
	}
}

// below0Quota is how many slots hybrid leaves are below their quotas.
func (m *Planner) below0Quota() (slots int64) {
	f := &m.figure
	for _, leaf := range m.tree.leaves {
		if m.isHybrid(leaf) {
			slots = share.Add(slots, max(0, m.hybrid.quota[leaf]-f.net[kindHybrid][leaf]-f.roomHybrid[leaf]))
		}
	}
	return slots
}

// budgetBears is how many slots the reclaim budget lets through at most: that is
// divided, not what is asked beyond it (SLOT-15).
func (m *Planner) budgetBears() int64 {
	if m.p.Terms.ReclaimBudget == plan.Unlimited || m.whole {
		return unbound
	}
	h, largest := &m.s.Holding, int64(1)
	for q, sub := range h.Sub {
		if sub != cluster.NoID && m.s.Sub.Plan[sub] == m.p.Index && !m.s.Sub.Orphan[sub] &&
			m.counts(cluster.HoldingID(q)) {
			largest = max(largest, m.slots(sub))
		}
	}
	return share.Mul(m.reclaim.budget, largest)
}

// spread adds so much to what those below a consumer give who are above their quotas: in proportion to
// how far they still are, level by level, rounded in reverse rank order.
func (m *Planner) spread(from plan.Node, slots int64, kind int) {
	h := &m.hybrid
	more := make([]int64, len(h.gives))
	more[from] = max(0, min(slots, h.above[from]-h.gives[from]))
	for n := from; n < m.policy.End[from]; n++ {
		if more[n] == 0 {
			continue
		}
		h.gives[n] += more[n]
		h.siblings, h.owns = h.siblings[:0], h.owns[:0]
		for _, c := range slices.Backward(m.tree.child[n]) {
			if m.takesPart(c, kind) {
				h.siblings = append(h.siblings, c)
				h.owns = append(h.owns, h.above[c]-h.gives[c])
			}
		}
		h.part, h.order = column.Zeros(h.part, len(h.siblings)), resized(h.order, len(h.siblings))
		clear(h.order)
		h.divider.FillByPriority(more[n], h.order, h.owns, h.owns, h.part)
		for i, c := range h.siblings {
			more[c] = h.part[i]
		}
	}
	for n := m.policy.Parent[from]; n >= plan.Root; n = m.policy.Parent[n] {
		h.gives[n] += more[from]
	}
}

// forTakers makes sets for the unpromised units of leaves, in rank order, that may have them.
func (m *Planner) forTakers(reason int32, may func(leaf plan.Node, k int64) bool) {
	if m.whole {
		m.forHosts(reason, may)
		return
	}
	for _, leaf := range m.tree.leaves {
		if !may(leaf, 1) {
			continue
		}
		for more := m.open(leaf); more; more = m.line.advance(leaf) {
			for sub := m.line.next(leaf); sub != cluster.NoID; sub = m.line.next(leaf) {
				take := func() bool {
					return may(leaf, m.slots(sub)) && m.promise(leaf, sub, reason, kindHybrid, nil, m.hybridVictims)
				}
				if m.waits(sub) && m.promiseAll(sub, func() {}, take) || !m.waits(sub) && take() {
					m.line.settle(leaf)
				} else {
					m.line.pass(leaf)
				}
			}
		}
	}
}

// givers lists the hybrid leaves at and below a consumer that still have to give something: the one that gives most
// first, of equals the last in rank.
func (m *Planner) givers(of plan.Node) (leaves []plan.Node) {
	for _, leaf := range slices.Backward(m.tree.leaves) {
		if m.isHybrid(leaf) && m.below0(leaf, of) && m.toGive(leaf) > 0 {
			leaves = append(leaves, leaf)
		}
	}
	slices.SortStableFunc(leaves, func(a, b plan.Node) int { return cmp.Compare(m.toGive(b), m.toGive(a)) })
	return leaves
}

// toGive is what a leaf has to give yet; where the units of those do not serve, all that it has above its quota.
func (m *Planner) toGive(leaf plan.Node) int64 {
	if m.hybrid.all {
		return m.figure.net[kindHybrid][leaf] - m.keeps(leaf)
	}
	return m.hybrid.gives[leaf]
}

// mayTake tells whether a unit of a hybrid leaf may be taken, so many slots of it being chosen already.
func (m *Planner) mayTake(q cluster.HoldingID, chosen int64) bool {
	leaf, v := m.s.Node(m.s.Holding.Sub[q]), m.worth(q)
	least := int64(1)
	if m.whole {
		least = v
	}
	return m.toGive(leaf)-chosen >= least && m.figure.net[kindHybrid][leaf]-chosen-m.keeps(leaf) >= v
}

// hybridVictims chooses among what hybrid leaves have to give; where that does not serve, among all that they have
// above their quotas.
func (m *Planner) hybridVictims(w *want) []victim {
	if w.reason == decision.ReclaimRecall && m.overPart() <= 0 {
		return nil
	}
	found := m.giversVictims(w)
	if found == nil {
		m.hybrid.all = true
		clear(w.failed)
		found = m.giversVictims(w)
		m.hybrid.all = false
	}
	return found
}

func (m *Planner) giversVictims(w *want) []victim {
	for _, leaf := range m.givers(plan.Root) {
		if leaf == w.leaf {
			continue
		}
		for _, q := range m.stays(leaf, kindHybrid) {
			k := m.s.Holding.Parcel[q]
			if !m.mayLose(q, 0) || !m.tryHost(w, k) || !m.mayTake(q, 0) {
				continue
			}
			if found := m.enoughHybrid(w, k); found != nil {
				return found
			}
			w.failed[k] = true
		}
	}
	return nil
}

// give0 takes what a set takes back off what its leaf has to give.
func (m *Planner) give0(v victim) {
	if leaf := m.s.Node(m.s.Holding.Sub[v.q]); m.isHybrid(leaf) || m.tree.shares {
		m.hybrid.gives[leaf] -= v.units * m.slots(m.s.Holding.Sub[v.q])
	}
}

// enoughHybrid takes units of one host, each from the leaf that then has most to give.
func (m *Planner) enoughHybrid(w *want, k cluster.ParcelID) []victim {
	h := &m.s.Holding
	return m.enoughOf(w, k, m.toGive, func(q cluster.HoldingID, chosen map[plan.Node]int64) bool {
		leaf := m.s.Node(h.Sub[q])
		return h.Set[q] == cluster.NoID && leaf != w.leaf && m.isHybrid(leaf) && !m.owed(q) &&
			m.mayTake(q, chosen[leaf])
	})
}

// byRule takes back what is still to be given at and below a consumer, for reserves and no taker, while something
// lacks. Units that fill a reserve below the consumer stay.
func (m *Planner) byRule(of plan.Node, want *wanting, lacks func() int64) {
	defer func() { m.hybrid.all = false }()
	for lacks() > 0 {
		taken := int64(0)
		for _, leaf := range m.givers(of) {
			if taken = m.takeNewest(of, leaf, want); taken > 0 {
				break
			}
		}
		if taken == 0 && (m.hybrid.all || m.whole) {
			if !m.ungrant(of, want) && !m.gangByRule(of, want) {
				return
			}
			m.hybrid.all = false
			continue
		}
		m.hybrid.all = taken == 0
	}
}

// takeNewest takes back the newest unit of a leaf that may be taken and fills no reserve below a
// consumer, and tells how many slots that were.
func (m *Planner) takeNewest(of, leaf plan.Node, want *wanting) int64 {
	for _, q := range m.stays(leaf, kindHybrid) {
		k := m.s.Holding.Parcel[q]
		slots := m.worth(q)
		if !m.p.Parcels.IsOpen(k) || m.spareUnits(m.s.Holding.Sub[q]) == 0 || !m.mayTake(q, 0) ||
			want.spare(of, leaf) < slots {
			continue
		}
		if m.takeBack(q, 1, decision.ReclaimReserve) == 0 {
			return 0
		}
		want.give(leaf, slots)
		if m.hybrid.gives[leaf] -= slots; !m.whole {
			m.shift(k, slots) // takers may join there
		}
		return slots
	}
	return 0
}

// ungrant takes back the newest unit that this cycle granted at or below a consumer, of the last leaf that has one. It
// stops no work, so that a plan that takes nothing back when hosts are lost does this too. O(holdings of the leaves).
func (m *Planner) ungrant(of plan.Node, want *wanting) bool {
	for _, leaf := range slices.Backward(m.tree.leaves) {
		if m.whole || !m.isHybrid(leaf) || !m.below0(leaf, of) {
			continue
		}
		for _, q := range m.stays(leaf, kindHybrid) {
			k, slots := m.s.Holding.Parcel[q], m.worth(q)
			if m.s.Holding.Granted[q] <= m.s.Cycle || !m.p.Parcels.IsOpen(k) || m.spareUnits(m.s.Holding.Sub[q]) == 0 ||
				want.spare(of, leaf) < slots {
				continue
			}
			m.takeBack(q, 1, decision.ReclaimReserve)
			want.give(leaf, slots)
			m.shift(k, slots)
			return true
		}
	}
	return false
}

// forOwners takes back what hybrid branches hold above their part, as far as ownership branches need
// it for owned demand or for what they keep in reserve (SLOT-30).
func (m *Planner) forOwners() {
	r, given := &m.reclaim, m.figure.hybridNet
	idle := func() int64 {
		if m.whole { // net room of hosts does not follow there
			return r.netIdle + given - m.figure.hybridNet
		}
		return r.netIdle - r.joinedPool
	}
	m.measureAbove(kindHybrid)
	clear(m.hybrid.gives)
	asked := m.ownersNeed(true) - idle()
	m.spread(plan.Root, min(m.overPart(), asked, m.budgetBears()), kindHybrid)
	m.forTakers(decision.ReclaimRecall, func(leaf plan.Node, k int64) bool {
		return !m.isHybrid(leaf) && m.netOwn(leaf)-r.joinedOwn[leaf] >= k
	})
	m.byRule(plan.Root, m.wanting(), func() int64 { return min(m.overPart(), m.ownersNeed(false)-idle()) })
}

// ownersNeed is what owners need of their slots as if what is under reclaim had been given back: what they reserve and,
// if that is asked too, what they want. O(leaves).
func (m *Planner) ownersNeed(wanted bool) (slots int64) {
	f := &m.figure
	for _, leaf := range m.tree.leaves {
		if m.isHybrid(leaf) {
			continue
		}
		joined := m.reclaim.joinedOwn[leaf]
		need := max(0, m.owned.reserved[leaf]-f.net[kindOwn][leaf]-f.roomOwn[leaf]-joined)
		if wanted {
			need = max(need, min(m.netOwn(leaf)-joined, m.quota.demand[leaf]-f.stays[leaf]))
		}
		slots += need
	}
	return slots
}
