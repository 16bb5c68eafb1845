package reclaim

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/room"
	"github.com/stintd/stint/core/share"
)

// Gangs (REQ-3; docs/shares.md, "Gangs").

// gangUnits is what a gang holds, as things were when the stage began.
type gangUnits struct {
	core   map[cluster.HoldingID]int64 // of holdings, the units that it may not do without
	newest cluster.HoldingID           // of these
	young  bool                        // one of those that stayed then is young
}

// noGang is of sub-allocations without min_units.
var noGang = gangUnits{newest: cluster.NoID}

// gangOf is what a gang holds: it may not do without its min_units of those that stay, the newest left aside. O(1), the
// first time for a gang what it holds.
func (g *Stage) gangOf(sub cluster.SubID) *gangUnits {
	h, least := &g.s.Holding, g.s.Sub.MinUnits[sub]
	if least <= 1 {
		return &noGang
	}
	if gang, known := g.gangs[sub]; known {
		return gang
	}
	gang := &gangUnits{core: map[cluster.HoldingID]int64{}, newest: cluster.NoID}
	g.gangs[sub] = gang
	var list []cluster.HoldingID
	for at := g.s.Sub.First[sub]; at != cluster.NoID; at = h.NextOfSub[at] {
		if h.Set[at] == cluster.NoID {
			list = append(list, at)
			gang.young = gang.young || g.isYoung(g.s.Node(sub), h.Granted[at])
		}
	}
	slices.SortFunc(list, g.s.Newer)
	spare := g.s.Staying(sub) - least
	for _, at := range list {
		if spare < 0 {
			break // it is broken
		}
		n := min(spare, h.Units[at])
		if spare -= n; n < h.Units[at] {
			gang.core[at] = h.Units[at] - n
			if gang.newest == cluster.NoID {
				gang.newest = at
			}
		}
	}
	return gang
}

// isYoungGang tells whether a unit that stays with a gang is young: then none of its last min_units is a victim. O(1)
// where none was when the stage began, else what it holds.
func (g *Stage) isYoungGang(sub cluster.SubID) bool {
	if !g.gangOf(sub).young {
		return false
	}
	stay, _, _ := g.rowsOf(sub)
	return slices.ContainsFunc(stay, func(i int32) bool { return g.isYoung(g.row[i].leaf, g.row[i].granted) })
}

// coreOf is how many units of a holding a gang may not do without.
func (g *Stage) coreOf(q cluster.HoldingID) int64 { return g.gangOf(g.s.Holding.Sub[q]).core[q] }

// coreLast orders rows that gangs may not do without behind all others.
func (g *Stage) coreLast(a, b int32) int {
	x, y := g.row[a].core, g.row[b].core
	switch {
	case x == y:
		return 0
	case x:
		return 1
	}
	return -1
}

// GiveUp lets all sets of gangs lapse that wait for longer than the plan's gang_wait, and gives those gangs.
func (g *Stage) GiveUp(most int64) map[cluster.SubID]bool {
	return g.giveUp(func(first int32) bool { return g.NowUS-g.s.Set.Issued[g.sets.list[first].id] > most })
}

// giveUp lets all sets of gangs lapse that wait and are not promised all of their min_units any more, or of which late
// says so of the first set.
func (g *Stage) giveUp(late func(first int32) bool) map[cluster.SubID]bool {
	gave := map[cluster.SubID]bool{}
	var seen []cluster.SubID
	for i := range g.sets.list {
		sub := g.sets.list[i].taker
		if sub == cluster.NoID || g.sets.list[i].units == 0 || g.s.Sub.MinUnits[sub] <= 1 ||
			slices.Contains(seen, sub) {
			continue
		}
		seen = append(seen, sub)
		staying := g.stayingNow(sub)
		if staying >= g.s.Sub.MinUnits[sub] {
			continue
		}
		if late(int32(i)) {
			gave[sub] = true
		} else if staying+g.sets.promised[sub] >= g.s.Sub.MinUnits[sub] {
			continue
		}
		for j := len(g.sets.list) - 1; j >= i; j-- {
			for g.sets.list[j].taker == sub && g.sets.list[j].units > 0 {
				g.lapse(int32(j))
			}
		}
		g.turn(sub, true)
	}
	return gave
}

// goesWhole tells whether less than the min_units of a gang stay.
func (g *Stage) goesWhole(sub cluster.SubID) bool {
	least := g.s.Sub.MinUnits[sub]
	return least > 1 && g.stayingNow(sub) < least
}

// stayingNow is State.Staying by what the stage has decided.
func (g *Stage) stayingNow(sub cluster.SubID) (units int64) {
	h := &g.s.Holding
	var on []cluster.ParcelID
	for q := g.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
		if k := h.Parcel[q]; !slices.Contains(on, k) {
			on = append(on, k)
		}
	}
	for _, k := range on {
		for i := g.open(k); i > 0; i = g.row[i].next {
			if g.row[i].sub == sub && g.row[i].set == noSet {
				units += g.row[i].units
			}
		}
	}
	return units
}

// Gangs lists the gangs of a leaf that wait, in the order of CYC-10.
func (g *Stage) Gangs(leaf plan.Node) (subs []cluster.SubID) {
	g.queue.Reset()
	asks := g.queue.Add(&g.Env.Env, leaf, func(sub cluster.SubID) int64 {
		if g.Cycle.Undone[sub] || !g.s.Forming(sub) {
			return g.s.Sub.Wanted[sub]
		}
		return g.s.Sub.Held[sub] + g.sets.promised[sub]
	})
	for ; asks; asks = g.queue.Advance(0) {
		a := &g.queue.Ask[g.queue.Next(0)]
		subs = append(subs, a.Sub)
		a.Passed = true
		g.queue.Settle(0)
	}
	return subs
}

// Gather makes sets for all min_units of a gang that waits: it holds what is free, recalls what is its leaf's and of
// those above that, and takes what its leaf deserves of pools. It is false where they are not all found, or not all
// given back within the plan's gang_wait, or not borne by the budget: then what was decided is to be thrown away.
func (g *Stage) Gather(sub cluster.SubID, wait int64) bool {
	least, cycle := g.s.Sub.MinUnits[sub], g.Cycle
	g.lacking = false
	if g.sets.promised[sub] > 0 || g.s.Staying(sub) > 0 || g.s.Short(sub) < least || cycle.Undone[sub] ||
		g.turnsOf(sub) >= turnsMost {
		return false
	}
	if cycle.Promises < least {
		cycle.Denied[sub], g.out.Again = true, true
		return false
	}
	was := *cycle
	cycle.Budget, g.firm = plan.Unlimited, true
	ok := g.gather(sub, least)
	g.lacking = !ok
	cycle.Budget, cycle.Spent, g.firm = was.Budget, was.Spent, false
	taken := int64(0)
	for i := range g.sets.list {
		if g.sets.list[i].taker != sub || !ok {
			continue
		}
		for _, v := range g.victims(int32(i)) {
			ok = ok && g.row[v].due <= g.NowUS+wait
		}
	}
	for i := range g.out.Len() {
		if g.out.Kind.At(i) == Reclaimed {
			taken += g.out.Units.At(i)
		}
	}
	if !ok {
		return false
	}
	if !cycle.affords(taken) {
		cycle.Denied[sub] = true
		return false
	}
	cycle.spend(taken)
	cycle.Promises -= least
	g.turn(sub, false)
	return true
}

// Lacks tells whether Gather failed since it did not find room for all units.
func (g *Stage) Lacks() bool { return g.lacking }

// gather is Gather but for what is asked of all sets together.
func (g *Stage) gather(sub cluster.SubID, least int64) bool {
	leaf, n := g.s.Node(sub), int64(0)
	for n < least && (g.holdAnywhere(leaf, sub) || g.p.Parcels.Owned && g.recallFor(leaf, sub) == served) {
		n++
	}
	if n == least {
		return true
	}
	var pools []*stakes
	var figures pool.Figures
	for top := g.tree.Parent[leaf]; top != plan.None; top = g.tree.Parent[top] {
		if g.mayTake(leaf, top) {
			v := &stakes{}
			g.layStakes(v, top)
			g.deserve(v, &figures)
			pools = append(pools, v)
		}
	}
	for _, v := range pools {
		n += g.gatherIn(v, sub, least-n)
	}
	return n == least
}

// gatherIn finds room in a pool for so many units of a gang, one after the other: what is free, or what victims for a
// share give up. All victims are one move with all units that lack (MD-17.7). It returns how many it found.
func (g *Stage) gatherIn(v *stakes, sub cluster.SubID, lack int64) (n int64) {
	f, leaf := &g.fair, g.s.Node(sub)
	f.short = f.short[:0]
	g.lineUp(v)
	f.pass, f.vain = byQuota, map[kind]bool{}
	f.takers.reset(g, v, nil)
	g.beginTaker(taker{
		sub: sub, leaf: leaf, deficit: v.deficit(leaf), gets: v.step(v.find(g, leaf, g.s.Sub.Shape[sub]), lack),
	})
	for before := v.stake[leaf-v.top]; n < lack; n++ {
		f.taker.got = v.stake[leaf-v.top] - before
		if !g.stopped(leaf, v.top, g.s.Size(sub)) && g.hold(sub, v.top) {
			g.reorder(leaf)
			continue
		}
		if f.taker.deficit <= share.Slack {
			break
		}
		m := g.choose()
		if m == nil {
			break
		}
		gave := slices.Clone(g.choice.tallies[0].begin(g, m.victims).list)
		if !g.carryOut(m) {
			break
		}
		for i := range gave {
			gave[i].done = gave[i].total
		}
		f.taker.gave = gave
		g.reorder(leaf)
	}
	f.taker = taker{}
	g.net.live = nil
	return n
}

// holdAnywhere holds free room for a unit of a gang on own parcels, else in the nearest pool that has some.
func (g *Stage) holdAnywhere(leaf plan.Node, sub cluster.SubID) bool {
	for top := leaf; top != plan.None; top = g.tree.Parent[top] {
		if !g.Barred(top, leaf) && !g.stopped(leaf, top, g.s.Size(sub)) && g.hold(sub, top) {
			return true
		}
	}
	return false
}

// hold holds room for a unit of a gang on the first parcel that has it: what is free, and what the gang's own victims
// there leave beside its other units.
func (g *Stage) hold(sub cluster.SubID, top plan.Node) bool {
	w, size := g.waitsAt(top), g.s.Size(sub)
	need := w.index.Need(size)
	mask := w.masks.of(g, sub, top, w.parcel)
	for row := w.index.First(&w.open, &need, 0, mask); row != room.NoRow; row = w.index.First(&w.open, &need, row+1,
		mask) {
		k := w.parcel[row]
		if !g.mayUse(sub, k, top) {
			continue
		}
		own, more := int32(noSet), slices.Clone(size)
		for i := g.sets.firstOn[k] - 1; i >= 0 && own == noSet; i = g.sets.list[i].next - 1 {
			if g.sets.list[i].taker == sub && g.sets.list[i].units > 0 {
				own = i
			}
		}
		if own != noSet {
			left := g.left(own)
			for d, u := range size {
				more[d] = max(0, u*(g.sets.list[own].units+1)-left[d]) - max(0, u*g.sets.list[own].units-left[d])
			}
		}
		now, net := g.rooms(k, top)
		if !covers(now, g.none(), more) || !covers(net, g.none(), size) {
			continue
		}
		if own == noSet {
			return g.issue(decision.ReclaimRecall, sub, k, nil, nil)
		}
		g.promise(own, 1)
		g.keep(own)
		one := &g.sets.list[own]
		g.out.add(Row{Kind: Promised, Set: one.id, Sub: sub, Parcel: k, Units: one.units})
		g.changed(k)
		return true
	}
	return false
}

// keepWhole lets what was taken for a gang's sake alone stay, where the gang has its min_units then.
func (g *Stage) keepWhole() {
	var seen []cluster.SubID
	for i := range g.sets.list {
		if g.sets.list[i].reason != decision.ReclaimGang || g.sets.list[i].taker != cluster.NoID {
			continue
		}
		for _, v := range g.victims(int32(i)) {
			if sub := g.row[v].sub; !slices.Contains(seen, sub) {
				seen = append(seen, sub)
				g.keepGang(sub)
			}
		}
	}
}

func (g *Stage) keepGang(sub cluster.SubID) {
	stay, tied, _ := g.rowsOf(sub)
	units, least := int64(0), g.s.Sub.MinUnits[sub]
	for _, i := range stay {
		units += g.row[i].units
	}
	if least <= 1 || units == 0 || units >= least {
		return
	}
	for _, i := range tied {
		units += g.row[i].units
	}
	if units < least {
		return
	}
	slices.SortFunc(tied, func(a, b int32) int {
		return cmp.Or(cmp.Compare(g.row[b].set, g.row[a].set), cmp.Compare(g.row[b].chosen, g.row[a].chosen))
	})
	for _, i := range tied {
		g.cancel(i, g.row[i].units)
	}
}

// Complete takes the rest of gangs of which so much was taken that they hold less than their min_units, at the last
// deadline of what goes already.
func (g *Stage) Complete(gangs []cluster.SubID) {
	for _, sub := range gangs {
		staying := g.s.Staying(sub)
		if g.s.Sub.Orphan[sub] || staying == 0 || staying >= g.s.Sub.MinUnits[sub] {
			continue
		}
		stay, _, due := g.rowsOf(sub)
		slices.SortFunc(stay, func(a, b int32) int { return g.newer(&g.row[a], &g.row[b]) })
		for _, i := range stay {
			id, k := int32(noSet), g.row[i].parcel
			if !g.isFresh(&g.row[i]) {
				g.Cycle.spend(g.row[i].units)
				id = g.addSet(set{id: g.out.open(decision.ReclaimGang, cluster.NoID, k), reason: decision.ReclaimGang,
					taker: cluster.NoID, parcel: k})
			}
			g.take(i, g.row[i].units, id, due)
			g.changed(k)
		}
	}
}

// rowsOf lists the rows of a gang: those that stay, and those taken for its own sake; and the last deadline of what
// goes.
func (g *Stage) rowsOf(sub cluster.SubID) (stay, tied []int32, due int64) {
	h := &g.s.Holding
	var on []cluster.ParcelID
	due = g.NowUS
	for q := g.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
		if k := h.Parcel[q]; !slices.Contains(on, k) {
			on = append(on, k)
		}
	}
	for _, k := range on {
		for i := g.open(k); i > 0; i = g.row[i].next {
			switch one := &g.row[i]; {
			case one.sub != sub || one.units == 0:
			case one.set == noSet:
				stay = append(stay, i)
			default:
				if due = max(due, one.due); one.set >= 0 && g.sets.list[one.set].reason == decision.ReclaimGang {
					tied = append(tied, i)
				}
			}
		}
	}
	return stay, tied, due
}
