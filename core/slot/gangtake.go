package slot

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// How a gang makes room, and how one is taken back whole (REQ-3, docs/slots.md).

// trial is what was promised to a gang since promiseAll began.
type trial struct {
	budget, turns int64
	first         bool
	last          cluster.SetID
	reclaims      int // rows of State.Reclaims
	opened        []cluster.SetID
	joins         int // of gangs.joins
}

// joined is a unit that joined sets under way.
type joined struct {
	w  want
	at cluster.ParcelID
}

// promiseAll promises a gang that waits all of its first units, one after another, or none. One that is together, and
// is promised nothing yet, tries value after value. again is called where a trial before came to nothing, as rows were
// split and joined again.
func (m *Planner) promiseAll(sub cluster.SubID, again func(), promise func() bool) bool {
	least, t := m.s.Sub.MinUnits[sub], &m.line.Sub[sub]
	if m.promised[sub] >= least || t.Wanted-t.Held < least || m.gang.gaveUp[sub] || m.reclaim.undone[sub] {
		return false
	}
	if m.promised[sub] > 0 || !m.asksPlace(sub) {
		return m.promiseHere(sub, promise)
	}
	m.letGo(sub)
	places, prefers := m.desk.Bonds.Seeks(sub)
	for _, value := range m.nearest(sub, places) {
		m.holdTo(sub, value)
		if m.promiseHere(sub, promise) {
			if prefers {
				m.letGo(sub)
			}
			return true
		}
		again()
	}
	m.letGo(sub)
	return prefers && m.promiseHere(sub, promise)
}

// promiseHere is promiseAll where the gang may be.
func (m *Planner) promiseHere(sub cluster.SubID, promise func() bool) bool {
	least, r := m.s.Sub.MinUnits[sub], &m.reclaim
	m.gang.trial = &trial{budget: r.budget, turns: r.turns, first: r.first, last: r.last, reclaims: len(m.s.Reclaims),
		joins: len(m.gang.joins)}
	defer func() { m.gang.trial = nil }()
	for units := int64(0); m.promised[sub] < least; units++ {
		if !promise() {
			m.withdraw(sub, units)
			return false
		}
	}
	m.p.Continue()
	return true
}

// withdraw takes back all that was promised to a gang since promiseAll began.
func (m *Planner) withdraw(sub cluster.SubID, units int64) {
	r, t := &m.reclaim, m.gang.trial
	m.unjoin(sub, t.joins)
	for _, id := range slices.Backward(t.opened) {
		m.unmake(id)
	}
	m.setsOf[sub] = slices.DeleteFunc(m.setsOf[sub], func(id cluster.SetID) bool {
		return slices.Contains(t.opened, id)
	})
	m.s.Reclaims = m.s.Reclaims[:t.reclaims]
	r.budget, r.turns, r.first, r.last = t.budget, t.turns, t.first, t.last
	m.line.Sub[sub].Bar -= units
	for _, c := range []*crowd{r.crowd, r.givers} {
		if c != nil {
			clear(c.rows) // rows were split and joined again
			c.heap()
		}
	}
	m.layClaims()
}

// holdRoom holds room that is free for a unit of a gang, until all of it can be given: on the first host where it would
// fit as if it joined sets under way, and fits now. O(parcels).
func (m *Planner) holdRoom(w *want) bool {
	var now int64
	switch {
	case w.reason == decision.ReclaimRecall:
		now = min(m.own0(w.leaf), m.ownIdle(w.leaf))
	case m.isHybrid(w.leaf):
		now = min(m.hybridIdle()-m.freeAfter(w.leaf, w.k), m.spare())
	default:
		now = min(m.poolFor(w.leaf), m.spare())
	}
	if now < w.k || w.account < w.k || m.drawsPool(w) && !m.zeroesBear(w.leaf, w.k, nothing) ||
		!m.roomyNet(w.leaf, w.k) {
		return false
	}
	for k := range m.reclaim.net {
		if at := cluster.ParcelID(k); m.reclaim.net[k] >= w.k && m.p.Parcels.Available(0, at) >= w.k &&
			m.mayUse(w, at) {
			m.addSet(w, at, nil)
			m.p.Continue()
			return true
		}
	}
	return false
}

// rejoin has gangs that sets promise some of their first units join for the others before anybody else does: what they
// joined in the cycle before is theirs still. O(parcels and leaves) a unit.
func (m *Planner) rejoin() {
	laid := false
	for _, sub := range m.gang.subs {
		least, from := m.s.Sub.MinUnits[sub], len(m.gang.joins)
		if m.promised[sub] == 0 || m.promised[sub] >= least || !m.waits(sub) || m.s.Short(sub) < least {
			continue
		}
		if !laid {
			m.layFree()
			laid = true
		}
		for m.promised[sub] < least {
			m.layClaims()
			if !m.rejoinOne(m.s.Node(sub), sub) {
				m.unjoin(sub, from)
				break
			}
		}
	}
}

// rejoinOne joins for a unit: of the hybrid branches within the leaf's quota, or else of its own slots, or of the share
// pools within its quota.
func (m *Planner) rejoinOne(leaf plan.Node, sub cluster.SubID) bool {
	k, f := m.slots(sub), &m.figure
	join := func(reason int32) bool {
		return m.join(&want{leaf: leaf, sub: sub, k: k, reason: reason, account: m.netAccount(leaf, k, reason)})
	}
	if m.isHybrid(leaf) {
		return f.net[kindHybrid][leaf]+f.roomHybrid[leaf]+k <= m.hybrid.quota[leaf] && join(decision.ReclaimFairShare)
	}
	return join(decision.ReclaimRecall) || m.p.Slots.ShareReclaim && m.mayDraw(leaf) &&
		f.usage[leaf]+k <= m.quota.deserve[leaf] && join(decision.ReclaimFairShare)
}

// unjoin takes back what units of a gang joined, of gangs.joins those from a number on.
func (m *Planner) unjoin(sub cluster.SubID, from int) {
	kept := m.gang.joins[:from]
	for _, j := range slices.Clone(m.gang.joins[from:]) {
		if j.w.sub != sub {
			kept = append(kept, j)
			continue
		}
		m.enterJoin(&j.w, j.at, -1)
		at := m.reclaim.joinedAt[sub]
		i := slices.Index(at, j.at)
		m.reclaim.joinedAt[sub] = slices.Delete(at, i, i+1)
	}
	m.gang.joins = kept
}

// unmake takes a set back that was made for a gang in this cycle, as if it had not been.
func (m *Planner) unmake(id cluster.SetID) {
	t, h := &m.s.Set, &m.s.Holding
	k := m.s.Host.Parcel[t.Target[id]]
	room := t.Units[id] * m.slots(t.Taker[id])
	m.count1(id, -1)
	m.rehold(id, func() {
		m.s.SetAside(id)
		for q := t.First[id]; q != cluster.NoID; {
			next := h.NextOfSet[q]
			m.shiftOpen(k, -h.Units[q]*m.slots(h.Sub[q]))
			m.give0(victim{q, -h.Units[q]})
			m.cancel(q, h.Units[q])
			q = next
		}
	})
	m.shiftOpen(k, room)
	if t.Number[id] > 0 && t.First[id] == cluster.NoID {
		m.s.Promise(id, 0)
	}
}

// shiftOpen is shift where the host is ok: others have no net room.
func (m *Planner) shiftOpen(k cluster.ParcelID, slots int64) {
	if m.p.Parcels.IsOpen(k) {
		m.shift(k, slots)
	}
}

// timely tells whether units of a holding may be victims for a taker: where something was granted in this cycle to the
// same sub-allocation, and what may stay for longer than a gang may wait, is none for a gang that waits.
func (m *Planner) timely(q cluster.HoldingID) bool {
	h := &m.s.Holding
	if m.gang.trial == nil {
		return true
	}
	for other := m.s.Sub.First[h.Sub[q]]; other != cluster.NoID; other = h.NextOfSub[other] {
		if h.Parcel[other] == h.Parcel[q] && h.Granted[other] > m.s.Cycle {
			return false
		}
	}
	return m.policy.ReclaimUS[m.s.Node(h.Sub[q])] < m.p.Slots.GangWaitUS
}

// mayLose tells whether a unit of a holding may be a victim for a taker, so many of its sub-allocation being chosen
// already: no gang is broken by it.
func (m *Planner) mayLose(q cluster.HoldingID, chosen int64) bool {
	return len(m.gang.subs) == 0 || m.spareUnits(m.s.Holding.Sub[q]) > chosen && m.timely(q)
}

// chosenOf is how many units of a sub-allocation are among victims.
func (m *Planner) chosenOf(sub cluster.SubID, found []victim) (units int64) {
	for _, v := range found {
		if m.s.Holding.Sub[v.q] == sub {
			units += v.units
		}
	}
	return units
}

// reclaimGang puts all of a gang under reclaim for a rule, newest first, if the budget bears it.
func (m *Planner) reclaimGang(sub cluster.SubID, reason int32) bool {
	h, r, old := &m.s.Holding, &m.reclaim, int64(0)
	rows := m.stayingOf(sub)
	slices.SortFunc(rows, m.newest)
	for _, q := range rows {
		if h.Granted[q] <= m.s.Cycle {
			old += h.Units[q]
		}
	}
	if old > r.budget && !(r.first && r.budget > 0) {
		return false
	}
	if old > 0 {
		r.budget, r.first = max(0, r.budget-old), false
	}
	if r.ahead {
		reason = decision.ReclaimWindowSwitch
	}
	for _, q := range rows {
		if h.Granted[q] > m.s.Cycle {
			m.undo(q, h.Units[q])
			continue
		}
		leaf := m.s.Node(sub)
		m.book(leaf, h.Origin[q], m.lenderOf(h.Lender[q]), 0, -h.Units[q]*m.slots(sub))
		m.s.Reclaim(q, h.Units[q], m.nowUS, m.policy.ReclaimUS[leaf], reason)
	}
	return true
}

// stayingOf lists the holdings of a sub-allocation that are not under reclaim.
func (m *Planner) stayingOf(sub cluster.SubID) (rows []cluster.HoldingID) {
	h := &m.s.Holding
	for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
		if h.Set[q] == cluster.NoID {
			rows = append(rows, q)
		}
	}
	return rows
}

// gangVictims makes sets for a taker's unit of all units of a gang, where no other victims serve: of the first, last
// rank first, newest first, on whose host the unit fits without it. tried: the budget did not bear it.
func (m *Planner) gangVictims(w *want) (done, tried bool) {
	h := &m.s.Holding
	if w.from == kindHybrid && w.reason == decision.ReclaimRecall && m.overPart() <= 0 {
		return false, false
	}
	var rows []cluster.HoldingID
	for _, sub := range m.gang.subs {
		if sub != w.sub {
			rows = append(rows, m.stayingOf(sub)...)
		}
	}
	slices.SortFunc(rows, m.lastRank)
	for _, q := range rows {
		all := m.stayingOf(h.Sub[q])
		if slices.ContainsFunc(all, func(v cluster.HoldingID) bool { return h.Granted[v] > m.s.Cycle }) ||
			!m.timely(q) ||
			!m.mayUse(w, h.Parcel[q]) || !m.mayTakeGang(w, q, all) || !m.fitsWithout(w, h.Parcel[q], all) {
			continue
		}
		return m.reclaimGangFor(w, h.Parcel[q], all), true
	}
	return false, false
}

// mayTakeGang tells whether a gang may be taken whole by one of its holdings: for the owner of what that borrowed; for
// a fair share as if it were one unit of all its slots.
func (m *Planner) mayTakeGang(w *want, q cluster.HoldingID, all []cluster.HoldingID) bool {
	h := &m.s.Holding
	leaf := m.s.Node(h.Sub[q])
	switch w.from {
	case kindLent:
		return h.Lender[q] == m.s.ConsumerOf[w.leaf] && (!m.foreign(leaf, h.Origin[q]) || m.owed(q))
	case kindShare:
		x, v := m.excess(leaf), m.slotsOf(all, func(o cluster.HoldingID) bool {
			return h.Origin[o] == decision.OriginSharePool
		})
		return h.Origin[q] == decision.OriginSharePool && !m.foreign(leaf, h.Origin[q]) && leaf != w.leaf && x > 0 &&
			(x >= v || m.notWorse(leaf, v, nil, w))
	}
	return m.isHybrid(leaf) && !m.owed(q) && m.figure.net[kindHybrid][leaf]-m.keeps(leaf) >= m.slotsOf(all, nil)
}

// slotsOf adds up the slots of some holdings of one sub-allocation, or of those that are of a kind.
func (m *Planner) slotsOf(rows []cluster.HoldingID, of func(q cluster.HoldingID) bool) (slots int64) {
	for _, q := range rows {
		if of == nil || of(q) {
			slots += m.s.Holding.Units[q] * m.slots(m.s.Holding.Sub[q])
		}
	}
	return slots
}

// fitsWithout tells whether a taker's unit fits a host, its account and every limit once all of a gang is gone.
func (m *Planner) fitsWithout(w *want, k cluster.ParcelID, all []cluster.HoldingID) bool {
	m.s.Yield()
	h := &m.s.Holding
	if m.p.Parcels.Available(0, k)+m.slotsOf(all, func(q cluster.HoldingID) bool { return h.Parcel[q] == k }) < w.k {
		return false
	}
	leaf := m.s.Node(h.Sub[all[0]])
	kind := kindShare
	if m.isHybrid(w.leaf) {
		kind = kindHybrid
	}
	var back, whole []victim
	for _, q := range all {
		whole = append(whole, victim{q, h.Units[q]})
		if m.kindOf(leaf, h.Origin[q], m.lenderOf(h.Lender[q])) == kind && m.p.Parcels.IsOpen(h.Parcel[q]) {
			back = append(back, victim{q, h.Units[q]})
		}
	}
	from := func(victims []victim, n plan.Node) (slots int64) {
		for _, v := range victims {
			if m.below0(leaf, n) {
				slots += v.units * m.slots(h.Sub[v.q])
			}
		}
		return slots
	}
	switch freed := from(back, plan.Root); {
	case w.reason == decision.ReclaimRecall:
		if w.account+m.slotsOf(all,
			func(q cluster.HoldingID) bool { return h.Lender[q] == m.s.ConsumerOf[w.leaf] }) < w.k {
			return false
		}
	case m.isHybrid(w.leaf):
		if w.k-w.account-freed+m.reservesWith(w, back)(plan.Root)-m.freeAfter(w.leaf, w.k) > 0 {
			return false
		}
	case w.account+freed < w.k || !m.zeroesBear(w.leaf, w.k, func(n plan.Node) int64 { return from(back, n) }):
		return false
	}
	reserves := m.reservesWith(w, whole)
	for n := w.leaf; m.tree.maxed && n != plan.Root; n = m.policy.Parent[n] {
		holds := m.figure.total[n] + m.figure.pend[n]
		if w.reason == decision.ReclaimRecall {
			holds = m.figure.stays[n]
		}
		if most := m.tree.most[n]; most != plan.Unlimited && holds+w.k-from(whole, n)+reserves(n) > most {
			return false
		}
	}
	return true
}

// reclaimGangFor takes a gang back whole for a taker's unit, which gets its room on a host: a set for each host that
// the gang has units on, all due at once. It is false when the budget does not bear it.
func (m *Planner) reclaimGangFor(w *want, k cluster.ParcelID, all []cluster.HoldingID) bool {
	h, r, units, here := &m.s.Holding, &m.reclaim, int64(0), []victim(nil)
	slices.SortFunc(all, m.newest)
	for _, q := range all {
		if units += h.Units[q]; h.Parcel[q] == k {
			here = append(here, victim{q, h.Units[q]})
		}
	}
	if units > r.budget && !(r.first && r.budget > 0) {
		r.denied[w.sub] = true
		return false
	}
	sub := h.Sub[all[0]]
	grace := m.policy.ReclaimUS[m.s.Node(sub)]
	m.issue(w, here)
	rest := slices.DeleteFunc(all, func(q cluster.HoldingID) bool {
		return h.Sub[q] != sub || h.Set[q] != cluster.NoID || h.Parcel[q] == k
	})
	slices.SortStableFunc(rest, func(a, b cluster.HoldingID) int { return int(h.Parcel[a]) - int(h.Parcel[b]) })
	set := cluster.SetID(cluster.NoID)
	for i, q := range rest {
		at, slots := h.Parcel[q], h.Units[q]*m.slots(sub)
		if i == 0 || m.s.Set.Target[set] != m.p.Parcels.Host[at] {
			set = m.s.OpenSet(m.p, at, w.reason, w.sub, m.nowUS)
			if m.gang.trial != nil {
				m.gang.trial.opened = append(m.gang.trial.opened, set)
			}
		}
		m.shiftOpen(at, slots)
		m.give0(victim{q, h.Units[q]})
		m.book(m.s.Node(sub), h.Origin[q], m.lenderOf(h.Lender[q]), 0, -slots)
		r.budget = max(0, r.budget-h.Units[q])
		m.s.TakeBack(set, q, h.Units[q], m.nowUS+grace)
	}
	r.lone, r.asked = false, false
	m.layClaims()
	return true
}

// takeGang takes units of a gang back for a rule of which fewer than its least number would stay: first those above
// that, one by one, then all the rest as one.
func (m *Planner) takeGang(q cluster.HoldingID, units, spare int64, reason int32) (taken int64) {
	sub := m.s.Holding.Sub[q]
	if spare > 0 {
		if taken = m.takeBack(q, spare, reason); taken < spare {
			return taken
		}
	}
	if !m.reclaimGang(sub, reason) {
		return taken
	}
	return units
}

// gangsAmong are those of some holdings that gangs have. O(holdings) where there is any gang.
func (m *Planner) gangsAmong(rows []cluster.HoldingID) (some []cluster.HoldingID) {
	if len(m.gang.subs) == 0 {
		return nil
	}
	for _, q := range rows {
		if sub := m.s.Holding.Sub[q]; sub != cluster.NoID && m.isGang(sub) {
			some = append(some, q)
		}
	}
	return some
}

// takeGangAbove takes a gang back whole that is above a maximum by one of its holdings.
func (m *Planner) takeGangAbove(q cluster.HoldingID, want *wanting) {
	h := &m.s.Holding
	sub := h.Sub[q]
	leaf, slots := m.s.Node(sub), int64(0)
	for _, other := range m.stayingOf(sub) {
		if m.isHybrid(leaf) && !m.owed(other) {
			slots += h.Units[other] * m.slots(sub)
		}
	}
	if !m.reclaimGang(sub, decision.ReclaimOverLimit) {
		m.reclaim.skip[sub] = true
		return
	}
	want.give(leaf, slots)
}

// gangByRule takes a gang back whole at or below a consumer for reserves, where nothing else serves: of those that
// their leaves have above their quotas as if each were one unit, and that fill no reserve below the consumer.
func (m *Planner) gangByRule(of plan.Node, lacks *wanting) bool {
	h := &m.s.Holding
	var rows []cluster.HoldingID
	for _, sub := range m.gang.subs {
		if m.below0(m.s.Node(sub), of) && m.spareUnits(sub) == 0 {
			rows = append(rows, m.stayingOf(sub)...)
		}
	}
	slices.SortFunc(rows, m.lastRank)
	w := want{from: kindHybrid}
	for _, q := range rows {
		sub := h.Sub[q]
		leaf, all := m.s.Node(sub), m.stayingOf(sub)
		slots := m.slotsOf(all, nil)
		if m.reclaim.skip[sub] || !m.p.Parcels.IsOpen(h.Parcel[q]) || !m.mayTakeGang(&w, q, all) ||
			lacks.spare(of, leaf) < slots {
			continue
		}
		where, parts := make([]cluster.ParcelID, len(all)), make([]int64, len(all)) // rows may be joined with others
		for i, other := range all {
			where[i], parts[i] = h.Parcel[other], h.Units[other]*m.slots(sub)
		}
		if !m.reclaimGang(sub, decision.ReclaimReserve) {
			m.reclaim.skip[sub] = true
			continue
		}
		for i, k := range where {
			m.shiftOpen(k, parts[i]) // takers may join there
		}
		lacks.give(leaf, slots)
		m.hybrid.gives[leaf] -= slots
		return true
	}
	return false
}
