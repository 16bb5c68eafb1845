package md

import (
	"cmp"
	"math"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// fairs is what fair reclaim works with (MD-17).
type fairs struct {
	room     [][]int64 // by dimension, then parcel: free as if what is under reclaim had been given back, less what is promised
	busy     bool      // whether anything is under reclaim or promised: only then may a unit join
	denied   map[cluster.SubID]bool
	undone   map[cluster.SubID]bool // a unit granted in this cycle was taken from them: they get nothing more in it
	joinedAt map[cluster.SubID][]cluster.ParcelID
	first    bool // nothing was put under reclaim yet: the first set may pass the budget
	last     cluster.SetID
	order    [][]plan.Node                     // by Node: its children, as victims
	rows     map[plan.Node][]cluster.HoldingID // what a leaf held when it was first asked for, newest first
	kinds    map[kind]*trial
	gained   []cluster.ParcelID // parcels whose net room grew, for the trials' cursors
	here     []cluster.HoldingID
	sum      []int64
}

// kind is what takers' units have in common that look for the same.
type kind struct {
	leaf  plan.Node
	shape cluster.ShapeID
	need  cluster.NeedID
	sub   cluster.SubID // with a max_per_host, else NoID
}

// trial is what a kind of units has found in vain so far: neither is looked at again in this cycle.
type trial struct {
	over   bool               // no victims at all
	failed []uint64           // bitset of parcels
	row    map[plan.Node]int  // by leaf: no victim of it before this row
	from   cluster.ParcelID   // no parcel before it has net room
	seen   int                // of gained
	late   []cluster.ParcelID // parcels before from that gained room since
}

// victim is units that may be taken back for a taker.
type victim struct {
	q     cluster.HoldingID
	units int64
}

// fair takes back for those who go short from those of lower share priority, and from those of equal
// priority who have more for their ratio, wherever that makes a unit fit (MD-17). Takers come in
// turns, as in MD-16, by what is net.
func (m *Planner) fair() {
	f := &m.fairness
	f.undone, f.joinedAt = map[cluster.SubID]bool{}, map[cluster.SubID][]cluster.ParcelID{}
	f.denied, f.first, f.last = map[cluster.SubID]bool{}, m.budget > 0 && !m.spent(), cluster.NoID
	if !m.lineUpTakers() {
		return
	}
	m.layRoom()
	f.order, f.rows = make([][]plan.Node, m.policy.Len()), map[plan.Node][]cluster.HoldingID{}
	f.kinds, f.gained = map[kind]*trial{}, f.gained[:0]
	g := &m.grant
	for leaf := g.race.Next(); leaf >= 0; leaf = g.race.Next() {
		usage, stays := m.serveTaker(plan.Node(leaf))
		g.race.Served(leaf, usage, stays)
	}
}

// lineUpTakers readies the race of those who may take, and tells whether there are any.
func (m *Planner) lineUpTakers() bool {
	g := &m.grant
	g.Planner = m
	g.line.Reset(m.s, m.p)
	node, any := g.race.Reset(m.policy.Len()), false
	for n := range node {
		node[n] = share.Entrant{
			Usage: m.public.stake[n], Ratio: m.set.Ratio[n], Priority: m.set.Priority[n], Tie: int32(n), Parent: int32(m.policy.Parent[n]),
		}
		leaf := plan.Node(n)
		if m.p.FirstAlloc[n] == cluster.NoID || !m.set.ShareReclaim[n] {
			continue
		}
		if g.line.Warm(leaf) > 0 {
			m.bar(leaf)
			node[n].In = g.line.Open(leaf)
			any = any || node[n].In
		}
	}
	return any && g.race.Start()
}

// bar keeps promised units of a leaf out of its queue.
func (m *Planner) bar(leaf plan.Node) {
	for a := m.p.FirstAlloc[leaf]; a != cluster.NoID; a = m.s.Alloc.Next[a] {
		for sub := m.s.Alloc.First[a]; sub != cluster.NoID; sub = m.s.Sub.Next[sub] {
			m.grant.line.Sub[sub].Bar = m.promise.units[sub]
		}
	}
}

// layRoom computes the net room of every parcel. O(parcels × dimensions + sets).
func (m *Planner) layRoom() {
	f, p := &m.fairness, &m.p.Parcels
	f.room = resized(f.room, len(p.Free))
	for d := range p.Free {
		f.room[d] = append(f.room[d][:0], p.Free[d]...)
	}
	f.busy = false
	for id, number := range m.s.Set.Number {
		if number == 0 || m.s.Set.Plan[id] != m.p.Index {
			continue
		}
		f.busy = true
		for q := m.s.Set.First[id]; q != cluster.NoID; q = m.s.Holding.NextOfSet[q] {
			if k := m.s.Holding.Parcel[q]; int(k) < p.Len()-p.Left {
				m.giveRoom(k, m.s.Size(m.s.Holding.Sub[q]), m.s.Holding.Units[q])
			}
		}
		taker, k := m.s.Set.Taker[id], m.s.Aim(cluster.SetID(id))
		if taker != cluster.NoID && k != cluster.NoID {
			m.giveRoom(k, m.s.Size(taker), -m.s.Set.Units[id])
		}
	}
	m.oweRoom()
}

// oweRoom takes what is net too much on parcels, since the budget did not reach, off the net room of their hosts'
// others (docs/ownership.md).
func (m *Planner) oweRoom() {
	p := &m.p.Parcels
	for k, end := cluster.ParcelID(0), cluster.ParcelID(0); p.Owned && int(k) < p.Len(); k = end {
		if end = p.End(k); end == k+1 {
			continue
		}
		for _, room := range m.fairness.room {
			missing := int64(0)
			for i := k; i < end; i++ {
				missing += max(0, -room[i])
			}
			for i := k; i < end && missing > 0; i++ {
				off := min(missing, max(0, room[i]))
				room[i], missing = room[i]-off, missing-off
			}
		}
	}
}

func (m *Planner) giveRoom(k cluster.ParcelID, size []int64, units int64) {
	if units > 0 {
		m.fairness.gained = append(m.fairness.gained, k)
	}
	for d, column := range m.fairness.room {
		column[k] += size[d] * units
	}
}

// serveTaker promises a leaf one unit more, if it may have one, and tells what that adds to its usage.
func (m *Planner) serveTaker(leaf plan.Node) (usage int64, stays bool) {
	l := &m.grant.line
	for {
		for sub := l.Next(leaf); sub != cluster.NoID; sub = l.Next(leaf) {
			if _, _, over := m.grant.overLimit(leaf, sub); !over && !m.fairness.undone[sub] {
				usage = m.change(m.s.Sub.Pair[sub], 1)
				if t := m.trialOf(leaf, sub); m.join(sub, t) || !t.over && m.takeFor(sub, t) {
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

// join counts a unit as promised that will fit once the sets under way are done.
func (m *Planner) join(sub cluster.SubID, t *trial) bool {
	if !m.fairness.busy {
		return false
	}
	size := m.s.Size(sub)
	k := m.firstWithRoom(sub, size, t)
	if k == cluster.NoID {
		return false
	}
	m.giveRoom(k, size, -1)
	m.unpromise(sub, -1)
	m.fairness.joinedAt[sub] = append(m.fairness.joinedAt[sub], k)
	m.p.Continue()
	return true
}

// firstWithRoom is the first of the pool's parcels, in host order, whose net room a unit fits.
func (m *Planner) firstWithRoom(sub cluster.SubID, size []int64, t *trial) cluster.ParcelID {
	for _, k := range m.fairness.gained[t.seen:] {
		if k < t.from {
			t.late = append(t.late, k)
		}
	}
	t.seen = len(m.fairness.gained)
	slices.Sort(t.late)
	fits := func(k cluster.ParcelID) bool { return m.hasRoom(k, size) && m.mayUse(sub, k) }
	t.late = slices.DeleteFunc(t.late, func(k cluster.ParcelID) bool { return !fits(k) })
	if len(t.late) > 0 {
		return t.late[0]
	}
	for ; int(t.from) < m.p.Parcels.Len(); t.from++ {
		if t.from = m.public.next(t.from); t.from == cluster.NoID {
			t.from = cluster.ParcelID(m.p.Parcels.Len())
			break
		}
		if fits(t.from) {
			return t.from
		}
	}
	return cluster.NoID
}

// trialOf is the trial of a sub-allocation's units.
func (m *Planner) trialOf(leaf plan.Node, sub cluster.SubID) *trial {
	key := kind{leaf, m.s.Sub.Shape[sub], m.s.Sub.Need[sub], cluster.NoID}
	if m.s.Sub.MaxPerHost[sub] != plan.Unlimited {
		key.sub = sub
	}
	t := m.fairness.kinds[key]
	if t == nil {
		t = &trial{failed: make([]uint64, m.p.Parcels.Words()), row: map[plan.Node]int{}}
		m.fairness.kinds[key] = t
	}
	return t
}

// hasRoom tells whether a unit fits the net room of a parcel.
func (m *Planner) hasRoom(k cluster.ParcelID, size []int64) bool {
	for d, u := range size {
		if u > 0 && m.fairness.room[d][k] < u {
			return false
		}
	}
	return true
}

// covers tells whether a parcel, with what is taken back besides, has room for a unit: both now and net.
func (m *Planner) covers(k cluster.ParcelID, size, besides []int64) bool {
	for d, u := range size {
		if u > 0 && min(m.fairness.room[d][k], m.p.Parcels.Available(d, k))+besides[d] < u {
			return false
		}
	}
	return true
}

// helps tells whether a victim frees something of which a unit still lacks room, besides what is taken already.
func (m *Planner) helps(k cluster.ParcelID, size, besides, victim []int64) bool {
	for d, u := range size {
		if u > 0 && victim[d] > 0 && min(m.fairness.room[d][k], m.p.Parcels.Available(d, k))+besides[d] < u {
			return true
		}
	}
	return false
}

func (m *Planner) mayUse(sub cluster.SubID, k cluster.ParcelID) bool {
	return m.usable(sub, k) && m.perHost(sub, k, m.promisedAt(sub, m.p.Parcels.Host[k])+1)
}

// even is how many parts of 2⁻⁴⁸ shares may differ and still count as equal: each leaf and unit size below a consumer
// loses up to one to rounding, and what is equal in truth must not be decided by that.
const even = 1 << 16

// ahead tells whether a victim that gives and a taker that gets so much share may be so: the victim is of lower
// priority where their branches part, or of equal and then not worse off.
func (m *Planner) ahead(victim, taker plan.Node, gives, gets int64) bool {
	a, b := m.part(victim, taker)
	if m.set.Priority[a] != m.set.Priority[b] {
		return m.set.Priority[a] < m.set.Priority[b]
	}
	if m.set.Ratio[a] == 0 || m.set.Ratio[b] == 0 {
		return m.set.Ratio[a] == 0 && m.set.Ratio[b] > 0
	}
	x, y, slack := m.public.stake[a]-gives, m.public.stake[b]+gets, int64(even)
	if gives > 0 {
		slack = min(slack, gives/2) // less than a unit, or two could take from each other for ever
	}
	return x >= 0 && !share.Less(x+slack, m.set.Ratio[a], y, m.set.Ratio[b])
}

// part is where the ways up from two leaves part: the last consumers before they meet.
func (m *Planner) part(a, b plan.Node) (plan.Node, plan.Node) {
	for m.policy.Depth[a] > m.policy.Depth[b] {
		a = m.policy.Parent[a]
	}
	for m.policy.Depth[b] > m.policy.Depth[a] {
		b = m.policy.Parent[b]
	}
	for m.policy.Parent[a] != m.policy.Parent[b] {
		a, b = m.policy.Parent[a], m.policy.Parent[b]
	}
	return a, b
}

// takeFor makes a set for one unit of a sub-allocation: the first parcel, in the order of the victims
// on it, on which enough of them are.
func (m *Planner) takeFor(sub cluster.SubID, t *trial) bool {
	leaf, found, done := m.s.Node(sub), false, false
	gets := m.change(m.s.Sub.Pair[sub], 1)
	h := &m.s.Holding
	m.eachVictim(leaf, gets, func(v plan.Node) bool {
		rows, pair, ok := m.newestOf(v), cluster.PairID(cluster.NoID), false
		for i := t.row[v]; i < len(rows); i++ {
			q := rows[i]
			k := h.Parcel[q]
			if t.failed[k>>6]>>(uint(k)&63)&1 == 1 || h.Sub[q] == cluster.NoID || h.Set[q] != cluster.NoID || m.s.Node(h.Sub[q]) != v {
				if i == t.row[v] {
					t.row[v]++ // for the rest of the cycle
				}
				continue
			}
			if p := m.s.Sub.Pair[h.Sub[q]]; p != pair {
				pair, ok = p, m.gives(q, leaf, 0, gets)
			}
			if !ok {
				continue
			}
			if m.mayUse(sub, k) {
				if victims := m.enough(sub, k, gets); victims != nil {
					found, done = true, m.issue(sub, k, victims)
					return false
				}
			}
			t.failed[k>>6] |= 1 << (uint(k) & 63)
		}
		return true
	})
	t.over = !found
	return done
}

// gives tells whether a unit of a holding may be taken for a leaf, when its branch gives so much share already.
func (m *Planner) gives(q cluster.HoldingID, taker plan.Node, given, gets int64) bool {
	h := &m.s.Holding
	victim := m.s.Node(h.Sub[q])
	return h.Set[q] == cluster.NoID && victim != taker && victim != plan.None &&
		m.ahead(victim, taker, given-m.change(m.s.Sub.Pair[h.Sub[q]], -1), gets)
}

// eachVictim calls f for the leaves that might give something to a taker, until it is false: where the
// branches part, from the root down, those of lower priority first, then the most over-used (MD-17).
func (m *Planner) eachVictim(taker plan.Node, gets int64, f func(leaf plan.Node) bool) {
	path := []plan.Node{}
	for n := taker; n != plan.None; n = m.policy.Parent[n] {
		path = append(path, n)
	}
	for i := len(path) - 1; i > 0; i-- {
		toward := path[i-1]
		for _, c := range m.victimOrder(path[i]) {
			if c == toward || m.public.stake[c] == 0 || !m.ahead(c, toward, 0, gets) {
				continue
			}
			if !m.eachBelow(c, f) {
				return
			}
		}
	}
}

// eachBelow calls f for the leaves below a consumer in the order of victims, until it is false.
func (m *Planner) eachBelow(n plan.Node, f func(leaf plan.Node) bool) bool {
	if m.policy.Leaf(n) {
		return f(n)
	}
	for _, c := range m.victimOrder(n) {
		if m.public.stake[c] > 0 && !m.eachBelow(c, f) {
			return false
		}
	}
	return true
}

// victimOrder is a consumer's children in the order in which they give: lower priority first, then the
// most over-used, ties last rank first. It is sorted anew when anything was taken since.
func (m *Planner) victimOrder(n plan.Node) []plan.Node {
	order := m.fairness.order[n]
	if order == nil {
		order = []plan.Node{}
		for c := m.policy.First[n]; c != plan.None; c = m.policy.Next[c] {
			if m.p.Terms.Member[c] {
				order = append(order, c)
			}
		}
		m.fairness.order[n] = order
	}
	if !slices.IsSortedFunc(order, m.givesFirst) {
		slices.SortFunc(order, m.givesFirst)
	}
	return order
}

// givesFirst orders siblings as victims.
func (m *Planner) givesFirst(a, b plan.Node) int {
	if c := cmp.Compare(m.set.Priority[a], m.set.Priority[b]); c != 0 {
		return c
	}
	ra, rb := m.set.Ratio[a], m.set.Ratio[b]
	switch {
	case ra == 0 && rb > 0:
		return -1
	case rb == 0 && ra > 0:
		return 1
	case ra > 0 && share.Less(m.public.stake[a], ra, m.public.stake[b], rb):
		return 1
	case ra > 0 && share.Less(m.public.stake[b], rb, m.public.stake[a], ra):
		return -1
	}
	return cmp.Compare(m.p.RankOrder[b], m.p.RankOrder[a])
}

// newestOf lists what a leaf holds on the pool's parcels and is not under reclaim, newest first.
func (m *Planner) newestOf(leaf plan.Node) (rows []cluster.HoldingID) {
	if rows, ok := m.fairness.rows[leaf]; ok {
		return rows
	}
	h := &m.s.Holding
	for a := m.p.FirstAlloc[leaf]; a != cluster.NoID; a = m.s.Alloc.Next[a] {
		for sub := m.s.Alloc.First[a]; sub != cluster.NoID; sub = m.s.Sub.Next[sub] {
			for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
				if h.Set[q] == cluster.NoID && has(m.public.parcels, h.Parcel[q]) {
					rows = append(rows, q)
				}
			}
		}
	}
	slices.SortFunc(rows, m.newest)
	m.fairness.rows[leaf] = rows
	return rows
}

// newest sorts holdings: the latest grant first, then the sub-allocation and the host that came last.
func (m *Planner) newest(a, b cluster.HoldingID) int {
	h := &m.s.Holding
	return cmp.Or(cmp.Compare(h.Granted[b], h.Granted[a]), cmp.Compare(m.s.Sub.Seq[h.Sub[b]], m.s.Sub.Seq[h.Sub[a]]),
		cmp.Compare(h.Parcel[b], h.Parcel[a]))
}

// enough chooses victims on one parcel that make room for a unit: one alone if there is such a one, the
// first in order; else units in order until it fits, less those that are not needed after all.
func (m *Planner) enough(sub cluster.SubID, k cluster.ParcelID, gets int64) []victim {
	size, leaf := m.s.Size(sub), m.s.Node(sub)
	rows, sum := m.fairness.here[:0], zeroed(m.fairness.sum, len(size))
	m.fairness.sum = sum
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = m.s.Holding.NextOnParcel[q] {
		if m.gives(q, leaf, 0, gets) {
			rows = append(rows, q)
			add(sum, m.s.Size(m.s.Holding.Sub[q]), m.s.Holding.Units[q])
		}
	}
	if m.fairness.here = rows; !m.covers(k, size, sum) {
		return nil // not even all together
	}
	slices.SortFunc(rows, func(a, b cluster.HoldingID) int { return m.victimFirst(a, b, leaf) })
	for _, q := range rows {
		if m.covers(k, size, m.s.Size(m.s.Holding.Sub[q])) {
			return []victim{{q, 1}}
		}
	}
	clear(sum)
	var found []victim
	given := map[plan.Node]int64{} // by the victims' branches where they part from the taker's
	for _, q := range rows {
		each := m.s.Size(m.s.Holding.Sub[q])
		for n := int64(0); n < m.s.Holding.Units[q] && m.helps(k, size, sum, each); n++ {
			a, _ := m.part(m.s.Node(m.s.Holding.Sub[q]), leaf)
			if !m.gives(q, leaf, given[a], gets) {
				break
			}
			given[a] -= m.change(m.s.Sub.Pair[m.s.Holding.Sub[q]], -1)
			if n == 0 {
				found = append(found, victim{q, 0})
			}
			found[len(found)-1].units++
			add(sum, each, 1)
		}
	}
	if !m.covers(k, size, sum) {
		return m.alike(sub, k, rows, gets)
	}
	for i := range found {
		v := m.s.Size(m.s.Holding.Sub[found[i].q])
		for found[i].units > 0 {
			if add(sum, v, -1); !m.covers(k, size, sum) {
				add(sum, v, 1)
				break
			}
			found[i].units--
		}
	}
	return slices.DeleteFunc(found, func(v victim) bool { return v.units == 0 })
}

// alike chooses victims of one leaf and size that make room for a unit by themselves: of those of which it takes the fewest.
func (m *Planner) alike(sub cluster.SubID, k cluster.ParcelID, rows []cluster.HoldingID, gets int64) (best []victim) {
	size, leaf, fewest := m.s.Size(sub), m.s.Node(sub), int64(math.MaxInt64)
	sum, tried := make([]int64, len(size)), map[cluster.PairID]bool{}
	for _, first := range rows {
		pair := m.s.Sub.Pair[m.s.Holding.Sub[first]]
		if tried[pair] {
			continue
		}
		tried[pair] = true
		clear(sum)
		var found []victim
		units, each := int64(0), -m.change(pair, -1)
		for _, q := range rows {
			for n := int64(0); n < m.s.Holding.Units[q] && m.s.Sub.Pair[m.s.Holding.Sub[q]] == pair && !m.covers(k, size, sum); n++ {
				if !m.gives(q, leaf, units*each, gets) {
					break
				}
				if n == 0 {
					found = append(found, victim{q, 0})
				}
				found[len(found)-1].units++
				units++
				add(sum, m.s.Size(m.s.Holding.Sub[q]), 1)
			}
		}
		if m.covers(k, size, sum) && units < fewest {
			best, fewest = found, units
		}
	}
	return best
}

func add(sum, size []int64, units int64) {
	for d, u := range size {
		sum[d] += u * units
	}
}

// victimFirst orders holdings as victims for a taker.
func (m *Planner) victimFirst(a, b cluster.HoldingID, taker plan.Node) int {
	h := &m.s.Holding
	x, y := m.s.Node(h.Sub[a]), m.s.Node(h.Sub[b])
	if x == y {
		return m.newest(a, b)
	}
	px, _ := m.part(x, taker)
	py, _ := m.part(y, taker)
	if dx, dy := m.policy.Depth[px], m.policy.Depth[py]; dx != dy {
		return cmp.Compare(dx, dy) // nearer to the root first
	}
	cx, cy := m.part(x, y)
	return m.givesFirst(cx, cy)
}

// issue makes a set of victims for a taker's unit, or adds to the one made last when it is for the same. It is
// false when the budget does not allow it.
func (m *Planner) issue(sub cluster.SubID, k cluster.ParcelID, victims []victim) bool {
	f, t, h := &m.fairness, &m.s.Set, &m.s.Holding
	var units int64
	for _, v := range victims {
		if h.Granted[v.q] <= m.s.Cycle {
			units += v.units
		}
	}
	if units > m.budget && !(f.first && m.budget > 0) {
		f.denied[sub] = true
		return false
	}
	if units > 0 {
		m.budget, f.first = max(0, m.budget-units), false
	}
	id := f.last
	if id == cluster.NoID || t.Taker[id] != sub || m.s.Aim(id) != k || t.Reason[id] != decision.ReclaimFairShare {
		id = m.s.OpenSet(m.p, k, decision.ReclaimFairShare, sub, m.nowUS)
		m.promise.ofSub[sub] = append(m.promise.ofSub[sub], id)
	}
	for _, v := range victims {
		from := h.Sub[v.q]
		m.giveRoom(k, m.s.Size(from), v.units)
		m.count(m.s.Sub.Pair[from], -v.units)
		m.shift(from, m.public.id, -v.units)
		if h.Granted[v.q] > m.s.Cycle {
			f.undone[from] = true
			m.s.Shrink(v.q, v.units) // granted in this cycle: it is not granted at all (CYC-1)
			m.promise.moved = true
			m.p.Continue()
			continue
		}
		m.s.TakeBack(id, v.q, v.units, m.nowUS+m.policy.ReclaimUS[m.s.Node(from)])
	}
	m.giveRoom(k, m.s.Size(sub), -1)
	m.unpromise(sub, -1)
	m.s.Promise(id, t.Units[id]+1)
	f.last, f.busy = id, true
	return true
}
