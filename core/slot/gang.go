package slot

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// gangs is what the plan's gangs need (REQ-3, docs/slots.md). Where there is none, nothing of it is looked at.
type gangs struct {
	subs   []cluster.SubID        // in the order of State.Gangs
	gaveUp map[cluster.SubID]bool // in this cycle: they make no room in it
	joins  []joined               // units of gangs that joined sets under way in this cycle
	rooms  map[fitBy]rooms        // where those that are together had too little room in this cycle
	// what is promised to a gang while it is not certain that all of it can be; nil: nothing is
	trial *trial
}

// gather lists the gangs of the plan. Time as State.Gangs.
func (g *gangs) gather(s *cluster.State, p *cluster.Plan) {
	g.subs, g.gaveUp = s.Gangs(p, g.subs), map[cluster.SubID]bool{}
	g.rooms, g.trial, g.joins = map[fitBy]rooms{}, nil, nil
}

// isGang tells whether so many units of a sub-allocation are to be held or none.
func (m *Planner) isGang(sub cluster.SubID) bool {
	return len(m.gang.subs) > 0 && m.s.Sub.MinUnits[sub] > 1 && !m.s.Sub.Orphan[sub]
}

// waits tells whether a sub-allocation is a gang that holds nothing but what is under reclaim.
func (m *Planner) waits(sub cluster.SubID) bool { return m.isGang(sub) && m.s.Staying(sub) == 0 }

// spareUnits is how many units of a sub-allocation may be taken back by themselves: of a gang those above its least
// number.
func (m *Planner) spareUnits(sub cluster.SubID) int64 {
	if !m.isGang(sub) {
		return unbound
	}
	return max(0, m.s.Staying(sub)-m.s.Sub.MinUnits[sub])
}

// leavesWhole tells whether a holding under reclaim is of a gang that is taken back whole: that is never cancelled.
func (m *Planner) leavesWhole(q cluster.HoldingID) bool {
	sub := m.s.Holding.Sub[q]
	return m.isGang(sub) && m.s.Staying(sub) < m.s.Sub.MinUnits[sub]
}

// form gives a gang that waits its first units, one after another, each in the first way that serves it, of those up to
// the step's; where not all are given, or none in the step's own way, none is. What sets hold for it counts as free,
// and those do not say where it is to be together. It tells how many slots came in the step's own way.
func (m *Planner) form(leaf plan.Node, sub cluster.SubID, kind int, bound int64) (slots int64, ok bool) {
	least, t := m.s.Sub.MinUnits[sub], &m.line.Sub[sub]
	if t.Wanted-t.Held < least || m.reclaim.undone[sub] || kind == kindBorrow && m.promised[sub] > 0 {
		return 0, false
	}
	m.flush()
	aside := m.setAside(sub)
	value, held := m.desk.Bonds.Held(sub)
	m.letGo(sub)
	_, prefers := m.desk.Bonds.Seeks(sub)
	if m.holdWhereRoom(sub) {
		slots = m.giveUnits(leaf, sub, kind, bound, least)
	}
	if slots == 0 {
		m.takeBackGifts(leaf, sub)
		m.putBack(aside)
		if m.letGo(sub); held {
			m.holdTo(sub, value)
		}
		return 0, false
	}
	for _, a := range aside {
		m.endSet(a.id)
	}
	if len(aside) > 0 {
		delete(m.setsOf, sub)
		m.lapses++
		m.p.Continue()
	}
	t = &m.line.Sub[sub]
	t.Held, t.Given = t.Held+least-1, 1 // the caller counts one
	if m.flush(); prefers {
		m.letGo(sub)
	}
	return slots, true
}

// giveUnits gives units of a gang as far as they can be, and tells, if those are all, how many slots came from the
// step's own kind; 0: not all, or none of them did.
func (m *Planner) giveUnits(leaf plan.Node, sub cluster.SubID, kind int, bound, units int64) (slots int64) {
	for range units {
		how, ok := m.giveAny(leaf, sub, kind, bound)
		if !ok {
			return 0
		}
		if how == kind {
			slots += m.slots(sub)
		}
	}
	return slots
}

// giveAny gives a unit in the first way that serves it, of those up to the step's.
func (m *Planner) giveAny(leaf plan.Node, sub cluster.SubID, kind int, bound int64) (how int, ok bool) {
	if kind == kindHybrid {
		_, ok = m.giveOne(leaf, sub, kind, bound)
		return kind, ok
	}
	for how = kindOwn; how <= kind; how++ {
		most := int64(unbound)
		if how == kind {
			most = bound
		}
		if how == kindShare && m.tree.barred[leaf] {
			continue
		}
		if how == kindBorrow {
			m.lendFrom = 0
		}
		if _, ok = m.giveOne(leaf, sub, how, most); ok {
			return how, true
		}
	}
	return 0, false
}

// takeBackGifts takes all gifts back, which are of one sub-allocation.
func (m *Planner) takeBackGifts(leaf plan.Node, sub cluster.SubID) {
	k := m.slots(sub)
	for _, g := range m.gift {
		lender, slots := plan.None, int64(g.units)*k
		if g.with.origin == decision.OriginBorrowed {
			lender = m.s.NodeOf[g.with.whose]
		}
		m.book(leaf, g.with.origin, lender, -slots, -slots)
		m.figure.idle += slots
		m.desk.Field.Regain(g.parcel)
	}
	if len(m.gift) > 0 && m.s.Sub.MaxPerHost[sub] != plan.Unlimited {
		m.line.Sub[sub].Find = 0 // it has counted them
	}
	m.gift, m.lendFrom = m.gift[:0], 0
}

// setUnits is a set and how many units its taker is to get of it.
type setUnits struct {
	id    cluster.SetID
	units int64
}

// setAside makes the room that sets hold for a gang free. What is given must be booked.
func (m *Planner) setAside(sub cluster.SubID) (aside []setUnits) {
	for _, id := range m.setsOf[sub] {
		if units := m.s.Set.Units[id]; units > 0 {
			aside = append(aside, setUnits{id, units})
			m.count1(id, -1)
			m.rehold(id, func() { m.s.SetAside(id) })
		}
	}
	return aside
}

// putBack undoes setAside.
func (m *Planner) putBack(aside []setUnits) {
	for _, a := range aside {
		m.rehold(a.id, func() { m.s.Promise(a.id, a.units) })
		m.count1(a.id, 1)
	}
}

// rehold changes what a set holds of its target.
func (m *Planner) rehold(id cluster.SetID, change func()) {
	parcel := m.s.Host.Parcel[m.s.Set.Target[id]]
	was := m.availableAt(&m.s.Set, id, parcel)
	change()
	if was != unknown {
		m.figure.idle += max(0, m.p.Parcels.Available(0, parcel)) - was
		m.desk.Field.Regain(parcel)
	}
}

// endSet ends a set that holds nothing any more: its victims stay with their holders, but those of gangs taken whole.
func (m *Planner) endSet(id cluster.SetID) {
	for q := m.s.Set.First[id]; q != cluster.NoID; {
		next := m.s.Holding.NextOfSet[q]
		if !m.leavesWhole(q) {
			m.cancel(q, m.s.Holding.Units[q])
		}
		q = next
	}
	if m.s.Set.Number[id] > 0 && m.s.Set.First[id] == cluster.NoID {
		m.s.Promise(id, 0)
	}
}

// giveUp lets the sets of gangs lapse that have waited for as long as the plan lets them, or want fewer units by now
// than they would hold.
func (m *Planner) giveUp() {
	for _, sub := range m.gang.subs {
		if !m.waits(sub) {
			continue
		}
		ids := m.promising(sub)
		if len(ids) == 0 {
			continue
		}
		m.p.Continue() // time goes by
		if over := m.nowUS-m.s.Set.Issued[ids[0]] >= m.p.Slots.GangWaitUS; over ||
			m.s.Short(sub) < m.s.Sub.MinUnits[sub] {
			m.gang.gaveUp[sub] = over
			m.lapseAll(ids)
		}
	}
}

// promising lists the sets that promise a sub-allocation anything, in order of number. O(sets).
func (m *Planner) promising(sub cluster.SubID) []cluster.SetID {
	return m.sets(func(id cluster.SetID) bool { return m.s.Set.Taker[id] == sub && m.s.Set.Units[id] > 0 })
}

// lapseAll lets sets lapse, the latest first.
func (m *Planner) lapseAll(ids []cluster.SetID) {
	for _, id := range slices.Backward(ids) {
		for number := m.s.Set.Number[id]; m.s.Set.Number[id] == number && m.s.Set.Units[id] > 0; {
			m.lapse(id)
		}
	}
}

// lapsePartial lets all lapse that gangs are promised which are promised fewer units than they need.
func (m *Planner) lapsePartial() {
	if len(m.gang.subs) == 0 {
		return
	}
	was := slices.Clone(m.figure.net[kindHybrid])
	for _, sub := range m.gang.subs {
		if m.promised[sub] > 0 && m.waits(sub) {
			if m.p.Continue(); m.promised[sub] < m.s.Sub.MinUnits[sub] {
				m.lapseAll(m.promising(sub))
				m.unjoin(sub, 0)
				delete(m.setsOf, sub)
			}
		}
	}
	for leaf, net := range m.figure.net[kindHybrid] {
		m.hybrid.gives[leaf] += net - was[leaf] // what is not taken back after all is there to be taken
	}
}
