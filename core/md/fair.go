package md

import (
	"math"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
	"github.com/stintd/stint/vecpack"
)

// fairs is what recall and fair reclaim work with (MD-10, MD-17).
type fairs struct {
	netRoom
	deserved
	denied   map[cluster.SubID]bool // by the budget
	undone   map[cluster.SubID]bool // a unit granted in this cycle was taken from them: they get nothing more in it
	protects bool                   // a holding was left alone because it has not run for its min_runtime
	last     cluster.SetID
	takers   share.Order // leaves that are short, by deficit ÷ ratio
	givers   share.Order // leaves above their quotas, by surplus ÷ ratio
	banded   share.Order // those of them that may be above by their bands
	least    []int64     // by Node: about what a unit of theirs counts that counts least, or less
	kinds    map[kind]*trial
	onHand   onHand
	round    int64   // counts takers' units that looked for victims
	yield    []yield // by PairID
	taker    taker
	seen     []int64 // by ParcelID: the last round in which several victims were looked for there
	here     []giver
	choices  []choice
	sum      []int64
	bound    []int64
	moved    []moved
}

// taker is a unit that looks for victims.
type taker struct {
	leaf    plan.Node
	deficit int64 // of its leaf
	gets    int64 // what it adds to the usage of its leaf
	banded  bool  // the deficit is as large as the band
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
	over    bool               // no victims at all
	single  bool               // no victim that alone makes one fit
	few     bool               // several make one fit on no parcels but these
	parcels []cluster.ParcelID //
}

// fair takes back from those above their quotas for those below theirs, wherever that makes a unit fit and lowers the sum of the squares of their
// distances from them (MD-17): pool by pool. Takers have turns by deficit ÷ ratio; those that are not below may join what is under way. Beside is
// called beside those turns, or behind all when nobody is short.
func (m *Planner) fair(beside func()) {
	f, g := &m.fairness, &m.grant
	f.last = cluster.NoID
	done := make(chan struct{})
	begun := m.askTakers()
	if !begun { // where nobody is short nobody need look at what is held
		beside()
		return
	}
	m.beginTakers()
	go func() {
		beside()
		close(done)
	}()
	m.deserve()
	for i := range m.pools.list {
		o := &m.pools.list[i]
		if g.top = o.node; !f.asked[i] || !m.lineUpTakers(o) || !m.mayServe(o) {
			continue
		}
		f.kinds = nil
		m.layOrders(o)
		for list := &f.takers; len(list.List) > 0; {
			leaf := plan.Node(list.List[len(list.List)-1])
			if m.serveTaker(o, leaf) {
				list.Move(int32(leaf), m.deficit(o, leaf))
			} else {
				list.Remove(int32(leaf))
			}
		}
		f.onHand.forgetOffers()
	}
	<-done
}

// askTakers finds out in which pools anyone may take, weighs what is held of them, and tells whether there are any.
func (m *Planner) askTakers() (any bool) {
	v := &m.fairness.deserved
	v.asked = zeroed(v.asked, len(m.pools.list))
	for i := range m.pools.list {
		o := &m.pools.list[i]
		if mutant == 42 && o.node != plan.Root || !m.lineUpTakers(o) {
			continue
		}
		if !o.live {
			m.weigh(o)
		}
		v.asked[i], any = true, any || m.mayServe(o)
	}
	return any
}

// mayServe tells whether there is anything to take in a pool, or to join.
func (m *Planner) mayServe(o *pool) bool { return m.pools.stake[o.figures] > 0 || m.mayJoin(o.node) }

// lineUpTakers lists those who may take of a pool, and tells whether there are any.
func (m *Planner) lineUpTakers(o *pool) bool {
	g := &m.grant
	if !g.lineUp(o) {
		return false
	}
	n := 0
	for _, leaf := range g.leaves {
		if (m.set.ShareReclaim[leaf] || mutant == 43 && o.node != plan.Root) && !m.barred(leaf, o.node) {
			g.leaves[n] = leaf
			n++
		}
	}
	g.leaves = g.leaves[:n]
	return n > 0
}

// layOrders puts the takers of a pool and those who are above their quotas in order.
func (m *Planner) layOrders(o *pool) {
	f := &m.fairness
	f.takers.Last = true
	f.takers.Reset(m.policy.Len())
	f.givers.Reset(m.policy.Len())
	f.banded.Reset(m.policy.Len())
	for _, leaf := range m.grant.leaves {
		ratio := m.set.Ratio[leaf]
		if mutant == 44 {
			ratio = 1
		}
		f.takers.Add(int32(leaf), m.deficit(o, leaf), ratio, int32(leaf))
	}
	m.layLeast(o)
	for leaf := o.node; leaf < o.end; leaf++ {
		if !m.policy.Leaf(leaf) || !m.p.Terms.Member[leaf] {
			continue
		}
		if surplus := -m.deficit(o, leaf); surplus > share.Slack {
			f.givers.Add(int32(leaf), surplus, m.set.Ratio[leaf], m.giverTie(leaf))
			if surplus+share.Slack >= m.band(o, leaf, f.least[leaf]) {
				f.banded.Add(int32(leaf), surplus, m.set.Ratio[leaf], m.giverTie(leaf))
			}
		}
	}
	f.takers.Sort()
	f.givers.Sort()
	f.banded.Sort()
}

// layLeast finds out about how little units count, before the takers of a pool are served. O(pairs in it).
func (m *Planner) layLeast(o *pool) {
	f := &m.fairness
	f.least = resized(f.least, m.policy.Len())
	for leaf := o.node; leaf < o.end; leaf++ {
		f.least[leaf] = math.MaxInt64
	}
	for q := o.firstPair; q != cluster.NoID; q = m.pools.nextPair[q] {
		if net := m.promise.net[q]; net > 0 {
			m.lessen(q)
		}
	}
}

// lessen takes in what a unit of a pair counts.
func (m *Planner) lessen(q cluster.PairID) {
	least, unit := &m.fairness.least[m.p.Pairs.Leaf[q]], int64(0)
	if whole := m.capacity(m.poolOf(m.p.Pairs.Pool[q]), m.p.Pairs.Shape[q]); m.promise.net[q] <= whole {
		unit = share.One / whole // what a unit counts differs from this by less than one 2⁻⁴⁸
	}
	*least = min(*least, unit)
}

// giverTie is the order of leaves that are as far above their quotas: last rank first.
func (m *Planner) giverTie(leaf plan.Node) int32 {
	if mutant == 47 {
		return m.p.RankOrder[leaf]
	}
	return -m.p.RankOrder[leaf]
}

// reorder puts a leaf, of which the usage changed, where it belongs now.
func (m *Planner) reorder(o *pool, leaf plan.Node) {
	f, id, surplus := &m.fairness, int32(leaf), -m.deficit(o, leaf)
	if surplus > share.Slack && surplus > f.givers.Distance(id) { // it may give more
		for _, k := range m.holdsOf(o, leaf).parcel {
			f.onHand.raise(k)
		}
	}
	for _, list := range [...]*share.Order{&f.givers, &f.banded} {
		if list.Has(id) {
			list.Remove(id)
		}
	}
	if surplus > share.Slack {
		f.givers.Put(id, surplus, m.set.Ratio[leaf], m.giverTie(leaf))
		if surplus+share.Slack >= m.band(o, leaf, f.least[leaf]) {
			f.banded.Put(id, surplus, m.set.Ratio[leaf], m.giverTie(leaf))
		}
	}
	if f.takers.Has(id) {
		f.takers.Move(id, -surplus)
	}
}

// serveTaker promises a leaf one unit more of a pool, if it may have one, and tells whether it may want another.
func (m *Planner) serveTaker(o *pool, leaf plan.Node) (stays bool) {
	l, f := &m.grant.line, &m.fairness
	for {
		for sub := l.Next(leaf); sub != cluster.NoID; sub = l.Next(leaf) {
			if _, _, over := m.grant.overLimit(leaf, sub); !over && !f.undone[sub] && m.mayPromise(sub) {
				if f.busy && m.join(sub, o.node, nil) || m.takeFor(o, sub) {
					m.turns--
					l.Sub[sub].Bar++
					l.Settle(leaf)
					m.lessen(m.pairIn(o, sub))
					m.reorder(o, leaf)
					return l.Advance(leaf)
				}
			}
			l.Pass(leaf)
		}
		if !l.Advance(leaf) {
			return false
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

// takeFor makes a set for one unit of a sub-allocation whose leaf is below its quota: of one victim, the first in order that alone makes it
// fit; else of several, on the parcel that takes the fewest of the first ones, in the order of the victims on them, where they do.
func (m *Planner) takeFor(o *pool, sub cluster.SubID) bool {
	f, leaf := &m.fairness, m.s.Node(sub)
	deficit := m.deficit(o, leaf)
	if m.s.Sub.Turns[sub] >= turnsMost || deficit <= share.Slack {
		return false
	}
	t := m.trialOf(leaf, sub)
	if t.over {
		return false
	}
	f.round++
	gets := m.gain(o, sub)
	f.taker = taker{leaf, deficit, gets, deficit+share.Slack >= m.band(o, leaf, gets)}
	f.onHand.want = f.onHand.pack(m.s.Size(sub), false)
	k, victims := cluster.ParcelID(cluster.NoID), []victim(nil)
	if len(f.candidates()) == 0 {
		t.over = true
		return false
	}
	if !t.single {
		k, victims = m.seekOne(o, sub)
		t.single = victims == nil
	}
	if victims == nil {
		k, victims = m.seekSeveral(o, t, sub)
	}
	if t.over = victims == nil; !t.over {
		moved := f.moved[:0]
		for _, v := range victims {
			moved = addMoved(moved, m.pairIn(o, m.s.Holding.Sub[v.q]), v.units)
		}
		f.moved = moved
		if !m.issue(decision.ReclaimFairShare, sub, k, victims, nil) {
			return false
		}
		for _, one := range moved {
			m.reorder(o, m.p.Pairs.Leaf[one.pair])
		}
		return true
	}
	return false
}

// candidates are the leaves that may give to the taker of this round.
func (f *fairs) candidates() []int32 {
	if f.taker.banded {
		return f.givers.List
	}
	return f.banded.List
}

// seekOne finds the first unit in order that alone makes room for a taker's.
func (m *Planner) seekOne(o *pool, sub cluster.SubID) (cluster.ParcelID, []victim) {
	f, v, leaf, size := &m.fairness, &m.fairness.onHand, m.s.Node(sub), m.s.Size(sub)
	for _, id := range f.candidates() {
		giver := plan.Node(id)
		if giver == leaf || mutant == 45 {
			continue
		}
		held := m.holdsOf(o, giver)
		for _, same := range held.same {
			gives := m.yieldOf(o, same.pair)
			if !m.mayGive(o, giver, -m.deficit(o, giver), gives) || !m.lowers(o, giver, gives) {
				continue
			}
			word, v1 := v.word[same.shape], m.s.Shape.Size(same.shape)
			for i := same.from; i < same.to; i++ {
				k, q := held.parcel[i], held.held[i]
				if !has(v.fresh, k) {
					m.current(k)
				}
				if v.free[k] != v.most && !vecpack.Covers(v.free[k]+word, v.want) || m.taken(spotOf{k, q}) || !covers(m.bounds(k, o.node), v1, size) {
					continue
				}
				if m.mayUse(leaf, sub, k, o.node) && !m.young(giver, q) {
					return k, []victim{{q, 1}}
				}
			}
		}
	}
	return cluster.NoID, nil
}

// choicesMost is among how many parcels that of the fewest victims is chosen.
const choicesMost = 16

// choice is what victims on a parcel, who together make room for a taker's unit, give.
type choice struct {
	parcel  cluster.ParcelID
	victims []victim
	units   int64
	first   giver // the first of the units there, by which parcels stand in order
}

// seekSeveral finds victims that together make room for a taker's unit: of the first parcels in order where they do, on that which takes the fewest.
func (m *Planner) seekSeveral(o *pool, t *trial, sub cluster.SubID) (cluster.ParcelID, []victim) {
	f := &m.fairness
	if len(m.offersNow().word) == 0 {
		m.layOffers(o)
	}
	parcels, few := t.parcels, t.few
	if !few {
		parcels, few = m.covering(o)
	}
	if f.choices = f.choices[:0]; few {
		for _, k := range parcels {
			m.choose(o, sub, k)
		}
		slices.SortFunc(f.choices, func(a, b choice) int { return m.victimFirst(&a.first, &b.first) })
	} else {
		m.chooseInOrder(o, sub)
	}
	found := f.choices
	if len(found) < choicesMost { // the others do not count from now on
		t.few, t.parcels = true, t.parcels[:0]
		for i := range found {
			t.parcels = append(t.parcels, found[i].parcel)
		}
	}
	if len(found) == 0 {
		return cluster.NoID, nil
	}
	best := &found[0]
	for i := range found[:min(len(found), choicesMost)] {
		if one := &found[i]; one.units < best.units && mutant != 77 {
			best = one
		}
	}
	return best.parcel, best.victims
}

// coversMost is how many parcels at most are looked at one by one, wherever their units stand in order.
const coversMost = 1 << 8

// covering lists the parcels that may offer enough for the taker's unit, unless they are many.
func (m *Planner) covering(o *pool) (list []cluster.ParcelID, few bool) {
	v, f := &m.fairness.onHand, m.offersNow()
	v.covers = v.covers[:0]
	for k := -1; len(v.covers) <= coversMost; {
		if k = vecpack.FirstCover(m.p.Parcels.Open, nil, nil, f.top, k+1, f.word, v.want); k < 0 {
			return v.covers, true
		}
		if m.mayOffer(o, cluster.ParcelID(k)) {
			v.covers = append(v.covers, cluster.ParcelID(k))
		}
	}
	return nil, false
}

// choose adds a parcel to those where victims together make room for a taker's unit, if there are any.
func (m *Planner) choose(o *pool, sub cluster.SubID, k cluster.ParcelID) {
	f := &m.fairness
	if !m.mayDo(o, k) || !m.mayUse(m.s.Node(sub), sub, k, o.node) {
		return
	}
	if victims := m.several(o, sub, k); victims != nil {
		one := choice{parcel: k, victims: victims, first: f.here[0]}
		for _, v := range victims {
			one.units += v.units
		}
		f.choices = append(f.choices, one)
	}
}

// chooseInOrder goes through parcels in the order of the units on them, until there are enough to choose among.
func (m *Planner) chooseInOrder(o *pool, sub cluster.SubID) {
	f := &m.fairness
	f.seen = resized(f.seen, m.p.Parcels.Len())
	for _, id := range f.candidates() {
		leaf := plan.Node(id)
		if leaf == f.taker.leaf {
			continue
		}
		held := m.holdsOf(o, leaf)
		for _, same := range held.same {
			if !m.mayGive(o, leaf, -m.deficit(o, leaf), m.yieldOf(o, same.pair)) {
				continue
			}
			for i := same.from; i < same.to; i++ {
				k, q := held.parcel[i], held.held[i]
				if f.seen[k] == f.round || !m.mayOffer(o, k) || m.taken(spotOf{k, q}) || m.young(leaf, q) {
					continue
				}
				f.seen[k] = f.round
				if m.choose(o, sub, k); len(f.choices) == choicesMost {
					return
				}
			}
		}
	}
}

// young tells whether a holding of a leaf has run for less than its min_runtime (REQ-4): fair reclaim does not choose it, and looks again once it may.
func (m *Planner) young(leaf plan.Node, q cluster.HoldingID) bool {
	if !m.s.Young(m.s.Holding.Granted[q], m.nowUS, m.policy.RuntimeUS[leaf]) || mutant == 80 {
		return false
	}
	m.fairness.protects = true
	m.p.Continue()
	return true
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
	if m.s.Set.Reason[id] == decision.ReclaimFairShare && mutant != 84 {
		m.s.Turn(from, true) // also for what this cycle granted: else two could take the room from each other for ever, unseen
	}
	if h.Granted[v.q] <= m.s.Cycle {
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
