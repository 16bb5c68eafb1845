package reclaim

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Rules take back whoever waits (step 6): what drains or left, what is too much on parcels, what outsiders hold of
// reserves, what is over share limits. Each of them ends when the budget does.
func (g *Stage) Rules() {
	g.vacate()
	g.relieve()
	g.guard()
	g.giveBack()
}

// rule puts units of a row under reclaim for a rule, as far as the budget goes: each is a set of its own. It is false
// when not all are.
func (g *Stage) rule(i int32, units int64, reason int32, due int64) (more bool) {
	fresh, asked := g.isFresh(&g.row[i]), units
	if units == 0 {
		return true
	}
	if b := g.Cycle.Budget; !fresh && b != plan.Unlimited {
		if units = min(units, b); units == 0 && !g.Cycle.Spent {
			units = 1 // the first of a cycle always
		}
		if units == 0 {
			return false
		}
	}
	id, k := int32(noSet), g.row[i].parcel
	if !fresh {
		g.Cycle.spend(units)
		id = g.addSet(set{id: g.out.open(reason, cluster.NoID, k), reason: reason, taker: cluster.NoID, parcel: k})
	}
	g.take(i, units, id, due)
	g.changed(k)
	return units == asked
}

// inOrder lists the rows of some parcels that stay, as CYC-5 takes them, those that gangs may not do without last.
func (g *Stage) inOrder(k, end cluster.ParcelID) (rows []int32) {
	for ; k < end; k++ {
		for i := g.open(k); i > 0; i = g.row[i].next {
			if g.row[i].set == noSet && g.row[i].units > 0 {
				rows = append(rows, i)
			}
		}
	}
	slices.SortFunc(rows, func(a, b int32) int {
		return cmp.Or(g.coreLast(a, b), g.weakest(&g.row[a], &g.row[b]))
	})
	return rows
}

// vacate takes back what is held on hosts that drain or left the plan (docs/decisions.md, D-25), host by host.
// O(parcels ÷ 64 + those that are not open).
func (g *Stage) vacate() {
	p, end := &g.p.Parcels, cluster.ParcelID(0)
	for w, open := range p.Open[:p.Words()] {
		for shut := ^open; shut != 0; shut &= shut - 1 {
			k := cluster.ParcelID(w<<6 + bits.TrailingZeros64(shut))
			if k < end || int(k) >= p.Len() {
				continue // its host is done
			}
			end = p.End(k)
			reason := decision.ReclaimDrain
			switch {
			case int(k) >= p.Len()-p.Left:
				reason = decision.ReclaimOwnershipChange
			case g.s.Host.State[p.Host[k]] != cluster.Draining:
				continue
			}
			for _, i := range g.inOrder(k, end) {
				if one := &g.row[i]; one.leaf != plan.None && !g.rule(i, one.units, reason, g.deadline(one)) {
					return
				}
			}
		}
	}
}

// relieve takes back what parcels hold beyond what they have since their hosts were split anew (docs/ownership.md).
func (g *Stage) relieve() {
	more := true
	eachBit(g.below, func(k cluster.ParcelID) {
		if more && int(k) < g.p.Parcels.Len()-g.p.Parcels.Left {
			over := make([]int64, g.dims)
			add(over, g.of(g.stay, k), -1)
			more = g.lessen(k, over, plan.Root, decision.ReclaimOwnershipChange)
		}
	})
}

// lessen takes back units on a parcel that take something of what is too much there, by dimension: those of outsiders
// of a consumer, of the root all.
func (g *Stage) lessen(k cluster.ParcelID, over []int64, keeper plan.Node, reason int32) (more bool) {
	for _, i := range g.inOrder(k, k+1) {
		one := &g.row[i]
		if keeper != plan.Root && g.depth(one) >= g.tree.Depth[keeper] {
			continue
		}
		size, units := g.s.Shape.Size(one.shape), int64(0)
		for d, u := range size {
			if u > 0 && over[d] > 0 {
				units = max(units, (over[d]+u-1)/u)
			}
		}
		units = min(units, one.units)
		add(over, size, -units)
		if !g.rule(i, units, reason, g.deadline(one)) {
			return false
		}
	}
	return true
}

// guard takes back what outsiders hold of what is reserved (INV-3): parcel by parcel, for its owner first, then for
// those above.
func (g *Stage) guard() {
	more := true
	for k := cluster.ParcelID(0); more && int(k) < g.p.Parcels.Len()-g.p.Parcels.Left; k++ {
		if !g.Views.Reserves.Any(k) {
			continue
		}
		g.Views.Reserves.Each(g.tree, k, plan.Root, func(keeper plan.Node, amount []int64) {
			if more && g.besideAny(k, keeper) {
				over := make([]int64, g.dims)
				add(over, g.beside(k, keeper, amount), -1)
				more = g.lessen(k, over, keeper, decision.ReclaimReserve)
			}
		})
	}
}

// besideAny tells whether outsiders of a consumer may hold anything on a parcel, by the views.
func (g *Stage) besideAny(k cluster.ParcelID, keeper plan.Node) bool {
	rows := g.Views.ByParcel.On(k)
	for _, key := range rows.Key {
		if key.B != cluster.NoID && g.tree.Depth[g.s.NodeOf[key.B]] < g.tree.Depth[keeper] {
			return true
		}
	}
	return false
}

// giveBack takes back what consumers hold over their share limits (MD-18.4): children before their parents,
// of each just
// enough to be within the limit in every dimension.
func (g *Stage) giveBack() {
	for n := plan.Node(g.tree.Len() - 1); n > plan.Root && g.limits != nil; n-- {
		for d := 0; g.p.Terms.Member[n] && d < g.dims; d++ {
			if g.isOver(n, d) {
				if !g.giveBackOf(n) {
					return
				}
				break
			}
		}
	}
}

// giveBackOf is giveBack for one consumer.
func (g *Stage) giveBackOf(n plan.Node) (more bool) {
	for _, i := range g.lastGranted(n) {
		one, units := &g.row[i], int64(0)
		for d, u := range g.s.Shape.Size(one.shape) {
			if over := g.limits.Beyond(&g.Env.Env, n, d, 0); over > 0 && u > 0 {
				units = max(units, (over+u-1)/u)
			}
		}
		if !g.rule(i, min(units, one.units), decision.ReclaimOverLimit, g.deadline(one)) {
			return false
		}
	}
	return true
}

// lastGranted lists what leaves below a consumer hold from pools above it: of the pool nearest to the root
// first, in the
// order of the mirrored walk below the consumer, of a leaf the newest first; units that gangs may not do without last.
func (g *Stage) lastGranted(n plan.Node) (rows []int32) {
	walks := map[plan.Node]*ranking{}
	for leaf := n; leaf < g.tree.End[n]; leaf++ {
		seen := cluster.ParcelID(cluster.NoID)
		of := g.Views.ByLeaf.Of(leaf)
		for _, key := range of.Key {
			k := cluster.ParcelID(key.B)
			if key.A == cluster.NoID || g.s.NodeOf[key.A] >= n || !g.tree.Leaf(leaf) || k == seen {
				continue
			}
			for i := g.open(k); i > 0; i = g.row[i].next {
				if one := &g.row[i]; one.leaf == leaf && one.set == noSet && one.units > 0 && int32(one.pool) == key.A {
					rows = append(rows, i)
				}
			}
			seen = k
			if top := g.s.NodeOf[key.A]; walks[top] == nil {
				v := &stakes{}
				g.layStakes(v, top)
				walks[top] = &ranking{}
				walks[top].reset(g, v, g.p.RankOrder)
			}
		}
	}
	slices.SortFunc(rows, func(a, b int32) int {
		x, y := &g.row[a], &g.row[b]
		if c := cmp.Or(g.coreLast(a, b), cmp.Compare(g.depth(x), g.depth(y))); c != 0 {
			return c
		}
		return cmp.Or(walks[g.s.NodeOf[x.pool]].mirrored(g, x.leaf, y.leaf), g.newer(x, y))
	})
	return rows
}

// Taken is units that a coming window would take back of a sub-allocation on a host, and the last of their deadlines.
type Taken struct {
	Sub        cluster.SubID
	Host       cluster.HostID
	Units, Due int64
}

// MakeWay takes back before a coming window what that would take back (docs/shares.md, "Lead"), in place of recall and
// fair reclaim. The list is by host in host order.
func (g *Stage) MakeWay(list []Taken) {
	for len(list) > 0 {
		n, host := 1, list[0].Host
		for n < len(list) && list[n].Host == host {
			n++
		}
		k := g.firstOf(host)
		if !g.makeWayOn(k, g.p.Parcels.End(k), list[:n]) {
			return
		}
		list = list[n:]
	}
}

// firstOf is the first parcel of a host, which may have left the plan.
func (g *Stage) firstOf(host cluster.HostID) cluster.ParcelID {
	p := &g.p.Parcels
	if left := p.Len() - p.Left; g.s.Host.Plan[host] != g.p.Index || g.s.Host.Parcel[host] == cluster.NoID {
		return cluster.ParcelID(left + slices.Index(p.Host[left:], host))
	}
	return g.s.Host.Parcel[host]
}

// makeWayOn is MakeWay for one host.
func (g *Stage) makeWayOn(k, end cluster.ParcelID, list []Taken) (more bool) {
	rows, left := g.inOrder(k, end), slices.Clone(list)
	for at := k; at < end; at++ {
		for i := g.open(at); i > 0; i = g.row[i].next {
			if t := find(left, g.row[i].sub); t != nil && g.row[i].set != noSet {
				t.Units -= g.row[i].units
			}
		}
	}
	for _, i := range rows {
		one := &g.row[i]
		t := find(left, one.sub)
		if t == nil || g.isFresh(one) {
			continue
		}
		units := min(one.units, max(0, t.Units))
		t.Units -= units
		if !g.rule(i, units, decision.ReclaimWindowSwitch, t.Due) {
			return false
		}
	}
	return true
}

// find is what is taken of a sub-allocation, nil when that is nothing.
func find(list []Taken, sub cluster.SubID) *Taken {
	for i := range list {
		if list[i].Sub == sub {
			return &list[i]
		}
	}
	return nil
}
