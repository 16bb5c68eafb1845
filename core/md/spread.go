package md

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// spreadMin is from how many outstanding units on a grant stage is spread over two goroutines.
const spreadMin = 1 << 14

// spreadFrom is spreadMin, or 1 for the eager.
func (g *granter) spreadFrom() int64 {
	if g.Eager {
		return 1
	}
	return spreadMin
}

// batch is what one loop gave: rows of given, served and runs of who served it.
type batch struct {
	at                int32 // the leaf, or the pool by its number among those served together
	given, givenEnd   int32
	served, servedEnd int32
	runs, runsEnd     int32
}

// maySpread tells whether leaves' own parcels, and pools of equally deep consumers, may be served by two at once: when so much is
// outstanding that it is worth it, and neither looks at what the other does. Limits go by what all hold together, what is taken back for a
// preference may be anybody's, and balanced parcels are in one tree.
func (g *granter) maySpread(short int64) bool {
	p := g.p
	if short < g.spreadFrom() || !p.Parcels.Owned || g.nears() || p.MD.ReclaimForPref || p.Terms.Placement == plan.Balanced ||
		len(g.pooled) > 0 || len(g.fairness.undone) > 0 {
		return false
	}
	for _, sub := range g.hungry.short { // from here on shapes and requirements are only read
		g.desk.Know(g.s.Sub.Shape[sub], g.s.Sub.Need[sub])
	}
	return true
}

// inTwo has n loops served, every other one by a second granter, both at once: what one does must not touch the other. They share the state and the
// planner, of which they write rows of their own only, and leave what they gave in batches.
func (g *granter) inTwo(n int, serve func(g *granter, i int)) {
	half := func(g *granter, from int) {
		for i := from; i < n; i += 2 {
			serve(g, i)
		}
	}
	b := g.twin()
	cluster.Both(true, func() { half(g, 0) }, func() { half(b, 1) })
}

// twin is the second granter, with nothing given yet.
func (g *granter) twin() *granter {
	if g.second == nil {
		g.second = &granter{}
	}
	b := g.second
	b.Planner, b.line, b.hungry, b.barred = g.Planner, g.line, g.hungry, g.barred
	b.empty()
	return b
}

// close ends a loop.
func (g *granter) close(at int32) {
	one := batch{at, g.from.givenEnd, int32(len(g.given)), g.from.servedEnd, int32(len(g.served)), g.from.runsEnd, g.from.runsEnd}
	if one.given < one.givenEnd {
		g.deal(one)
		one.runsEnd = int32(len(g.runs))
		g.batch = append(g.batch, one)
	}
	g.from = one
}

// eachBatch calls f for what was given and is not booked yet, in the order of the loops, with who gave it.
func (g *granter) eachBatch(f func(g *granter, one batch)) {
	var other []batch
	if g.second != nil {
		other = g.second.batch
	}
	g.gave = g.gave || len(g.batch)+len(other) > 0
	for _, one := range g.batch {
		for ; len(other) > 0 && other[0].at < one.at; other = other[1:] {
			f(g.second, other[0])
		}
		f(g, one)
	}
	for _, one := range other {
		f(g.second, one)
	}
}

// empty forgets what was given, once it is booked.
func (g *granter) empty() {
	g.given, g.served, g.runs, g.from, g.batch = g.given[:0], g.served[:0], g.runs[:0], batch{}, g.batch[:0]
}
