package md

import (
	"cmp"
	"math"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// recalls is what recall works with (MD-10).
type recalls struct {
	order []plan.Node          // leaves by rank
	outer []int16              // by row of owners.parcel: how deep the consumer is whose pool is the uppermost through which anything of it is held
	lent  map[plan.Node][]loan // by consumer: what outsiders hold on its parcels and on those of consumers below it, as victims
	vain  map[joinKey]*vain
	below map[plan.Node][]*vain // the same, by the consumer through whose pool
}

// vain is what units of a size looked for in vain on parcels that are drawn on through a consumer's pool: what cannot be made to fit
// does not in the rest of the step, since there is ever less to take, unless a set is dissolved there.
type vain struct {
	from   int // of the loans, none before it
	parcel map[cluster.ParcelID]bool
}

// loan is units of an outsider of a consumer on its parcels.
type loan struct {
	q   cluster.HoldingID
	sub cluster.SubID
	k   cluster.ParcelID
}

// recall takes back for owners what they lent, leaves in rank order: of their own first, then of what those above them own and
// lend (MD-10).
func (m *Planner) recall() {
	if !m.p.Parcels.Owned {
		return
	}
	r, l := &m.recalls, &m.grant.line
	m.lookOut()
	r.order = append(r.order[:0], m.grant.hungry...)
	slices.SortFunc(r.order, func(a, b plan.Node) int { return cmp.Compare(m.p.RankOrder[a], m.p.RankOrder[b]) })
	if mutant == 29 {
		slices.Reverse(r.order)
	}
	for _, leaf := range r.order {
		if !m.mayRecall(leaf) || !l.Open(leaf) {
			continue
		}
		for more := true; more; more = l.Advance(leaf) {
			for sub := l.Next(leaf); sub != cluster.NoID; sub = l.Next(leaf) {
				if m.recallFor(leaf, sub) {
					l.Sub[sub].Bar++
					l.Settle(leaf)
				} else {
					l.Pass(leaf)
				}
			}
		}
	}
}

// lookOut notes on which parcels outsiders of their owners hold anything. O(parcels + holdings).
func (m *Planner) lookOut() {
	r := &m.recalls
	r.forget()
	r.outer = resized(r.outer, len(m.owners.parcel))
	for row, k := range m.owners.parcel {
		least := int32(math.MaxInt16)
		for q := m.p.Parcels.First[k]; q != cluster.NoID; q = m.s.Holding.NextOnParcel[q] {
			least = min(least, m.depthOf(q))
		}
		r.outer[row] = int16(least)
	}
}

// forget forgets what is lent, and what was looked for in vain.
func (r *recalls) forget() {
	r.lent, r.vain, r.below = map[plan.Node][]loan{}, map[joinKey]*vain{}, map[plan.Node][]*vain{}
}

// mayRecall tells whether anything is lent, or under way, on parcels of a leaf or of those above it.
func (m *Planner) mayRecall(leaf plan.Node) bool {
	for n := leaf; n != plan.Root; n = m.policy.Parent[n] {
		if m.mayJoin(n) || len(m.loans(n)) > 0 {
			return true
		}
	}
	return false
}

// recallFor promises a leaf one unit of a sub-allocation on parcels of its own or of those above it.
func (m *Planner) recallFor(leaf plan.Node, sub cluster.SubID) bool {
	if m.fairness.undone[sub] {
		return false
	}
	for top := leaf; top != plan.Root; top = m.policy.Parent[top] {
		if own, _, all := m.parcelRange(top); own == all || mutant == 30 && top != leaf {
			continue
		}
		if _, _, over := m.overLimitOf(m.pooled, leaf, sub, top); over && mutant != 31 {
			break // it stands against those further up too
		}
		if mutant != 32 && m.join(sub, top, nil) {
			return true
		}
		done, denied := m.recallFrom(leaf, sub, top, nil)
		if done || denied && mutant != 33 {
			return done
		}
	}
	return false
}

// loans lists what outsiders of a consumer hold on its parcels and on those of consumers below it, in the order in which it is
// recalled: last rank first, newest first. It stays what it was when it was first asked for, save on parcels of sets that are
// dissolved: see lookAgain.
func (m *Planner) loans(n plan.Node) []loan {
	r := &m.recalls
	if list, ok := r.lent[n]; ok {
		return list
	}
	var list []loan
	own, _, all := m.parcelRange(n)
	for row := own; row < all; row++ {
		list = m.loansOn(list, m.owners.parcel[row], n)
	}
	m.sortLoans(list)
	r.lent[n] = list
	return list
}

// loansOn adds to a list what outsiders of a consumer hold on a parcel.
func (m *Planner) loansOn(list []loan, k cluster.ParcelID, n plan.Node) []loan {
	h, depth := &m.s.Holding, m.policy.Depth[n]
	if int32(m.recalls.outer[m.owners.row[k]]) >= depth {
		return list
	}
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		if m.depthOf(q) < depth && m.s.Node(h.Sub[q]) != plan.None {
			list = append(list, loan{q, h.Sub[q], k})
		}
	}
	return list
}

func (m *Planner) sortLoans(list []loan) {
	slices.SortFunc(list, func(a, b loan) int { return m.lastFirst(a.q, b.q) })
}

// lookAgain forgets what was looked for in vain on a parcel on which a set was dissolved, and lists anew what is lent there: what
// was not taken over of its victims may be in other rows than before they were chosen. O(loans of its owner and those above).
func (m *Planner) lookAgain(k cluster.ParcelID) {
	r, h := &m.recalls, &m.s.Holding
	if m.p.Parcels.Owner[k] == cluster.NoID {
		return
	}
	for n := m.s.NodeOf[m.p.Parcels.Owner[k]]; n != plan.Root; n = m.policy.Parent[n] {
		for _, v := range r.below[n] {
			if mutant == 38 {
				break
			}
			v.from = 0
			delete(v.parcel, k)
		}
		if list, ok := r.lent[n]; ok {
			list = slices.DeleteFunc(list, func(one loan) bool { return one.k == k || h.Sub[one.q] != one.sub || h.Parcel[one.q] != one.k })
			for _, one := range m.loansOn(nil, k, n) {
				at, _ := slices.BinarySearchFunc(list, one, func(a, b loan) int { return m.lastFirst(a.q, b.q) })
				list = slices.Insert(list, at, one)
			}
			r.lent[n] = list
		}
	}
}

// lastFirst orders holdings as a recall takes them: last rank first, then newest first.
func (m *Planner) lastFirst(a, b cluster.HoldingID) int {
	h := &m.s.Holding
	x, y := m.s.Node(h.Sub[a]), m.s.Node(h.Sub[b])
	if mutant == 27 || mutant == 28 && x == y {
		return cmp.Or(cmp.Compare(m.p.RankOrder[x], m.p.RankOrder[y]), m.s.Newer(b, a))
	}
	return cmp.Or(cmp.Compare(m.p.RankOrder[y], m.p.RankOrder[x]), m.s.Newer(a, b))
}

// recallFrom makes a set for one unit of a sub-allocation on a parcel that its leaf draws on through a consumer's pool, or owns:
// the first, in the order of what is lent there, on which it can be made to fit; among some parcels, nil: all. denied tells
// that the budget did not bear it.
func (m *Planner) recallFrom(leaf plan.Node, sub cluster.SubID, top plan.Node, among func(k cluster.ParcelID) bool) (done, denied bool) {
	r, size := &m.recalls, m.s.Size(sub)
	list := m.loans(top)
	if len(list) == 0 {
		return false, false
	}
	key := joinKey{top, m.s.Sub.Shape[sub], m.s.Sub.Need[sub]}
	v := r.vain[key]
	if v == nil {
		v = &vain{parcel: map[cluster.ParcelID]bool{}}
		r.vain[key], r.below[top] = v, append(r.below[top], v)
	}
	for v.from < len(list) && (v.parcel[list[v.from].k] || !m.isLoan(list[v.from], top)) {
		v.from++
	}
	var not map[cluster.ParcelID]bool // parcels that are not for this leaf
	for _, one := range list[v.from:] {
		if v.parcel[one.k] || not[one.k] || !m.isLoan(one, top) {
			continue
		}
		if among != nil && !among(one.k) || !m.mayUse(leaf, sub, one.k, top) {
			if not == nil {
				not = map[cluster.ParcelID]bool{}
			}
			not[one.k] = true
			continue
		}
		if victims, dissolved, ok := m.makeRoom(one.k, size, top); ok {
			done = m.issue(decision.ReclaimRecall, sub, one.k, victims, dissolved)
			return done, !done
		}
		v.parcel[one.k] = true
	}
	return false, false
}

// isLoan tells whether what was held by an outsider of a consumer still is, and is not yet on its way to one who is none.
func (m *Planner) isLoan(one loan, top plan.Node) bool {
	h := &m.s.Holding
	if h.Sub[one.q] != one.sub || h.Parcel[one.q] != one.k {
		return false
	}
	id := h.Set[one.q]
	return id == cluster.NoID || m.outsiders(id, top)
}

// outsiders tells whether the taker of a set is an outsider of a consumer; a rule's has none.
func (m *Planner) outsiders(id cluster.SetID, n plan.Node) bool {
	taker := m.s.Set.Taker[id]
	return taker != cluster.NoID && !m.policy.Within(m.s.Node(taker), n)
}

// makeRoom chooses, for a unit on a parcel that is drawn on through a consumer's pool, victims among what outsiders hold there,
// and as few of their sets as it takes, the latest first, to be dissolved. ok is false when it cannot be made to fit.
func (m *Planner) makeRoom(k cluster.ParcelID, size []int64, top plan.Node) (victims []victim, dissolved []cluster.SetID, ok bool) {
	h, t, depth := &m.s.Holding, &m.s.Set, m.policy.Depth[top]
	var sets []cluster.SetID
	m.eachSetOn(k, func(id cluster.SetID) {
		if t.Units[id] > 0 && m.outsiders(id, top) && mutant != 34 {
			sets = append(sets, id)
		}
	})
	slices.SortFunc(sets, func(a, b cluster.SetID) int { return cmp.Compare(t.Number[b], t.Number[a]) })
	if mutant == 35 {
		slices.Reverse(sets)
	}
	var rows, freed []cluster.HoldingID
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		if m.depthOf(q) < depth && h.Set[q] == cluster.NoID && m.s.Node(h.Sub[q]) != plan.None {
			rows = append(rows, q)
		}
	}
	slices.SortFunc(rows, m.lastFirst)
	bound, net := m.parts(k, top)
	for n := 0; ; n++ {
		all := append(slices.Clone(freed), rows...)
		if victims, ok = m.chooseAny(all, lesser(bound, net), size); ok || n == len(sets) {
			if mutant == 36 && ok && n > 0 {
				n = len(sets)
			}
			return victims, sets[:n], ok
		}
		id := sets[n]
		for d := range bound {
			bound[d] += m.s.Kept(id, d)
		}
		add(net, m.s.Size(t.Taker[id]), t.Units[id])
		for q := t.First[id]; q != cluster.NoID; q = h.NextOfSet[q] {
			add(net, m.s.Size(h.Sub[q]), -h.Units[q])
			if mutant != 37 {
				freed = append(freed, q)
			}
		}
		slices.SortStableFunc(freed, func(a, b cluster.HoldingID) int { return cmp.Or(cmp.Compare(h.Due[a], h.Due[b]), m.lastFirst(a, b)) })
	}
}

// parts computes room and net room of a parcel for those who draw on it through a consumer's pool, by dimension.
func (m *Planner) parts(k cluster.ParcelID, top plan.Node) (room, net []int64) {
	dims := len(m.p.Parcels.Cap)
	room, net = make([]int64, dims), make([]int64, dims)
	least := make([]int64, dims)
	for d := range dims {
		room[d], net[d] = m.p.Parcels.Available(d, k), m.fairness.room[d][k]
	}
	if m.reserved(k, top) {
		m.spare(k, top, false, least)
		for d := range least {
			room[d] = min(room[d], least[d])
		}
		m.spare(k, top, true, least)
		for d := range least {
			net[d] = min(net[d], least[d])
		}
	}
	return room, net
}

func lesser(a, b []int64) []int64 {
	out := make([]int64, len(a))
	for d := range out {
		out[d] = min(a[d], b[d])
	}
	return out
}

// chooseAny chooses victims in order, any of them allowed: none, one alone, else one after the other that helps, less those
// that are not needed.
func (m *Planner) chooseAny(rows []cluster.HoldingID, bound, size []int64) (victims []victim, ok bool) {
	h, sum := &m.s.Holding, make([]int64, len(size))
	if covers(bound, sum, size) {
		return nil, true
	}
	for _, q := range rows {
		add(sum, m.s.Size(h.Sub[q]), h.Units[q])
	}
	if !covers(bound, sum, size) {
		return nil, false
	}
	for _, q := range rows {
		if covers(bound, m.s.Size(h.Sub[q]), size) {
			return []victim{{q, 1}}, true
		}
	}
	clear(sum)
	for _, q := range rows {
		each, n := m.s.Size(h.Sub[q]), int64(0)
		for ; n < h.Units[q] && helps(bound, sum, size, each); n++ {
			add(sum, each, 1)
		}
		if n > 0 {
			victims = append(victims, victim{q, n})
		}
	}
	if mutant == 39 {
		return victims, true
	}
	return m.needed(victims, bound, sum, size), true
}
