package slot

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// ruled are the reasons of reclaims that a rule asks for, whether or not anybody waits.
func ruled(reason int32) bool {
	switch reason {
	case decision.ReclaimOverLimit, decision.ReclaimDrain, decision.ReclaimOwnershipChange, decision.ReclaimReserve,
		decision.ReclaimWindowSwitch, decision.ReclaimPlanChange:
		return true
	}
	return false
}

// restore cancels reclaims that their rule no longer asks for, the latest first: of hosts that are
// back, and for limits as far as the account of the units bears them (CYC-6).
func (m *Planner) restore() {
	ids := m.sets(func(id cluster.SetID) bool {
		return ruled(m.s.Set.Reason[id]) && !m.leavesWhole(m.s.Set.First[id]) &&
			!m.s.Sub.Orphan[m.s.Holding.Sub[m.s.Set.First[id]]]
	})
	slices.Reverse(ids)
	h := &m.s.Holding
	for _, id := range ids {
		q := m.s.Set.First[id]
		k, host := h.Parcel[q], m.s.Set.Target[id]
		in := m.s.Host.Plan[host] == m.p.Index && m.s.Host.Parcel[host] == k
		if m.whole {
			m.reviewHost(id, in)
			continue
		}
		switch m.s.Set.Reason[id] {
		case decision.ReclaimDrain, decision.ReclaimOwnershipChange:
			if in && m.s.Host.State[host] != cluster.Draining {
				m.cancel(q, h.Units[q])
			}
		case decision.ReclaimWindowSwitch, decision.ReclaimPlanChange:
			if m.p.Coming == cluster.NoID && !m.strange(q) {
				m.restoreUnits(id)
			}
		case decision.ReclaimReserve:
			sub := h.Sub[q]
			for leaf, number := m.s.Node(sub), m.s.Set.Number[id]; m.s.Set.Number[id] == number &&
				m.figure.net[kindHybrid][leaf]+m.slots(sub) <= m.hybrid.quota[leaf]; {
				m.cancel(m.s.Set.First[id], 1)
			}
		default:
			if !m.strange(q) {
				m.restoreUnits(id)
			}
		}
	}
}

// restoreUnits cancels units of a set, one by one, as far as their account bears them.
func (m *Planner) restoreUnits(id cluster.SetID) {
	for number := m.s.Set.Number[id]; m.s.Set.Number[id] == number && m.bears(m.s.Set.First[id]); {
		m.cancel(m.s.Set.First[id], 1)
	}
}

// spared tells whether what a leaf is promised from the pools stays within its quota when it holds so many slots more
// from them; of whole hosts each set is for one, and looks at those before it.
func (m *Planner) spared(leaf plan.Node, slots int64) bool {
	net, room, q := m.figure.net[kindShare][leaf], m.figure.roomPool[leaf], m.quota.deserve[leaf]
	if !m.whole {
		return room == 0 || net+room+slots <= q
	}
	for _, id := range m.sets(func(id cluster.SetID) bool {
		sub := m.s.Set.Taker[id]
		return sub != cluster.NoID && m.s.Node(sub) == leaf && m.s.Set.Reason[id] != decision.ReclaimRecall &&
			m.roomOf(id) > 0
	}) {
		if net < q && net+slots >= q {
			return false
		}
		net += m.roomOf(id)
	}
	return true
}

// bears tells whether the account of a holding's units, and every limit, would carry one of them more (net).
func (m *Planner) bears(q cluster.HoldingID) bool {
	h, f, sub := &m.s.Holding, &m.figure, m.s.Holding.Sub[q]
	leaf, v := m.s.Node(sub), m.worth(q)
	if !m.roomyNet(leaf, v) || !m.whole && h.Origin[q] != decision.OriginOwned && !m.besideOwners(leaf, v) {
		return false
	}
	switch m.kindOf(leaf, h.Origin[q], m.lenderOf(h.Lender[q])) {
	case kindHybrid:
		return m.netHybrid() >= v || m.below0Quota() == 0 && f.roomHybrid[plan.Root] == 0
	case kindOwn:
		return m.netOwn(leaf) >= v
	case kindShare: // and no set of the leaf lapses by it, which would bring the limit's reclaim back
		return m.netPool() >= v && m.spared(leaf, v)
	}
	if f.roomPool[leaf] > 0 && !m.whole { // a loan lowers the quota of the next cycle, by which they would lapse
		return false
	}
	lender, most := m.lenderOf(h.Lender[q]), m.set.BorrowLimit[leaf]
	return lender != plan.None && m.netOwn(lender) >= v &&
		m.owned.of[lender]-m.owned.reserved[lender]-f.net[kindLent][lender] >= v &&
		(most == plan.Unlimited || f.net[kindBorrow][leaf]+v <= most) && m.admits(lender, leaf) && m.asks(leaf, lender)
}

// besideOwners tells whether every maximum on a leaf's way bears so many slots more from pools or loans, beside what
// other owners below it want of their own (SLOT-4), net. O(leaves below).
func (m *Planner) besideOwners(leaf plan.Node, slots int64) bool {
	f := &m.figure
	for n := leaf; m.tree.maxed && n != plan.Root; n = m.policy.Parent[n] {
		most := m.tree.most[n]
		if most == plan.Unlimited || m.isHybrid(n) {
			continue
		}
		due := int64(0)
		for owner := n; owner < m.policy.End[n]; owner++ {
			if m.policy.Leaf(owner) && owner != leaf {
				own := min(m.quota.demand[owner], m.owned.of[owner]) - f.net[kindOwn][owner] - f.roomOwn[owner]
				due += max(0, min(own, m.quota.demand[owner]-f.stays[owner]))
			}
		}
		if f.stays[n]+slots+due > most {
			return false
		}
	}
	return true
}

// vacate puts under reclaim what is held on hosts that drain or left the group (CYC-5, REQ-2).
func (m *Planner) vacate() {
	p := &m.p.Parcels
	for k := range cluster.ParcelID(p.Len()) {
		reason := decision.ReclaimDrain
		switch {
		case p.IsOpen(k) || p.First[k] == cluster.NoID:
			continue
		case int(k) >= p.Len()-p.Left:
			reason = decision.ReclaimOwnershipChange
		case m.s.Host.State[p.Host[k]] != cluster.Draining:
			continue
		}
		if m.whole {
			if m.staying(k) {
				m.takeHost(k, reason)
			}
			continue
		}
		for _, q := range m.s.LastFirst(m.p, k, k+1) {
			if m.s.Holding.Set[q] == cluster.NoID {
				m.takeBack(q, m.s.Holding.Units[q], reason)
			}
		}
	}
}

// takeBack puts units of a holding under reclaim for a rule, unit by unit as far as the budget
// goes, or all of its host. Units granted in this cycle are not granted at all (CYC-1).
func (m *Planner) takeBack(q cluster.HoldingID, units int64, reason int32) (taken int64) {
	if m.whole {
		return m.takeHost(m.s.Holding.Parcel[q], reason)
	}
	if spare := m.spareUnits(m.s.Holding.Sub[q]); units > spare {
		return m.takeGang(q, units, spare, reason)
	}
	h := &m.s.Holding
	sub := h.Sub[q]
	leaf, v := m.s.Node(sub), m.slots(sub)
	if h.Granted[q] > m.s.Cycle {
		m.undo(q, units)
		return units
	}
	if units = min(units, m.reclaim.budget); units <= 0 {
		return 0
	}
	m.reclaim.budget, m.reclaim.first = m.reclaim.budget-units, false
	m.book(leaf, h.Origin[q], m.lenderOf(h.Lender[q]), 0, -units*v)
	if m.reclaim.ahead {
		reason = decision.ReclaimWindowSwitch
	}
	m.s.Reclaim(q, units, m.nowUS, m.policy.ReclaimUS[leaf], reason)
	return units
}

// undo takes back units granted in this very cycle, as if they had not been.
func (m *Planner) undo(q cluster.HoldingID, units int64) {
	h, sub := &m.s.Holding, m.s.Holding.Sub[q]
	k, v := h.Parcel[q], m.slots(sub)
	m.book(m.s.Node(sub), h.Origin[q], m.lenderOf(h.Lender[q]), -units*v, -units*v)
	was := max(0, m.p.Parcels.Available(0, k))
	m.s.Shrink(q, units)
	m.line.Sub[sub].Held -= units
	m.reclaim.undone[sub] = true
	m.figure.idle += max(0, m.p.Parcels.Available(0, k)) - was
	m.desk.Field.Regain(k)
	clear(m.gang.rooms) // there may be more room
	m.p.Continue()
}

// overLimit takes back what leaves hold over limits, or what nothing carries any more, unless it
// can count as something else (SLOT-12 but for what is over a maximum).
func (m *Planner) overLimit() {
	m.reclaim.skip = map[cluster.SubID]bool{}
	f, n := &m.figure, plan.Node(m.policy.Len())
	each := func(over func(leaf plan.Node) int64, rows func(leaf plan.Node) []cluster.HoldingID,
		closed func(leaf plan.Node) bool) {
		for leaf := range n {
			if m.policy.Leaf(leaf) && m.p.Terms.Member[leaf] && over(leaf) > 0 {
				m.relieve(leaf, over, rows(leaf), closed(leaf))
			}
		}
	}
	// What goes from a closed host makes S smaller by as much: where S is what an owner lacks, nobody has more by it.
	whole := func(leaf plan.Node) bool { return m.isHybrid(leaf) || m.owned.of[leaf] >= m.set.Owns[leaf] }
	beyond := func(leaf plan.Node) int64 { return -m.netOwn(leaf) }
	lent := func(leaf plan.Node) int64 {
		return f.net[kindLent][leaf] - (m.owned.of[leaf] - m.owned.reserved[leaf])
	}
	each(beyond, func(leaf plan.Node) []cluster.HoldingID {
		return append(m.loansOf(leaf), m.stays(leaf, kindOwn)...)
	}, whole)
	each(lent, m.loansOf, whole)
	m.strangers()
	each(func(leaf plan.Node) int64 {
		if most := m.set.BorrowLimit[leaf]; most != plan.Unlimited {
			return f.net[kindBorrow][leaf] - most
		}
		return 0
	}, func(leaf plan.Node) []cluster.HoldingID { return m.stays(leaf, kindBorrow) }, func(plan.Node) bool {
		return true
	})
	m.shrunkPool()
}

// okFirst puts what is on hosts that are ok before the rest.
func (m *Planner) okFirst(rows []cluster.HoldingID) []cluster.HoldingID {
	open := func(q cluster.HoldingID) int {
		if m.p.Parcels.IsOpen(m.s.Holding.Parcel[q]) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(rows, func(a, b cluster.HoldingID) int { return cmp.Compare(open(a), open(b)) })
	return rows
}

// relieve relabels or takes back a leaf's holdings, a unit at a time, while it is
// over. closed: also from hosts that are not ok.
func (m *Planner) relieve(leaf plan.Node, over func(plan.Node) int64, rows []cluster.HoldingID, closed bool) {
	m.relieveAll(rows, func() int64 { return over(leaf) }, closed)
}

// relieveAll is relieve for holdings in their order, those on ok hosts first; what breaks a gang comes last.
func (m *Planner) relieveAll(rows []cluster.HoldingID, over func() int64, closed bool) {
	rows = m.okFirst(rows)
	gangs := m.gangsAmong(rows)
	was := make([]label, len(gangs))
	for i, q := range gangs {
		was[i] = m.labelOf(q)
	}
	for _, q := range rows {
		if m.relieveOne(q, over, closed, false) {
			return
		}
	}
	for i, q := range gangs { // what counts as something else by now is none of them
		if m.s.Holding.Sub[q] != cluster.NoID && m.labelOf(q) == was[i] && m.counts(q) &&
			m.relieveOne(q, over, closed, true) {
			return
		}
	}
}

// labelOf is what a holding counts as.
func (m *Planner) labelOf(q cluster.HoldingID) label {
	h := &m.s.Holding
	if h.Origin[q] == decision.OriginBorrowed {
		return label{h.Origin[q], h.Lender[q]}
	}
	return label{h.Origin[q], h.Pool[q]}
}

// relieveOne is relieve for one holding; it is true when nothing is over any more.
// gang: also where it breaks a gang.
func (m *Planner) relieveOne(q cluster.HoldingID, over func() int64, closed, gang bool) (done bool) {
	m.s.Yield()
	takes := closed || m.p.Parcels.IsOpen(m.s.Holding.Parcel[q])
	if m.whole {
		m.relieveHost(q, over, true, takes)
		return false // the next host may be smaller
	}
	sub := m.s.Holding.Sub[q]
	v := m.slots(sub)
	for units := m.s.Holding.Units[q]; units > 0 && !m.reclaim.skip[sub]; units-- {
		x, spare := over(), m.spareUnits(sub)
		if x <= 0 {
			return true
		}
		if spare == 0 && !gang {
			break
		}
		if m.recount(q, true) {
			continue
		}
		if gang {
			spare = unbound
		}
		if takes { // nor would any other unit of it
			m.takeOver(q, min(units, (x-1)/v+1, spare))
		}
		break
	}
	return over() <= 0
}

// takeOver takes back units that are over a limit. Where the budget ends, the
// sub-allocation is left alone from then on.
func (m *Planner) takeOver(q cluster.HoldingID, units int64) (taken int64) {
	sub := m.s.Holding.Sub[q]
	if taken = m.takeBack(q, units, decision.ReclaimOverLimit); taken < units {
		m.reclaim.skip[sub] = true
	}
	return taken
}

// recount makes a unit of a holding count as something that an account bears: owned, from a pool,
// borrowed from another. It is false when there is nothing.
func (m *Planner) recount(q cluster.HoldingID, pools bool) bool {
	leaf, v := m.s.Node(m.s.Holding.Sub[q]), m.worth(q)
	if m.reclaim.ahead || m.owed(q) {
		return false
	}
	if m.ownIdle(leaf) >= v {
		m.relabel(q, 1, ownLabel)
		return true
	}
	if pools && !m.tree.barred[leaf] && m.poolFor(leaf) >= v {
		m.relabel(q, 1, shareLabel)
		return true
	}
	return m.rehome(q, leaf, v)
}

// rehome makes a unit of a holding one borrowed from the next lender.
func (m *Planner) rehome(q cluster.HoldingID, leaf plan.Node, v int64) bool {
	more := v
	if m.s.Holding.Origin[q] == decision.OriginBorrowed {
		more = 0 // it only moves
	}
	if !m.mayBorrow(leaf, more) {
		return false
	}
	m.lendFrom = 0
	if m.whole {
		m.reclaim.owner = m.lenderOf(m.s.Holding.Lender[q])
	}
	lender := m.nextLender(leaf, v)
	m.reclaim.owner = plan.None
	if lender == plan.None || lender == m.lenderOf(m.s.Holding.Lender[q]) {
		return false
	}
	m.relabel(q, 1, label{decision.OriginBorrowed, m.s.ConsumerOf[lender]})
	return true
}

// loansOf lists the loans from a leaf that are not under reclaim, in the order of recall (SLOT-8):
// last rank first, then newest first. O(holdings).
func (m *Planner) loansOf(lender plan.Node) []cluster.HoldingID {
	m.s.Yield()
	h := &m.s.Holding
	var rows []cluster.HoldingID
	if m.figure.net[kindLent][lender] == 0 {
		return nil
	}
	whose := m.s.ConsumerOf[lender]
	for q, sub := range h.Sub {
		if sub != cluster.NoID && h.Lender[q] == whose && m.s.Sub.Plan[sub] == m.p.Index &&
			m.counts(cluster.HoldingID(q)) &&
			(!m.foreign(m.s.Node(sub), h.Origin[q]) || m.owed(cluster.HoldingID(q))) {
			rows = append(rows, cluster.HoldingID(q))
		}
	}
	slices.SortFunc(rows, m.lastRank)
	return rows
}

// lastRank sorts holdings as victims: last rank first, then newest first.
func (m *Planner) lastRank(a, b cluster.HoldingID) int {
	h, rank := &m.s.Holding, m.tree.rankOf
	return cmp.Or(cmp.Compare(rank[m.s.Node(h.Sub[b])], rank[m.s.Node(h.Sub[a])]), m.newest(a, b))
}

// strangers takes back loans between leaves that no longer lend to or borrow from each other. O(holdings).
func (m *Planner) strangers() {
	h := &m.s.Holding
	stranger := func(q cluster.HoldingID) bool {
		lender, leaf := m.lenderOf(h.Lender[q]), m.s.Node(h.Sub[q])
		return !m.owed(q) && (!m.admits(lender, leaf) || !m.asks(leaf, lender))
	}
	strange := map[plan.Node]bool{} // by lender
	for q, sub := range h.Sub {
		if sub != cluster.NoID && h.Lender[q] != cluster.NoID && m.s.Sub.Plan[sub] == m.p.Index &&
			m.counts(cluster.HoldingID(q)) &&
			!m.s.Sub.Orphan[sub] && stranger(cluster.HoldingID(q)) {
			strange[m.lenderOf(h.Lender[q])] = true
		}
	}
	for lender := range plan.Node(m.policy.Len()) {
		if !strange[lender] {
			continue
		}
		m.relieveAll(slices.DeleteFunc(m.loansOf(lender), func(q cluster.HoldingID) bool { return !stranger(q) }),
			func() int64 { return unbound }, true)
	}
	if strange[plan.None] {
		m.bereaved()
	}
}

// bereaved takes back loans whose lender is no leaf of the plan any more.
func (m *Planner) bereaved() {
	h := &m.s.Holding
	var rows []cluster.HoldingID
	for q, sub := range h.Sub {
		if sub != cluster.NoID && h.Lender[q] != cluster.NoID && m.lenderOf(h.Lender[q]) == plan.None &&
			m.s.Sub.Plan[sub] == m.p.Index && m.counts(cluster.HoldingID(q)) && !m.s.Sub.Orphan[sub] &&
			!m.foreign(m.s.Node(sub), h.Origin[q]) {
			rows = append(rows, cluster.HoldingID(q))
		}
	}
	slices.SortFunc(rows, m.lastRank)
	m.relieveAll(rows, func() int64 { return unbound }, true)
}

// shrunkPool takes back what leaves hold from pools that are not as large any more: each unit
// from the leaf furthest above its quota. What is on closed hosts stays: the pool would be smaller by as much.
func (m *Planner) shrunkPool() {
	for _, gang := range [...]bool{false, true} {
		for _, open := range [...]bool{true, false} {
			switch {
			case m.netPool() >= 0 || gang && len(m.gang.subs) == 0:
				return
			case m.whole:
				m.shrunkPoolHosts(open)
			default:
				m.shrunkPoolOn(open, gang)
			}
		}
	}
}

// shrunkPoolOn is shrunkPool for what is on hosts that are ok, or on the others; gang: for what breaks gangs, too.
func (m *Planner) shrunkPoolOn(open, gang bool) {
	h, passed := &m.s.Holding, map[cluster.HoldingID]bool{}
	c := m.gather(func(leaf plan.Node) bool { return m.figure.net[kindShare][leaf] > 0 })
	for m.netPool() < 0 && len(c.leaf) > 0 {
		rows := c.of(c.leaf[0])
		i := slices.IndexFunc(rows, func(q cluster.HoldingID) bool {
			return c.gives(q, c.leaf[0]) && (gang || m.spareUnits(h.Sub[q]) > 0) &&
				!m.reclaim.skip[h.Sub[q]] && !passed[q] && m.p.Parcels.IsOpen(h.Parcel[q]) == open
		})
		switch {
		case i < 0:
			c.pop()
			continue
		case m.recount(rows[i], false):
		case !open:
			passed[rows[i]] = true
			continue
		default:
			m.takeOver(rows[i], 1)
		}
		c.sink(0)
	}
}

// excess is how far a leaf is above what it deserves from the pools.
func (m *Planner) excess(leaf plan.Node) int64 {
	return m.figure.net[kindShare][leaf] - m.quota.deserve[leaf]
}

// overMax takes back what consumers hold above their share.max or limit, children before parents: loans, what is
// shared, then the rest, of which what fills reserves below goes last (SLOT-12 f, SLOT-26).
func (m *Planner) overMax() {
	if !m.tree.maxed {
		return
	}
	m.reclaim.skip = map[cluster.SubID]bool{}
	var want *wanting // made where something is over
	for n := plan.Node(m.policy.Len() - 1); n > plan.Root; n-- {
		if m.p.Terms.Member[n] && m.overBy(n) > 0 {
			if want == nil {
				want = m.wanting()
			}
			m.takeAbove(n, want, false, kindBorrow)
			m.takeAbove(n, want, false, kindShare)
			rest := []int{kindHybrid, kindOwed, kindOwn, kindStray} // of hybrid branches one is like another
			m.takeAbove(n, want, m.isHybrid(n), rest...)
			m.takeAbove(n, want, false, rest...)
		}
	}
}

// overBy is how many slots a consumer will hold above its share.max or limit.
func (m *Planner) overBy(n plan.Node) int64 {
	most := m.tree.most[n]
	if most == plan.Unlimited {
		return 0
	}
	return m.figure.stays[n] - most
}

// takeAbove takes back units of some kinds below a consumer while it is above its maximum: on ok hosts first, then last
// rank first, newest first. spare: units that fill a reserve below it stay.
func (m *Planner) takeAbove(n plan.Node, want *wanting, spare bool, kinds ...int) {
	var rows []cluster.HoldingID
	for leaf := n; leaf < m.policy.End[n] && m.overBy(n) > 0; leaf++ {
		for _, kind := range kinds {
			if m.policy.Leaf(leaf) {
				rows = append(rows, m.stays(leaf, kind)...)
			}
		}
	}
	slices.SortFunc(rows, m.lastRank)
	rows = m.okFirst(rows)
	m.takeEach(n, rows, want, spare, false)
	m.takeEach(n, slices.DeleteFunc(m.gangsAmong(rows), func(q cluster.HoldingID) bool { return !m.counts(q) }), want,
		spare, true)
}

// takeEach is takeAbove for holdings in their order; gang: also where it breaks a gang.
func (m *Planner) takeEach(n plan.Node, rows []cluster.HoldingID, want *wanting, spare, gang bool) {
	m.s.Yield()
	for _, q := range rows {
		sub, v, over, free := m.s.Holding.Sub[q], m.worth(q), m.overBy(n), int64(unbound)
		fills := m.isHybrid(n) && !m.owed(q)
		if fills && spare {
			free = want.spare(n, m.s.Node(sub))
		}
		if gang {
			if free >= v && over > 0 && !m.reclaim.skip[sub] && m.counts(q) {
				m.takeGangAbove(q, want)
			}
			continue
		}
		var taken int64
		switch {
		case m.whole && min(over, free) >= v:
			taken = m.takeBack(q, 1, decision.ReclaimOverLimit)
		case !m.whole && over > 0 && !m.reclaim.skip[sub]:
			taken = m.takeOver(q, min(m.s.Holding.Units[q], (over+v-1)/v, free/v, m.spareUnits(sub)))
		}
		if fills {
			want.give(m.s.Node(sub), taken*v)
		}
	}
}
