package reclaim

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/room"
)

// lender is what outsiders hold on parcels of a consumer and of those below it, and what of each of these parcels a
// recall for it could make free at most: an index of the parcels, and one of what outsiders hold, in the order in
// which it is recalled, that is made when something is.
type lender struct {
	at     plan.Node
	parcel []cluster.ParcelID // with anything of outsiders, in order
	index  room.Index
	set    room.Set
	masks  masks

	listed bool
	loan   []loan
	first  []int32 // by row of parcel: one more than the first loan there, 0: none
	loans  room.Index
	open   room.Set
}

// loan is units of an outsider on a parcel.
type loan struct {
	sub     cluster.SubID
	granted int64
	core    bool
	row     int32 // of parcel
	next    int32 // one more than the next loan there, 0: none
}

// outcome is what came of recalling room for a unit.
type outcome int

const (
	nowhere outcome = iota // it cannot be made to fit
	served                 // it is promised
	refused                // by the budget
)

// Recall takes back what outsiders hold of what is owned (step 7, MD-10): leaves recall their own parcels in
// rank order;
// then for each consumer above them, the deepest first, the leaves below it have turns.
func (g *Stage) Recall() {
	if !g.p.Parcels.Owned {
		return
	}
	short := g.shortLeaves(nil)
	leaves := slices.Clone(short)
	slices.SortFunc(leaves, func(a, b plan.Node) int { return cmp.Compare(g.p.RankOrder[a], g.p.RankOrder[b]) })
	for _, leaf := range leaves {
		from, to := g.Views.Owned.Own(leaf)
		if g.queue.Reset(); from < to && g.ask(leaf) { // now: sets of its that end are known
			for g.serveRecall(leaf, leaf, 0) {
			}
		}
	}
	for _, top := range g.List() {
		if top != plan.Root {
			g.recallIn(top, g.inside(short, top))
		}
	}
}

// recallIn gives leaves below a consumer turns to recall what outsiders of it hold on its parcels, in the order of
// MD-16's walk in its pool.
func (g *Stage) recallIn(top plan.Node, leaves []plan.Node) {
	v, line := &stakes{}, map[plan.Node]int32{}
	g.queue.Reset()
	for _, leaf := range leaves {
		if !g.Barred(top, leaf) && g.ask(leaf) {
			line[leaf] = int32(len(g.queue.Leaf) - 1)
		}
	}
	if len(line) == 0 {
		return
	}
	g.layStakes(v, top)
	g.net.live = v
	takers := &g.fair.takers
	takers.reset(g, v, nil)
	takers.fill(func(leaf plan.Node) bool {
		_, ok := line[leaf]
		return ok
	})
	for leaf := takers.first(); leaf != plan.None; leaf = takers.first() {
		served := g.serveRecall(leaf, top, line[leaf])
		takers.set(leaf, served && g.queue.Advance(line[leaf]), v.stake)
	}
	g.net.live = nil
}

// serveRecall promises a leaf one unit more on parcels that it draws on through the pool of a consumer, or owns. An ask
// that cannot be served is passed over.
func (g *Stage) serveRecall(leaf, top plan.Node, l int32) (done bool) {
	q := &g.queue
	for !done && q.Advance(l) {
		sub := q.Ask[q.Next(l)].Sub
		done = g.mayPromise(sub) && !g.stopped(leaf, top, g.s.Size(sub)) && g.recallFrom(sub, top, nil) == served
		g.settleAsk(l, done)
	}
	return done
}

// recallFor promises a leaf one unit of a sub-allocation on parcels of its own, or of those above it.
func (g *Stage) recallFor(leaf plan.Node, sub cluster.SubID) outcome {
	for top := leaf; top != plan.Root; top = g.tree.Parent[top] {
		if from, to := g.Views.Owned.Below(top); from == to || g.stopped(leaf, top, g.s.Size(sub)) ||
			g.Barred(top, leaf) {
			continue
		}
		if done := g.recallFrom(sub, top, nil); done != nowhere {
			return done
		}
	}
	return nowhere
}

// Prefer promises a leaf one unit of a sub-allocation on those of its own parcels that among accepts, where the plan
// reclaims for preference (step 4), and tells whether it did.
func (g *Stage) Prefer(sub cluster.SubID, among func(k cluster.ParcelID) bool) bool {
	return g.mayPromise(sub) && g.recallFrom(sub, g.s.Node(sub), among) == served
}

// Hold takes in that a unit of a sub-allocation is granted on a parcel, beside what the state knows.
func (g *Stage) Hold(sub cluster.SubID, k cluster.ParcelID) {
	leaf, size := g.s.Node(sub), g.s.Size(sub)
	_, from, lender := g.s.CountsAs(leaf, g.p.Parcels.Owner[k])
	g.open(k)
	g.insert(held{
		sub: sub, shape: g.s.Sub.Shape[sub], leaf: leaf, pool: from, lender: lender, parcel: k, set: noSet,
		granted: g.s.Cycle + 1, units: 1,
	})
	g.touch(k)
	g.altered[k>>6] |= 1 << (uint(k) & 63)
	add(g.of(g.free, k), size, -1)
	add(g.of(g.stay, k), size, -1)
	g.changed(k)
}

// recallFrom promises a unit on one of the parcels that its leaf draws on through the pool of a consumer, or owns: it
// joins sets under way there, else it takes victims on the first parcel, in the order of what outsiders of the
// consumer hold, on which it can be made to fit.
func (g *Stage) recallFrom(sub cluster.SubID, top plan.Node, among func(k cluster.ParcelID) bool) outcome {
	if !g.firm && g.join(sub, top, among) {
		return served
	}
	l := g.lenderAt(top)
	need := l.index.Need(g.s.Size(sub))
	may := func(k cluster.ParcelID) bool { return (among == nil || among(k)) && g.mayUse(sub, k, top) }
	mask := l.masks.of(g, sub, top, l.parcel)
	row := l.index.First(&l.set, &need, 0, mask)
	for row != room.NoRow && !may(l.parcel[row]) {
		row = l.index.First(&l.set, &need, row+1, mask)
	}
	if row == room.NoRow {
		return nowhere
	}
	g.listLoans(l)
	var best *loss
	var seen []cluster.ParcelID
	for i := l.loans.First(&l.open, &need, 0, nil); i != room.NoRow; i = l.loans.First(&l.open, &need, i+1, nil) {
		k := l.parcel[l.loan[i].row]
		if slices.Contains(seen, k) || !may(k) {
			continue
		}
		seen = append(seen, k)
		if one := g.lossOn(k, sub, top); best == nil || one.before(best) {
			best = one
		}
		if len(seen) == choicesMost || best.depth <= 0 && best.units <= 1 {
			break
		}
	}
	switch {
	case best == nil:
		return nowhere
	case g.issue(decision.ReclaimRecall, sub, best.parcel, best.victims, best.dissolved):
		return served
	}
	return refused
}

// loss is what a recall takes on a parcel.
type loss struct {
	parcel    cluster.ParcelID
	victims   []victim
	dissolved []int32
	depth     int32 // of the deepest consumer through whose pool a victim is held
	units     int64
}

// before reports whether a loss is less than one found before it (MD-10.4).
func (m *loss) before(o *loss) bool {
	return cmp.Or(cmp.Compare(m.depth, o.depth), cmp.Compare(m.units, o.units)) < 0
}

// lossOn is what a recall for a consumer takes on a parcel to make room for a unit.
func (g *Stage) lossOn(k cluster.ParcelID, sub cluster.SubID, top plan.Node) *loss {
	m := &loss{parcel: k, depth: -1}
	m.victims, m.dissolved = g.makeRoom(k, g.s.Size(sub), top)
	for _, v := range m.victims {
		m.depth, m.units = max(m.depth, g.depth(&g.row[v.row])), m.units+v.units
	}
	return m
}

// lenderAt is what outsiders hold of a consumer's. O(what is held on its parcels) for the first time.
func (g *Stage) lenderAt(top plan.Node) *lender {
	if l := g.lenders[top]; l != nil {
		return l
	}
	l := &lender{at: top}
	from, to := g.Views.Owned.Below(top)
	for _, k := range g.Views.Owned.Parcel[from:to] {
		if g.p.Parcels.IsOpen(k) && (g.besideAny(k, top) || g.sets.firstOn[k] > 0) {
			l.parcel = append(l.parcel, k)
		}
	}
	slices.Sort(l.parcel)
	most := g.mostOf(l.parcel)
	l.index.Reset(len(l.parcel), most)
	l.set.Reset(len(l.parcel))
	for row, k := range l.parcel {
		g.mostFrom(k, top, l.index.Free(room.Row(row)))
		l.index.Put(room.Row(row), l.index.Free(room.Row(row)))
		l.set.Add(&l.index, room.Row(row))
	}
	g.lenders[top] = l
	return l
}

// isOutsiders tells whether units may be recalled for a consumer: outsiders of it hold them, and they stay, or make
// room for one there.
func (g *Stage) isOutsiders(one *held, top plan.Node) bool {
	if one.units == 0 || g.depth(one) >= g.tree.Depth[top] {
		return false
	}
	if one.set == noSet {
		return one.leaf != plan.None
	}
	return one.set >= 0 && g.sets.list[one.set].parcel == one.parcel && g.takesOutside(one.set, top)
}

// takesOutside tells whether a set is for an outsider of a consumer, and promises anything.
func (g *Stage) takesOutside(i int32, top plan.Node) bool {
	one := &g.sets.list[i]
	return one.taker != cluster.NoID && one.units > 0 && !g.within(g.s.Node(one.taker), top)
}

// mostFrom computes the most that a recall for a consumer could make free on a parcel: with all that outsiders hold,
// and all that their sets keep. A unit can be made to fit if it fits that.
func (g *Stage) mostFrom(k cluster.ParcelID, top plan.Node, dst []int64) {
	now, net := g.rooms(k, top)
	for i := g.sets.firstOn[k] - 1; i >= 0; i = g.sets.list[i].next - 1 {
		if g.takesOutside(i, top) {
			g.dissolved(i, now, net)
		}
	}
	for d := range dst {
		dst[d] = min(now[d], net[d])
	}
	for i := g.open(k); i > 0; i = g.row[i].next {
		if one := &g.row[i]; g.isOutsiders(one, top) {
			add(dst, g.s.Shape.Size(one.shape), one.units)
		}
	}
	for d := range dst {
		dst[d] = min(dst[d], g.p.Parcels.Cap[d][k])
	}
}

// dissolved takes into rooms of a parcel that a set there were dissolved.
func (g *Stage) dissolved(i int32, now, net []int64) {
	one := &g.sets.list[i]
	add(now, g.keptBy(i), 1)
	add(net, g.s.Size(one.taker), one.units)
	for _, v := range g.victims(i) {
		if row := &g.row[v]; row.parcel == one.parcel { // others make no room there (MD-17.7, MD-18.2)
			add(net, g.s.Shape.Size(row.shape), -row.units)
		}
	}
}

// listLoans lists what outsiders hold, the first time, as a recall takes it.
func (g *Stage) listLoans(l *lender) {
	if l.listed {
		return
	}
	l.listed = true
	var rows, at []int32
	for row, k := range l.parcel {
		for i := g.open(k); i > 0; i = g.row[i].next {
			if g.isOutsiders(&g.row[i], l.at) {
				rows, at = append(rows, i), append(at, int32(row))
			}
		}
	}
	order := make([]int32, len(rows))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return g.recalled(rows[a], rows[b]) })
	l.first = make([]int32, len(l.parcel))
	l.loans.Reset(len(order), g.mostOf(l.parcel))
	l.open.Reset(len(order))
	for i, n := range order {
		one := &g.row[rows[n]]
		l.loan = append(l.loan, loan{one.sub, one.granted, one.core, at[n], l.first[at[n]]})
		l.first[at[n]] = int32(i) + 1
		l.loans.Put(room.Row(i), l.index.Free(room.Row(at[n])))
		l.open.Add(&l.loans, room.Row(i))
	}
}

// recalled orders rows as a recall takes them.
func (g *Stage) recalled(a, b int32) int {
	x, y := &g.row[a], &g.row[b]
	return cmp.Or(g.coreLast(a, b), cmp.Compare(g.young(x), g.young(y)), cmp.Compare(g.depth(x), g.depth(y)),
		g.lastRank(x, y))
}

// young is 1 for units that have run for less than their consumer's min_runtime, else 0.
func (g *Stage) young(one *held) int {
	if g.isYoung(one.leaf, one.granted) {
		return 1
	}
	return 0
}

// updateLender brings what a recall could make free of a parcel up to it.
func (g *Stage) updateLender(l *lender, k cluster.ParcelID) {
	at, ok := slices.BinarySearch(l.parcel, k)
	if !ok {
		return
	}
	row := room.Row(at)
	g.mostFrom(k, l.at, l.index.Free(row))
	l.index.Put(row, l.index.Free(row))
	l.set.Add(&l.index, row)
	if !l.listed {
		return
	}
	for i := l.first[at] - 1; i >= 0; i = l.loan[i].next - 1 {
		if g.isLoan(&l.loan[i], k, l.at) {
			l.loans.Put(room.Row(i), l.index.Free(row))
			l.open.Add(&l.loans, room.Row(i))
		} else {
			l.loans.Shut(room.Row(i))
		}
	}
}

// isLoan tells whether anything of a loan may be recalled yet.
func (g *Stage) isLoan(one *loan, k cluster.ParcelID, top plan.Node) bool {
	for i := g.open(k); i > 0; i = g.row[i].next {
		if at := &g.row[i]; at.sub == one.sub && at.granted == one.granted && at.core == one.core &&
			g.isOutsiders(at, top) {
			return true
		}
	}
	return false
}

// makeRoom chooses, for a unit on a parcel that can be made to fit there, victims among what outsiders of a consumer
// hold there, and as few of their sets as it takes, the latest first, to be dissolved.
func (g *Stage) makeRoom(k cluster.ParcelID, size []int64, top plan.Node) (victims []victim, dissolved []int32) {
	a, b := g.rooms(k, top)
	now, net, bound, sum := slices.Clone(a), slices.Clone(b), make([]int64, g.dims), make([]int64, g.dims)
	var rows, freed, ends []int32
	for i := g.sets.firstOn[k] - 1; i >= 0; i = g.sets.list[i].next - 1 {
		if g.takesOutside(i, top) {
			ends = append(ends, i)
		}
	}
	slices.SortFunc(ends, func(a, b int32) int { return cmp.Compare(b, a) })
	for i := g.open(k); i > 0; i = g.row[i].next {
		if one := &g.row[i]; one.set == noSet && g.isOutsiders(one, top) {
			rows = append(rows, i)
			add(sum, g.s.Shape.Size(one.shape), one.units)
		}
	}
	n := 0
	for ; ; n++ {
		for d := range bound {
			bound[d] = min(now[d], net[d])
		}
		if covers(bound, sum, size) {
			break
		}
		if n == len(ends) {
			panic("BUG: a unit does not fit what a recall could make free")
		}
		g.dissolved(ends[n], now, net)
		for _, v := range g.victims(ends[n]) {
			if one := &g.row[v]; g.isOutsiders(one, top) {
				freed = append(freed, v)
				add(sum, g.s.Shape.Size(one.shape), one.units)
			}
		}
	}
	slices.SortFunc(rows, g.recalled)
	slices.SortFunc(freed, func(a, b int32) int {
		return cmp.Or(cmp.Compare(g.row[a].due, g.row[b].due), g.recalled(a, b))
	})
	return g.chooseOld(g.freshFirst(append(freed, rows...), len(freed)), bound, size, k), ends[:n]
}

// freshFirst moves rows that were granted in this cycle before the first of their sub-allocation, which may be among
// the first ones, those of sets that end (CYC-1).
func (g *Stage) freshFirst(list []int32, freed int) []int32 {
	for i := 0; i < freed; i++ {
		for j := freed; j < len(list); j++ {
			a, b := &g.row[list[i]], &g.row[list[j]]
			if a.sub == b.sub && g.isFresh(b) && !g.isFresh(a) {
				one := list[j]
				copy(list[i+1:j+1], list[i:j])
				list[i], i, freed = one, i+1, freed+1
			}
		}
	}
	return list
}

// chooseOld is chooseAny among those alone that are neither young nor such as a gang may not do without, or are given
// back already for a set that ends, where these are enough; else among all but the latter.
func (g *Stage) chooseOld(rows []int32, bound, size []int64, k cluster.ParcelID) []victim {
	for _, spared := range [...]func(one *held) bool{
		func(one *held) bool { return one.core || g.young(one) > 0 },
		func(one *held) bool { return one.core },
	} {
		var some []int32
		sum := make([]int64, g.dims)
		for _, i := range rows {
			if one := &g.row[i]; one.set != noSet || !spared(one) {
				some = append(some, i)
				add(sum, g.s.Shape.Size(one.shape), one.units)
			}
		}
		if len(some) == len(rows) || covers(bound, sum, size) {
			return g.chooseAny(some, g.needOf(size, bound, k, nil))
		}
	}
	return g.chooseAny(rows, g.needOf(size, bound, k, nil))
}

// chooseAny chooses among rows in order, any of them allowed, units that are enough: none, one alone, else one after
// the other that helps, less those that are not needed.
func (g *Stage) chooseAny(rows []int32, n *need) (victims []victim) {
	if n.met() {
		return nil
	}
	for _, i := range rows {
		if n.enough(&g.row[i]) == 1 {
			return []victim{{row: i, units: 1}}
		}
	}
	for _, i := range rows {
		if units := min(n.helping(&g.row[i]), g.row[i].units); units > 0 {
			n.take(&g.row[i], units)
			victims = append(victims, victim{row: i, units: units})
		}
	}
	return g.needed(victims, n)
}
