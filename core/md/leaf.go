package md

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// ofLeaf is what a leaf holds from a pool, newest first. It stays as it is while takers are served: what is gone of it meanwhile is
// passed by.
type ofLeaf struct {
	known   bool
	touches int64  // State.Shifts.Touches, as of which it is
	looked  uint32 // in which round of takers it was brought up
	parcel  []cluster.ParcelID
	held    []cluster.HoldingID // as parcel
	same    []sameKind
}

// sameKind is some of one unit size that were granted in turn.
type sameKind struct {
	pair     cluster.PairID
	shape    cluster.ShapeID
	from, to int32
}

// news is which holdings of leaves were touched.
type news struct {
	from int64   // what was touched before is not known any more
	last []int32 // by Node: the last row of a leaf, NoID: none
	row  []newsRow
}

// newsRow is one of them.
type newsRow struct {
	touch  int64 // its number
	q      cluster.HoldingID
	before int32 // the row of the same leaf before it, NoID: none
}

// As many rows are kept as one of newsPart holdings, and newsMin in any case. Where more come, the older half goes.
const (
	newsPart = 8
	newsMin  = 1 << 6
)

// tellLeaves notes what was touched since onHand.touches; known is false when not all of that is told. O(touched).
func (m *Planner) tellLeaves(touched []cluster.Touch, known bool) {
	v := &m.fairness.onHand.news
	most := max(newsMin, len(m.s.Holding.Sub)/newsPart)
	if !known || len(touched) > most || len(v.last) != m.policy.Len() {
		v.from, v.row, v.last = m.s.Shifts.Touches(), v.row[:0], resized(v.last, m.policy.Len())
		for n := range v.last {
			v.last[n] = cluster.NoID
		}
		return
	}
	from := m.fairness.onHand.touches
	if len(v.row)+len(touched) > most {
		v.drop(max(len(v.row)/2, len(v.row)+len(touched)-most), from)
	}
	for i := range touched {
		one := &touched[i]
		if one.Plan != m.p.Index || m.s.NodeOf[one.Consumer] == plan.None || mutant == 68 {
			continue
		}
		last := &v.last[m.s.NodeOf[one.Consumer]]
		v.row = append(v.row, newsRow{from + int64(i), one.Holding, *last})
		*last = int32(len(v.row) - 1)
	}
}

// drop forgets the first n rows; next is the number of the touch that comes next. O(rows and leaves).
func (v *news) drop(n int, next int64) {
	if n < len(v.row) {
		next = v.row[n].touch
	}
	if mutant != 69 {
		v.from = next
	}
	v.row = slices.Delete(v.row, 0, n)
	back := func(row *int32) { *row = max(*row-int32(n), cluster.NoID) }
	for i := range v.row {
		back(&v.row[i].before)
	}
	for leaf := range v.last {
		back(&v.last[leaf])
	}
}

// since lists the holdings of a leaf that were touched after so many touches, each once, ascending.
func (v *news) since(touches int64, leaf plan.Node, rows []cluster.HoldingID) []cluster.HoldingID {
	for i := v.last[leaf]; i != cluster.NoID && v.row[i].touch >= touches; i = v.row[i].before {
		rows = append(rows, v.row[i].q)
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

// holdsOf lists what a leaf holds from a pool and is not under reclaim, newest first, as it was before takers were served, or when it was first
// asked for; what comes one after the other and is of the same size is together. O(1) when nothing of it was touched since it was asked for last,
// O(what it holds) when that is known.
func (m *Planner) holdsOf(o *pool, leaf plan.Node) *ofLeaf {
	v := &m.fairness.onHand
	one := &v.leaf[o.at(leaf)]
	if one.looked != v.round {
		one.looked = v.round
		m.bringUp(o, leaf, one)
	}
	return one
}

// bringUp brings a leaf's list up to the last round of takers.
func (m *Planner) bringUp(o *pool, leaf plan.Node, one *ofLeaf) {
	v := &m.fairness.onHand
	if !one.known || one.touches < v.news.from {
		m.listHolds(o, leaf, one)
	} else if touched := v.news.since(one.touches, leaf, v.touched[:0]); len(touched) > 0 {
		v.touched = touched
		m.mergeHolds(o, leaf, one, touched)
	}
	one.known, one.touches = true, v.touches
}

// bringUpTouched brings up the lists of what is held from a pool of all leaves of which something was touched since, where they are known.
func (m *Planner) bringUpTouched(o *pool) {
	v := &m.fairness.onHand
	for leaf, last := range v.news.last {
		if last == cluster.NoID || plan.Node(leaf) < o.node || plan.Node(leaf) >= o.end {
			continue
		}
		if one := &v.leaf[o.at(plan.Node(leaf))]; one.known && one.touches >= v.news.from && v.news.row[last].touch >= one.touches {
			m.bringUp(o, plan.Node(leaf), one)
		}
	}
}

// listHolds makes the list of a leaf.
func (m *Planner) listHolds(o *pool, leaf plan.Node, one *ofLeaf) {
	v, h := &m.fairness.onHand, &m.s.Holding
	subs := v.subs[:0]
	for a := m.p.FirstAlloc[leaf]; a != cluster.NoID; a = m.s.Alloc.Next[a] {
		for sub := m.s.Alloc.First[a]; sub != cluster.NoID; sub = m.s.Sub.Next[sub] {
			subs = append(subs, sub)
		}
	}
	v.subs = subs
	rows := v.grants[:0]
	for _, sub := range slices.Backward(subs) { // so they are in order already, mostly
		for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
			if h.Set[q] == cluster.NoID && h.Pool[q] == o.id {
				rows = append(rows, m.grantAt(q))
			}
		}
	}
	slices.SortFunc(rows, newestGrant)
	v.grants, one.parcel, one.held, one.same = rows, slices.Grow(one.parcel[:0], len(rows)), slices.Grow(one.held[:0], len(rows)), one.same[:0]
	for i := range rows {
		one.add(rows[i].k, rows[i].q, m.pairIn(o, rows[i].sub), m.s.Sub.Shape[rows[i].sub])
	}
}

// mergeHolds drops holdings that were touched from the list of a leaf, and puts those that still belong there where they do now.
func (m *Planner) mergeHolds(o *pool, leaf plan.Node, one *ofLeaf, touched []cluster.HoldingID) {
	v, h := &m.fairness.onHand, &m.s.Holding
	rows := v.grants[:0]
	for _, q := range touched {
		if sub := h.Sub[q]; sub != cluster.NoID && m.s.Sub.Plan[sub] == m.p.Index && m.s.Node(sub) == leaf && h.Set[q] == cluster.NoID && h.Pool[q] == o.id {
			rows = append(rows, m.grantAt(q))
		}
	}
	slices.SortFunc(rows, newestGrant)
	v.grants = rows
	was := *one
	one.parcel, one.held, one.same = v.was.parcel[:0], v.was.held[:0], v.was.same[:0]
	v.was = was // whose memory the next one gets
	for _, same := range was.same {
		for i := same.from; i < same.to; i++ {
			q := was.held[i]
			if _, gone := slices.BinarySearch(touched, q); gone {
				continue
			}
			if len(rows) > 0 && m.isTaken(q) {
				continue // in this round, and touched after what is known of
			}
			for len(rows) > 0 && newestGrant(rows[0], m.grantAt(q)) < 0 {
				one.add(rows[0].k, rows[0].q, m.pairIn(o, rows[0].sub), m.s.Sub.Shape[rows[0].sub])
				rows = rows[1:]
			}
			one.add(was.parcel[i], q, same.pair, same.shape)
		}
	}
	for i := range rows {
		one.add(rows[i].k, rows[i].q, m.pairIn(o, rows[i].sub), m.s.Sub.Shape[rows[i].sub])
	}
}

// add adds a holding behind the others.
func (f *ofLeaf) add(k cluster.ParcelID, q cluster.HoldingID, pair cluster.PairID, shape cluster.ShapeID) {
	n := int32(len(f.held))
	f.parcel, f.held = append(f.parcel, k), append(f.held, q)
	if last := len(f.same) - 1; last >= 0 && f.same[last].pair == pair {
		f.same[last].to = n + 1
	} else {
		f.same = append(f.same, sameKind{pair, shape, n, n + 1})
	}
}

// grantOf is what the order of a leaf's holdings goes by, in one place.
type grantOf struct {
	granted, seq int64
	sub          cluster.SubID
	k            cluster.ParcelID
	q            cluster.HoldingID
}

func (m *Planner) grantAt(q cluster.HoldingID) grantOf {
	h := &m.s.Holding
	return grantOf{h.Granted[q], m.s.Sub.Seq[h.Sub[q]], h.Sub[q], h.Parcel[q], q}
}

// newestGrant is the order of newest. It leaves no two equal, so that a list that is brought up is the one that is made.
func newestGrant(a, b grantOf) int {
	switch {
	case a.granted != b.granted:
		return cmp.Compare(b.granted, a.granted)
	case a.seq != b.seq:
		return cmp.Compare(b.seq, a.seq)
	case a.k != b.k:
		return cmp.Compare(b.k, a.k)
	}
	return cmp.Compare(a.q, b.q)
}

// verifyLeaves tells of a leaf whose list, brought up, is not what it is when it is made.
func (m *Planner) verifyLeaves() error {
	v := &m.fairness.onHand
	for i := range m.pools.list {
		o := &m.pools.list[i]
		for leaf := o.node; leaf < o.end; leaf++ {
			if !v.leaf[o.at(leaf)].known {
				continue
			}
			is, now := v.leaf[o.at(leaf)], ofLeaf{}
			is.parcel, is.held, is.same = slices.Clone(is.parcel), slices.Clone(is.held), slices.Clone(is.same)
			m.bringUp(o, leaf, &is)
			m.listHolds(o, leaf, &now)
			if !slices.Equal(is.parcel, now.parcel) || !slices.Equal(is.held, now.held) || !slices.Equal(is.same, now.same) {
				return fmt.Errorf("leaf %d holds %v on %v from pool %d, not %v on %v", leaf, now.held, now.parcel, o.node, is.held, is.parcel)
			}
		}
	}
	return nil
}
