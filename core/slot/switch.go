package slot

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// owed tells whether units of a holding are a loan yet of an owner, and their leaf shares by the hybrid policy.
func (m *Planner) owed(q cluster.HoldingID) bool {
	h := &m.s.Holding
	return m.kindOf(m.s.Node(h.Sub[q]), h.Origin[q], m.lenderOf(h.Lender[q])) == kindOwed
}

// foreign tells whether units of a leaf are from before its branch changed to or from the hybrid policy.
func (m *Planner) foreign(leaf plan.Node, origin int32) bool {
	return (m.set.Policy[leaf] == plan.Hybrid) != (origin == decision.OriginHybrid)
}

// strange tells whether units of a holding are foreign, or borrowed from a leaf that
// now shares by the hybrid policy.
func (m *Planner) strange(q cluster.HoldingID) bool {
	h := &m.s.Holding
	leaf := m.s.Node(h.Sub[q])
	lender := m.lenderOf(h.Lender[q])
	return m.foreign(leaf, h.Origin[q]) ||
		h.Origin[q] == decision.OriginBorrowed && lender != plan.None && m.set.Policy[lender] == plan.Hybrid
}

// settleForeign carries units over a change of policy (PLAN-2): what was borrowed goes back, what is
// within what the leaf owns now counts as that, the rest is reclaimed. What the budget leaves over is settled later,
// what stays after all by the review once that is done.
func (m *Planner) settleForeign() {
	if !m.figure.foreign {
		return
	}
	m.figure.foreign = false
	reason := decision.ReclaimPlanChange
	if m.p.Before != cluster.NoID {
		reason = decision.ReclaimWindowSwitch
	}
	m.ownHybrid()
	for leaf := range plan.Node(m.policy.Len()) {
		if m.policy.Leaf(leaf) && m.p.Terms.Member[leaf] {
			m.settleLeaf(leaf, reason)
		}
	}
}

// settleLeaf is settleForeign for one leaf.
func (m *Planner) settleLeaf(leaf plan.Node, reason int32) {
	rows, native := m.foreignOf(leaf)
	hybrid := m.set.Policy[leaf] == plan.Hybrid
	h := &m.s.Holding
	for _, q := range rows {
		if !m.counts(q) {
			continue // with others of its gang
		}
		v, units := m.worth(q), m.pieces(q)
		with, room := ownLabel, m.unused(leaf)
		if hybrid {
			with, room = hybridLabel, m.hybrid.owned[leaf]-native
		}
		if h.Origin[q] == decision.OriginBorrowed {
			room = 0
		}
		if kept := min(units, max(0, room)/v); kept > 0 {
			m.relabel(q, kept, with)
			m.forgo(leaf)
			native += kept * v
			units -= kept
		}
		if units > 0 {
			m.takeBack(q, units, reason)
			if len(m.gang.subs) > 0 { // others of its gang may have gone with it
				_, native = m.foreignOf(leaf)
			}
		}
	}
}

// unused is what of a leaf's own nobody holds, as if what is under reclaim had been given back, whatever it is
// promised.
func (m *Planner) unused(leaf plan.Node) int64 { return m.netOwn(leaf) + m.figure.roomOwn[leaf] }

// forgo lets a leaf's recalls lapse, the latest first, by as many slots as they promise beyond what is unused of its
// own.
func (m *Planner) forgo(leaf plan.Node) {
	beyond, t := -m.netOwn(leaf), &m.s.Set
	if beyond <= 0 || m.figure.roomOwn[leaf] == 0 {
		return
	}
	ids := m.sets(func(id cluster.SetID) bool {
		return t.Taker[id] != cluster.NoID && t.Reason[id] == decision.ReclaimRecall && m.s.Node(t.Taker[id]) == leaf
	})
	for _, id := range slices.Backward(ids) {
		for number := t.Number[id]; beyond > 0 && t.Number[id] == number && t.Units[id] > 0; {
			room := m.slots(t.Taker[id])
			if m.whole {
				if room = m.roomOf(id); room == 0 || room > beyond {
					break
				}
			}
			beyond -= room
			m.lapse(id)
		}
	}
}

// foreignOf lists a leaf's foreign units that are not under reclaim, oldest first, and
// tells how many slots of its others count: what is labelled hybrid, or owned.
func (m *Planner) foreignOf(leaf plan.Node) (rows []cluster.HoldingID, native int64) {
	h := &m.s.Holding
	m.eachOf(leaf, func(sub cluster.SubID) {
		for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
			switch {
			case h.Origin[q] == decision.Null || !m.counts(q):
			case m.strange(q):
				rows = append(rows, q)
			case h.Origin[q] == decision.OriginHybrid || h.Origin[q] == decision.OriginOwned:
				native += m.pieces(q) * m.worth(q)
			}
		}
	})
	slices.SortFunc(rows, func(a, b cluster.HoldingID) int { return m.newest(b, a) })
	return rows, native
}

// coming is what a leaf may hold under the window that comes, by Node.
type coming struct {
	owned    []int64 // what it will own; where its policy changes, what it will keep
	hybrid   int64   // what hybrid branches will have together
	lendable []int64 // of it
	pools    int64   // Σ share pools then
	changes  []bool  // whether its policy changes to or from hybrid
}

// prepareSwitch starts, a `lead` before another window opens, the reclaims that it will ask for.
func (m *Planner) prepareSwitch() {
	if m.p.Coming == cluster.NoID {
		return
	}
	now := slices.Clone(m.set.Policy)
	m.goBy(m.p.Coming)
	m.own()
	m.tally()
	m.ownHybrid()
	m.lookAhead(now)
	m.entitle() // who is furthest above its quota then
	m.reclaim.ahead = true
	for leaf := range plan.Node(m.policy.Len()) {
		if m.policy.Leaf(leaf) && m.p.Terms.Member[leaf] {
			m.prepareLeaf(leaf)
		}
	}
	m.overLimit()
	m.overMax()
	m.reclaim.ahead = false
	m.goBy(m.p.Window)
	m.own()
	m.tally()
}

// lookAhead notes what leaves may hold under the coming window, by which the figures are now.
func (m *Planner) lookAhead(now []plan.PolicyKind) {
	c := &m.coming
	c.owned, c.lendable = append(c.owned[:0], m.owned.of...), column.Zeros(c.lendable, m.policy.Len())
	c.changes, c.pools, c.hybrid = resized(c.changes, m.policy.Len()), m.owned.pools, m.owned.hybrid
	for n := range c.owned {
		c.lendable[n] = m.owned.of[n] - m.owned.reserved[n]
		if m.isHybrid(plan.Node(n)) {
			c.owned[n] = m.hybrid.owned[n]
		}
		c.changes[n] = (now[n] == plan.Hybrid) != (m.set.Policy[n] == plan.Hybrid)
	}
}

// prepareLeaf is settleLeaf ahead of time: what will be reclaimed is now, nothing is relabelled.
func (m *Planner) prepareLeaf(leaf plan.Node) {
	rows, native := m.foreignOf(leaf)
	hybrid := m.set.Policy[leaf] == plan.Hybrid
	room := m.unused(leaf)
	if hybrid {
		room = m.hybrid.owned[leaf] - native
	}
	h := &m.s.Holding
	for _, q := range rows {
		if !m.counts(q) {
			continue // with others of its gang
		}
		v, units := m.worth(q), m.pieces(q)
		if h.Origin[q] != decision.OriginBorrowed {
			kept := min(units, max(0, room)/v)
			room -= kept * v
			units -= kept
		}
		if units > 0 {
			m.takeBack(q, units, decision.ReclaimWindowSwitch)
		}
	}
}

// lasts tells whether a unit given now would not have to be given back when the coming window opens.
func (m *Planner) lasts(leaf plan.Node, k int64, kind int, lender plan.Node) bool {
	if m.p.Coming == cluster.NoID {
		return true
	}
	c, f, next := &m.coming, &m.figure, m.trees[m.p.Coming]
	if c.changes[leaf] {
		var held int64
		for kind := range f.held {
			if kind != kindLent {
				held += f.held[kind][leaf]
			}
		}
		return kind != kindBorrow && held+k <= c.owned[leaf]
	}
	for n := leaf; m.tree.summed && n != plan.Root; n = m.policy.Parent[n] {
		if next.most[n] != plan.Unlimited && f.total[n]+k > next.most[n] {
			return false
		}
	}
	left := func(n plan.Node) int64 { return c.owned[n] - f.held[kindOwn][n] - f.held[kindLent][n] }
	switch kind {
	case kindOwn:
		return left(leaf) >= k
	case kindShare:
		return c.pools-f.shareHeld >= k
	case kindHybrid:
		return c.hybrid-f.hybridHeld >= k
	case kindBorrow:
		w := &m.p.Slots.Windows[m.p.Coming]
		most := w.BorrowLimit[leaf]
		return left(lender) >= k && m.among(w.LendTo[lender], lender, leaf) &&
			m.among(w.BorrowFrom[leaf], leaf, lender) && c.lendable[lender]-f.held[kindLent][lender] >= k &&
			(most == plan.Unlimited || f.held[kindBorrow][leaf]+k <= most)
	}
	return true
}

// dropUnfit ends the recalls of leaves that share by the hybrid policy now: there is nothing to recall.
// Nothing is counted yet.
func (m *Planner) dropUnfit() {
	t := &m.s.Set
	for _, id := range m.sets(func(id cluster.SetID) bool {
		return t.Taker[id] != cluster.NoID && t.Reason[id] == decision.ReclaimRecall &&
			m.set.Policy[m.s.Node(t.Taker[id])] == plan.Hybrid
	}) {
		number, host := t.Number[id], t.Target[id]
		m.s.Promise(id, 0)
		for q := t.First[id]; t.Number[id] == number && q != cluster.NoID; {
			next := m.s.Holding.NextOfSet[q]
			if !m.leavesWhole(q) {
				m.s.Cancel(q, m.s.Holding.Units[q])
			}
			q = next
		}
		if m.s.Host.Plan[host] == m.p.Index { // what was kept for it is idle now
			m.desk.Field.Regain(m.s.Host.Parcel[host])
		}
		m.count()
	}
}
