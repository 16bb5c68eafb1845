package reclaim

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
)

// Restore cancels what rules took back and do not ask for any more (step 1; docs/decisions.md, D-24, D-25), the latest
// first: what drained first, then what was too much on a parcel, then what was over a limit or a reserve.
func (g *Stage) Restore() {
	for _, pass := range [...]func(reason int32) bool{
		func(reason int32) bool { return reason == decision.ReclaimDrain },
		func(reason int32) bool { return reason == decision.ReclaimOwnershipChange },
		func(reason int32) bool {
			return reason == decision.ReclaimOverLimit || reason == decision.ReclaimReserve
		},
	} {
		for i := len(g.sets.list) - 1; i >= 0; i-- {
			if one := &g.sets.list[i]; one.taker != cluster.NoID || !pass(one.reason) {
				continue
			}
			for _, v := range g.victims(int32(i)) {
				if units := g.borne(g.sets.list[i].reason, v); units > 0 {
					g.cancel(v, units)
				}
			}
		}
	}
}

// borne is how many units of a victim may stay again by the rule that took them back.
func (g *Stage) borne(reason int32, v int32) int64 {
	one := &g.row[v]
	k, p := one.parcel, &g.p.Parcels
	in := int(k) < p.Len()-p.Left && g.s.Host.State[p.Host[k]] != cluster.Draining
	switch {
	case one.leaf == plan.None || reason != decision.ReclaimDrain && g.goesWhole(one.sub):
		return 0
	case reason == decision.ReclaimOverLimit:
		return g.withinLimits(one)
	case reason == decision.ReclaimReserve:
		return g.withinReserves(one)
	case !in:
		return 0
	case reason == decision.ReclaimDrain:
		return one.units
	}
	return g.withinParcel(one)
}

// fit is how many of some units fit an amount, by dimension.
func fit(units int64, room, size []int64) int64 {
	for d, u := range size {
		if u > 0 {
			units = min(units, max(0, room[d])/u)
		}
	}
	return units
}

// withinParcel is how many units of a victim its parcel bears beside all that is held there but for what rules take
// back, and what sets keep: so that no set can lapse and leave too much there again.
func (g *Stage) withinParcel(one *held) int64 {
	room := slices.Clone(g.of(g.stay, one.parcel))
	for i := g.open(one.parcel); i > 0; i = g.row[i].next {
		if other := &g.row[i]; other.set >= 0 && g.sets.list[other.set].taker != cluster.NoID {
			add(room, g.s.Shape.Size(other.shape), -other.units)
		}
	}
	for i := g.sets.firstOn[one.parcel] - 1; i >= 0; i = g.sets.list[i].next - 1 {
		add(room, g.keptBy(i), -1)
	}
	return fit(one.units, room, g.s.Shape.Size(one.shape))
}

// withinLimits is how many units of a victim its leaf may hold more without anyone up to their pool being over a
// limit.
func (g *Stage) withinLimits(one *held) int64 {
	units, size := one.units, g.s.Shape.Size(one.shape)
	if one.pool == cluster.NoID {
		return units
	}
	for n := one.leaf; n != g.s.NodeOf[one.pool]; n = g.tree.Parent[n] {
		for d, u := range size {
			if u > 0 && g.ShareLimit(n, d) != plan.Unlimited {
				units = min(units, max(0, -g.limits.Beyond(&g.Env.Env, n, d, 0))/u)
			}
		}
	}
	return units
}

// withinReserves is how many units of a victim its parcel bears beside what outsiders hold net and its lenders
// reserve.
func (g *Stage) withinReserves(one *held) int64 {
	units, size := one.units, g.s.Shape.Size(one.shape)
	g.Views.Reserves.Each(g.tree, one.parcel, plan.Root, func(keeper plan.Node, amount []int64) {
		if !g.within(one.leaf, keeper) {
			units = fit(units, g.beside(one.parcel, keeper, amount), size)
		}
	})
	return units
}

// beside is what a reserve leaves of a parcel beside what outsiders of its keeper hold and is not under reclaim.
func (g *Stage) beside(k cluster.ParcelID, keeper plan.Node, amount []int64) []int64 {
	room, depth := make([]int64, g.dims), g.tree.Depth[keeper]
	for d := range room {
		room[d] = g.p.Parcels.Cap[d][k] - amount[d]
	}
	for i := g.open(k); i > 0; i = g.row[i].next {
		if one := &g.row[i]; one.set == noSet && g.depth(one) < depth {
			add(room, g.s.Shape.Size(one.shape), -one.units)
		}
	}
	return room
}

// Review lets sets with takers lapse as far as their takers no longer want or fit what they were promised, in order of
// number: none counts as promised before it is reviewed. Then sets for a share lapse as far as MD-17.10
// does not allow their moves any more, the latest first, as the latest move mattered least (step 2).
func (g *Stage) Review() {
	var shares []int32
	n := int32(len(g.sets.list))
	for i := range n {
		g.discount(i, -1)
	}
	for i := range n {
		one := &g.sets.list[i]
		g.discount(i, 1)
		for one.units > 0 && !g.stands(i) {
			g.lapseOne(i)
		}
		if one.units > 0 && one.reason == decision.ReclaimFairShare {
			shares = append(shares, i)
		}
	}
	pools := g.poolsOf(shares)
	for _, i := range slices.Backward(shares) {
		one := &g.sets.list[i]
		v := pools[g.s.NodeOf[one.via]]
		g.net.live = v
		for one.units > 0 && !g.lowers(v, i) {
			g.lapseOne(i)
		}
	}
	g.net.live = nil
	g.giveUp(func(int32) bool { return false })
	g.keepWhole()
}

// lapseOne lowers a set by a unit, and counts whose turn it was.
func (g *Stage) lapseOne(i int32) {
	g.lapse(i)
	if one := &g.sets.list[i]; one.reason == decision.ReclaimFairShare {
		g.turn(one.taker, true)
	}
}

// discount takes what a set promises out of what counts for wants and limits, or into it again; in stakes it counts
// all the time.
func (g *Stage) discount(i int32, sign int64) {
	one := &g.sets.list[i]
	if one.taker == cluster.NoID {
		return
	}
	one.counts = sign > 0
	g.sets.promised[one.taker] += sign * one.units
	if leaf := g.s.Node(one.taker); g.limits != nil && one.via != cluster.NoID && leaf != plan.None {
		g.limits.Add(&g.Env.Env, leaf, g.s.NodeOf[one.via], g.s.Size(one.taker), sign*one.units)
	}
}

// stands tells whether a set's taker still wants, fits and deserves all its units, and its victims still make room.
func (g *Stage) stands(i int32) bool {
	one := &g.sets.list[i]
	sub, k, leaf := one.taker, one.parcel, g.s.Node(one.taker)
	if g.unpromised(sub) < 0 || k == cluster.NoID || g.p.TooSmall(g.s, sub) {
		return false
	}
	top := g.Meet(leaf, k)
	if !g.suits(sub, k) || !g.perHost(sub, g.p.Parcels.Host[k], 0) {
		return false
	}
	if g.s.Policy.ReclaimUS[leaf] > g.Grace(g.Owner(k), top) || g.Barred(top, leaf) || g.overAny(leaf, top) {
		return false
	}
	room, _ := g.rooms(k, top)
	for d, n := range g.keptBy(i) {
		if n > 0 && room[d] < 0 {
			return false
		}
	}
	return !slices.ContainsFunc(g.victims(i), func(v int32) bool {
		victim := &g.row[v]
		return victim.parcel != k && !g.helpsElsewhere(victim, leaf, top) ||
			one.reason == decision.ReclaimFairShare && !g.within(victim.leaf, top)
	})
}

// helpsElsewhere reports whether a victim that is not on its set's parcel has its use: it goes with its gang, or counts
// in a share limit above the taker (MD-18.2).
func (g *Stage) helpsElsewhere(victim *held, taker, top plan.Node) bool {
	if victim.leaf == plan.None || g.s.Sub.MinUnits[victim.sub] > 1 {
		return victim.leaf != plan.None
	}
	for n := taker; n != top; n = g.tree.Parent[n] {
		for d, u := range g.s.Shape.Size(victim.shape) {
			p := passed{node: n, dim: d}
			if u > 0 && g.ShareLimit(n, d) != plan.Unlimited && p.counts(g, victim) {
				return true
			}
		}
	}
	return false
}

// overAny tells whether a leaf, or one above it below a pool, is over a share limit with what it is promised.
func (g *Stage) overAny(leaf, top plan.Node) bool {
	for n := leaf; g.limits != nil && n != top; n = g.tree.Parent[n] {
		for d := range g.dims {
			if g.isOver(n, d) {
				return true
			}
		}
	}
	return false
}

// poolsOf computes stakes and quotas of the pools in which some sets take for a share, by the pool's consumer.
func (g *Stage) poolsOf(list []int32) map[plan.Node]*stakes {
	pools := map[plan.Node]*stakes{}
	var figures pool.Figures
	for _, i := range list {
		top := g.s.NodeOf[g.sets.list[i].via]
		if pools[top] == nil {
			pools[top] = &stakes{}
			g.layStakes(pools[top], top)
			g.deserve(pools[top], &figures)
		}
	}
	return pools
}

// lowers tells whether MD-17 still allows what a set for a share moves, as long as anything of it is still to come:
// distances from quotas are as if its units, and those of its victims that are still there, were where they were.
func (g *Stage) lowers(v *stakes, i int32) bool {
	one, victims := &g.sets.list[i], g.victims(i)
	if len(victims) == 0 {
		return true
	}
	leaf := g.s.Node(one.taker)
	gets := -v.step(v.find(g, leaf, g.s.Sub.Shape[one.taker]), -one.units)
	t := taker{sub: one.taker, leaf: leaf, deficit: v.deficit(leaf) + gets, gets: gets, got: gets}
	units, givings := map[int32]int64{}, []giving(nil)
	for _, at := range victims {
		row := &g.row[at]
		if row.pool != one.via {
			continue
		}
		pair := v.find(g, row.leaf, row.shape)
		gave := v.step(pair, units[pair]+row.units) - v.step(pair, units[pair])
		units[pair] += row.units
		n := slices.IndexFunc(givings, func(o giving) bool { return o.leaf == row.leaf })
		if n < 0 {
			n, givings = len(givings), append(givings, giving{leaf: row.leaf, surplus: v.surplus(row.leaf)})
		}
		giver := &givings[n]
		giver.surplus, giver.total, giver.done = giver.surplus+gave, giver.total+gave, giver.done+gave
	}
	g.fair.v = v
	return g.allows(&t, givings, true)
}
