package md

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/vecpack"
)

// netRoom is the room of parcels as if what is under reclaim had been given back and what is promised been given, and
// who may join sets under way by it.
type netRoom struct {
	beyond   [][]int64          // by dimension, then parcel: what net room is beyond what is free, reserves left aside; 0 on all parcels but other
	below    []cluster.ParcelID // those of which more is held than they have, in order, or was before anything was granted
	sought   bool               // whether these are known in this cycle
	short    []shortage
	busy     bool                 // whether anything is under reclaim or promised: only then may a unit join
	gained   []cluster.ParcelID   // those that gained room since, again and again
	other    []cluster.ParcelID   // parcels whose net room is not what is free
	word     []uint64             // by ParcelID: room, packed and rounded up, or more; empty: not laid
	top      []uint64             // by word of parcels: the most in them, or more
	told     int                  // of gained, in news
	news     [][]cluster.ParcelID // by Node: what gained room of its and of those below it
	joinedAt map[cluster.SubID][]cluster.ParcelID
	joinedOn map[cluster.ParcelID][]cluster.SubID // those that have reserves

	loose   [][]cluster.ParcelID // by Node: parcels of it and of those below it that may have more room net than they had while granting
	all     bool                 // sub-allocations may fit elsewhere too: some of their units were promised while granting
	joins   map[joinKey]*joiner
	joinsOf map[plan.Node][]*joiner          // by consumer through whose pool they draw, in the order of the first unit
	whole   map[plan.Node][]cluster.ParcelID // a consumer's parcels and those below it, in host order, where all were looked through; kept as long as they are its
	regain  []cluster.ParcelID               // parcels that gained room while granting
}

// joinKey is what units that look for the same net room have in common.
type joinKey struct {
	top   plan.Node // the consumer through whose pool they draw
	shape cluster.ShapeID
	need  cluster.NeedID
}

// joiner is how far the parcels were looked through for such units.
type joiner struct {
	size []int64
	list []cluster.ParcelID // in host order; nil: all parcels
	next int                // no parcel of the list before it has room
	seen int                // of news
	late []cluster.ParcelID // of those, the ones that have room, in host order
}

// netFree is the net room of a parcel, after layRoom: what is free, and what is net beyond that.
func (m *Planner) netFree(d int, k cluster.ParcelID) int64 {
	return m.p.Parcels.Free[d][k] + m.fairness.beyond[d][k]
}

// layRoom computes the net room of parcels. O(sets), and O(parcels × dimensions) where nobody has sought those of which too much is held.
func (m *Planner) layRoom() {
	f, p := &m.fairness, &m.p.Parcels
	f.gained, f.short, f.word = f.gained[:0], f.short[:0], f.word[:0]
	m.level()
	f.onHand.doubtAll(f.other)
	f.busy, f.other = false, f.other[:0]
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
	}
	m.oweRoom()
	for id, number := range m.s.Set.Number {
		if taker := m.s.Set.Taker[id]; number > 0 && m.s.Set.Plan[id] == m.p.Index && taker != cluster.NoID {
			if k := m.s.Aim(cluster.SetID(id)); k != cluster.NoID {
				m.giveRoom(k, m.s.Size(taker), -m.s.Set.Units[id])
			}
		}
	}
	for sub, list := range f.joinedAt { // sums: in any order
		for _, k := range list {
			m.giveRoom(k, m.s.Size(sub), -1)
		}
	}
	m.loosen()
}

// level makes net room what is free.
func (m *Planner) level() {
	f, p := &m.fairness, &m.p.Parcels
	f.beyond = resized(f.beyond, len(p.Free))
	for d, column := range f.beyond {
		if len(column) != p.Len() {
			f.beyond[d] = zeroed(column, p.Len())
			continue
		}
		for _, k := range f.other {
			column[k] = 0
		}
	}
}

// seekBelow lists the parcels of which more is held than they have, once a cycle: grants make them no more. O(parcels × dimensions).
func (m *Planner) seekBelow() {
	f, p := &m.fairness, &m.p.Parcels
	if f.sought {
		return
	}
	f.sought, f.below = true, f.below[:0]
	for from := 0; p.Owned && from < p.Len(); from += 64 {
		to, some := min(from+64, p.Len()), int64(0)
		for _, free := range p.Free {
			for _, amount := range free[from:to] {
				some |= amount
			}
		}
		for k := cluster.ParcelID(from); some < 0 && int(k) < to; k++ {
			if m.overfull(k) {
				f.below = append(f.below, k)
			}
		}
	}
}

// shortage is what is net more on some parcels of a host than they have, since the budget did not reach or others are yet to
// be taken back: it is taken off the net room of the host's other parcels (docs/ownership.md).
type shortage struct {
	begin, end cluster.ParcelID
	net        [][]int64 // by dimension, then parcel from begin on: free as if what is under reclaim had been given back
	off        [][]int64 // of that, what is missing on the others
}

// oweRoom finds the shortages, and takes them off.
func (m *Planner) oweRoom() {
	f, p, end := &m.fairness, &m.p.Parcels, cluster.ParcelID(0)
	m.seekBelow()
	for _, k := range f.below {
		if k < end {
			continue // its host is done
		}
		k, end = p.Begin(k), p.End(k)
		if end == k+1 {
			continue
		}
		one, some := shortage{begin: k, end: end}, false
		for d := range f.beyond {
			net := make([]int64, end-k)
			for i := range net {
				net[i] = m.netFree(d, k+cluster.ParcelID(i))
				some = some || net[i] < 0
			}
			one.net, one.off = append(one.net, net), append(one.off, make([]int64, end-k))
		}
		if some {
			f.short = append(f.short, one)
			m.oweAgain(&f.short[len(f.short)-1])
		}
	}
}

// oweAgain brings the net rooms of a host's parcels up to what is short there.
func (m *Planner) oweAgain(s *shortage) {
	for d, beyond := range m.fairness.beyond {
		missing := int64(0)
		for _, net := range s.net[d] {
			missing += max(0, -net)
		}
		for i, net := range s.net[d] {
			off := min(missing, max(0, net))
			k := s.begin + cluster.ParcelID(i)
			missing -= off
			if beyond[k] += s.off[d][i] - off; s.off[d][i] > off {
				m.gainRoom(k)
			}
			if s.off[d][i] != off {
				m.fairness.unlike(k)
			}
			s.off[d][i] = off
		}
	}
}

// giveBackRoom is giveRoom for units that are put under reclaim, or are not any more when units is below 0: where more is held than
// a parcel has, its host's others have other rooms then.
func (m *Planner) giveBackRoom(k cluster.ParcelID, size []int64, units int64) {
	m.giveRoom(k, size, units)
	if !m.p.Parcels.Owned {
		return
	}
	f, begin := &m.fairness, m.p.Parcels.Begin(k)
	i, known := slices.BinarySearchFunc(f.short, begin, func(s shortage, k cluster.ParcelID) int { return cmp.Compare(s.begin, k) })
	if known {
		for d, net := range f.short[i].net {
			net[k-begin] += size[d] * units
		}
	} else if one := m.shortageOf(begin, k, size, units); one.begin != cluster.NoID {
		f.short = slices.Insert(f.short, i, one)
	} else {
		return
	}
	m.oweAgain(&f.short[i])
}

// shortageOf is the shortage of a host on which so many units more on a parcel are no longer under reclaim (units is below
// 0); its begin is NoID when there is none.
func (m *Planner) shortageOf(begin, k cluster.ParcelID, size []int64, units int64) shortage {
	one := shortage{begin: cluster.NoID, end: m.p.Parcels.End(begin)}
	if units > 0 || one.end == begin+1 {
		return one
	}
	for range size {
		one.net, one.off = append(one.net, make([]int64, one.end-begin)), append(one.off, make([]int64, one.end-begin))
	}
	for i := begin; i < one.end; i++ {
		for d, over := range m.netOver(i) { // the units are still under reclaim by the columns
			if one.net[d][i-begin] = -over; i == k {
				one.net[d][i-begin] += size[d] * units
			}
			if one.net[d][i-begin] < 0 {
				one.begin = begin
			}
		}
	}
	return one
}

// gainRoom notes that a parcel has more net room than it had.
func (m *Planner) gainRoom(k cluster.ParcelID) {
	f := &m.fairness
	if f.gained = append(f.gained, k); len(f.word) > 0 && mutant != 66 {
		m.lift(k)
	}
}

// lift brings what is packed of a parcel's net room up to what that is.
func (m *Planner) lift(k cluster.ParcelID) {
	var room [vecpack.Lanes]int64
	f := &m.fairness
	for d := range min(len(f.beyond), len(room)) {
		room[d] = m.netFree(d, k)
	}
	f.word[k] = f.onHand.pack(room[:], true)
	f.top[k>>6] = vecpack.Most(f.top[k>>6], f.word[k])
}

// packRoom packs the net room of all parcels, unless that is done. O(parcels × dimensions).
func (m *Planner) packRoom() {
	f, n := &m.fairness, m.p.Parcels.Len()
	if len(f.word) > 0 {
		return
	}
	f.word, f.top = resized(f.word, n), zeroed(f.top, m.p.Parcels.Words())
	inHalves(len(f.top), func(from, to int) {
		for k := from << 6; k < min(to<<6, n); k++ {
			m.lift(cluster.ParcelID(k))
		}
	})
}

// unlike notes that the net room of a parcel is not what it was, nor will be in the next cycle.
func (f *fairs) unlike(k cluster.ParcelID) {
	f.onHand.doubt(k)
	f.other = append(f.other, k)
}

// giveRoom adds units of a size to the net room of a parcel.
func (m *Planner) giveRoom(k cluster.ParcelID, size []int64, units int64) {
	m.fairness.unlike(k)
	for d, column := range m.fairness.beyond {
		column[k] += size[d] * units
	}
	if units > 0 {
		m.gainRoom(k)
	}
}

// freed tells that so many units more of a size are free on a parcel, fewer when units is below 0, that net room counts already.
func (m *Planner) freed(k cluster.ParcelID, size []int64, units int64) {
	for d, column := range m.fairness.beyond {
		column[k] -= size[d] * units
	}
}

// loosen lists the parcels that may have more room net than they had while granting: those on hosts of which something is under
// reclaim, or gained room since. What found no room while granting can fit no other.
func (m *Planner) loosen() {
	f, p := &m.fairness, &m.p.Parcels
	f.loose, f.news = resized(f.loose, m.policy.Len()), resized(f.news, m.policy.Len())
	for n := range f.loose {
		f.loose[n], f.news[n] = f.loose[n][:0], f.news[n][:0]
	}
	f.joins, f.all = nil, false
	list := append(f.gained, f.regain...)
	slices.Sort(list)
	end := cluster.ParcelID(0)
	for _, k := range list {
		if k < end {
			continue
		}
		for k, end = p.Begin(k), p.End(k); k < end; k++ {
			m.tell(f.loose, k)
		}
	}
	f.gained, f.told = f.gained[:0], 0
}

// tell adds a parcel to the lists of its owner and of those above.
func (m *Planner) tell(list [][]cluster.ParcelID, k cluster.ParcelID) {
	n := plan.Root
	if owner := m.p.Parcels.Owner[k]; owner != cluster.NoID {
		n = m.s.NodeOf[owner]
	}
	for ; n != plan.None; n = m.policy.Parent[n] {
		list[n] = append(list[n], k)
	}
}

// newsOf is the parcels of a consumer and of those below it that gained room since they were laid, in turn.
func (m *Planner) newsOf(n plan.Node) []cluster.ParcelID {
	f := &m.fairness
	for ; f.told < len(f.gained); f.told++ {
		m.tell(f.news, f.gained[f.told])
	}
	return f.news[n]
}

// mayJoin tells whether there are parcels that a unit might join through a consumer's pool.
func (m *Planner) mayJoin(top plan.Node) bool {
	f := &m.fairness
	return f.all || len(f.loose[top]) > 0 || len(m.newsOf(top)) > 0 || m.refused(top)
}

// join counts a unit as promised that will fit a parcel through a consumer's pool once the sets under way are done; one of some
// parcels, nil: of all.
func (m *Planner) join(sub cluster.SubID, top plan.Node, among func(k cluster.ParcelID) bool) bool {
	f, size := &m.fairness, m.s.Size(sub)
	if !m.mayJoin(top) {
		return false
	}
	k := m.firstWithRoom(sub, size, top, among)
	if k == cluster.NoID {
		return false
	}
	m.giveRoom(k, size, -1)
	pool := m.via(sub, k)
	m.unpromise(sub, pool, -1)
	if f.joinedAt == nil {
		f.joinedAt, f.joinedOn = map[cluster.SubID][]cluster.ParcelID{}, map[cluster.ParcelID][]cluster.SubID{}
	}
	f.joinedAt[sub] = append(f.joinedAt[sub], k)
	if m.firstReserve(k) != cluster.NoID {
		f.joinedOn[k] = append(f.joinedOn[k], sub)
	}
	m.p.Continue()
	return true
}

// refused tells whether a share limit kept units from a pool while granting: they may fit any parcel of it now.
func (m *Planner) refused(top plan.Node) bool {
	i := m.pools.index[top]
	return i != cluster.NoID && m.pools.list[i].refused
}

// firstWithRoom is the first parcel, in host order, that a sub-allocation may use through a consumer's pool and whose net room
// a unit of it fits.
func (m *Planner) firstWithRoom(sub cluster.SubID, size []int64, top plan.Node, among func(k cluster.ParcelID) bool) cluster.ParcelID {
	leaf := m.s.Node(sub)
	may := func(k cluster.ParcelID) bool { return (among == nil || among(k)) && m.mayUse(leaf, sub, k, top) }
	f, t, news := &m.fairness, m.joinerOf(sub, top), m.newsOf(top)
	t.late = slices.DeleteFunc(t.late, func(k cluster.ParcelID) bool { return !m.hasRoom(k, top, size) })
	for _, k := range news[t.seen:] {
		if m.hasRoom(k, top, size) {
			if at, known := slices.BinarySearch(t.late, k); !known {
				t.late = slices.Insert(t.late, at, k)
			}
		}
	}
	t.seen = len(news)
	best := cluster.ParcelID(cluster.NoID)
	if i := slices.IndexFunc(t.late, may); i >= 0 {
		best = t.late[i]
	}
	n, want, passed := len(t.list), f.onHand.pack(size, false), false
	if t.list == nil {
		n = m.p.Parcels.Len()
	}
	for i := m.roomy(t, t.next, want); i < n; i = m.roomy(t, i+1, want) {
		if !passed {
			t.next = i
		}
		k := t.at(i)
		if best != cluster.NoID && k >= best {
			return best
		}
		if !m.hasRoom(k, top, size) {
			if len(f.word) > 0 {
				m.lift(k) // it has lost room since
			}
			continue
		}
		if may(k) {
			return k
		}
		passed = true
	}
	if !passed {
		t.next = n
	}
	return best
}

// at is the parcel at a place of a joiner's list.
func (t *joiner) at(i int) cluster.ParcelID {
	if t.list == nil {
		return cluster.ParcelID(i)
	}
	return t.list[i]
}

// roomy is the first place from one on, in a joiner's list, of a parcel whose net room may cover a packed unit; no place of it: none.
// O(1) for most of 64 parcels where all are looked through.
func (m *Planner) roomy(t *joiner, i int, want uint64) int {
	f := &m.fairness
	if t.list == nil {
		k := vecpack.FirstCover(m.p.Parcels.Open, nil, nil, f.top, i, f.word, want)
		if k < 0 {
			return m.p.Parcels.Len()
		}
		return k
	}
	for len(f.word) > 0 && i < len(t.list) && !vecpack.Covers(f.word[t.list[i]], want) {
		i++
	}
	return i
}

// joinerOf is how far parcels were looked through for units like those of a sub-allocation.
func (m *Planner) joinerOf(sub cluster.SubID, top plan.Node) *joiner {
	f := &m.fairness
	key := joinKey{top, m.s.Sub.Shape[sub], m.s.Sub.Need[sub]}
	if t := f.joins[key]; t != nil {
		return t
	}
	if f.joins == nil {
		f.joins, f.joinsOf = map[joinKey]*joiner{}, map[plan.Node][]*joiner{}
	}
	t := &joiner{list: f.loose[top]}
	switch full := f.all || m.refused(top); {
	case full:
		m.packRoom()
		t.list, t.seen = m.wholeOf(top), len(m.newsOf(top)) // what gained room before is in the list
	case t.list == nil:
		t.list = []cluster.ParcelID{}
	}
	size := m.s.Shape.Size(key.shape)
	for _, other := range f.joinsOf[top] { // they have the same list: where there is no room for less there is none for more
		if other.next > t.next && isWithin(other.size, size) {
			if t.next, t.seen, t.late = other.next, other.seen, append(t.late[:0], other.late...); mutant == 67 {
				t.late = nil
			}
		}
	}
	t.size, f.joins[key], f.joinsOf[top] = size, t, append(f.joinsOf[top], t)
	return t
}

// isWithin tells whether no amount is more than in another vector.
func isWithin(a, b []int64) bool {
	for d, amount := range a {
		if amount > b[d] {
			return false
		}
	}
	return true
}

// wholeOf lists the parcels of a consumer and of those below it in host order; nil, for all, of the root.
func (m *Planner) wholeOf(n plan.Node) []cluster.ParcelID {
	if n == plan.Root {
		return nil
	}
	list, ok := m.fairness.whole[n]
	if !ok {
		own, _, all := m.parcelRange(n)
		list = slices.Clone(m.owners.parcel[own:all])
		slices.Sort(list)
		m.fairness.whole[n] = list
	}
	return list
}

// hasRoom tells whether a unit fits the net room of a parcel for those who draw on it through a consumer's pool.
func (m *Planner) hasRoom(k cluster.ParcelID, top plan.Node, size []int64) bool {
	for d, u := range size {
		if u > 0 && m.netFree(d, k) < u {
			return false
		}
	}
	if !m.reserved(k, top) || mutant == 51 {
		return true
	}
	least := make([]int64, len(size))
	m.spare(k, top, true, least)
	for d, u := range size {
		if u > 0 && least[d] < u {
			return false
		}
	}
	return true
}

// mayUse tells whether a parcel may take one more unit of a sub-allocation, through a consumer's pool.
func (m *Planner) mayUse(leaf plan.Node, sub cluster.SubID, k cluster.ParcelID, top plan.Node) bool {
	return m.meet(leaf, k) == top && m.usable(sub, k) && m.perHost(sub, k, m.promisedAt(sub, m.p.Parcels.Host[k])+1) &&
		(m.policy.ReclaimUS[leaf] <= m.grace(m.p.Parcels.Owner[k], top) || mutant == 52)
}
