package md

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/line"
	"github.com/stintd/stint/core/place"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// granter is the loop of MD-16 over one pool and its scratch memory. While the
// loop runs it works on copies made for it (the line's turns, the field's words); what it gave
// is booked into the state when it is done.
type granter struct {
	*Planner

	race   share.Race
	line   line.Line
	leaves []plan.Node // with outstanding demand, in tree order
	step   []step      // by PairID

	given     []gift // unit by unit
	parcel    []cluster.ParcelID
	booked    []cluster.HoldingID // this cycle's grants from the pool, in the order of D-14
	bookedOwn []cluster.HoldingID // and those on leaves' own parcels
	own       ownGrants
}

// gift is one unit given.
type gift struct {
	sub    cluster.SubID
	parcel cluster.ParcelID
}

// giftsReserved is for how many gifts room is made at once; more grow as they come.
const giftsReserved = 1 << 22

// step is how the usage of a (leaf, shape) pair grows by a unit without division:
// by whole, and by one 2⁻⁴⁸ more whenever the remainders make up a whole. It is
// exactly ⌊(n+1) × 2⁴⁸ ÷ capacity⌋ less the same of n, and nothing once n is the capacity.
type step struct {
	whole, rest, carry, capacity int64
	left                         int64 // units until the capacity
}

// Grant gives takers what was held for them, then leaves what is free on their own parcels, and
// hands out what is free in the public pool (MD-16): from the root always to
// the child of the highest share priority, among equals to the one with the least
// usage ÷ ratio, down to a leaf, one unit a step. Time is units × (levels ×
// log children + dimensions) and, once, shapes × parcels.
func (m *Planner) Grant() {
	g := &m.grant
	g.Planner = m
	g.given, g.booked, g.bookedOwn = g.given[:0], g.booked[:0], g.bookedOwn[:0]
	g.desk.Begin(&g.desk, g.public.parcels)
	g.review()
	g.fulfil()
	g.grantOwn()
	node := g.lineUp()
	if !g.race.Start() {
		return
	}
	g.prepare()
	for leaf := g.race.Next(); leaf >= 0; leaf = g.race.Next() {
		more, stays := g.serve(plan.Node(leaf))
		g.race.Served(leaf, more, stays)
	}
	for n := range node {
		g.public.stake[n] = node[n].Usage
	}
	g.eachServed(func(sub cluster.SubID, t *line.Turn) { g.promise.net[g.s.Sub.Pair[sub]] += int64(t.Given) })
	g.booked = g.book(g.booked, g.public.row(cluster.NoID, g.s.Cycle+1))
}

// lineUp readies the race: leaves with outstanding demand are in it. O(consumers + sub-allocations).
func (g *granter) lineUp() []share.Entrant {
	g.line.Reset(g.s, g.p)
	g.leaves, g.given = g.leaves[:0], g.given[:0]
	node, short := g.race.Reset(g.policy.Len()), int64(0)
	for n := range node {
		node[n] = share.Entrant{
			Usage: g.public.stake[n], Ratio: g.set.Ratio[n], Priority: g.set.Priority[n],
			Tie: int32(n), Parent: int32(g.policy.Parent[n]),
		}
		if leaf := plan.Node(n); g.p.FirstAlloc[n] != cluster.NoID {
			short = share.Add(short, g.line.Warm(leaf))
			g.bar(leaf)
			if node[n].In = g.line.Open(leaf); node[n].In {
				g.leaves = append(g.leaves, leaf)
			}
		}
	}
	g.given = slices.Grow(g.given, int(min(short, giftsReserved)))
	return node
}

// prepare readies finders and usage steps for a grant stage.
func (g *granter) prepare() {
	g.known()
	g.step = resized(g.step, len(g.p.Pairs.Units))
	for q, shape := range g.p.Pairs.Shape {
		g.step[q] = newStep(g.promise.net[q], g.public.capacity.of(shape))
	}
}

func newStep(units, capacity int64) step {
	if capacity <= units { // nothing more, as a share is at most the whole
		return step{}
	}
	rest := share.One % capacity
	return step{share.One / capacity, rest, mulMod(units, rest, capacity), capacity, capacity - units}
}

// serve tries to give the leaf one unit, and tells what that adds to its usage. The leaf does not
// stay when nothing of it fits any more or it wants no more.
func (g *granter) serve(leaf plan.Node) (usage int64, stays bool) {
	for {
		for sub := g.line.Next(leaf); sub != cluster.NoID; sub = g.line.Next(leaf) {
			if k, f := g.seek(leaf, sub); k != cluster.NoID {
				usage = g.give(leaf, sub, k, f)
				g.line.Served(leaf)
				return usage, g.line.Advance(leaf)
			}
			g.line.Pass(leaf) // fits nowhere, and will not in this cycle
		}
		if !g.line.Advance(leaf) {
			return 0, false
		}
	}
}

// seek is the parcel for a unit of a sub-allocation, NoID when there is none or a share limit stands against it.
func (g *granter) seek(leaf plan.Node, sub cluster.SubID) (cluster.ParcelID, *place.Finding) {
	if _, _, over := g.overLimit(leaf, sub); over {
		return cluster.NoID, nil
	}
	t := &g.line.Sub[sub]
	if t.Find == 0 {
		t.Find = g.desk.Lookup(sub) + 1
	}
	f := g.desk.At(t.Find - 1)
	return f.Find(), f
}

// give puts a unit on a parcel and tells what it adds to the leaf's usage.
func (g *granter) give(leaf plan.Node, sub cluster.SubID, k cluster.ParcelID, f *place.Finding) (usage int64) {
	g.given = append(g.given, gift{sub, k})
	f.Give(k)
	if len(g.pooled) > 0 {
		g.shift(sub, g.public.id, 1)
	}
	return g.step[g.s.Sub.Pair[sub]].next()
}

// book makes holdings of what was given, one for each sub-allocation and parcel, in
// the order of D-14, and appends them; row says what they count as. The gifts are dealt out to their sub-allocations, then each
// one's parcels are sorted. O(units log (units of a sub-allocation)).
func (g *granter) book(booked []cluster.HoldingID, row cluster.Holding) []cluster.HoldingID {
	g.parcel = resized(g.parcel, len(g.given))
	at := int32(0)
	g.eachServed(func(_ cluster.SubID, t *line.Turn) {
		at += t.Given
		t.Find = at // from here on the end of its parcels, counted down below
	})
	for i := len(g.given) - 1; i >= 0; i-- {
		t := &g.line.Sub[g.given[i].sub]
		t.Find--
		g.parcel[t.Find] = g.given[i].parcel
	}
	rows := 0
	g.eachServed(func(_ cluster.SubID, t *line.Turn) {
		to := g.parcel[t.Find : t.Find+t.Given]
		slices.Sort(to)
		rows++
		for i := 1; i < len(to); i++ {
			if to[i] != to[i-1] {
				rows++
			}
		}
	})
	g.s.Holding.Reserve(rows)
	booked = slices.Grow(booked, rows)
	g.eachServed(func(sub cluster.SubID, t *line.Turn) {
		row.Sub = sub
		booked = g.s.Hold(booked, row, g.parcel[t.Find:t.Find+t.Given])
	})
	return booked
}

// eachServed calls f for the sub-allocations that were given something, in the order of D-14.
func (g *granter) eachServed(f func(sub cluster.SubID, t *line.Turn)) {
	for _, leaf := range g.leaves {
		for a := g.p.FirstAlloc[leaf]; a != cluster.NoID; a = g.s.Alloc.Next[a] {
			for sub := g.s.Alloc.First[a]; sub != cluster.NoID; sub = g.s.Sub.Next[sub] {
				if t := &g.line.Sub[sub]; t.Given > 0 {
					f(sub, t)
				}
			}
		}
	}
}

// next is what one more unit adds to the usage; nothing once the pool is used up whole.
func (s *step) next() int64 {
	if s.left <= 0 {
		return 0
	}
	s.left--
	more := s.whole
	if s.carry += s.rest; s.carry >= s.capacity {
		s.carry -= s.capacity
		more++
	}
	return more
}

// overLimit tells which share limit (MD-18) one more unit would exceed: of the leaf or a branch above it.
func (g *granter) overLimit(leaf plan.Node, sub cluster.SubID) (at plan.Node, dimension int, over bool) {
	return g.overLimitOf(g.pooled, leaf, sub)
}

// overLimitOf tells the same by other amounts that consumers hold.
func (m *Planner) overLimitOf(pooled [][]int64, leaf plan.Node, sub cluster.SubID) (at plan.Node, dimension int, over bool) {
	if len(pooled) == 0 {
		return 0, 0, false
	}
	size := m.s.Size(sub)
	for n := leaf; n != plan.Root; n = m.policy.Parent[n] {
		for d := range pooled {
			if most := m.limit(n, d); most != plan.Unlimited && size[d] > 0 && pooled[d][n]+size[d] > most {
				return n, d, true
			}
		}
	}
	return 0, 0, false
}
