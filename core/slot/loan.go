package slot

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// lender is who lends a leaf so many slots (SLOT-2, SLOT-3, SLOT-7), None when nobody does. Where
// somebody has more than its part, fewer slots are idle than owners have left: those are lent that
// owners neither reserve nor want (SLOT-10).
func (m *Planner) lender(leaf plan.Node, k int64) plan.Node {
	if m.figure.idle < k || !m.mayBorrow(leaf, k) {
		return plan.None
	}
	if lender := m.nextLender(leaf, k); lender != plan.None && m.unneeded(k) {
		return lender
	}
	return plan.None
}

// unneeded tells whether so many idle slots are nobody's to claim, or else owners neither reserve nor
// want them. O(1), O(leaves) in the latter case.
func (m *Planner) unneeded(k int64) bool { return m.spare() >= 0 || m.figure.idle-k >= m.backed() }

// mayBorrow tells whether a leaf's borrow limit bears so many slots more.
func (m *Planner) mayBorrow(leaf plan.Node, k int64) bool {
	most := m.set.BorrowLimit[leaf]
	return most == plan.Unlimited || m.figure.held[kindBorrow][leaf]+k <= most
}

// nextLender is the first lender, in the leaf's order of preference, that has so many slots to
// lend to it; the leaf's own limit and what the plan can spare are not looked at.
func (m *Planner) nextLender(leaf plan.Node, k int64) plan.Node {
	from := m.set.BorrowFrom[leaf]
	if len(from) == 0 {
		return m.anyLender(leaf, k)
	}
	for _, peer := range from {
		lender := plan.None
		switch {
		case peer.Any:
			lender = m.anyLender(leaf, k)
		case peer.Siblings:
			up := m.policy.Parent[leaf]
			for c := m.policy.First[up]; c != plan.None && lender == plan.None; c = m.policy.Next[c] {
				if m.lends(c, leaf, k) {
					lender = c
				}
			}
		default:
			for c := peer.Node; c < m.policy.End[peer.Node] && lender == plan.None; c++ {
				if m.lends(c, leaf, k) {
					lender = c
				}
			}
		}
		if lender != plan.None {
			return lender
		}
	}
	return plan.None
}

// anyLender looks through all leaves in tree order, from the first that has anything to lend.
func (m *Planner) anyLender(leaf plan.Node, k int64) plan.Node {
	for int(m.lendFrom) < m.policy.Len() && !m.canLend(m.lendFrom, 1) {
		m.lendFrom++
	}
	for c := m.lendFrom; int(c) < m.policy.Len(); c++ {
		if m.lends(c, leaf, k) {
			return c
		}
	}
	return plan.None
}

// lends tells whether a leaf lends another so many slots.
func (m *Planner) lends(lender, leaf plan.Node, k int64) bool {
	return lender != leaf && m.canLend(lender, k) && m.admits(lender, leaf)
}

// canLend tells whether a leaf has so many idle slots that it may lend.
func (m *Planner) canLend(n plan.Node, k int64) bool {
	o := &m.owned
	if n == m.reclaim.owner {
		return false // it wants its loans back
	}
	k += m.reclaim.moving[n]
	return o.of[n] > 0 && m.policy.Leaf(n) && m.ownIdle(n) >= k &&
		o.of[n]-o.reserved[n]-m.figure.held[kindLent][n] >= k
}

// admits tells whether a lender lends to a leaf at all (`lend.to`).
func (m *Planner) admits(lender, leaf plan.Node) bool {
	return lender != plan.None && m.among(m.set.LendTo[lender], lender, leaf)
}

// asks tells whether a leaf borrows from a lender at all (`borrow.from`).
func (m *Planner) asks(leaf, lender plan.Node) bool {
	return lender != plan.None && m.among(m.set.BorrowFrom[leaf], leaf, lender)
}

// among tells whether a leaf is one of somebody's peers; no list is any.
func (m *Planner) among(peers []plan.Peer, of, leaf plan.Node) bool {
	if len(peers) == 0 {
		return true
	}
	return slices.ContainsFunc(peers, func(p plan.Peer) bool {
		switch {
		case p.Any:
			return true
		case p.Siblings:
			return m.policy.Parent[of] == m.policy.Parent[leaf]
		}
		return p.Node <= leaf && leaf < m.policy.End[p.Node]
	})
}

// newest sorts holdings newest first.
func (m *Planner) newest(a, b cluster.HoldingID) int {
	return m.s.Newer(a, b)
}

// stays lists what a leaf holds of one kind and is not under reclaim, newest first.
// O(holdings of the leaf).
func (m *Planner) stays(leaf plan.Node, kind int) (rows []cluster.HoldingID) {
	if m.figure.net[kind][leaf] == 0 {
		return nil
	}
	h := &m.s.Holding
	m.eachOf(leaf, func(sub cluster.SubID) {
		for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
			if h.Origin[q] != decision.Null && m.kindOf(leaf, h.Origin[q], m.lenderOf(h.Lender[q])) == kind &&
				m.counts(q) {
				rows = append(rows, q)
			}
		}
	})
	slices.SortFunc(rows, m.newest)
	return rows
}

// relabel makes units of a holding count as something else, and keeps the books. Of a host it is all of it.
func (m *Planner) relabel(q cluster.HoldingID, units int64, with label) {
	if m.whole {
		m.relabelHost(q, with)
		return
	}
	h, sub := &m.s.Holding, m.s.Holding.Sub[q]
	leaf, slots := m.s.Node(sub), units*m.slots(sub)
	m.book(leaf, h.Origin[q], m.lenderOf(h.Lender[q]), -slots, -slots)
	pool, lender, node := cluster.ConsumerID(cluster.NoID), cluster.ConsumerID(cluster.NoID), plan.None
	switch with.origin {
	case decision.OriginSharePool:
		pool = m.s.ConsumerOf[m.poolOf(leaf)]
	case decision.OriginBorrowed:
		lender, node = with.whose, m.s.NodeOf[with.whose]
	}
	m.s.Relabel(q, units, with.origin, pool, lender)
	m.book(leaf, with.origin, node, slots, slots)
	m.lendFrom = 0
}

var (
	ownLabel    = label{decision.OriginOwned, cluster.NoID}
	shareLabel  = label{decision.OriginSharePool, cluster.NoID}
	hybridLabel = label{decision.OriginHybrid, cluster.NoID}
)

// comeHome relabels what leaves borrowed or share while own slots of theirs are idle (CYC-3).
// excess: from pools only what is above the quota.
func (m *Planner) comeHome(excess bool) {
	f := &m.figure
	for _, leaf := range m.tree.leaves {
		for _, kind := range [...]int{kindBorrow, kindShare} {
			if f.claim[leaf] == 0 || f.net[kind][leaf] == 0 {
				continue
			}
			for _, q := range m.stays(leaf, kind) {
				v := m.worth(q)
				units := min(m.pieces(q), max(0, m.ownIdle(leaf))/v)
				if excess && kind == kindShare {
					units = min(units, (max(0, m.excess(leaf))+v-1)/v)
				}
				if units > 0 {
					m.relabel(q, units, ownLabel)
				}
			}
		}
	}
}

// leaveLoans relabels loans as drawn from the pools, where nobody else wants what is idle there.
func (m *Planner) leaveLoans() {
	for _, leaf := range m.tree.leaves {
		if m.tree.barred[leaf] || m.figure.net[kindBorrow][leaf] == 0 || m.poolFor(leaf) <= 0 || m.spare() <= 0 {
			continue
		}
		for _, q := range m.stays(leaf, kindBorrow) {
			for units := m.pieces(q); units > 0; units-- {
				if v := m.worth(q); m.poolFor(leaf) < v || m.spare() < v {
					break
				}
				m.relabel(q, 1, shareLabel)
			}
		}
	}
}

// label gives units that ran without a grant what they count as, in row order (SPEC chapter 7,
// `running`): owned, from a pool, borrowed as far as that goes; what is beyond counts as shared.
func (m *Planner) label() {
	m.lendFrom = 0
	for _, q := range m.p.Unlabelled {
		sub := m.s.Holding.Sub[q]
		if sub == cluster.NoID || m.s.Holding.Origin[q] != decision.Null {
			continue // gone since
		}
		if m.s.Sub.Orphan[sub] {
			continue // a policy took its place away before it was ever counted: it counts for nobody (D-37)
		}
		if m.whole {
			m.labelHost(q)
			continue
		}
		leaf, v := m.s.Node(sub), m.slots(sub)
		for m.s.Holding.Sub[q] == sub && m.s.Holding.Origin[q] == decision.Null {
			with, node := shareLabel, plan.None
			if m.set.Policy[leaf] == plan.Hybrid {
				with = hybridLabel
			} else if m.ownIdle(leaf) >= v {
				with = ownLabel
			} else if (m.tree.barred[leaf] || m.poolFor(leaf) < v) && m.mayBorrow(leaf, v) {
				if node = m.nextLender(leaf, v); node != plan.None {
					with = label{decision.OriginBorrowed, m.s.ConsumerOf[node]}
				}
			}
			m.name(q, leaf, v, with, node)
		}
	}
	m.p.Unlabelled = m.p.Unlabelled[:0]
}

// name labels one unit of a holding that has no label.
func (m *Planner) name(q cluster.HoldingID, leaf plan.Node, v int64, with label, lender plan.Node) {
	pool, whose := cluster.ConsumerID(cluster.NoID), cluster.ConsumerID(cluster.NoID)
	switch with.origin {
	case decision.OriginSharePool:
		pool = m.s.ConsumerOf[m.poolOf(leaf)]
	case decision.OriginBorrowed:
		whose = with.whose
	}
	sub, parcel := m.s.Holding.Sub[q], m.s.Holding.Parcel[q]
	m.s.Relabel(q, 1, with.origin, pool, whose)
	m.book(leaf, with.origin, lender, v, v)
	if !m.p.Parcels.IsOpen(parcel) {
		m.figure.shut[sub]++
	}
}
