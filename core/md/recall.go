package md

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// recalls is what recall works with (MD-10).
type recalls struct {
	order   []plan.Node // leaves by rank
	outer   []int16     // by row of owners.parcel: how deep the consumer is whose pool is the uppermost through which anything of it is held
	touches int64       // State.Shifts.Touches, as of which outer is. Both are kept from cycle to cycle
	lent    []lent      // by Node
	lists   [2]listing
	vain    map[joinKey]*vain // of the lists in lent
	passed  []uint32          // by row of owners.parcel: the last search that found it to be of no use to its leaf
	search  uint32            // counts searches since passed was cleared
	nodes   []plan.Node       // scratch, as all below
	rows    []cluster.HoldingID
	freed   []cluster.HoldingID
	sets    []cluster.SetID
	room    []int64
	net     []int64
	old     []cluster.HoldingID
	least   []int64
	sum     []int64
}

// lent lists what outsiders of a consumer hold on its parcels and on those of consumers below it, in the order in which it is
// recalled: last rank first, newest first. Nothing is added to it in a cycle: who loses units, or gets them back, holds others
// there of the same grant.
type lent struct {
	known bool
	loan  []loan
	gone  []uint64 // bitset of loan: what is none any more, unless a set is dissolved on its parcel
	own   int32    // the consumer's first row of owners.parcel
	first []int32  // by row of owners.parcel from own on: the first loan on the parcel, NoID: none
	vain  []*vain
}

// loan is what an outsider was granted on a parcel in one cycle.
type loan struct {
	granted int64
	sub     cluster.SubID
	row     int32 // of owners.parcel
	next    int32 // the next loan on the parcel, NoID: none
}

// vain is what units of a size looked for in vain on parcels that are drawn on through a consumer's pool: what cannot be made to fit
// does not in the rest of the step, since there is ever less to take, unless a set is dissolved there, or one below the consumer takes
// there from another below it.
type vain struct {
	open []uint64 // bitset of the consumer's loans: those on parcels that were not looked at in vain
	from int      // no word of open before it has any but what is gone
}

// recall takes back for owners what they lent, leaves in rank order: of their own first, then of what those above them own and
// lend (MD-10), after lookOut.
func (m *Planner) recall() {
	if !m.p.Parcels.Owned {
		return
	}
	r, l := &m.recalls, &m.grant.line
	r.order = append(r.order[:0], m.grant.hungry.leaf...)
	slices.SortFunc(r.order, func(a, b plan.Node) int { return cmp.Compare(m.p.RankOrder[a], m.p.RankOrder[b]) })
	if mutant == 29 {
		slices.Reverse(r.order)
	}
	m.listLoans()
	for _, leaf := range r.order {
		if !l.Open(leaf) || !m.mayRecall(leaf) {
			continue
		}
		for more := true; more; more = l.Advance(leaf) {
			for sub := l.Next(leaf); sub != cluster.NoID; sub = l.Next(leaf) {
				if m.mayPromise(sub) && m.recallFor(leaf, sub) {
					m.turns--
					l.Sub[sub].Bar++
					l.Settle(leaf)
				} else {
					l.Pass(leaf)
				}
			}
		}
	}
}

// lookOut notes on which parcels outsiders of their owners hold anything. O(holdings beside those that were touched since the last time), or
// O(holdings) where these are not known.
func (m *Planner) lookOut() {
	if !m.p.Parcels.Owned {
		return
	}
	r, n := &m.recalls, len(m.owners.parcel)
	r.forget()
	r.lent = resized(r.lent, m.policy.Len())
	r.passed, r.search = zeroed(r.passed, n), 0
	if !m.lookOutSome() {
		r.touches, r.outer = m.s.Shifts.Touches(), resized(r.outer, n)
		inHalves(n, func(from, to int) {
			for row := from; row < to; row++ {
				m.lookAt(int32(row))
			}
		})
	}
}

// lookOutSome is lookOut where holdings were touched since the last time. It is false, and nothing is done, where these are not known.
func (m *Planner) lookOutSome() bool {
	r := &m.recalls
	touched, ok := m.s.Shifts.Touched(r.touches)
	if !ok || len(r.outer) != len(m.owners.parcel) || !m.p.Parcels.Owned {
		return false
	}
	r.touches = m.s.Shifts.Touches()
	for i := range touched {
		if one := &touched[i]; one.Plan == m.p.Index && m.p.Parcels.Owner[one.Parcel] != cluster.NoID && mutant != 63 {
			m.lookAt(m.owners.row[one.Parcel])
		}
	}
	return true
}

// lookAt is lookOut for a row of owners.parcel.
func (m *Planner) lookAt(row int32) {
	least := int32(math.MaxInt16)
	for q := m.p.Parcels.First[m.owners.parcel[row]]; q != cluster.NoID; q = m.s.Holding.NextOnParcel[q] {
		least = min(least, m.depthOf(q))
	}
	m.recalls.outer[row] = int16(least)
}

// listLoans lists what is lent of those who may recall it: leaves that are still short, and those above them. Leaves whose promises end when a set is
// dissolved list theirs when their turn comes.
func (m *Planner) listLoans() {
	r := &m.recalls
	r.nodes = r.nodes[:0]
	for _, leaf := range r.order {
		if !m.grant.line.Open(leaf) {
			continue
		}
		for n := leaf; n != plan.Root && !r.lent[n].known; n = m.policy.Parent[n] {
			r.lent[n].known = true
			r.nodes = append(r.nodes, n)
		}
	}
	inHalves(len(r.nodes), func(from, to int) {
		scratch := &r.lists[min(from, 1)]
		for _, n := range r.nodes[from:to] {
			m.listLoansOf(n, scratch)
		}
	})
}

// forget forgets what is lent, and what was looked for in vain.
func (r *recalls) forget() {
	r.vain = map[joinKey]*vain{}
	for n := range r.lent {
		r.lent[n].known = false
	}
}

// mayRecall tells whether anything is lent, or under way, on parcels of a leaf or of those above it.
func (m *Planner) mayRecall(leaf plan.Node) bool {
	for n := leaf; n != plan.Root; n = m.policy.Parent[n] {
		if m.mayJoin(n) || len(m.loans(n).loan) > 0 {
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

// listing is scratch memory of who lists loans.
type listing struct {
	rows []loanKey
	held []cluster.HoldingID
}

// loanKey is what the order of loans goes by, in one place.
type loanKey struct {
	young        bool // it has run for less than its min_runtime
	rank         int32
	granted, seq int64
	q            cluster.HoldingID
}

// loans is what is lent of a consumer's. O(holdings there), the first time.
func (m *Planner) loans(n plan.Node) *lent {
	list := &m.recalls.lent[n]
	if !list.known {
		m.listLoansOf(n, &m.recalls.lists[0])
	}
	return list
}

// listLoansOf lists what is lent of a consumer's.
func (m *Planner) listLoansOf(n plan.Node, scratch *listing) {
	r, h, depth := &m.recalls, &m.s.Holding, m.policy.Depth[n]
	list, rows, held := &r.lent[n], scratch.rows[:0], scratch.held[:0]
	own, _, all := m.parcelRange(n)
	for row := own; row < all; row++ {
		first := m.p.Parcels.First[m.owners.parcel[row]]
		if int32(r.outer[row]) < depth && first != cluster.NoID { // what was granted in this cycle may be taken back already
			held = append(held, first)
		}
	}
	held = follow(held, h.NextOnParcel)
	for _, q := range held {
		if m.depthOf(q) >= depth {
			continue
		}
		if leaf := m.s.Node(h.Sub[q]); leaf != plan.None {
			rows = append(rows, loanKey{m.isYoung(q), m.p.RankOrder[leaf], h.Granted[q], m.s.Sub.Seq[h.Sub[q]], q})
		}
	}
	slices.SortFunc(rows, m.lastLoanFirst)
	scratch.rows, scratch.held = rows, held
	list.known, list.own, list.loan, list.vain = true, own, list.loan[:0], list.vain[:0]
	list.gone, list.first = zeroed(list.gone, (len(rows)+63)/64), resized(list.first, int(all-own))
	for i := range list.first {
		list.first[i] = cluster.NoID
	}
	for i := range rows {
		q := rows[i].q
		list.loan = append(list.loan, loan{granted: rows[i].granted, sub: h.Sub[q], row: m.owners.row[h.Parcel[q]]})
	}
	for i := len(list.loan) - 1; i >= 0; i-- {
		first := &list.first[list.loan[i].row-own]
		list.loan[i].next, *first = *first, int32(i)
	}
}

// lastLoanFirst is the order of lastFirst.
func (m *Planner) lastLoanFirst(a, b loanKey) int {
	switch {
	case a.young != b.young:
		return behind(a.young)
	case mutant == 27 || mutant == 28 && a.rank == b.rank || a.rank == b.rank && a.granted == b.granted && a.seq == b.seq:
		return m.lastFirst(a.q, b.q)
	case a.rank != b.rank:
		return cmp.Compare(b.rank, a.rank)
	case a.granted != b.granted:
		return cmp.Compare(b.granted, a.granted)
	}
	return cmp.Compare(b.seq, a.seq)
}

// lookAgain forgets that loans on a parcel on which a set was dissolved are gone, or were looked at in vain; where units were taken
// there, for those alone who could not have taken them, consumers down to a depth: what is left over of them is new to these.
// O(loans there × kinds of units that looked), for its owner and those above.
func (m *Planner) lookAgain(k cluster.ParcelID, depth int32) {
	if m.p.Parcels.Owner[k] == cluster.NoID {
		return
	}
	for n := m.s.NodeOf[m.p.Parcels.Owner[k]]; n != plan.Root; n = m.policy.Parent[n] {
		list := &m.recalls.lent[n]
		if !list.known || m.policy.Depth[n] > depth {
			continue
		}
		for i := list.first[m.owners.row[k]-list.own]; i != cluster.NoID; i = list.loan[i].next {
			list.gone[i>>6] &^= 1 << (uint(i) & 63)
			for _, v := range list.vain {
				if mutant != 38 {
					v.open[i>>6] |= 1 << (uint(i) & 63)
					v.from = min(v.from, int(i>>6))
				}
			}
		}
	}
}

// vainOf is what units like those of a sub-allocation looked for in vain of what is lent.
func (m *Planner) vainOf(list *lent, top plan.Node, sub cluster.SubID) *vain {
	key := joinKey{top, m.s.Sub.Shape[sub], m.s.Sub.Need[sub]}
	v := m.recalls.vain[key]
	if v == nil {
		v = &vain{open: make([]uint64, len(list.gone))}
		for i := range list.loan {
			v.open[i>>6] |= 1 << (uint(i) & 63)
		}
		m.recalls.vain[key], list.vain = v, append(list.vain, v)
	}
	return v
}

// next is the first loan from one on that is still there and on no parcel that was looked at in vain; NoID: none.
func (v *vain) next(list *lent, i int) int {
	if w := i >> 6; w < len(v.open) {
		if some := v.open[w] &^ list.gone[w] >> (uint(i) & 63); some != 0 {
			return i + bits.TrailingZeros64(some)
		}
	}
	for w := max(v.from, i>>6+1); w < len(v.open); w++ {
		if some := v.open[w] &^ list.gone[w]; some != 0 {
			return w<<6 + bits.TrailingZeros64(some)
		}
	}
	return cluster.NoID
}

// isYoung tells whether a holding has run for less than its min_runtime: recall takes it after all others (REQ-4).
func (m *Planner) isYoung(q cluster.HoldingID) bool {
	leaf := m.s.Node(m.s.Holding.Sub[q])
	return leaf != plan.None && mutant != 81 && m.s.Young(m.s.Holding.Granted[q], m.nowUS, m.policy.RuntimeUS[leaf])
}

// behind orders what is young behind what is not.
func behind(young bool) int {
	if young {
		return 1
	}
	return -1
}

// youngLast orders holdings as a recall takes them: those that are young last, then as lastFirst.
func (m *Planner) youngLast(a, b cluster.HoldingID) int {
	if young := m.isYoung(a); young != m.isYoung(b) {
		return behind(young)
	}
	return m.lastFirst(a, b)
}

// lastFirst orders holdings by rank, the last first, then by age, the newest first.
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
	r, list := &m.recalls, m.loans(top)
	if len(list.loan) == 0 {
		return false, false
	}
	v := m.vainOf(list, top, sub)
	for v.from < len(v.open) && v.open[v.from]&^list.gone[v.from] == 0 {
		v.from++
	}
	var near, far int32 // rows of parcels that the leaf draws on through a pool further down
	if top != leaf {
		near, _, far = m.parcelRange(m.toward(leaf, top))
	}
	r.search++
	for i := v.next(list, v.from<<6); i != cluster.NoID; i = v.next(list, i+1) {
		row := list.loan[i].row
		if near <= row && row < far || r.passed[row] == r.search {
			continue
		}
		k := m.owners.parcel[row]
		if among != nil && !among(k) || !m.mayUse(leaf, sub, k, top) {
			r.passed[row] = r.search
			continue
		}
		if !m.isLoan(&list.loan[i], k, top) {
			list.gone[i>>6] |= 1 << (uint(i) & 63)
			continue
		}
		if victims, dissolved, ok := m.makeRoom(k, m.s.Size(sub), top); ok {
			depth := int32(0)
			for _, v := range victims {
				depth = max(depth, m.depthOf(v.q))
			}
			if done = m.issue(decision.ReclaimRecall, sub, k, victims, dissolved); done && mutant != 65 {
				m.lookAgain(k, depth)
			}
			return done, !done
		}
		for j := list.first[row-list.own]; j != cluster.NoID; j = list.loan[j].next {
			v.open[j>>6] &^= 1 << (uint(j) & 63)
		}
	}
	return false, false
}

// isLoan tells whether anything that an outsider of a consumer was lent is still held, and not yet on its way to one who is none.
func (m *Planner) isLoan(one *loan, k cluster.ParcelID, top plan.Node) bool {
	h := &m.s.Holding
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		if h.Sub[q] == one.sub && h.Granted[q] == one.granted && (h.Set[q] == cluster.NoID || m.outsiders(h.Set[q], top)) {
			return true
		}
	}
	return false
}

// outsiders tells whether the taker of a set is an outsider of a consumer; a rule's has none.
func (m *Planner) outsiders(id cluster.SetID, n plan.Node) bool {
	taker := m.s.Set.Taker[id]
	return taker != cluster.NoID && !m.policy.Within(m.s.Node(taker), n)
}

// makeRoom chooses, for a unit on a parcel that is drawn on through a consumer's pool, victims among what outsiders hold there,
// and as few of their sets as it takes, the latest first, to be dissolved: those are borrowed until the next call. ok is false when
// it cannot be made to fit.
func (m *Planner) makeRoom(k cluster.ParcelID, size []int64, top plan.Node) (victims []victim, dissolved []cluster.SetID, ok bool) {
	r, h, t, depth := &m.recalls, &m.s.Holding, &m.s.Set, m.policy.Depth[top]
	r.sets, r.rows, r.freed, r.sum = r.sets[:0], r.rows[:0], r.freed[:0], zeroed(r.sum, len(size))
	m.eachSetOn(k, func(id cluster.SetID) {
		if t.Units[id] > 0 && m.outsiders(id, top) && mutant != 34 {
			r.sets = append(r.sets, id)
		}
	})
	slices.SortFunc(r.sets, func(a, b cluster.SetID) int { return cmp.Compare(t.Number[b], t.Number[a]) })
	if mutant == 35 {
		slices.Reverse(r.sets)
	}
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		if m.depthOf(q) < depth && h.Set[q] == cluster.NoID && m.s.Node(h.Sub[q]) != plan.None {
			r.rows = append(r.rows, q)
			add(r.sum, m.s.Size(h.Sub[q]), h.Units[q])
		}
	}
	m.layParts(k, top)
	n := 0
	for ; !covers(m.lesser(), r.sum, size); n++ {
		if n == len(r.sets) {
			return nil, nil, false // not even all together
		}
		id := r.sets[n]
		for d := range r.room {
			r.room[d] += m.s.Kept(id, d)
		}
		add(r.net, m.s.Size(t.Taker[id]), t.Units[id])
		for q := t.First[id]; q != cluster.NoID; q = h.NextOfSet[q] {
			add(r.net, m.s.Size(h.Sub[q]), -h.Units[q])
			if mutant != 37 {
				r.freed = append(r.freed, q)
				add(r.sum, m.s.Size(h.Sub[q]), h.Units[q])
			}
		}
	}
	slices.SortFunc(r.rows, m.youngLast)
	slices.SortStableFunc(r.freed, func(a, b cluster.HoldingID) int { return cmp.Or(cmp.Compare(h.Due[a], h.Due[b]), m.youngLast(a, b)) })
	r.freed = m.grantedFirst(append(r.freed, r.rows...), len(r.freed))
	if mutant == 36 && n > 0 {
		n = len(r.sets)
	}
	return m.chooseOld(r.freed, m.lesser(), size), r.sets[:n], true
}

// chooseOld is chooseAny among those alone that are not young, or are given back already for a set that ends, where these are enough.
func (m *Planner) chooseOld(rows []cluster.HoldingID, bound, size []int64) []victim {
	r, h := &m.recalls, &m.s.Holding
	r.old, r.sum = r.old[:0], zeroed(r.sum, len(size))
	for _, q := range rows {
		if h.Set[q] != cluster.NoID || !m.isYoung(q) {
			r.old = append(r.old, q)
			add(r.sum, m.s.Size(h.Sub[q]), h.Units[q])
		}
	}
	if len(r.old) < len(rows) && covers(bound, r.sum, size) {
		rows = r.old
	}
	return m.chooseAny(rows, bound, size)
}

// grantedFirst moves holdings that were granted in this cycle before the first of their sub-allocation, which may be among the
// first ones, those of dissolved sets (CYC-1).
func (m *Planner) grantedFirst(list []cluster.HoldingID, freed int) []cluster.HoldingID {
	h := &m.s.Holding
	for i := 0; i < freed && mutant != 79; i++ {
		for j := freed; j < len(list); j++ {
			if q := list[j]; h.Sub[q] == h.Sub[list[i]] && h.Granted[q] > m.s.Cycle && h.Granted[list[i]] <= m.s.Cycle {
				copy(list[i+1:j+1], list[i:j])
				list[i], i, freed = q, i+1, freed+1
			}
		}
	}
	return list
}

// layParts computes room and net room of a parcel for those who draw on it through a consumer's pool, by dimension.
func (m *Planner) layParts(k cluster.ParcelID, top plan.Node) {
	r, dims := &m.recalls, len(m.p.Parcels.Cap)
	r.room, r.net, r.least = resized(r.room, dims), resized(r.net, dims), resized(r.least, dims)
	for d := range dims {
		r.room[d], r.net[d] = m.p.Parcels.Available(d, k), m.netFree(d, k)
	}
	if m.reserved(k, top) {
		m.spare(k, top, false, r.least)
		for d := range dims {
			r.room[d] = min(r.room[d], r.least[d])
		}
		m.spare(k, top, true, r.least)
		for d := range dims {
			r.net[d] = min(r.net[d], r.least[d])
		}
	}
}

// lesser is the lesser of room and net room, by dimension.
func (m *Planner) lesser() []int64 {
	r := &m.recalls
	for d := range r.least {
		r.least[d] = min(r.room[d], r.net[d])
	}
	return r.least
}

// chooseAny chooses victims in order, any of them allowed, that are enough all together: none, one alone, else one after the other
// that helps, less those that are not needed.
func (m *Planner) chooseAny(rows []cluster.HoldingID, bound, size []int64) (victims []victim) {
	h, sum := &m.s.Holding, zeroed(m.recalls.sum, len(size))
	if covers(bound, sum, size) {
		return nil
	}
	for _, q := range rows {
		if covers(bound, m.s.Size(h.Sub[q]), size) {
			return []victim{{q, 1}}
		}
	}
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
		return victims
	}
	return m.needed(victims, bound, sum, size)
}
