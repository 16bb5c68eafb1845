package md

import (
	"math"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/place"
	"github.com/stintd/stint/core/plan"
)

// preferences is how many preferences there are: 1 is the best (MD-6).
const preferences = 10

// grantOwn gives leaves, in tree order, what is free on their own parcels, the best preference first. Share limits and
// ratios do not hold there, and promised units may be given too (CYC-7).
func (g *granter) grantOwn(two bool) {
	if !g.p.Parcels.Owned {
		return
	}
	if g.p.MD.ReclaimForPref {
		g.layRoom()
		g.lookOut()
	}
	if two {
		g.inTwo(len(g.hungry.leaf), func(g *granter, i int) { g.serveLeaf(int32(i)) })
		g.bookLeaves()
		return
	}
	for i := range g.hungry.leaf {
		g.serveLeaf(int32(i))
		g.bookLeaves()
	}
}

// serveLeaf gives a leaf, by its place among those with outstanding demand, what is free on its own parcels.
func (g *granter) serveLeaf(at int32) {
	leaf := g.hungry.leaf[at]
	if len(g.owned(leaf)) == 0 || !g.line.Open(leaf) {
		return
	}
	g.leaves = append(g.leaves[:0], leaf)
	g.layOwn(leaf)
	for g.serveOwn(leaf) {
	}
	g.closeOwn(at)
}

// closeOwn ends a loop over a leaf's own parcels.
func (g *granter) closeOwn(at int32) {
	if len(g.given) > int(g.from.givenEnd) {
		g.gather()
		g.close(at)
	}
}

// bookOwn makes holdings of what the leaf in turn was given of its own so far.
func (g *granter) bookOwn() {
	g.closeOwn(0)
	g.bookLeaves()
}

// bookLeaves makes holdings of what leaves were given of their own.
func (g *granter) bookLeaves() {
	g.eachBatch(func(h *granter, one batch) {
		for _, sub := range h.served[one.served:one.servedEnd] {
			t := &h.line.Sub[sub]
			t.Find, t.Given = 0, 0
		}
	})
	given := g.given // by one granter alone where room is kept up
	g.book(func(k cluster.ParcelID) { g.stir(k, len(g.pools.restOf)) })
	for i := 0; g.p.MD.ReclaimForPref && i < len(given); i++ {
		g.freed(given[i].parcel, g.s.Size(given[i].sub), -1)
	}
}

// layOwn makes the lot a leaf's own parcels. Those that are full are in it too: a set that lapses may free them.
func (g *granter) layOwn(leaf plan.Node) {
	g.lot.Begin(&g.desk)
	for _, k := range g.owned(leaf) {
		if g.p.Parcels.IsOpen(k) {
			tier := int32(g.preference(leaf, k))
			if mutant == 6 {
				tier = preferences + 1 - tier
			}
			g.lot.Add(place.Item{Parcel: k, Tier: tier, Side: cluster.NoID, Grace: math.MaxInt64}, nil)
		}
	}
	g.lot.Close()
}

// serveOwn gives a leaf one unit on a parcel of its own, and tells whether it may get another.
func (g *granter) serveOwn(leaf plan.Node) bool {
	for {
		for sub := g.line.Next(leaf); sub != cluster.NoID; sub = g.line.Next(leaf) {
			if g.fairness.undone[sub] {
				g.line.Pass(leaf)
				continue
			}
			k, promised := g.seekOwn(leaf, sub)
			switch {
			case k != cluster.NoID:
				return g.giveOwn(leaf, sub, k)
			case promised:
				return g.line.Open(leaf)
			}
			g.line.Pass(leaf)
		}
		if !g.line.Advance(leaf) {
			return false
		}
	}
}

// giveOwn gives a unit a parcel of the leaf's own that was found for it, and tells whether the leaf may get another.
func (g *granter) giveOwn(leaf plan.Node, sub cluster.SubID, k cluster.ParcelID) bool {
	yields := g.yield(sub)
	g.given = append(g.given, gift{sub, k})
	g.lot.Give(g.number(sub), k)
	if g.p.MD.ReclaimForPref {
		if yields { // others may have what it kept
			g.layRoom()
			g.recalls.forget() // and victims that it cancelled may be in other rows
		}
		g.giveRoom(k, g.s.Size(sub), -1)
	}
	if g.line.Served(leaf); yields {
		return g.line.Open(leaf) // what was passed over may fit now
	}
	return g.line.Advance(leaf)
}

// number is the number by which the lot of the leaf in turn knows a sub-allocation.
func (g *granter) number(sub cluster.SubID) int32 {
	t := &g.line.Sub[sub]
	if t.Find == 0 {
		t.Find = g.lot.Lookup(sub, place.Who{Side: cluster.NoID}) + 1
	}
	return t.Find - 1
}

// seekOwn is the leaf's own parcel for a unit of a sub-allocation, NoID when it fits none. Where better-preferred parcels are
// recalled before others are used (MD-6), the unit may be promised instead.
func (g *granter) seekOwn(leaf plan.Node, sub cluster.SubID) (k cluster.ParcelID, promised bool) {
	if mutant == 7 && g.promise.units[sub] >= g.line.Sub[sub].Wanted-g.line.Sub[sub].Held {
		return cluster.NoID, false
	}
	if !g.p.MD.ReclaimForPref {
		return g.lot.Find(g.number(sub)), false
	}
	worst, ids := int32(preferences), g.promise.ofSub[sub]
	wants := g.promise.units[sub] < g.line.Sub[sub].Wanted-g.line.Sub[sub].Held
	switch {
	case wants:
	case len(ids) == 0: // it joined in this cycle
		return cluster.NoID, false
	default: // promised already: nothing worse than that
		if at := g.s.Aim(ids[len(ids)-1]); at != cluster.NoID && g.meet(leaf, at) == leaf {
			worst = int32(g.preference(leaf, at))
		}
	}
	for tier := int32(1); tier <= worst; tier++ {
		if !g.lot.Has(tier) {
			continue
		}
		if k := g.lot.FindIn(g.number(sub), tier); k != cluster.NoID {
			return k, false
		}
		if wants && mutant != 9 && g.recallOwn(leaf, sub, tier) {
			return cluster.NoID, true
		}
	}
	return cluster.NoID, false
}

// recallOwn promises a unit on the leaf's own parcels of a preference that others hold.
func (g *granter) recallOwn(leaf plan.Node, sub cluster.SubID, tier int32) bool {
	g.bookOwn() // it goes by the parcels' columns
	among := func(k cluster.ParcelID) bool { return int32(g.preference(leaf, k)) == tier || mutant == 10 }
	if g.join(sub, leaf, among) {
		return true
	}
	done, _ := g.recallFrom(leaf, sub, leaf, among)
	if done {
		g.desk.Field.Regain(g.s.Aim(g.fairness.last))
	}
	return done
}

// yield lets the latest set of a sub-allocation lapse by a unit when all that it is short of is promised, and tells whether it did.
func (g *granter) yield(sub cluster.SubID) bool {
	t, ids := &g.line.Sub[sub], g.promise.ofSub[sub]
	if g.promise.units[sub] < t.Wanted-t.Held || len(ids) == 0 || mutant == 8 {
		return false
	}
	g.bookOwn() // what a lapse frees is told by the parcels' columns
	last := ids[len(ids)-1]
	if g.lapse(last); g.s.Set.Units[last] == 0 {
		g.promise.ofSub[sub] = ids[:len(ids)-1]
	}
	return true
}
