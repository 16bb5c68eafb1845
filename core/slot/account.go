package slot

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Kinds of slots that a leaf has to do with.
const (
	kindOwn    = iota // its units of origin owned
	kindShare         // of origin share_pool
	kindBorrow        // of origin borrowed
	kindLent          // what others borrowed from it
	kindHybrid        // all units of a leaf under the hybrid policy, but for
	kindOwed          // those that it borrowed from an owner before: lent yet, and not of what hybrid branches have
	kindStray         // of origin hybrid while the leaf is not: in no account (docs/slots.md)
	kinds
)

// figures are what leaves hold, in slots. `held` counts what is under reclaim, `net` does not (CYC-7).
type figures struct {
	held, net [kinds][]int64 // by Node, of leaves
	shut      []int64        // by SubID: units held on hosts that are not ok
	someShut  bool           // whether any parcel is not open
	foreign   bool           // whether there may be foreign units that are not under reclaim, and not settled

	// Sets of takers: room is what they are to get, kept what of that no victim occupies.
	roomOwn, keptOwn   []int64 // by Node: of recalls by the leaf
	roomPool           []int64 // by Node: of fair shares of the leaf
	roomTotal, keptAll int64   // of the pool's
	roomHybrid         []int64 // by Node: of hybrid leaves, and all above them
	keptHybrid         int64

	// Sums over the tree, by Node.
	usage []int64 // net share + room from the pool
	kept  []int64 // of rooms from the pool
	drawn []int64 // held share
	total []int64 // held in all
	stays []int64 // net held in all + all room
	owed  []int64 // held of kindOwed
	pend  []int64 // what takers below will hold more than their victims below give, when limits are set

	shareHeld, shareNet   int64
	hybridHeld, hybridNet int64
	claim                 []int64 // by Node: max(0, own) of a leaf
	claims                int64   // Σ claim
	idle                  int64   // Σ free room of ok hosts beside what is held for takers
	okay                  int64   // Σ slots of ok hosts
}

// kindOf is the kind of a leaf's units of an origin, and of a lender if that is a leaf of the plan.
func (m *Planner) kindOf(leaf plan.Node, origin int32, lender plan.Node) int {
	switch {
	case m.set.Policy[leaf] == plan.Hybrid && origin == decision.OriginBorrowed && lender != plan.None &&
		m.set.Policy[lender] != plan.Hybrid:
		return kindOwed
	case m.set.Policy[leaf] == plan.Hybrid:
		return kindHybrid
	case origin == decision.OriginOwned:
		return kindOwn
	case origin == decision.OriginBorrowed:
		return kindBorrow
	case origin == decision.OriginHybrid:
		return kindStray
	}
	return kindShare
}

// count adds up S and the idle slots. O(parcels).
func (m *Planner) count() {
	if m.whole {
		m.countHosts()
		return
	}
	p, f := &m.p.Parcels, &m.figure
	m.owned.whole, f.idle, f.okay, f.someShut = 0, 0, 0, false
	for k := range p.Len() {
		if p.IsOpen(cluster.ParcelID(k)) {
			f.okay += p.Cap[0][k]
			f.idle += max(0, p.Available(0, cluster.ParcelID(k)))
			continue
		}
		m.owned.whole += p.Cap[0][k] - p.Free[0][k]
		f.someShut = true
	}
	m.owned.whole += f.okay
}

// tally computes all figures from holdings and sets. O(holdings + sets + consumers).
func (m *Planner) tally() {
	f, n := &m.figure, m.policy.Len()
	for i := range f.held {
		f.held[i], f.net[i] = column.Zeros(f.held[i], n), column.Zeros(f.net[i], n)
	}
	f.shut = column.Zeros(f.shut, len(m.s.Sub.Wanted))
	for _, list := range []*[]int64{&f.roomOwn, &f.keptOwn, &f.roomPool, &f.drawn, &f.pend, &f.kept, &f.usage, &f.total,
		&f.stays, &f.claim, &f.roomHybrid, &f.owed} {
		*list = column.Zeros(*list, n)
	}
	f.roomTotal, f.keptAll, f.shareHeld, f.shareNet, f.claims = 0, 0, 0, 0, 0
	f.foreign = false
	f.keptHybrid, f.hybridHeld, f.hybridNet = 0, 0, 0
	if m.whole {
		m.tallyHosts()
	} else {
		m.tallyUnits()
	}
	for n := len(f.usage) - 1; n > 0; n-- {
		up := m.policy.Parent[n]
		f.usage[up] += f.usage[n]
		f.drawn[up] += f.drawn[n]
		f.total[up] += f.total[n]
		f.stays[up] += f.stays[n]
		f.owed[up] += f.owed[n]
	}
	for _, leaf := range m.tree.leaves {
		m.reclaimable(leaf)
	}
	m.hybrid.laid = false
	m.promised = column.Zeros(m.promised, len(m.s.Sub.Wanted))
	m.setsOf = nil
	for id := range m.s.Set.Of(m.p) {
		if m.s.Set.Taker[id] != cluster.NoID {
			m.count1(id, 1)
		}
	}
}

// tallyUnits adds what is held to the figures. O(holdings).
func (m *Planner) tallyUnits() {
	f, h := &m.figure, &m.s.Holding
	for q, sub := range h.Sub {
		if sub == cluster.NoID || m.s.Sub.Plan[sub] != m.p.Index || h.Origin[q] == decision.Null {
			continue
		}
		slots := h.Units[q] * m.slots(sub)
		if m.s.Sub.Orphan[sub] { // it counts for nobody but who lent it
			if lender := m.lenderOf(h.Lender[q]); lender != plan.None {
				f.held[kindLent][lender] += slots
			}
			continue
		}
		net := slots
		if h.Set[q] != cluster.NoID {
			net = 0
		}
		f.foreign = f.foreign || net > 0 && m.strange(cluster.HoldingID(q))
		m.enter(m.s.Node(sub), h.Origin[q], m.lenderOf(h.Lender[q]), slots, net)
		if f.someShut && !m.p.Parcels.IsOpen(h.Parcel[q]) {
			f.shut[sub] += h.Units[q]
		}
	}
}

// lenderOf is the node of a lender, None of none and of one that is no leaf of the plan any more.
func (m *Planner) lenderOf(c cluster.ConsumerID) plan.Node {
	if c == cluster.NoID {
		return plan.None
	}
	n := m.s.NodeOf[c]
	if n == plan.None || !m.p.Terms.Member[n] || !m.policy.Leaf(n) {
		return plan.None
	}
	return n
}

// enter adds slots to a leaf's figures while they are first added up: sums over the tree come after.
func (m *Planner) enter(leaf plan.Node, origin int32, lender plan.Node, held, net int64) {
	f, kind := &m.figure, m.kindOf(leaf, origin, lender)
	f.held[kind][leaf] += held
	f.net[kind][leaf] += net
	f.total[leaf] += held
	f.stays[leaf] += net
	switch kind {
	case kindShare:
		f.usage[leaf] += net
		f.drawn[leaf] += held
		f.shareHeld += held
		f.shareNet += net
	case kindBorrow:
		if lender != plan.None { // else it is gone
			f.held[kindLent][lender] += held
			f.net[kindLent][lender] += net
		}
	case kindOwed:
		f.held[kindLent][lender] += held
		f.net[kindLent][lender] += net
		f.owed[leaf] += held
	case kindHybrid:
		f.hybridHeld += held
		f.hybridNet += net
	}
}

// book adds slots to what a leaf holds, and to all sums that they count in. O(depth).
func (m *Planner) book(leaf plan.Node, origin int32, lender plan.Node, held, net int64) {
	f, kind := &m.figure, m.kindOf(leaf, origin, lender)
	f.held[kind][leaf] += held
	f.net[kind][leaf] += net
	switch kind {
	case kindOwn:
		m.reclaimable(leaf)
	case kindShare:
		f.shareHeld += held
		f.shareNet += net
		for n := leaf; n != plan.None; n = m.policy.Parent[n] {
			f.usage[n] += net
			f.drawn[n] += held
		}
	case kindBorrow:
		if lender != plan.None {
			f.held[kindLent][lender] += held
			f.net[kindLent][lender] += net
			m.reclaimable(lender)
		}
	case kindOwed:
		f.held[kindLent][lender] += held
		f.net[kindLent][lender] += net
		m.reclaimable(lender)
		for n := leaf; n != plan.None; n = m.policy.Parent[n] {
			f.owed[n] += held
		}
	case kindHybrid:
		f.hybridHeld += held
		f.hybridNet += net
	}
	for n := leaf; n != plan.None && (m.tree.summed || n == leaf); n = m.policy.Parent[n] {
		f.total[n] += held
		f.stays[n] += net
	}
	if kind == kindHybrid || kind == kindOwed {
		m.refree(leaf)
	}
}

// reclaimable brings the sum of what owners may claim up to one leaf.
func (m *Planner) reclaimable(leaf plan.Node) {
	f, now := &m.figure, max(0, m.own0(leaf))
	f.claims += now - f.claim[leaf]
	f.claim[leaf] = now
}

// own0 is how many of its own slots a leaf may still use: below 0 when others hold more of it than there is.
func (m *Planner) own0(leaf plan.Node) int64 {
	f := &m.figure
	return m.owned.of[leaf] - f.held[kindOwn][leaf] - f.held[kindLent][leaf] - f.keptOwn[leaf]
}

// ownIdle is how many of its own slots a leaf may still use beside what it is promised: where hybrid units are its
// sets' victims, own0 counts those slots as idle.
func (m *Planner) ownIdle(leaf plan.Node) int64 {
	if m.whole {
		return m.own0(leaf)
	}
	return min(m.own0(leaf), m.netOwn(leaf))
}

// netOwn is own0 as if what is under reclaim had been given back.
func (m *Planner) netOwn(leaf plan.Node) int64 {
	f := &m.figure
	return m.owned.of[leaf] - f.net[kindOwn][leaf] - f.net[kindLent][leaf] - f.roomOwn[leaf]
}

// pool is how many slots of the share pools nobody holds.
func (m *Planner) pool() int64 { return m.owned.pools - m.figure.shareHeld - m.figure.keptAll }

// netPool is pool as if what is under reclaim had been given back.
func (m *Planner) netPool() int64 { return m.owned.pools - m.figure.shareNet - m.figure.roomTotal }

// poolFor is pool as far as a leaf may draw from it: what is below a ratio of 0 gets no
// more than is of its own (SLOT-4). O(depth).
func (m *Planner) poolFor(leaf plan.Node) int64 {
	f, slots := &m.figure, m.pool()
	for n := m.policy.Parent[leaf]; m.tree.zeroed && n != plan.Root; n = m.policy.Parent[n] {
		if m.set.Ratio[n] == 0 {
			slots = min(slots, m.owned.below[n]-f.drawn[n]-f.kept[n])
		}
	}
	return slots
}

// zeroesBear tells whether every ratio of 0 above a leaf bears so many slots more, as if what is under reclaim had been
// given back, and for each what back tells. O(depth).
func (m *Planner) zeroesBear(leaf plan.Node, slots int64, back func(n plan.Node) int64) bool {
	for n := m.policy.Parent[leaf]; m.tree.zeroed && n != plan.Root; n = m.policy.Parent[n] {
		if m.set.Ratio[n] == 0 && m.owned.below[n]-m.figure.usage[n]+back(n) < slots {
			return false
		}
	}
	return true
}

// nothing is what comes back to any consumer where nothing does.
func nothing(plan.Node) int64 { return 0 }

// weight is what a consumer's usage is divided by in turns. One that a ratio of 0 keeps from pools above it
// takes only what is its own: it comes first.
func (m *Planner) weight(n plan.Node) int64 {
	if m.set.Ratio[n] == 0 && !m.policy.Leaf(n) && m.tree.zeroed {
		return 1 << 40
	}
	return m.set.Ratio[n]
}

// spare is how many idle slots no owner could claim.
func (m *Planner) spare() int64 { return m.figure.idle - m.figure.claims }

// backed is how many idle slots owners need: what they reserve, and what they want of their own. O(leaves).
func (m *Planner) backed() (slots int64) {
	f := &m.figure
	for _, leaf := range m.tree.leaves {
		if f.claim[leaf] > 0 {
			unfilled := m.owned.reserved[leaf] - f.held[kindOwn][leaf] - f.keptOwn[leaf]
			slots += min(f.claim[leaf], max(0, unfilled, m.quota.demand[leaf]-f.stays[leaf]))
		}
	}
	return slots
}

// count1 adds a taker's set to the figures, or takes it off with sign -1. Whatever changes a
// set takes it off first and adds it again. O(depth).
func (m *Planner) count1(id cluster.SetID, sign int64) {
	t := &m.s.Set
	sub := t.Taker[id]
	room, kept := t.Units[id]*m.slots(sub), int64(0)
	if m.whole {
		room, kept = m.roomOf(id), m.keptOf(id)
	} else {
		kept = m.s.Kept(id, 0)
	}
	m.promised[sub] += sign * t.Units[id]
	m.enterRoom(m.s.Node(sub), t.Reason[id], sign*room, sign*kept)
	for n := m.s.Node(sub); m.tree.maxed && n != plan.None; n = m.policy.Parent[n] {
		m.figure.pend[n] += sign * max(0, room-m.leftBelow(id, n))
	}
}

// enterRoom adds what a leaf is promised for a reason to the figures. O(depth).
func (m *Planner) enterRoom(leaf plan.Node, reason int32, room, kept int64) {
	f := &m.figure
	switch {
	case reason == decision.ReclaimRecall:
		f.roomOwn[leaf] += room
		f.keptOwn[leaf] += kept
		m.reclaimable(leaf)
	case m.set.Policy[leaf] == plan.Hybrid:
		f.keptHybrid += kept
		for n := leaf; n != plan.None; n = m.policy.Parent[n] {
			f.roomHybrid[n] += room
		}
		m.refree(leaf)
	default:
		f.roomPool[leaf] += room
		f.roomTotal += room
		f.keptAll += kept
		for n := leaf; n != plan.None; n = m.policy.Parent[n] {
			f.usage[n] += room
			f.kept[n] += kept
		}
	}
	for n := leaf; n != plan.None; n = m.policy.Parent[n] {
		f.stays[n] += room
	}
}

// leftBelow is how many slots victims of a set that are below a consumer still hold.
func (m *Planner) leftBelow(id cluster.SetID, n plan.Node) (slots int64) {
	if q := m.s.Set.First[id]; m.whole {
		if q != cluster.NoID && m.below0(m.s.Node(m.s.Holding.Sub[q]), n) {
			slots = m.worth(q)
		}
		return slots
	}
	for q := m.s.Set.First[id]; q != cluster.NoID; q = m.s.Holding.NextOfSet[q] {
		if m.below0(m.s.Node(m.s.Holding.Sub[q]), n) {
			slots += m.s.Holding.Units[q] * m.slots(m.s.Holding.Sub[q])
		}
	}
	return slots
}

// below0 tells whether a leaf is a consumer or below it.
func (m *Planner) below0(leaf, n plan.Node) bool { return n <= leaf && leaf < m.policy.End[n] }

// roomy tells whether a leaf may hold so many slots more under every share.max or hybrid limit on its way
// (SLOT-4, SLOT-20), and where not.
func (m *Planner) roomy(leaf plan.Node, slots int64, promised bool) (at plan.Node, ok bool) {
	if !m.tree.maxed {
		return plan.None, true
	}
	more := slots
	if promised {
		more = 0 // what it fills of a reserve counts already
	}
	reserves := m.reservesAfter(leaf, more)
	for n := leaf; n != plan.Root; n = m.policy.Parent[n] {
		kept := reserves(n)
		if most := m.tree.most[n]; most != plan.Unlimited &&
			m.figure.total[n]+m.pending(n, promised)+slots+kept > most {
			return n, false
		}
	}
	return plan.None, true
}

// reservesAfter gives, for each consumer on a leaf's way in turn, from the leaf up, what reserves
// below it still need once the leaf holds so many slots more: that is no sibling's to use the
// consumer's limit up with (SLOT-26). O(1) each.
func (m *Planner) reservesAfter(leaf plan.Node, k int64) func(n plan.Node) int64 {
	if !m.isHybrid(leaf) || !m.hybrid.laid {
		return nothing
	}
	h, delta := &m.hybrid, int64(0)
	return func(n plan.Node) int64 {
		below := h.below[n] + delta
		delta = max(below, h.reserve[n]-m.mixed(n)-m.figure.roomHybrid[n]-k, 0) - h.free[n]
		return below
	}
}

// pending is what counts to a limit besides what is held, when a unit is given that is not itself promised.
func (m *Planner) pending(n plan.Node, promised bool) int64 {
	if promised {
		return 0
	}
	return m.figure.pend[n]
}
