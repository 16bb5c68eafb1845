package slot

import (
	"math"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// reclaims is what the stage that makes sets works with.
type reclaims struct {
	budget  int64   // units that this cycle may still put under reclaim
	turns   int64   // units that it may still promise
	first   bool    // nothing was put under reclaim yet: the first set may pass the budget
	net     []int64 // by parcel: free as if what is under reclaim had been given back, less rooms; of ok hosts
	netIdle int64   // Σ max(0, net)

	joinedOwn  map[plan.Node]int64 // slots of units that joined sets under way; those of hybrid leaves count as room
	joinedPool int64
	claims     int64 // Σ max(0, netOwn) less what joined, as of fairShare, or of reclaimHybrid
	joinedAt   map[cluster.SubID][]cluster.ParcelID
	denied     map[cluster.SubID]bool // by the budget
	skip       map[cluster.SubID]bool // the budget did not bear a unit, in this step
	undone     map[cluster.SubID]bool // a unit granted in this cycle was taken back: nothing more is served
	passing    bool                   // whether loans may make way for a host (exclusive placement)
	owner      plan.Node              // whose loans move: it does not lend
	moving     map[plan.Node]int64    // slots of a lender that moves under thought take
	last       cluster.SetID          // the set made last

	ahead  bool // the rules are those of the coming window: nothing is relabelled
	crowd  *crowd
	givers *crowd // where what is asked is divided
	asked  bool   // whether the victims chosen last are of these
	lone   bool   // whether all victims chosen last are of the leaf on the crowd's top
	want   want
}

// want is the unit of a taker for which room is looked for.
type want struct {
	leaf    plan.Node
	sub     cluster.SubID
	k       int64
	reason  int32
	from    int   // the kind of units that it is taken from: kindLent, kindShare or kindHybrid
	account int64 // net
	failed  map[cluster.ParcelID]bool

	boundless bool // maximums are not looked at
}

// victim is units that may be taken back for a taker.
type victim struct {
	q     cluster.HoldingID
	units int64
}

// Reclaim takes back what limits and rules ask for, what owners lent, and what is held beyond fair
// shares while others go short (SLOT-5 ④ ⑤, SLOT-8, SLOT-12). O(holdings) and, for each unit taken
// back, the victims looked at.
func (m *Planner) Reclaim() {
	m.overMax()
	m.layNet()
	m.rejoin()
	m.recall()
	if m.p.Slots.ShareReclaim {
		m.fairShare()
	}
	m.reclaimHybrid()
	if m.p.Slots.RecallFirst {
		m.reopen()
		m.borrow()
		m.flush()
	}
}

func (m *Planner) beginReclaim() {
	r := &m.reclaim
	*r = reclaims{net: r.net, budget: m.p.Terms.ReclaimBudget, turns: m.p.PromisesMost(), first: true, owner: plan.None,
		last:      cluster.NoID,
		joinedOwn: map[plan.Node]int64{}, denied: map[cluster.SubID]bool{},
		skip: map[cluster.SubID]bool{}, undone: map[cluster.SubID]bool{},
		joinedAt: map[cluster.SubID][]cluster.ParcelID{}}
	if r.budget == plan.Unlimited {
		r.budget = math.MaxInt64
	}
	r.first = r.budget > 0
}

// reopen makes the line count what is promised by now.
func (m *Planner) reopen() {
	for _, leaf := range m.tree.leaves {
		m.bar(leaf)
	}
}

// layNet computes the net room of every host. O(parcels + sets).
func (m *Planner) layNet() {
	r, p := &m.reclaim, &m.p.Parcels
	r.net = append(r.net[:0], p.Free[0]...)
	for id := range m.s.Set.Of(m.p) {
		if m.s.Host.Plan[m.s.Set.Target[id]] != m.p.Index {
			continue
		}
		k := m.s.Host.Parcel[m.s.Set.Target[id]]
		r.net[k] += m.leftOf(id)
		if taker := m.s.Set.Taker[id]; taker != cluster.NoID {
			r.net[k] -= m.s.Set.Units[id] * m.slots(taker)
		}
	}
	r.netIdle = 0
	for k := range r.net {
		if p.IsOpen(cluster.ParcelID(k)) {
			r.netIdle += max(0, r.net[k])
		} else {
			r.net[k] = 0
		}
	}
}

// shift changes the net room of a host.
func (m *Planner) shift(k cluster.ParcelID, slots int64) {
	r := &m.reclaim
	r.netIdle -= max(0, r.net[k])
	r.net[k] += slots
	r.netIdle += max(0, r.net[k])
}

// netAccount is how many slots a taker's account has for a unit of k, as if what is under reclaim had been given back.
// What reserves of hybrid consumers need beside that unit is not for it: it would wait for ever. Where hybrid leaves
// hold more than their part, as nobody else needs it, units move among them all the same. Beside victims it is no more
// than what is idle and no owner's: S counts what is held on closed hosts too.
func (m *Planner) netAccount(leaf plan.Node, k int64, reason int32) int64 {
	r := &m.reclaim
	switch {
	case reason == decision.ReclaimRecall:
		return m.netOwn(leaf) - r.joinedOwn[leaf]
	case m.set.Policy[leaf] == plan.Hybrid:
		return min(max(0, m.netHybrid())-m.freeAfter(leaf, k), max(0, r.netIdle-r.joinedPool-r.claims))
	}
	return m.netShared()
}

// netShared is how many slots the share pools have for takers, as if what is under reclaim had been given back.
func (m *Planner) netShared() int64 {
	return min(m.netPool(), m.reclaim.netIdle-m.reclaim.claims) - m.reclaim.joinedPool
}

// recall takes back for owners what they lent (SLOT-5 ④, SLOT-8).
func (m *Planner) recall() {
	if m.whole {
		m.recallHosts()
		return
	}
	for _, leaf := range m.tree.leaves {
		if m.figure.net[kindLent][leaf] == 0 && m.netOwn(leaf) <= 0 {
			continue
		}
		m.bar(leaf)
		loans, listed := []cluster.HoldingID(nil), false
		for more := m.open(leaf); more; more = m.line.advance(leaf) {
			if !listed {
				loans, listed = m.loansOf(leaf), true
			}
			loans = m.recallAllocation(leaf, loans)
		}
	}
}

// recallAllocation is recall for the allocation at which the leaf's queue stands. It gives the loans as they are by
// then.
func (m *Planner) recallAllocation(leaf plan.Node, loans []cluster.HoldingID) []cluster.HoldingID {
	for sub := m.line.next(leaf); sub != cluster.NoID; sub = m.line.next(leaf) {
		victims := func(w *want) []victim { return m.loanVictims(w, loans) }
		switch {
		case m.waits(sub):
			again := func() { loans = m.loansOf(leaf) }
			if m.promiseAll(sub, again,
				func() bool { return m.promise(leaf, sub, decision.ReclaimRecall, kindLent, loans, victims) }) {
				m.line.settle(leaf)
			} else {
				m.line.pass(leaf)
				again()
			}
		case m.moveLoans(leaf, sub, loans):
			m.line.served(leaf)
			m.flush()
		case m.promise(leaf, sub, decision.ReclaimRecall, kindLent, loans, victims):
			m.line.settle(leaf)
		default:
			m.line.pass(leaf)
		}
	}
	return loans
}

// moveLoans gives an owner a unit by letting loans of it move to other lenders (SLOT-8): if a host
// has room for it, and enough of them can.
func (m *Planner) moveLoans(leaf plan.Node, sub cluster.SubID, loans []cluster.HoldingID) bool {
	k := m.slots(sub)
	if _, ok := m.roomy(leaf, k, false); !ok || m.ownIdle(leaf) >= k || !m.unneeded(k) || m.reclaim.undone[sub] ||
		!m.lasts(leaf, k, kindOwn, plan.None) {
		return false
	}
	t := &m.line.Sub[sub]
	if t.Find == 0 {
		t.Find = m.desk.Lookup(sub) + 1
	}
	at := m.desk.At(t.Find - 1).Find()
	if at == cluster.NoID {
		return false
	}
	moves, ok := m.movable(leaf, k-m.ownIdle(leaf), loans)
	if !ok {
		return false
	}
	for _, v := range moves {
		m.relabel(v.q, 1, label{decision.OriginBorrowed, m.s.ConsumerOf[v.to]})
	}
	m.desk.At(t.Find - 1).Give(at)
	m.take(leaf, sub, at, ownLabel)
	m.shift(at, -k)
	return true
}

// move is a unit of a loan and who could lend it instead.
type move struct {
	q  cluster.HoldingID
	to plan.Node
}

// movable finds loans of so many slots in all that could move to other lenders, in the order of recall.
func (m *Planner) movable(owner plan.Node, slots int64, loans []cluster.HoldingID) (moves []move, ok bool) {
	m.s.Yield()
	r := &m.reclaim
	r.owner, r.moving, m.lendFrom = owner, map[plan.Node]int64{}, 0
	defer func() { r.owner, r.moving, m.lendFrom = plan.None, nil, 0 }()
	h, whose := &m.s.Holding, m.s.ConsumerOf[owner]
	for _, q := range loans {
		if h.Sub[q] == cluster.NoID || h.Lender[q] != whose || !m.counts(q) {
			continue
		}
		leaf, v := m.s.Node(h.Sub[q]), m.worth(q)
		if m.owed(q) || !m.mayBorrow(leaf, 0) {
			continue
		}
		for range m.pieces(q) {
			to := m.nextLender(leaf, v)
			if to == plan.None {
				break
			}
			moves, slots = append(moves, move{q, to}), slots-v
			if r.moving[to] += v; slots <= 0 {
				return moves, true
			}
		}
	}
	return nil, false
}

// promise makes a set for one unit of a sub-allocation, or lets it join those under way, and tells
// whether the unit is promised now (CYC-6).
// from is the kind of units that it is taken from.
func (m *Planner) promise(
	leaf plan.Node, sub cluster.SubID, reason int32, from int, loans []cluster.HoldingID, find func(*want) []victim,
) bool {
	m.s.Yield()
	if m.reclaim.undone[sub] {
		return false
	}
	if m.reclaim.turns == 0 {
		m.reclaim.denied[sub] = true
		m.p.Continue()
		return false
	}
	w := &m.reclaim.want
	*w = want{leaf: leaf, sub: sub, k: m.slots(sub), reason: reason, from: from,
		account: m.netAccount(leaf, m.slots(sub), reason), failed: map[cluster.ParcelID]bool{}}
	if done, tried := m.joinOrTake(w, find); !done {
		if tried || reason != decision.ReclaimRecall || m.gang.trial != nil || !m.makeWay(w, loans) {
			return false
		}
		clear(w.failed)
		w.account = m.netAccount(leaf, w.k, reason)
		if done, _ = m.joinOrTake(w, find); !done {
			return false
		}
	}
	m.line.Sub[sub].Bar++
	m.reclaim.turns--
	return true
}

// joinOrTake lets a unit join sets under way, or makes one of the victims that are found
// for it; tried tells whether there were any.
func (m *Planner) joinOrTake(w *want, find func(*want) []victim) (done, tried bool) {
	if m.gang.trial != nil && m.holdRoom(w) || m.join(w) {
		return true, true
	}
	victims := find(w)
	if len(victims) == 0 && len(m.gang.subs) > 0 {
		return m.gangVictims(w)
	}
	if len(victims) == 0 {
		return false, false
	}
	return m.issue(w, victims), true
}

// join counts a unit as promised that will fit once the sets under way are done.
func (m *Planner) join(w *want) bool {
	r := &m.reclaim
	if w.account < w.k || m.drawsPool(w) && !m.zeroesBear(w.leaf, w.k, nothing) {
		return false
	}
	if !m.roomyNet(w.leaf, w.k) {
		return false
	}
	for k := range r.net {
		if at := cluster.ParcelID(k); r.net[k] >= w.k && m.mayUse(w, at) {
			m.enterJoin(w, at, 1)
			r.joinedAt[w.sub] = append(r.joinedAt[w.sub], at)
			if m.isGang(w.sub) {
				m.gang.joins = append(m.gang.joins, joined{*w, at})
			}
			m.p.Continue()
			return true
		}
	}
	return false
}

// enterJoin adds a unit that joined sets under way to the figures, or takes it off with sign -1. O(depth).
func (m *Planner) enterJoin(w *want, at cluster.ParcelID, sign int64) {
	r, k := &m.reclaim, sign*w.k
	m.shift(at, -k)
	switch {
	case w.reason == decision.ReclaimRecall:
		r.joinedOwn[w.leaf] += k
	case m.set.Policy[w.leaf] == plan.Hybrid:
		for n := w.leaf; n != plan.None; n = m.policy.Parent[n] {
			m.figure.roomHybrid[n] += k
		}
		m.refree(w.leaf)
	default:
		r.joinedPool += k
		r.netIdle += k // joinedPool says it already
		for n := w.leaf; n != plan.None; n = m.policy.Parent[n] {
			m.figure.usage[n] += k
		}
	}
	for n := w.leaf; n != plan.None; n = m.policy.Parent[n] {
		m.figure.stays[n] += k
		m.figure.pend[n] += k
	}
	m.promised[w.sub] += sign
}

// drawsPool tells whether the taker's unit is to come from the share pools.
func (m *Planner) drawsPool(w *want) bool {
	return w.reason == decision.ReclaimFairShare && !m.isHybrid(w.leaf)
}

// mayUse tells whether a host may take one more unit of the taker.
func (m *Planner) mayUse(w *want, k cluster.ParcelID) bool {
	return m.usable(w.sub, k) && m.perHost(w.sub, k, m.promisedOn(w.sub, k)+1)
}

// promisedOn is how many units sets promise a sub-allocation on a host.
func (m *Planner) promisedOn(sub cluster.SubID, k cluster.ParcelID) (units int64) {
	for _, id := range m.setsOf[sub] {
		if m.s.Set.Target[id] == m.p.Parcels.Host[k] {
			units += m.s.Set.Units[id]
		}
	}
	for _, at := range m.reclaim.joinedAt[sub] {
		if at == k {
			units++
		}
	}
	return units
}

// tryHost tells whether a host has not failed for this unit and may take it.
func (m *Planner) tryHost(w *want, k cluster.ParcelID) bool {
	m.s.Yield()
	if w.failed[k] {
		return false
	}
	if !m.mayUse(w, k) {
		w.failed[k] = true
		return false
	}
	return true
}

// issue makes a set of victims for the taker's unit, or adds to the one made last when it is for
// the same. It is false when the budget does not allow it.
func (m *Planner) issue(w *want, victims []victim) bool {
	r, h := &m.reclaim, &m.s.Holding
	k := h.Parcel[victims[0].q]
	var units int64
	for _, v := range victims {
		if h.Granted[v.q] <= m.s.Cycle {
			units += v.units
		}
	}
	if units > r.budget && !(r.first && r.budget > 0) {
		r.denied[w.sub] = true
		return false
	}
	if units > 0 {
		r.budget, r.first = max(0, r.budget-units), false
	}
	m.addSet(w, k, victims)
	return true
}

// addSet makes a set of victims on a host for the taker's unit, or adds to the one made last when it is for the same.
func (m *Planner) addSet(w *want, k cluster.ParcelID, victims []victim) {
	r, h := &m.reclaim, &m.s.Holding
	id, t, host := r.last, &m.s.Set, m.p.Parcels.Host[k]
	if id != cluster.NoID && t.Taker[id] == w.sub && t.Target[id] == host && t.Reason[id] == w.reason {
		m.count1(id, -1)
	} else {
		id = m.s.OpenSet(m.p, k, w.reason, w.sub, m.nowUS)
		m.setsOf[w.sub] = append(m.setsOf[w.sub], id)
		if m.gang.trial != nil {
			m.gang.trial.opened = append(m.gang.trial.opened, id)
		}
	}
	was := max(0, m.p.Parcels.Available(0, k))
	for _, v := range victims {
		m.shift(k, v.units*m.slots(h.Sub[v.q]))
		m.give0(v)
		m.victimise(id, v)
	}
	m.s.Promise(id, t.Units[id]+1)
	m.count1(id, 1)
	m.shift(k, -w.k)
	m.figure.idle += max(0, m.p.Parcels.Available(0, k)) - was
	m.desk.Field.Regain(k)
	r.last = id
}

// victimise puts units under reclaim for a set. Units granted in this cycle are not granted at all (CYC-1).
func (m *Planner) victimise(id cluster.SetID, v victim) {
	h, sub := &m.s.Holding, m.s.Holding.Sub[v.q]
	leaf, slots := m.s.Node(sub), v.units*m.slots(sub)
	if h.Granted[v.q] > m.s.Cycle {
		m.book(leaf, h.Origin[v.q], m.lenderOf(h.Lender[v.q]), -slots, -slots)
		m.s.Shrink(v.q, v.units)
		clear(m.gang.rooms) // there may be more room
		m.line.Sub[sub].Held -= v.units
		m.reclaim.undone[sub] = true
		m.p.Continue()
		return
	}
	m.book(leaf, h.Origin[v.q], m.lenderOf(h.Lender[v.q]), 0, -slots)
	grace := m.policy.ReclaimUS[leaf]
	m.s.TakeBack(id, v.q, v.units, m.nowUS+grace)
}
