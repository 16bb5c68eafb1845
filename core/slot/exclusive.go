package slot

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// exclusive is what a plan with exclusive placement needs beside the figures (SLOT-31): there a held host is
// one thing. It has one holder, counts with all its slots, and is relabelled, taken back and kept as a whole.
// Such a host goes by its lead, the newest of its holdings.
type exclusive struct {
	open     map[int32][]cluster.ParcelID // by holder: its hosts with room, in group order
	reserver []cluster.SetID              // by parcel: the taker's set that it is the target of
	empty    cluster.ParcelID             // no parcel before it is empty
	joined   []joiner                     // in this cycle
	all      []cluster.ParcelID           // 0, 1, 2, …
}

// joiner is a unit that waits for a host without a set of its own.
type joiner struct {
	sub cluster.SubID
	at  cluster.ParcelID
}

// worth is how many slots one piece of a holding counts: of a unit its slots, of a host all it has.
func (m *Planner) worth(q cluster.HoldingID) int64 {
	if m.whole {
		return m.p.Parcels.Cap[0][m.s.Holding.Parcel[q]]
	}
	return m.slots(m.s.Holding.Sub[q])
}

// pieces is how many pieces a holding has: its units, or the one host that it stands for.
func (m *Planner) pieces(q cluster.HoldingID) int64 {
	if m.whole {
		return 1
	}
	return m.s.Holding.Units[q]
}

// counts tells whether a holding stands for something that is not under reclaim: itself, or a whole host.
func (m *Planner) counts(q cluster.HoldingID) bool {
	if !m.whole {
		return m.s.Holding.Set[q] == cluster.NoID
	}
	k := m.s.Holding.Parcel[q]
	return m.lead(k) == q && m.staying(k)
}

// holder is whom a host serves that has units of a sub-allocation: its allocation, or its leaf.
func (m *Planner) holder(sub cluster.SubID) int32 {
	if m.p.Slots.ExclusiveBy == "consumer" {
		return int32(m.s.Node(sub))
	}
	return int32(m.s.Sub.Alloc[sub])
}

// heldBy tells whether a host has units of the holder that a sub-allocation belongs to.
func (m *Planner) heldBy(k cluster.ParcelID, sub cluster.SubID) bool {
	q := m.oldest(k)
	return q != cluster.NoID && m.holder(m.s.Holding.Sub[q]) == m.holder(sub)
}

// oldest is the oldest holding of a host, NoID of an empty one: its holder is the host's. O(holdings there).
func (m *Planner) oldest(k cluster.ParcelID) cluster.HoldingID {
	best := m.p.Parcels.First[k]
	for q := best; q != cluster.NoID; q = m.s.Holding.NextOnParcel[q] {
		if m.newest(q, best) > 0 {
			best = q
		}
	}
	return best
}

// lead is the newest holding of a host's holder, NoID of an empty host. O(holdings there).
func (m *Planner) lead(k cluster.ParcelID) cluster.HoldingID {
	h, best := &m.s.Holding, m.oldest(k)
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		if m.newest(q, best) < 0 && m.holder(h.Sub[q]) == m.holder(h.Sub[best]) {
			best = q
		}
	}
	return best
}

// staying tells whether a host's holder has units there that are not under reclaim.
func (m *Planner) staying(k cluster.ParcelID) bool {
	h, oldest := &m.s.Holding, m.oldest(k)
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		if h.Set[q] == cluster.NoID && m.holder(h.Sub[q]) == m.holder(h.Sub[oldest]) {
			return true
		}
	}
	return false
}

// labelledOn is the oldest holding of a host's holder that has a label, NoID when none has.
func (m *Planner) labelledOn(k cluster.ParcelID) cluster.HoldingID {
	h, oldest, best := &m.s.Holding, m.oldest(k), cluster.HoldingID(cluster.NoID)
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		if h.Origin[q] == decision.Null || m.holder(h.Sub[q]) != m.holder(h.Sub[oldest]) {
			continue
		}
		if best == cluster.NoID || m.newest(q, best) > 0 {
			best = q
		}
	}
	return best
}

// tidy gives all units of a host one label, and takes back those of others than its holder, as far as the budget goes:
// they ran there before the plan was exclusive, or were taken over as running. No figures are there yet.
func (m *Planner) tidy() {
	p, h := &m.p.Parcels, &m.s.Holding
	for k := range cluster.ParcelID(p.Len()) {
		if p.First[k] == cluster.NoID || h.NextOnParcel[p.First[k]] == cluster.NoID {
			continue
		}
		q := m.labelledOn(k)
		if q == cluster.NoID || m.s.Sub.Orphan[h.Sub[q]] {
			continue
		}
		m.clear(k, m.holder(h.Sub[q]))
		m.unify(k, h.Origin[q], h.Pool[q], h.Lender[q])
	}
}

// clear takes back what others than its holder have on a host; it counts for nobody.
func (m *Planner) clear(k cluster.ParcelID, holder int32) {
	h, r := &m.s.Holding, &m.reclaim
	for q := m.p.Parcels.First[k]; q != cluster.NoID; {
		next, units := h.NextOnParcel[q], min(h.Units[q], r.budget)
		if m.holder(h.Sub[q]) == holder {
			q = next
			continue
		}
		m.p.Continue() // the host may be its own next time
		if h.Set[q] == cluster.NoID && h.Origin[q] != decision.Null && units > 0 {
			r.budget, r.first = r.budget-units, false
			m.s.Reclaim(q, units, m.nowUS, m.policy.ReclaimUS[m.s.Node(h.Sub[q])], decision.ReclaimPlanChange)
		}
		q = next
	}
}

// unify gives all units that a host's holder has there the same label.
func (m *Planner) unify(k cluster.ParcelID, origin int32, pool, lender cluster.ConsumerID) {
	h, who := &m.s.Holding, m.holder(m.s.Holding.Sub[m.oldest(k)])
	for q := m.p.Parcels.First[k]; q != cluster.NoID; {
		next := h.NextOnParcel[q]
		switch {
		case m.holder(h.Sub[q]) != who:
		case h.Origin[q] == origin && h.Pool[q] == pool && h.Lender[q] == lender:
		case h.Set[q] == cluster.NoID:
			m.s.Relabel(q, h.Units[q], origin, pool, lender)
		default:
			h.Origin[q], h.Pool[q], h.Lender[q] = origin, pool, lender
		}
		q = next
	}
}

// idleAt is what a host adds to the idle slots: all, when it is empty and nobody is to have it.
func (m *Planner) idleAt(k cluster.ParcelID) int64 {
	if !m.p.Parcels.IsOpen(k) || m.p.Parcels.First[k] != cluster.NoID || m.exclusive.reserver[k] != cluster.NoID {
		return 0
	}
	return m.p.Parcels.Cap[0][k]
}

// countHosts is count for exclusive placement. O(parcels + sets).
func (m *Planner) countHosts() {
	p, f, x := &m.p.Parcels, &m.figure, &m.exclusive
	x.reserver, x.joined = resized(x.reserver, p.Len()), x.joined[:0]
	for k := range x.reserver {
		x.reserver[k] = cluster.NoID
	}
	for id := range m.s.Set.Of(m.p) {
		host := m.s.Set.Target[id]
		if m.s.Set.Taker[id] != cluster.NoID && m.s.Host.Plan[host] == m.p.Index {
			x.reserver[m.s.Host.Parcel[host]] = id
		}
	}
	m.owned.whole, f.idle, f.okay, f.someShut = 0, 0, 0, false
	for k := range cluster.ParcelID(p.Len()) {
		f.idle += m.idleAt(k)
		switch {
		case p.IsOpen(k):
			f.okay += p.Cap[0][k]
		case p.First[k] != cluster.NoID:
			m.owned.whole += p.Cap[0][k]
			f.someShut = true
		}
	}
	m.owned.whole += f.okay
}

// tallyHosts adds what is held to the figures, host by host. O(holdings).
func (m *Planner) tallyHosts() {
	p, h, f, x := &m.p.Parcels, &m.s.Holding, &m.figure, &m.exclusive
	x.open, x.empty = map[int32][]cluster.ParcelID{}, 0
	for k := range cluster.ParcelID(p.Len()) {
		first := p.First[k]
		if first == cluster.NoID {
			continue
		}
		if !p.IsOpen(k) {
			for q := first; q != cluster.NoID; q = h.NextOnParcel[q] {
				f.shut[h.Sub[q]] += h.Units[q]
			}
		} else if p.Free[0][k] > 0 {
			who := m.holder(h.Sub[m.oldest(k)])
			x.open[who] = append(x.open[who], k)
		}
		q := m.labelledOn(k)
		if q == cluster.NoID || m.s.Sub.Orphan[h.Sub[q]] {
			continue
		}
		leaf, c, net := m.s.Node(h.Sub[q]), p.Cap[0][k], int64(0)
		if m.staying(k) {
			net = c
			f.foreign = f.foreign || m.strange(q)
		}
		m.enter(leaf, h.Origin[q], m.lenderOf(h.Lender[q]), c, net)
	}
}

// roomOf is what a set's unit will cost: its whole host, unless its holder has that by now.
func (m *Planner) roomOf(id cluster.SetID) int64 {
	host := m.s.Set.Target[id]
	if m.s.Set.Units[id] == 0 || m.s.Host.Plan[host] != m.p.Index {
		return 0
	}
	k := m.s.Host.Parcel[host]
	if m.heldBy(k, m.s.Set.Taker[id]) {
		return 0
	}
	return m.p.Parcels.Cap[0][k]
}

// keptOf is what of a set's room no victim occupies any more: all or nothing.
func (m *Planner) keptOf(id cluster.SetID) int64 {
	if m.s.Set.First[id] != cluster.NoID {
		return 0
	}
	return m.roomOf(id)
}

// change does something to the holdings of a host, and keeps the books of what is
// idle and of the set that it is the target of.
func (m *Planner) change(k cluster.ParcelID, do func()) {
	id, was := m.exclusive.reserver[k], m.idleAt(k)
	if id != cluster.NoID {
		m.count1(id, -1)
	}
	do()
	if id = m.exclusive.reserver[k]; id != cluster.NoID {
		m.count1(id, 1)
	}
	m.figure.idle += m.idleAt(k) - was
	if m.p.Parcels.First[k] == cluster.NoID {
		m.exclusive.empty = min(m.exclusive.empty, k)
	}
	m.p.Continue()
}

// eachPlace is the first host of a list or, where the requirement gives an order, of all in that, for which f is true
// and that a sub-allocation may use with one more unit; NoID when there is none.
func (m *Planner) eachPlace(
	sub cluster.SubID, list []cluster.ParcelID, f func(k cluster.ParcelID) bool,
) cluster.ParcelID {
	if _, order := m.desk.Selected(m.s.Sub.Need[sub]); order != nil {
		list = order
	}
	for _, k := range list {
		if f(k) && m.usable(sub, k) && m.perHost(sub, k, 1) {
			return k
		}
	}
	return cluster.NoID
}

// all is all parcels in group order.
func (m *Planner) all() []cluster.ParcelID {
	x := &m.exclusive
	for k := len(x.all); k < m.p.Parcels.Len(); k++ {
		x.all = append(x.all, cluster.ParcelID(k))
	}
	return x.all[:m.p.Parcels.Len()]
}

// takesMore tells whether a host of a sub-allocation's holder has room for a unit, and nobody else is to have it.
func (m *Planner) takesMore(sub cluster.SubID, k cluster.ParcelID) bool {
	return m.p.Parcels.Free[0][k] >= m.slots(sub) && m.heldBy(k, sub) && m.staying(k) && m.mayGet(sub, k)
}

// mayGet tells whether no other holder is to have a host.
func (m *Planner) mayGet(sub cluster.SubID, k cluster.ParcelID) bool {
	id := m.exclusive.reserver[k]
	return id == cluster.NoID || m.holder(m.s.Set.Taker[id]) == m.holder(sub)
}

// place is where the next unit of a sub-allocation goes and what that costs: the first host of its holder's with
// room, which costs nothing, else the first empty one, whole. NoID when there is none. O(parcels).
func (m *Planner) place(sub cluster.SubID) (at cluster.ParcelID, cost int64) {
	p, x := &m.p.Parcels, &m.exclusive
	at = m.eachPlace(sub, x.open[m.holder(sub)], func(k cluster.ParcelID) bool { return m.takesMore(sub, k) })
	if at != cluster.NoID {
		return at, 0
	}
	vacant := func(k cluster.ParcelID) bool { return p.First[k] == cluster.NoID && m.mayGet(sub, k) }
	for int(x.empty) < p.Len() && p.First[x.empty] != cluster.NoID {
		x.empty++
	}
	if at = m.eachPlace(sub, m.all()[x.empty:], vacant); at == cluster.NoID {
		return at, 0
	}
	return at, p.Cap[0][at]
}

// giveHost is give for exclusive placement: it tells what the unit cost.
func (m *Planner) giveHost(leaf plan.Node, sub cluster.SubID, kind int, bound int64) (cost int64, ok bool) {
	at, cost := m.place(sub)
	if at == cluster.NoID {
		return 0, false
	}
	t := &m.line.Sub[sub]
	promised := t.Wanted-t.Held <= m.promised[sub]
	with := label{}
	if cost > 0 {
		if with, ok = m.affords(leaf, sub, kind, bound, cost, promised); !ok {
			return 0, false
		}
	}
	if promised {
		m.yield(sub)
	}
	m.putOn(leaf, sub, at, with)
	return cost, true
}

// affords tells whether an empty host of c slots may go to a leaf in a step, and what it then counts as.
func (m *Planner) affords(
	leaf plan.Node, sub cluster.SubID, kind int, bound, c int64, promised bool,
) (with label, ok bool) {
	if _, roomy := m.roomy(leaf, c, promised); !roomy {
		return with, false
	}
	lender := plan.None
	switch kind {
	case kindOwn:
		with, ok = ownLabel, m.bearsOwn(leaf, c)
	case kindShare:
		with = shareLabel
		ok = m.poolFor(leaf) >= 1 && m.spare() >= c && m.figure.usage[leaf]-m.promisedRoom(sub, promised) < bound
	case kindHybrid:
		f := &m.figure
		with = hybridLabel
		ok = f.net[kindHybrid][leaf]+f.roomHybrid[leaf]-m.promisedRoom(sub, promised) < bound && m.hybridIdle() >= 1 &&
			f.idle-c >= f.claims && m.hybridIdle()-c >= m.freeAfter(leaf, c)
	default:
		if lender = m.lender(leaf, c); lender != plan.None {
			with, ok = label{decision.OriginBorrowed, m.s.ConsumerOf[lender]}, true
		}
	}
	return with, ok && m.lasts(leaf, c, kind, lender)
}

// bearsOwn tells whether a leaf may take a host as its own: it has a slot left, and nobody wants the others.
func (m *Planner) bearsOwn(leaf plan.Node, c int64) bool {
	own := m.own0(leaf)
	return own >= 1 && m.spare() >= c-own
}

// promisedRoom is what of the usage is the room of the set that a promised unit makes lapse.
func (m *Planner) promisedRoom(sub cluster.SubID, promised bool) int64 {
	if ids := m.setsOf[sub]; promised && len(ids) > 0 {
		if last := ids[len(ids)-1]; m.s.Set.Reason[last] != decision.ReclaimRecall {
			return m.roomOf(last)
		}
	}
	return 0
}

// putOn books a unit on a host: on a held one with its label, on an empty one with the label given.
func (m *Planner) putOn(leaf plan.Node, sub cluster.SubID, at cluster.ParcelID, with label) {
	h, p := &m.s.Holding, &m.p.Parcels
	first, c := m.oldest(at), p.Cap[0][at]
	m.change(at, func() {
		row := cluster.Holding{}
		if first != cluster.NoID {
			row = m.row(sub, label{h.Origin[first], cluster.NoID})
			row.Pool, row.Lender = h.Pool[first], h.Lender[first]
		} else {
			lender := plan.None
			switch with.origin {
			case decision.OriginSharePool:
				with.whose = m.s.ConsumerOf[m.poolOf(leaf)]
			case decision.OriginBorrowed:
				lender = m.s.NodeOf[with.whose]
			}
			row = m.row(sub, with)
			m.book(leaf, with.origin, lender, c, c)
		}
		if q := m.s.Sub.First[sub]; q != cluster.NoID && h.Parcel[q] == at && h.Granted[q] == row.Granted &&
			h.Set[q] == cluster.NoID {
			m.s.Grow(q, 1) // a unit more of what was given just before
		} else {
			m.s.Hold(nil, row, []cluster.ParcelID{at})
		}
	})
	x, who := &m.exclusive, m.holder(sub)
	i, listed := slices.BinarySearch(x.open[who], at)
	if first == cluster.NoID {
		m.lapses++ // what was passed over may have a place there, or need another host now
		if !listed {
			x.open[who] = slices.Insert(x.open[who], i, at)
		}
	} else if listed && p.Free[0][at] == 0 {
		x.open[who] = slices.Delete(x.open[who], i, i+1)
	}
}

// relabelHost makes a whole host count as something else.
func (m *Planner) relabelHost(lead cluster.HoldingID, with label) {
	h, k := &m.s.Holding, m.s.Holding.Parcel[lead]
	leaf, c := m.s.Node(h.Sub[lead]), m.p.Parcels.Cap[0][k]
	m.book(leaf, h.Origin[lead], m.lenderOf(h.Lender[lead]), -c, -c)
	m.nameHost(k, leaf, c, c, with)
	m.lendFrom = 0
}

// nameHost gives all units of a host that counts as nothing a label.
func (m *Planner) nameHost(k cluster.ParcelID, leaf plan.Node, held, net int64, with label) {
	pool, lender, node := cluster.ConsumerID(cluster.NoID), cluster.ConsumerID(cluster.NoID), plan.None
	switch with.origin {
	case decision.OriginSharePool:
		pool = m.s.ConsumerOf[m.poolOf(leaf)]
	case decision.OriginBorrowed:
		lender, node = with.whose, m.s.NodeOf[with.whose]
	}
	m.unify(k, with.origin, pool, lender)
	m.book(leaf, with.origin, node, held, net)
}

// labelHost labels what runs on a host without a label: like the rest of the host, or as the whole host can count.
// What is not the holder's counts for nobody, and gets the label of its kind.
func (m *Planner) labelHost(q cluster.HoldingID) {
	h, k := &m.s.Holding, m.s.Holding.Parcel[q]
	leaf, c := m.s.Node(h.Sub[q]), m.p.Parcels.Cap[0][k]
	if !m.heldBy(k, h.Sub[q]) {
		h.Origin[q], h.Pool[q] = decision.OriginSharePool, m.s.ConsumerOf[plan.Root]
		if m.set.Policy[leaf] == plan.Hybrid {
			h.Origin[q], h.Pool[q] = decision.OriginHybrid, cluster.NoID
		}
		m.p.Continue()
		return
	}
	if other := m.labelledOn(k); other != cluster.NoID {
		m.s.Relabel(q, h.Units[q], h.Origin[other], h.Pool[other], h.Lender[other])
		return
	}
	with := shareLabel
	if m.set.Policy[leaf] == plan.Hybrid {
		with = hybridLabel
	} else if m.own0(leaf) >= c {
		with = ownLabel
	} else if (m.tree.barred[leaf] || m.poolFor(leaf) < c) && m.mayBorrow(leaf, c) {
		if lender := m.nextLender(leaf, c); lender != plan.None {
			with = label{decision.OriginBorrowed, m.s.ConsumerOf[lender]}
		}
	}
	m.nameHost(k, leaf, c, c, with)
}

// reach is all the slots that a leaf could ever hold: of the ok hosts that any of its sub-allocations may use, and of
// those that it holds and that are not ok. O(parcels × kinds of units).
func (m *Planner) reach(leaf plan.Node) (slots int64) {
	p, kinds := &m.p.Parcels, map[fit]bool{}
	var of []cluster.SubID // one of each kind
	m.eachOf(leaf, func(sub cluster.SubID) {
		key := fit{m.s.Sub.Shape[sub], m.s.Sub.Need[sub], plan.Unlimited}
		if !kinds[key] && m.s.Sub.Wanted[sub] > 0 {
			kinds[key] = true
			of = append(of, sub)
		}
	})
	for k := range cluster.ParcelID(p.Len()) {
		switch q := m.oldest(k); {
		case !p.IsOpen(k) && q != cluster.NoID && m.s.Node(m.s.Holding.Sub[q]) == leaf:
			slots += p.Cap[0][k]
		case slices.ContainsFunc(of, func(sub cluster.SubID) bool { return m.usable(sub, k) }):
			slots += p.Cap[0][k]
		}
	}
	return slots
}
