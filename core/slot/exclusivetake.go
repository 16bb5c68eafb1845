package slot

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// evict puts all of a host under reclaim for a set. Units granted in this cycle are not granted at all (CYC-1).
func (m *Planner) evict(id cluster.SetID, k cluster.ParcelID) {
	h, lead, c := &m.s.Holding, m.lead(k), m.p.Parcels.Cap[0][k]
	leaf, origin, lender := m.s.Node(h.Sub[lead]), h.Origin[lead], m.lenderOf(h.Lender[lead])
	m.change(k, func() {
		for q := m.p.Parcels.First[k]; q != cluster.NoID; {
			next, sub := h.NextOnParcel[q], h.Sub[q]
			switch {
			case h.Set[q] != cluster.NoID:
			case h.Granted[q] > m.s.Cycle:
				m.line.Sub[sub].Held -= h.Units[q]
				m.s.Shrink(q, h.Units[q])
				m.reclaim.undone[sub] = true
			default:
				m.s.TakeBack(id, q, h.Units[q], m.nowUS+m.policy.ReclaimUS[leaf])
			}
			q = next
		}
		held := int64(0)
		if m.p.Parcels.First[k] == cluster.NoID {
			held = -c
		}
		m.book(leaf, origin, lender, held, -c)
	})
}

// bearsBudget tells whether the reclaim budget bears that a host is taken back (CYC-4), and takes that off it.
func (m *Planner) bearsBudget(k cluster.ParcelID) (units int64, ok bool) {
	h, r := &m.s.Holding, &m.reclaim
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		if h.Set[q] == cluster.NoID && h.Granted[q] <= m.s.Cycle {
			units += h.Units[q]
		}
	}
	if units > r.budget && !(r.first && r.budget > 0) {
		return units, false
	}
	if units > 0 {
		r.budget, r.first = max(0, r.budget-units), false
	}
	return units, true
}

// takeHost takes a host back for a rule, and tells how many.
func (m *Planner) takeHost(k cluster.ParcelID, reason int32) int64 {
	units, ok := m.bearsBudget(k)
	if !ok {
		return 0
	}
	if m.reclaim.ahead {
		reason = decision.ReclaimWindowSwitch
	}
	id := cluster.SetID(cluster.NoID)
	if units > 0 {
		id = m.s.OpenSet(m.p, k, reason, cluster.NoID, m.nowUS)
	}
	m.evict(id, k)
	return 1
}

// cancelHost leaves what a set still takes with its holder.
func (m *Planner) cancelHost(id cluster.SetID) {
	h, number := &m.s.Holding, m.s.Set.Number[id]
	q := m.s.Set.First[id]
	if q == cluster.NoID {
		return
	}
	k, leaf, stayed := h.Parcel[q], m.s.Node(h.Sub[q]), m.staying(h.Parcel[q])
	origin, lender := h.Origin[q], m.lenderOf(h.Lender[q])
	m.figure.foreign = m.figure.foreign || !m.s.Sub.Orphan[h.Sub[q]] && m.strange(q)
	for m.s.Set.Number[id] == number && m.s.Set.First[id] != cluster.NoID {
		q := m.s.Set.First[id]
		m.s.Cancel(q, h.Units[q])
	}
	if !stayed {
		m.book(leaf, origin, lender, 0, m.p.Parcels.Cap[0][k])
	}
}

// lapseHost ends a taker's set, whose host stays with its holder or is free for all.
func (m *Planner) lapseHost(id cluster.SetID) {
	host := m.s.Set.Target[id]
	m.count1(id, -1)
	if m.s.Host.Plan[host] == m.p.Index {
		k := m.s.Host.Parcel[host]
		was := m.idleAt(k)
		if m.exclusive.reserver[k] == id {
			m.exclusive.reserver[k] = cluster.NoID
		}
		m.figure.idle += m.idleAt(k) - was
	}
	first := m.s.Set.First[id]
	m.s.Promise(id, 0)
	if first != cluster.NoID {
		m.cancelHost(id)
	}
	m.lapses++
}

// reviewHost cancels a rule's set that the rule no longer asks for; in: its host is in the plan.
func (m *Planner) reviewHost(id cluster.SetID, in bool) {
	q := m.s.Set.First[id]
	if !m.heldBy(m.s.Holding.Parcel[q], m.s.Holding.Sub[q]) {
		return // it was in the way of another's host
	}
	switch m.s.Set.Reason[id] {
	case decision.ReclaimDrain, decision.ReclaimOwnershipChange:
		if in && m.s.Host.State[m.s.Set.Target[id]] != cluster.Draining {
			m.cancelHost(id)
		}
	case decision.ReclaimWindowSwitch, decision.ReclaimPlanChange:
		if m.p.Coming == cluster.NoID && !m.strange(q) {
			m.restoreHost(id)
		}
	default:
		m.restoreHost(id)
	}
}

// restoreHost cancels a rule's set when the account of its host, and every limit, bear it again.
func (m *Planner) restoreHost(id cluster.SetID) {
	h, f, q := &m.s.Holding, &m.figure, m.s.Set.First[id]
	leaf, c, ok := m.s.Node(h.Sub[q]), m.worth(q), true
	if !m.staying(h.Parcel[q]) {
		if m.s.Set.Reason[id] == decision.ReclaimReserve {
			ok = f.net[kindHybrid][leaf]+c <= m.hybrid.quota[leaf]
		} else {
			ok = m.bears(q)
		}
	}
	if ok {
		m.cancelHost(id)
	}
}

// standsHost is stands for exclusive placement, as far as room and accounts go.
func (m *Planner) standsHost(id cluster.SetID) bool {
	m.s.Yield()
	sub, f := m.s.Set.Taker[id], &m.figure
	leaf, k, room := m.s.Node(sub), m.s.Host.Parcel[m.s.Set.Target[id]], m.roomOf(id)
	p := &m.p.Parcels
	switch {
	case room == 0:
		return p.Free[0][k] >= m.slots(sub) && m.roomyNet(leaf, 0)
	case p.First[k] != cluster.NoID && m.s.Set.First[id] == cluster.NoID: // somebody else has it
		return false
	case !m.roomyNet(leaf, 0):
		return false
	case m.s.Set.Reason[id] == decision.ReclaimRecall:
		return m.netOwn(leaf)+room >= 1
	case m.isHybrid(leaf):
		return f.net[kindHybrid][leaf]+f.roomHybrid[leaf]-room < m.hybrid.quota[leaf]
	}
	return f.net[kindShare][leaf]+f.roomPool[leaf]-room < m.quota.deserve[leaf] && m.netPool()+room >= 1 &&
		m.zeroesBear(leaf, 1-room, nothing)
}

// roomyNet tells whether every limit on a leaf's way bears so many slots more, as if all that is under way were done.
func (m *Planner) roomyNet(leaf plan.Node, slots int64) bool {
	reserves := m.reservesAfter(leaf, slots)
	for n := leaf; m.tree.maxed && n != plan.Root; n = m.policy.Parent[n] {
		kept := reserves(n)
		if most := m.tree.most[n]; most != plan.Unlimited && m.figure.stays[n]+slots+kept > most {
			return false
		}
	}
	return true
}

// fulfilHost gives a taker its unit, when the host that was held for it has come free.
func (m *Planner) fulfilHost(id cluster.SetID, with label) {
	sub, k := m.s.Set.Taker[id], m.s.Host.Parcel[m.s.Set.Target[id]]
	leaf, kept, account := m.s.Node(sub), m.keptOf(id), m.poolFor(m.s.Node(sub))
	switch with {
	case ownLabel:
		account = m.own0(leaf)
	case hybridLabel:
		account = m.hybridIdle()
	}
	if with == hybridLabel { // it is within the leaf's quota, whatever others have beyond theirs
		account = max(0, account)
	}
	if m.p.Parcels.First[k] != cluster.NoID {
		if !m.takesMore(sub, k) {
			return
		}
	} else if _, roomy := m.roomy(leaf, m.p.Parcels.Cap[0][k], true); !roomy || account+kept < 1 {
		return
	}
	m.lapseHost(id) // it has nothing left to take
	m.forgetSet(sub, id)
	m.putOn(leaf, sub, k, with)
}

// relieveHost relabels a host that what is over covers whole, or else takes it back if it may.
func (m *Planner) relieveHost(q cluster.HoldingID, over func() int64, pools, takes bool) {
	if over() >= m.worth(q) && !m.recount(q, pools) && takes {
		m.takeHost(m.s.Holding.Parcel[q], decision.ReclaimOverLimit)
	}
}

// shrunkPoolHosts is shrunkPool for exclusive placement: host by host, each of the leaf then furthest above its quota.
func (m *Planner) shrunkPoolHosts(open bool) {
	c := m.gather(func(leaf plan.Node) bool { return m.figure.net[kindShare][leaf] > 0 })
	rows := map[plan.Node][]cluster.HoldingID{}
	for _, leaf := range c.leaf {
		rows[leaf] = slices.DeleteFunc(m.stays(leaf, kindShare), func(q cluster.HoldingID) bool {
			return m.p.Parcels.IsOpen(m.s.Holding.Parcel[q]) != open
		})
	}
	for m.netPool() < 0 && len(c.leaf) > 0 {
		leaf := c.leaf[0]
		if len(rows[leaf]) == 0 {
			c.pop()
			continue
		}
		q := rows[leaf][0]
		rows[leaf] = rows[leaf][1:]
		m.relieveHost(q, func() int64 { return -m.netPool() }, false, open)
		c.heap()
	}
}

// recallHosts is recall for exclusive placement.
func (m *Planner) recallHosts() {
	m.reclaim.passing = true
	for _, leaf := range m.tree.leaves {
		m.bar(leaf)
		for m.promiseOne(leaf, func(sub cluster.SubID) bool {
			return m.joinHeld(sub) || !m.isHybrid(leaf) && (m.joinHost(leaf, sub, decision.ReclaimRecall) ||
				m.seize(leaf, sub, decision.ReclaimRecall, m.loansOf(leaf)))
		}) {
		}
	}
}

// promiseOne offers a leaf's units in the order of its queue, until one is granted after all or is promised a host.
func (m *Planner) promiseOne(leaf plan.Node, promise func(sub cluster.SubID) bool) bool {
	m.s.Yield()
	for more := m.open(leaf); more; more = m.line.advance(leaf) {
		for sub := m.line.next(leaf); sub != cluster.NoID; sub = m.line.next(leaf) {
			switch {
			case m.reclaim.skip[sub] || m.reclaim.undone[sub]:
			case m.giveNow(leaf, sub):
				m.line.served(leaf)
				return true
			case promise(sub):
				m.line.Sub[sub].Bar++
				m.line.settle(leaf)
				return true
			}
			m.line.pass(leaf)
		}
	}
	return false
}

// giveNow gives a unit a place on a host that its holder has or, in a recall, one
// that loans of the owner make way for (SLOT-8).
func (m *Planner) giveNow(leaf plan.Node, sub cluster.SubID) bool {
	at, cost := m.place(sub)
	if at == cluster.NoID || cost > 0 && (!m.reclaim.passing || !m.passLoans(leaf, cost)) {
		return false
	}
	m.putOn(leaf, sub, at, ownLabel)
	return true
}

// passLoans moves loans of an owner to other lenders until it may take a host of
// c slots as its own, if enough of them can.
func (m *Planner) passLoans(leaf plan.Node, c int64) bool {
	own := m.own0(leaf)
	need := max(1-own, c-m.spare()-max(0, own))
	if _, ok := m.roomy(leaf, c, false); !ok || need <= 0 {
		return false
	}
	moves, ok := m.movable(leaf, need, m.loansOf(leaf))
	if !ok {
		return false
	}
	for _, v := range moves {
		m.relabel(v.q, 1, label{decision.OriginBorrowed, m.s.ConsumerOf[v.to]})
	}
	return true
}

// mayWait tells whether a host may take a unit of a sub-allocation beside what is promised to it there.
func (m *Planner) mayWait(sub cluster.SubID, k cluster.ParcelID) bool {
	return m.usable(sub, k) && m.perHost(sub, k, m.promisedOn(sub, k)+1)
}

// joinHeld lets a unit wait for a host that its holder is promised, and that has room left. It costs nothing.
func (m *Planner) joinHeld(sub cluster.SubID) bool {
	for k := range cluster.ParcelID(m.p.Parcels.Len()) {
		if m.leftFor(sub, k) >= m.slots(sub) && m.mayWait(sub, k) {
			m.await(sub, k, 0, 0)
			return true
		}
	}
	return false
}

// leftFor is the room of a host that the holder of a sub-allocation is promised
// beside what is promised there; -1 of another.
func (m *Planner) leftFor(sub cluster.SubID, k cluster.ParcelID) int64 {
	m.s.Yield()
	h, left, mine := &m.s.Holding, m.p.Parcels.Cap[0][k], false
	if id := m.exclusive.reserver[k]; id != cluster.NoID && m.holder(m.s.Set.Taker[id]) == m.holder(sub) {
		left, mine = left-m.slots(m.s.Set.Taker[id]), true
	}
	for _, j := range m.exclusive.joined {
		if j.at == k && m.holder(j.sub) == m.holder(sub) {
			left, mine = left-m.slots(j.sub), true
		}
	}
	if !mine {
		return -1
	}
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		if h.Set[q] == cluster.NoID {
			left -= h.Units[q] * m.slots(h.Sub[q])
		}
	}
	return left
}

// await counts a unit as promised a host, at a cost in the account that a reason means.
func (m *Planner) await(sub cluster.SubID, k cluster.ParcelID, reason int32, cost int64) {
	m.exclusive.joined = append(m.exclusive.joined, joiner{sub, k})
	m.reclaim.joinedAt[sub] = append(m.reclaim.joinedAt[sub], k)
	m.promised[sub]++
	if cost > 0 {
		m.enterRoom(m.s.Node(sub), reason, cost, 0)
		for n := m.s.Node(sub); n != plan.None; n = m.policy.Parent[n] {
			m.figure.pend[n] += cost
		}
	}
	m.p.Continue()
}

// comes tells whether a host is empty, or will be, and nobody is promised it.
func (m *Planner) comes(k cluster.ParcelID) bool {
	if !m.p.Parcels.IsOpen(k) || m.exclusive.reserver[k] != cluster.NoID || m.staying(k) {
		return false
	}
	for _, j := range m.exclusive.joined {
		if j.at == k {
			return false
		}
	}
	return true
}

// netSpare is spare as if what is under reclaim had been given back. O(parcels + leaves).
func (m *Planner) netSpare() (slots int64) {
	for k := range cluster.ParcelID(m.p.Parcels.Len()) {
		if m.comes(k) {
			slots += m.p.Parcels.Cap[0][k]
		}
	}
	for _, leaf := range m.tree.leaves {
		slots -= max(0, m.netOwn(leaf))
	}
	return slots
}

// accountOf is the net account that a taker's host is to come from.
func (m *Planner) accountOf(leaf plan.Node, reason int32) int64 {
	switch {
	case reason == decision.ReclaimRecall:
		return m.netOwn(leaf)
	case m.isHybrid(leaf):
		return max(0, m.netHybrid())
	}
	return m.netPool()
}

// joinHost lets a unit wait for the first host that is to come free, and that nobody is promised (CYC-6).
func (m *Planner) joinHost(leaf plan.Node, sub cluster.SubID, reason int32) bool {
	m.s.Yield()
	account, own := m.accountOf(leaf, reason), int64(0)
	hybrid := m.isHybrid(leaf) && reason != decision.ReclaimRecall
	shares := !m.isHybrid(leaf) && reason != decision.ReclaimRecall
	if account < 1 || shares && !m.zeroesBear(leaf, 1, nothing) {
		return false
	}
	if reason == decision.ReclaimRecall {
		own = account
	}
	at := m.eachPlace(sub, m.all(), func(k cluster.ParcelID) bool { return m.comes(k) && m.mayWait(sub, k) })
	if at == cluster.NoID {
		return false
	}
	c := m.p.Parcels.Cap[0][at]
	if !m.roomyNet(leaf, c) || m.netSpare() < c-own || hybrid && account-c < m.freeAfter(leaf, c) {
		return false
	}
	m.await(sub, at, reason, c)
	return true
}

// seize makes a set for a unit, of the first host in a list of leads that it may use. It is false when there is
// none, or the budget does not bear it.
func (m *Planner) seize(leaf plan.Node, sub cluster.SubID, reason int32, leads []cluster.HoldingID) bool {
	m.s.Yield()
	account, open, shares := m.accountOf(leaf, reason), true, reason == decision.ReclaimFairShare && !m.isHybrid(leaf)
	if shares {
		open = m.netSpare() >= 0
	}
	for _, q := range leads {
		k, c := m.s.Holding.Parcel[q], m.worth(q)
		if !open || account+c < 1 || m.exclusive.reserver[k] != cluster.NoID || !m.mayWait(sub, k) ||
			!m.roomyNet(leaf, c) {
			continue
		}
		if shares && !m.zeroesBear(leaf, 1, func(n plan.Node) int64 {
			if m.below0(m.s.Node(m.s.Holding.Sub[q]), n) {
				return c
			}
			return 0
		}) {
			continue
		}
		if _, ok := m.bearsBudget(k); !ok {
			m.reclaim.denied[sub], m.reclaim.skip[sub] = true, true
			return false
		}
		if m.isHybrid(m.s.Node(m.s.Holding.Sub[q])) {
			m.hybrid.gives[m.s.Node(m.s.Holding.Sub[q])] -= c
		}
		id := m.s.OpenSet(m.p, k, reason, sub, m.nowUS)
		m.evict(id, k)
		was := m.idleAt(k)
		m.s.Promise(id, 1)
		m.exclusive.reserver[k] = id
		m.figure.idle += m.idleAt(k) - was
		m.count1(id, 1)
		m.setsOf[sub] = append(m.setsOf[sub], id)
		return true
	}
	return false
}

// nextCost is what the next unit of a sub-allocation would cost, its own slots when it has no place.
func (m *Planner) nextCost(sub cluster.SubID) int64 {
	at, cost := m.place(sub)
	if at == cluster.NoID {
		return m.slots(sub)
	}
	return cost
}

// fairHosts is fairShare for exclusive placement.
func (m *Planner) fairHosts() {
	m.reopen()
	clear(m.reclaim.skip)
	m.reclaim.passing = false
	in := make([]bool, m.policy.Len())
	for _, leaf := range m.tree.leaves { // also those that are not short: what was granted to them may be taken back
		in[leaf] = !m.tree.barred[leaf] && m.p.FirstAlloc[leaf] != cluster.NoID
	}
	m.takeTurns(in, func(leaf plan.Node) (int64, bool) {
		done := m.promiseOne(leaf, func(sub cluster.SubID) bool {
			return m.joinHeld(sub) || m.figure.usage[leaf] < m.quota.deserve[leaf] &&
				(m.joinHost(leaf, sub, decision.ReclaimFairShare) ||
					m.seize(leaf, sub, decision.ReclaimFairShare, m.sharedHosts(leaf)))
		})
		if done {
			m.lapses++ // usages of others may have changed
		}
		return 0, done
	})
}

// sharedHosts lists the hosts that leaves but one hold from the pools and could do without: those of the leaf
// furthest above its quota first, then the newest.
func (m *Planner) sharedHosts(taker plan.Node) (leads []cluster.HoldingID) {
	c := m.gather(func(leaf plan.Node) bool {
		return leaf != taker && m.figure.net[kindShare][leaf] > 0 && m.excess(leaf) > 0
	})
	for len(c.leaf) > 0 {
		leaf := c.pop()
		for _, q := range m.stays(leaf, kindShare) {
			if m.excess(leaf) >= m.worth(q) {
				leads = append(leads, q)
			}
		}
	}
	return leads
}

// forHosts is forTakers for exclusive placement.
func (m *Planner) forHosts(reason int32, may func(leaf plan.Node, k int64) bool) {
	clear(m.reclaim.skip)
	m.reclaim.passing = false
	for _, leaf := range m.tree.leaves {
		for m.promiseOne(leaf, func(sub cluster.SubID) bool {
			if m.joinHeld(sub) {
				return true
			}
			return may(leaf, 1) && (m.joinHost(leaf, sub, reason) || m.seize(leaf, sub, reason, m.hybridHosts(leaf)))
		}) {
		}
	}
}

// hybridHosts lists the hosts that hybrid leaves but one have to give, in the order in which they give.
func (m *Planner) hybridHosts(taker plan.Node) (leads []cluster.HoldingID) {
	for _, leaf := range m.givers(plan.Root) {
		for _, q := range m.stays(leaf, kindHybrid) {
			if leaf != taker && m.mayTake(q, 0) {
				leads = append(leads, q)
			}
		}
	}
	return leads
}
