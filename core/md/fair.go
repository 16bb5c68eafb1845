package md

import (
	"math"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// fairs is what recall and fair reclaim work with (MD-10, MD-17).
type fairs struct {
	netRoom
	denied map[cluster.SubID]bool // by the budget
	undone map[cluster.SubID]bool // a unit granted in this cycle was taken from them: they get nothing more in it
	last   cluster.SetID
	order  [][]plan.Node // by Node: its children, as victims
	kinds  map[kind]*trial
	spent  [][]uint64 // memory of trials that are over
	onHand onHand
	claim  claim
	pacts  pacts
	path   []plan.Node
	here   []giver
	sum    []int64
	bound  []int64
	given  []way
	most   []int64
	some   []int64
}

// kind is what takers' units have in common that look for the same victims.
type kind struct {
	leaf  plan.Node
	shape cluster.ShapeID
	need  cluster.NeedID
	sub   cluster.SubID // with a max_per_host, else NoID
}

// trial is what a kind of units has found in vain so far: neither is looked at again in this cycle.
type trial struct {
	over   bool     // no victims at all
	failed []uint64 // bitset of parcels, nil: none
}

// fair takes back for those who go short from those of lower share priority, and from those of equal
// priority who have more for their ratio, wherever that makes a unit fit (MD-17): pool by pool. Takers come in
// turns, as in MD-16, by what is net. Beside is called beside those turns, or behind all when nobody is short.
func (m *Planner) fair(beside func()) {
	f, g := &m.fairness, &m.grant
	f.last = cluster.NoID
	begun, done := false, make(chan struct{})
	if len(f.order) != m.policy.Len() {
		f.order = make([][]plan.Node, m.policy.Len())
	}
	for i := range m.pools.list {
		o := &m.pools.list[i]
		if g.top = o.node; mutant == 42 && o.node != plan.Root || !m.lineUpTakers(o) {
			continue
		}
		if !begun { // where nobody is short nobody need look at what is held
			m.beginTakers()
			begun = true
			go func() {
				beside()
				close(done)
			}()
		}
		f.kinds = nil
		m.forgetPacts()
		m.layLeast(o)
		for at := g.race.Next(); at >= 0; at = g.race.Next() {
			usage, stays := m.serveTaker(o, o.node+plan.Node(at))
			g.race.Served(at, usage, stays)
		}
		f.claim.pool = nil
	}
	if !begun {
		beside()
		return
	}
	<-done
}

// lineUpTakers readies the race of those who may take of a pool, and tells whether there are any.
func (m *Planner) lineUpTakers(o *pool) bool {
	g := &m.grant
	if !g.lineUp(o) {
		return false
	}
	n := 0
	for _, leaf := range g.leaves {
		if m.set.ShareReclaim[leaf] || mutant == 43 && o.node != plan.Root {
			g.leaves[n] = leaf
			n++
		}
	}
	if g.leaves = g.leaves[:n]; n == 0 {
		return false
	}
	if !o.live {
		m.weigh(o)
	}
	if m.pools.stake[o.figures] == 0 && !m.mayJoin(o.node) {
		return false // nothing to take, nothing to join
	}
	g.enter(o)
	return g.race.Start()
}

// serveTaker promises a leaf one unit more of a pool, if it may have one, and tells what that adds to its usage.
func (m *Planner) serveTaker(o *pool, leaf plan.Node) (usage int64, stays bool) {
	l, f := &m.grant.line, &m.fairness
	for {
		for sub := l.Next(leaf); sub != cluster.NoID; sub = l.Next(leaf) {
			if _, _, over := m.grant.overLimit(leaf, sub); !over && !f.undone[sub] && m.mayPromise(sub) {
				usage = m.gain(o, sub)
				if f.busy && m.join(sub, o.node, nil) || m.takeFor(o, sub, usage) {
					m.turns--
					l.Sub[sub].Bar++
					l.Settle(leaf)
					return usage, l.Advance(leaf)
				}
			}
			l.Pass(leaf)
		}
		if !l.Advance(leaf) {
			return 0, false
		}
	}
}

// mayPromise tells whether the cycle may promise anybody one unit more, and notes that it may not.
func (m *Planner) mayPromise(sub cluster.SubID) bool {
	if m.turns > 0 {
		return true
	}
	m.fairness.denied[sub] = true
	m.p.Continue()
	return false
}

// trialOf is the trial of a sub-allocation's units.
func (m *Planner) trialOf(leaf plan.Node, sub cluster.SubID) *trial {
	key := kind{leaf, m.s.Sub.Shape[sub], m.s.Sub.Need[sub], cluster.NoID}
	if m.s.Sub.MaxPerHost[sub] != plan.Unlimited {
		key.sub = sub
	}
	t := m.fairness.kinds[key]
	if t == nil {
		if m.fairness.kinds == nil {
			m.fairness.kinds = map[kind]*trial{}
		}
		t = &trial{}
		m.fairness.kinds[key] = t
	}
	return t
}

// takeFor makes a set for one unit of a sub-allocation, which gets so much share: the first parcel, in the order of the
// victims on it, on which enough of them are.
func (m *Planner) takeFor(o *pool, sub cluster.SubID, gets int64) bool {
	leaf := m.s.Node(sub)
	if m.s.Sub.Turns[sub] >= turnsMost || !m.anyAhead(o, leaf, gets) {
		return false
	}
	t := m.trialOf(leaf, sub)
	if t.over {
		return false
	}
	v := &m.fairness.onHand
	v.want, v.next = v.pack(m.s.Size(sub), false), v.next[:0]
	v.offer.tried, v.offer.beyond = 0, v.offer.beyond[:0]
	m.layClaim(o, leaf, gets)
	var victims []victim
	k := cluster.ParcelID(cluster.NoID)
	m.eachVictim(o, leaf, gets, func(n plan.Node, most *margin) bool {
		held := m.holdsOf(o, n)
		for _, same := range held.same {
			if !most.bears(m.fairness.claim.ofShape[same.shape]) || !m.mayGive(o, same.pair) {
				continue // most by the first, which is at hand
			}
			for i := same.from; i < same.to; i++ {
				at := spotOf{held.parcel[i], held.held[i]}
				if t.failedOn(at.k) {
					continue
				}
				if m.isBeyond(o, at.k) {
					v.offer.beyond = append(v.offer.beyond, beyond{at, len(v.next)})
					continue
				}
				if v.next = append(v.next, at); len(v.next) < ahead {
					continue
				}
				if k, victims = m.tryNext(o, t, sub, gets); victims != nil {
					return false
				}
			}
		}
		return true
	})
	if victims == nil {
		k, victims = m.tryNext(o, t, sub, gets)
	}
	if t.over = victims == nil; !t.over {
		return m.issue(decision.ReclaimFairShare, sub, k, victims, nil)
	}
	if t.failed != nil {
		m.fairness.spent, t.failed = append(m.fairness.spent, t.failed), nil
	}
	return false
}

// tryNext looks for victims on the parcels that come next, in order, and gives those on the first that has enough; nil: none.
func (m *Planner) tryNext(o *pool, t *trial, sub cluster.SubID, gets int64) (cluster.ParcelID, []victim) {
	v := &m.fairness.onHand
	next := v.next
	v.next = v.next[:0]
	v.offer.tried += len(next)
	v.fetch(next)
	for i, at := range next {
		m.failBeyond(t, i)
		if t.failedOn(at.k) || m.taken(at) {
			continue
		}
		if victims := m.victimsOn(o, sub, at.k, gets); victims != nil {
			return at.k, victims
		}
		m.fail(t, at.k)
	}
	m.failBeyond(t, len(next))
	return cluster.NoID, nil
}

// victimsOn chooses victims for a unit on a parcel, nil when there are none that make it fit.
func (m *Planner) victimsOn(o *pool, sub cluster.SubID, k cluster.ParcelID, gets int64) []victim {
	leaf := m.s.Node(sub)
	if !m.mayDo(o, k) || !m.mayUse(leaf, sub, k, o.node) {
		return nil
	}
	if victims := m.enough(o, sub, k); victims != nil && m.bearAll(o, leaf, gets, victims) {
		return victims
	}
	return nil
}

func (t *trial) failedOn(k cluster.ParcelID) bool {
	return t.failed != nil && t.failed[k>>6]>>(uint(k)&63)&1 == 1
}

// fail notes that a parcel was tried in vain.
func (m *Planner) fail(t *trial, k cluster.ParcelID) {
	f := &m.fairness
	if n := len(f.spent); t.failed == nil && n > 0 {
		t.failed, f.spent = zeroed(f.spent[n-1], m.p.Parcels.Words()), f.spent[:n-1]
	} else if t.failed == nil {
		t.failed = make([]uint64, m.p.Parcels.Words())
	}
	t.failed[k>>6] |= 1 << (uint(k) & 63)
}

// mayTake tells whether a unit of a holding may be taken for the taker of this round, by itself.
func (m *Planner) mayTake(o *pool, q cluster.HoldingID) bool {
	h := &m.s.Holding
	return h.Set[q] == cluster.NoID && (h.Pool[q] == o.id || mutant == 44 && h.Pool[q] != cluster.NoID) &&
		m.s.Node(h.Sub[q]) != plan.None && m.mayGive(o, m.pairIn(o, h.Sub[q]))
}

// turnsMost is how often fair share takes for a sub-allocation and from it in turn before it takes no more for it, until
// the input changes (INV-10).
const turnsMost = 5

// issue makes a set of victims for a taker's unit, or adds to the one made last when it is for the same. Sets that were dissolved
// for it end; of their victims, those that are chosen go over to it. It is
// false, and nothing is done, when the budget does not bear it.
func (m *Planner) issue(reason int32, sub cluster.SubID, k cluster.ParcelID, victims []victim, dissolved []cluster.SetID) bool {
	f, t, h := &m.fairness, &m.s.Set, &m.s.Holding
	var units int64
	for _, v := range victims {
		if h.Granted[v.q] <= m.s.Cycle && (h.Set[v.q] == cluster.NoID || mutant == 40) {
			units += v.units
		}
	}
	if units > m.budget && (m.budget == 0 || m.spent()) {
		f.denied[sub] = true
		return false
	}
	m.budget = max(0, m.budget-units)
	id := f.last
	if id == cluster.NoID || t.Number[id] == 0 || t.Taker[id] != sub || m.s.Aim(id) != k || t.Reason[id] != reason {
		id = m.s.OpenSet(m.p, k, reason, sub, m.nowUS)
		m.promise.ofSub[sub] = append(m.promise.ofSub[sub], id)
		m.noteSet(id, k)
	}
	if reason == decision.ReclaimFairShare {
		m.s.Turn(sub, false)
	}
	for _, v := range victims {
		m.take(id, k, v)
	}
	for _, one := range dissolved {
		m.dissolve(one, k)
	}
	m.giveRoom(k, m.s.Size(sub), -1)
	m.unpromise(sub, m.via(sub, k), -1)
	m.s.Promise(id, t.Units[id]+1)
	f.last, f.busy = id, true
	return true
}

// take adds a victim to a set. What was granted in this cycle is not granted at all (CYC-1).
func (m *Planner) take(id cluster.SetID, k cluster.ParcelID, v victim) {
	h := &m.s.Holding
	from, pool := h.Sub[v.q], h.Pool[v.q]
	if h.Set[v.q] != cluster.NoID { // of a set that ends: it is given back already
		m.s.HandOver(v.q, v.units, id)
		return
	}
	m.giveBackRoom(k, m.s.Size(from), v.units)
	m.count(m.s.PairOf(from, pool), -v.units)
	m.shift(from, pool, -v.units)
	defer m.give(k, v.q, m.s.Shifts.OnHost(m.p.Parcels.Host[k]))
	if h.Granted[v.q] <= m.s.Cycle {
		if m.s.Set.Reason[id] == decision.ReclaimFairShare {
			m.s.Turn(from, true)
			m.addPact(m.s.Node(from), m.s.Node(m.s.Set.Taker[id]))
		}
		m.s.TakeBack(id, v.q, v.units, m.due(v.q))
		return
	}
	m.undo(v.q, v.units)
	m.freed(k, m.s.Size(from), v.units)
}

// dissolve ends a set on a parcel: its taker is promised nothing of it any more, its victims that are left keep what they have.
func (m *Planner) dissolve(id cluster.SetID, k cluster.ParcelID) {
	t, h, f := &m.s.Set, &m.s.Holding, &m.fairness
	sub, units := t.Taker[id], t.Units[id]
	if mutant != 41 {
		m.unpromise(sub, m.poolOfSet(id), units)
	}
	m.forgetSet(sub, id)
	m.giveRoom(k, m.s.Size(sub), units)
	for q := t.First[id]; q != cluster.NoID && t.Number[id] > 0; {
		next := h.NextOfSet[q]
		m.giveBackRoom(k, m.s.Size(h.Sub[q]), -h.Units[q])
		m.cancel(q, h.Units[q])
		q = next
	}
	m.s.Promise(id, 0)
	if !f.all {
		f.all, f.joins = true, nil // all parcels from now on; what gains room later they are told
	}
	m.lookAgain(k, math.MaxInt32)
	if m.grant.barred {
		m.grant.line.Sub[sub].Bar = m.promise.units[sub]
	}
	m.p.Continue()
}

// forgetSet takes a set off the list of those that its taker is promised units by.
func (m *Planner) forgetSet(sub cluster.SubID, id cluster.SetID) {
	m.promise.ofSub[sub] = slices.DeleteFunc(m.promise.ofSub[sub], func(other cluster.SetID) bool { return other == id })
}
