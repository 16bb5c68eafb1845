package oracle

import (
	"fmt"

	"github.com/stintd/stint/core/plan"
)

// round is one MD plan in one cycle.
type round struct {
	frame
	m       *plan.MDPlan
	w       *plan.MDWindow
	group   map[*host]int                  // the first of the plan's groups that has it
	weight  []uint64                       // by dimension (D-2)
	largest []int64                        // by dimension: the most that a parcel on a host with state ok has
	vectors map[string]bool                // the amounts of such parcels that differ
	aside   map[aside][]int64              // what is reserved of parcels (MD-5), where that is anything
	rests   map[plan.Node]*counted         // by pool: with what parcels count into it (MD-11)
	packs   map[plan.Node]map[string]int64 // by pool: its capacity by unit size
	stood   map[plan.Node][]int64          // what share limits looked at once everything was granted (D-23)
	passed  map[*sub]bool                  // nothing more can be promised to them in this step
	// kinds of units for which no victims are looked for any more; "alone …": none that alone is enough
	vain  map[string]bool
	only  map[string]map[parcelKey]bool      // the parcels where several victims may still be chosen for a kind
	due   map[plan.Node]map[plan.Node]uint64 // by pool: the quotas that steer fair reclaim (MD-17)
	has   map[plan.Node]uint64               // stakes of leaves in a pool, as long as nothing changes
	loose bool                               // room came free after units that want it had their turn

	factors map[[2]plan.Node]int64 // by pool and consumer: hundredths of its ratio that count
}

func newRound(c *Cluster, in int) *round {
	m := &c.p.MDPlans[in]
	g := &round{frame: newFrame(c, in), m: m, w: c.mdWindow(in), rests: map[plan.Node]*counted{},
		packs: map[plan.Node]map[string]int64{}, due: map[plan.Node]map[plan.Node]uint64{}, has: map[plan.Node]uint64{},
		stood: map[plan.Node][]int64{}, factors: map[[2]plan.Node]int64{}, weight: make([]uint64, len(c.p.Dimensions))}
	g.aside, g.group = g.reserves(), map[*host]int{}
	for i := len(m.Groups) - 1; i >= 0; i-- {
		for _, h := range g.inGroup(m.Groups[i].Group) {
			g.group[h] = i
		}
	}
	g.largest, g.vectors = make([]int64, len(c.p.Dimensions)), map[string]bool{}
	for _, h := range g.hosts {
		if h.State == "ok" {
			for _, s := range c.parcels(in, h) {
				g.vectors[fmt.Sprint(s.size)] = true
				for d, n := range s.size {
					g.largest[d] = max(g.largest[d], n)
				}
			}
		}
	}
	for d, n := range g.largest {
		if n > 0 {
			g.weight[d] = 1 << 58 / uint64(n)
		}
	}
	return g
}

// play is the plan's cycle after settle and own.
func (g *round) play(r *Result) {
	g.hold()
	g.restore(g.bears, g.bearsThere)
	if g.nears() {
		o := g.foresee()
		g.review()
		g.promised()
		g.hold()
		g.follow(o)
		g.rules()
		g.makeWay(o)
		g.complete()
	} else {
		g.turns()
	}
	g.explain(r)
	g.figures(r)
}

// turns is what is granted and taken back.
func (g *round) turns() {
	g.review()
	g.promised()
	g.hold()
	g.owners()
	g.grant()
	g.rules()
	g.recalls()
	for _, q := range g.pools() {
		g.due[q.at] = q.deserved(q.stake(q.at))
	}
	for _, q := range g.pools() {
		q.moves()
	}
	g.gangs()
	g.complete()
}

// rules take back, whoever waits.
func (g *round) rules() {
	g.mark()
	g.leave()
	g.crowded()
	g.reserve()
	g.limits()
}

// grant hands out pool by pool what is free, from the deepest up (MD-7, MD-8); each counts what has reached it by then.
func (g *round) grant() {
	g.mark()
	for _, q := range g.pools() {
		delete(g.rests, q.at)
		delete(g.packs, q.at)
		q.counts() // though nobody may ask before some of what was granted is taken back
		q.rounds()
	}
	g.together()
	g.stand()
}

// stand notes what share limits look at once everything was granted.
func (g *round) stand() {
	for n := range plan.Node(g.p.Len()) {
		g.stood[n] = g.claimed(n)
	}
}

// amount is the vector that a consumer and all below it hold in the plan.
func (g *round) amount(n plan.Node) []int64 {
	v := make([]int64, len(g.p.Dimensions))
	for _, s := range g.below(n) {
		for d, u := range s.size {
			v[d] += u * s.held
		}
	}
	return v
}

func fits(size, room []int64) bool {
	for d, n := range size {
		if n > 0 && n > room[d] {
			return false
		}
	}
	return true
}

// spot is which of some parcels the next unit goes to, if it fits any: the first by the requirement's order, else by
// the plan's placement (MD-20); ties by the parcels' order.
func (g *round) spot(s *sub, list []parcel) (best parcel, ok bool) {
	ordered := g.ordered(s)
	var before func(a, b parcel) bool
	switch {
	case ordered != nil:
		before = func(a, b parcel) bool { return ordered(a.host, b.host) }
	case g.m.Placement == plan.BestFit:
		list = g.best(s, g.frontier(list, 1, func(t parcel) bool { return g.goesOn(s, t) && !full(s, t.host, 0) }), 1)
		before = func(a, b parcel) bool { return false }
	case g.m.Placement == plan.Stacked: // D-3
		before = func(a, b parcel) bool { return g.begun(a) && !g.begun(b) }
	case g.m.Placement == plan.Balanced: // D-3
		before = func(a, b parcel) bool { return g.roomy(s, a) > g.roomy(s, b) }
	default:
		panic(fmt.Sprintf("oracle: placement %d is no MD placement", g.m.Placement))
	}
	for _, t := range list {
		if g.goesOn(s, t) && !full(s, t.host, 0) && (!ok || before(t, best)) {
			best, ok = t, true
		}
	}
	return best, ok
}

// roomy is a parcel's weighted room for a sub-allocation (MD-20.4).
func (g *round) roomy(s *sub, t parcel) uint64 { return g.weighted(g.room(s.alloc.leaf, t)) }

func (g *round) weighted(v []int64) uint64 {
	sum := uint64(0)
	for d, n := range v {
		sum += uint64(max(0, n)) * g.weight[d]
	}
	return sum
}
