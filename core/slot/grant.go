package slot

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// gift is units given, not yet booked.
type gift struct {
	sub   cluster.SubID
	units int32
	labelled
}

// giftsReserved is for how many gifts room is made at once; more grow as they come.
const giftsReserved = 1 << 20

// label is what a unit counts as.
type label struct {
	origin int32
	whose  cluster.ConsumerID // the pool of share_pool, the lender of borrowed; NoID of owned
}

// labelled is a parcel and what the unit there counts as.
type labelled struct {
	parcel cluster.ParcelID
	with   label
}

// Grant hands out what is free (SLOT-5): promised room, idle owned slots, share pools, loans. Time is units × (depth ×
// log children + what the place costs).
func (m *Planner) Grant() {
	m.gift, m.lapses = m.gift[:0], 0
	m.opened = resized(m.opened, m.policy.Len())
	m.review()
	m.settleForeign()
	m.fulfil()
	m.bind()
	m.comeHome(true)
	m.line.reset(m.s, m.p)
	var short int64
	for _, leaf := range m.tree.leaves {
		short = share.Add(short, m.line.warm(leaf))
	}
	m.gift = slices.Grow(m.gift, int(min(short, m.figure.idle, giftsReserved)))
	for _, leaf := range m.tree.leaves {
		m.serveAll(leaf, kindOwn, unbound)
	}
	m.flush()
	m.comeHome(false)
	m.vacate()
	// running work is relabelled before new work gets what it could be relabelled to
	m.overLimit()
	m.sharePool()
	m.flush()
	m.leaveLoans()
	if !m.p.Slots.RecallFirst {
		m.borrow()
	}
	m.grantHybrid()
	m.flush()
}

// serveAll gives a leaf units of one kind until nothing more can be served.
func (m *Planner) serveAll(leaf plan.Node, kind int, bound int64) {
	for more := m.open(leaf); more; {
		_, more = m.serve(leaf, kind, bound)
	}
}

// open opens a leaf's queue as things stand.
func (m *Planner) open(leaf plan.Node) bool {
	m.opened[leaf] = m.lapses
	return m.line.open(leaf)
}

// unbound is the bound of a step that has none.
const unbound = 1 << 62

// serve tries to give a leaf one unit of a kind, and tells how many slots it took and whether
// there is more to serve. Pool units keep the leaf's usage within the bound. Where room came free
// meanwhile, what was passed over has another chance.
func (m *Planner) serve(leaf plan.Node, kind int, bound int64) (slots int64, stays bool) {
	m.s.Yield()
	if m.opened[leaf] != m.lapses && !m.open(leaf) {
		return 0, false
	}
	for {
		for sub := m.line.next(leaf); sub != cluster.NoID; sub = m.line.next(leaf) {
			if cost, ok := m.give(leaf, sub, kind, bound); ok {
				m.line.served(leaf)
				more := m.line.advance(leaf)
				// What was passed over may have a place on a new host.
				return cost, more || m.whole && m.opened[leaf] != m.lapses
			}
			m.line.pass(leaf)
		}
		if !m.line.advance(leaf) {
			return 0, false
		}
	}
}

// give tries to give a unit of a sub-allocation, and tells how many slots it counts.
func (m *Planner) give(leaf plan.Node, sub cluster.SubID, kind int, bound int64) (slots int64, ok bool) {
	if m.whole {
		return m.giveHost(leaf, sub, kind, bound)
	}
	if m.waits(sub) {
		return m.form(leaf, sub, kind, bound)
	}
	return m.giveOne(leaf, sub, kind, bound)
}

// giveOne is give for a unit by itself.
func (m *Planner) giveOne(leaf plan.Node, sub cluster.SubID, kind int, bound int64) (slots int64, ok bool) {
	m.s.Yield()
	k := m.slots(sub)
	t := &m.line.Sub[sub]
	promised := t.Wanted-t.Held <= m.promised[sub]
	if _, ok := m.roomy(leaf, k, promised); !ok {
		return 0, false
	}
	with, lender := label{decision.OriginOwned, cluster.NoID}, plan.None
	switch kind {
	case kindOwn:
		if m.own0(leaf) < k || !promised && m.ownIdle(leaf) < k {
			return 0, false
		}
	case kindShare:
		if m.poolFor(leaf) < k || m.spare() < k || !m.within(leaf, sub, promised, bound) {
			return 0, false
		}
		with = label{decision.OriginSharePool, cluster.NoID}
	case kindHybrid:
		if !m.mayHold(leaf, k, promised, bound) {
			return 0, false
		}
		with = hybridLabel
	default:
		lender = m.lender(leaf, k)
		if lender == plan.None {
			return 0, false
		}
		with = label{decision.OriginBorrowed, m.s.ConsumerOf[lender]}
	}
	if !m.lasts(leaf, k, kind, lender) {
		return 0, false
	}
	if t.Find == 0 {
		t.Find = m.desk.Lookup(sub) + 1
	}
	at := m.desk.At(t.Find - 1).Find()
	if at == cluster.NoID {
		return 0, false
	}
	if promised {
		m.yield(sub)
		at = m.desk.At(t.Find - 1).Find() // it may have room at a better place now
	}
	m.desk.At(t.Find - 1).Give(at)
	m.take(leaf, sub, at, with)
	return k, true
}

// within tells whether a unit from the pool keeps a leaf within the bound; one that the pool promises
// counts in the usage already: its set will lapse.
func (m *Planner) within(leaf plan.Node, sub cluster.SubID, promised bool, bound int64) bool {
	k := m.slots(sub)
	if ids := m.setsOf[sub]; promised && m.s.Set.Reason[ids[len(ids)-1]] != decision.ReclaimRecall {
		k = 0
	}
	return m.figure.usage[leaf]+k <= bound
}

// take notes a unit that was given.
func (m *Planner) take(leaf plan.Node, sub cluster.SubID, at cluster.ParcelID, with label) {
	k := m.slots(sub)
	lender := plan.None
	switch with.origin {
	case decision.OriginSharePool:
		with.whose = m.s.ConsumerOf[m.poolOf(leaf)]
	case decision.OriginBorrowed:
		lender = m.s.NodeOf[with.whose]
	}
	if n := len(m.gift) - 1; n >= 0 && m.gift[n].sub == sub && m.gift[n].parcel == at && m.gift[n].with == with {
		m.gift[n].units++
	} else {
		m.gift = append(m.gift, gift{sub, 1, labelled{at, with}})
	}
	m.figure.idle -= k
	m.book(leaf, with.origin, lender, k, k)
}

// poolOf is the pool that the next unit of a leaf is said to come from: the nearest whose branch
// holds less from pools than it has. It only names; nothing is decided by it.
func (m *Planner) poolOf(leaf plan.Node) plan.Node {
	for n := m.policy.Parent[leaf]; n != plan.Root; n = m.policy.Parent[n] {
		if m.figure.drawn[n] < m.owned.below[n] {
			return n
		}
	}
	return plan.Root
}

// flush books what was given: one holding for each sub-allocation, parcel and label. The gifts are
// dealt out to their sub-allocations, then each one's are sorted. O(gifts log (gifts of a sub-allocation)).
func (m *Planner) flush() {
	if len(m.gift) == 0 {
		return
	}
	m.end = resized(m.end, len(m.s.Sub.Wanted))
	m.served = m.served[:0]
	for i := range m.gift {
		if sub := m.gift[i].sub; m.line.Sub[sub].Given > 0 { // a count of units so far, of gifts from here on
			m.line.Sub[sub].Given, m.end[sub] = 0, 1
			m.served = append(m.served, sub)
		} else {
			m.end[sub]++
		}
	}
	at := int32(0)
	for _, sub := range m.served {
		at += m.end[sub]
		m.end[sub] = at
	}
	m.dealt = resized(m.dealt, len(m.gift))
	for i := len(m.gift) - 1; i >= 0; i-- {
		g := &m.gift[i]
		m.end[g.sub]--
		m.dealt[m.end[g.sub]] = *g
	}
	m.s.ReserveHoldings(m.sortDealt())
	for i, sub := range m.served {
		m.hold(sub, m.dealtTo(i))
	}
	m.gift = m.gift[:0]
	m.p.Continue()
}

// dealtTo is the gifts of the i-th sub-allocation served.
func (m *Planner) dealtTo(i int) []gift {
	to := int32(len(m.dealt))
	if i+1 < len(m.served) {
		to = m.end[m.served[i+1]]
	}
	return m.dealt[m.end[m.served[i]]:to]
}

// sortDealt sorts the gifts of each sub-allocation by label and parcel, and tells how many
// holdings they will be.
func (m *Planner) sortDealt() (rows int) {
	less := func(a, b gift) int {
		return cmp.Or(cmp.Compare(a.with.origin, b.with.origin), cmp.Compare(a.with.whose, b.with.whose),
			cmp.Compare(a.parcel, b.parcel))
	}
	for i := range m.served {
		gifts := m.dealtTo(i)
		if !slices.IsSortedFunc(gifts, less) {
			slices.SortFunc(gifts, less)
		}
		for k := range gifts {
			if k == 0 || gifts[k].labelled != gifts[k-1].labelled {
				rows++
			}
		}
	}
	return rows
}

// hold makes holdings of the sorted gifts of one sub-allocation.
func (m *Planner) hold(sub cluster.SubID, gifts []gift) {
	for i := 0; i < len(gifts); {
		j := i
		for m.parcel = m.parcel[:0]; j < len(gifts) && gifts[j].with == gifts[i].with; j++ {
			for range gifts[j].units {
				m.parcel = append(m.parcel, gifts[j].parcel)
			}
		}
		m.booked = m.s.Hold(m.booked[:0], m.row(sub, gifts[i].with), m.parcel)
		i = j
	}
}

// row is a holding of this cycle with a label, without place and units.
func (m *Planner) row(sub cluster.SubID, with label) cluster.Holding {
	row := cluster.Holding{Sub: sub, Granted: m.s.Cycle + 1, Origin: with.origin, Pool: cluster.NoID,
		Lender: cluster.NoID}
	switch with.origin {
	case decision.OriginSharePool:
		row.Pool = with.whose
	case decision.OriginBorrowed:
		row.Lender = with.whose
	}
	return row
}

// sharePool grants what is idle in the share pools (SLOT-5 ②): first up to what each
// deserves, then what is left, to whoever can use it.
func (m *Planner) sharePool() {
	if !m.whole && len(m.gang.subs) == 0 && (m.pool() <= 0 || m.spare() <= 0) {
		return
	}
	m.deserved()
	if m.p.Slots.StaticQuota {
		m.byArrival()
		return
	}
	m.inTurns(func(leaf plan.Node) (int64, bool) { return m.serve(leaf, kindShare, unbound) })
}

// deserved grants up to what each leaf deserves: in turns, unless there is enough for all of them.
func (m *Planner) deserved() {
	var below int64
	for _, leaf := range m.tree.leaves {
		if m.mayDraw(leaf) && m.p.FirstAlloc[leaf] != cluster.NoID {
			below = share.Add(below, max(0, m.quota.deserve[leaf]-m.figure.usage[leaf]))
		}
	}
	if m.whole || m.tree.zeroed || below > min(m.pool(), m.spare()) { // a host may carry a leaf above what it deserves
		m.inTurns(func(leaf plan.Node) (int64, bool) { return m.serve(leaf, kindShare, m.quota.deserve[leaf]) })
		return
	}
	for _, leaf := range m.tree.leaves {
		if m.mayDraw(leaf) {
			m.serveAll(leaf, kindShare, m.quota.deserve[leaf])
		}
	}
}

// mayDraw tells whether something new of the share pools may be for a leaf: no ratio of 0 and no budget stands against
// it.
func (m *Planner) mayDraw(leaf plan.Node) bool { return !m.tree.barred[leaf] && !m.spent(leaf) }

// inTurns serves leaves with open demand, whose ratios are above 0, by usage ÷ ratio from the root
// down, a unit a turn, until none has anything more to serve.
func (m *Planner) inTurns(serve func(leaf plan.Node) (int64, bool)) {
	m.takeTurns(m.openAll(), serve)
}

// takeTurns is inTurns for those leaves that are in.
func (m *Planner) takeTurns(in []bool, serve func(leaf plan.Node) (int64, bool)) {
	for m.lineUp(in) {
		lapses := m.lapses
		for leaf := m.race.Next(); leaf >= 0; leaf = m.race.Next() {
			slots, stays := serve(plan.Node(leaf))
			in[leaf] = stays
			if m.lapses != lapses {
				break // usages of others have changed
			}
			m.race.Served(leaf, slots, stays)
		}
		if m.lapses == lapses {
			return
		}
	}
}

// openAll opens the queues of all leaves that may draw from a pool.
func (m *Planner) openAll() []bool {
	in := make([]bool, m.policy.Len())
	for _, leaf := range m.tree.leaves {
		in[leaf] = m.mayDraw(leaf) && m.p.FirstAlloc[leaf] != cluster.NoID && m.open(leaf)
	}
	return in
}

// lineUp readies a race of leaves as things stand, and tells whether there are any.
func (m *Planner) lineUp(in []bool) bool {
	node := m.race.Reset(m.policy.Len())
	for n := range node {
		node[n] = share.Entrant{
			Usage: m.figure.usage[n], Ratio: m.weight(plan.Node(n)), Tie: m.tree.rankOf[n],
			Parent: int32(m.policy.Parent[n]), In: in[n],
		}
		if !m.p.Terms.Member[n] && n > 0 {
			node[n].Ratio = 0
		}
	}
	return m.race.Start()
}

// byArrival serves what the static quotas leave, first come first served (SLOT-6).
func (m *Planner) byArrival() {
	var allocs []cluster.AllocID
	for _, leaf := range m.tree.leaves {
		for a := m.p.FirstAlloc[leaf]; a != cluster.NoID && m.mayDraw(leaf); a = m.s.Alloc.Next[a] {
			allocs = append(allocs, a)
		}
	}
	slices.SortFunc(allocs, func(a, b cluster.AllocID) int {
		return cmp.Compare(m.s.Alloc.Arrival[a], m.s.Alloc.Arrival[b])
	})
	for _, a := range allocs {
		leaf := m.s.NodeOf[m.s.Alloc.Consumer[a]]
		for more := m.line.openAt(a); more; {
			sub := m.line.next(leaf)
			if cost, ok := m.give(leaf, sub, kindShare, unbound); ok {
				m.line.served(leaf)
				if m.whole && cost > 0 { // what was passed over may have a place there
					m.line.openAt(a)
				}
			} else {
				m.line.pass(leaf)
			}
			more = m.line.next(leaf) != cluster.NoID
		}
	}
}

// borrow lends idle slots to those who ask (SLOT-5 ③, SLOT-7): leaves in rank order, each
// until nothing more fits. What is promised is not served.
func (m *Planner) borrow() {
	if m.figure.claims == 0 && !m.whole {
		return
	}
	m.lendFrom = 0
	for _, leaf := range m.tree.leaves {
		if m.set.BorrowLimit[leaf] == 0 && !m.whole || m.whole && m.isHybrid(leaf) || m.spent(leaf) {
			continue
		}
		m.bar(leaf)
		m.serveAll(leaf, kindBorrow, unbound)
	}
}

// spent tells whether a leaf's budget is used up: nothing new of share pools or loans is for it (BUD-2).
func (m *Planner) spent(leaf plan.Node) bool { return m.p.Spent != nil && m.p.Spent[leaf] }

// bar keeps promised units of a leaf out of its queue, and all of a sub-allocation that lost what this cycle gave it.
func (m *Planner) bar(leaf plan.Node) {
	m.eachOf(leaf, func(sub cluster.SubID) {
		m.line.Sub[sub].Bar = m.promised[sub]
		if m.reclaim.undone[sub] {
			m.line.Sub[sub].Bar = m.line.Sub[sub].Wanted
		}
	})
}
