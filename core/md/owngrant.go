package md

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/place"
	"github.com/stintd/stint/core/plan"
)

// preferences is how many preferences there are: 1 is the best (MD-6).
const preferences = 10

// ownGrants is what granting on leaves' own parcels works with: the parcels of the leaf at hand by preference.
type ownGrants struct {
	bits  [preferences][]uint64
	look  [preferences]place.Finders
	used  []int                // preferences that the leaf's parcels have, the best first
	finds [][preferences]int32 // by Turn.Find, from 1: the finding at each preference, from 1
}

// grantOwn gives leaves, in tree order, what is free on their own parcels, the best preference first. Share limits and
// ratios do not hold there, and promised units may be given too (CYC-7).
func (g *granter) grantOwn() {
	if !g.p.Parcels.Owned {
		return
	}
	g.line.Reset(g.s, g.p)
	g.leaves = g.leaves[:0]
	for leaf := range plan.Node(g.policy.Len()) {
		if g.p.FirstAlloc[leaf] == cluster.NoID || len(g.owned(leaf)) == 0 || g.line.Warm(leaf) == 0 || !g.line.Open(leaf) {
			continue
		}
		g.leaves = append(g.leaves, leaf)
		g.layOwn(leaf)
		for g.serveOwn(leaf) {
		}
		for _, k := range g.owned(leaf) {
			for _, i := range g.own.used {
				g.own.bits[i][k>>6] = 0
			}
		}
	}
	g.bookedOwn = g.book(g.bookedOwn, cluster.Holding{Granted: g.s.Cycle + 1, Origin: decision.OriginOwned, Pool: cluster.NoID, Lender: cluster.NoID})
}

// layOwn readies finders for a leaf's own parcels.
func (g *granter) layOwn(leaf plan.Node) {
	o := &g.own
	o.used, o.finds = o.used[:0], o.finds[:0]
	for _, k := range g.owned(leaf) {
		i := int(g.preference(leaf, k)) - 1
		if !slices.Contains(o.used, i) {
			o.used = append(o.used, i)
			if len(o.bits[i]) != g.p.Parcels.Words() {
				o.bits[i] = make([]uint64, g.p.Parcels.Words())
			}
		}
		o.bits[i][k>>6] |= 1 << (uint(k) & 63)
	}
	slices.Sort(o.used)
	for _, i := range o.used {
		o.look[i].Begin(&g.desk, o.bits[i])
	}
}

// serveOwn gives a leaf one unit on a parcel of its own, and tells whether it may get another.
func (g *granter) serveOwn(leaf plan.Node) bool {
	for {
		for sub := g.line.Next(leaf); sub != cluster.NoID; sub = g.line.Next(leaf) {
			if k, f := g.seekOwn(sub); k != cluster.NoID {
				g.yield(sub)
				g.given = append(g.given, gift{sub, k})
				f.Give(k)
				g.line.Served(leaf)
				return g.line.Advance(leaf)
			}
			g.line.Pass(leaf)
		}
		if !g.line.Advance(leaf) {
			return false
		}
	}
}

// seekOwn is the leaf's own parcel for a unit of a sub-allocation, NoID when it fits none.
func (g *granter) seekOwn(sub cluster.SubID) (cluster.ParcelID, *place.Finding) {
	o, t := &g.own, &g.line.Sub[sub]
	if t.Find == 0 {
		o.finds = append(o.finds, [preferences]int32{})
		t.Find = int32(len(o.finds))
	}
	for _, i := range o.used {
		at := &o.finds[t.Find-1][i]
		if *at == 0 {
			*at = o.look[i].Lookup(sub) + 1
		}
		f := o.look[i].At(*at - 1)
		if k := f.Find(); k != cluster.NoID {
			return k, f
		}
	}
	return cluster.NoID, nil
}

// yield lets the latest set of a sub-allocation lapse by a unit when all that it is short of is promised.
func (g *granter) yield(sub cluster.SubID) {
	t, ids := &g.line.Sub[sub], g.promise.ofSub[sub]
	if g.promise.units[sub] < t.Wanted-t.Held || len(ids) == 0 {
		return
	}
	last := ids[len(ids)-1]
	if g.lapse(last); g.s.Set.Units[last] == 0 {
		g.promise.ofSub[sub] = ids[:len(ids)-1]
	}
}
