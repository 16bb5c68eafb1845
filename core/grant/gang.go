package grant

import (
	"fmt"
	"maps"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/room"
	"github.com/stintd/stint/core/share"
)

// Gangs (REQ-3; docs/shares.md, "Gangs"): of one that waits all of its min_units are given at once, where they fit.
// Units of one size take nothing from each other but room, so how many fit is a sum over parcels, whatever the
// placement.

// tally counts how many units of a gang fit, pool by pool from the nearest up.
type tally struct {
	units int64                    // so far
	most  int64                    // no more are counted
	on    map[cluster.HostID]int64 // units on each host, where max_per_host is set
	spent []plan.Node              // from which pool each unit comes that counts in share limits
}

// fitsWhole tells whether all units that are given of a gang at once fit the lots of the turn, and limits.
func (g *Granter) fitsWhole(a *pool.Ask) bool {
	promised := int64(0)
	if g.sets != nil {
		promised = g.sets.Promised(a.Sub) // elsewhere the ask has them
	}
	if a.Wanted-a.Has-promised < a.Least || g.env.State.Staying(a.Sub) > 0 {
		return false
	}
	places, prefers := g.env.Views.Needs.Seeks(a.Sub)
	if places == nil {
		return g.bears(a)
	}
	own, needs := a.Kind, &g.env.Views.Needs
	for value, units := range g.roomBy(a, places) {
		if units < a.Least {
			continue
		}
		key := g.kind[own].key
		key.need = needs.With(a.Sub, int32(value))
		a.Kind = g.kindOf(key)
		if g.bears(a) {
			if !prefers {
				needs.Hold(a.Sub, int32(value))
			}
			return true
		}
	}
	a.Kind = own
	return prefers && g.bears(a)
}

// bears tells whether all units that are given of a gang at once fit what its search looks at in the lots of the turn,
// and limits.
func (g *Granter) bears(a *pool.Ask) bool {
	t := tally{most: a.Least}
	g.count(a, &t)
	g.uncount(a, &t)
	return t.units == t.most
}

// anywhere lets a gang go on anywhere that formed together where it could, and may be anywhere.
func (g *Granter) anywhere(a *pool.Ask, own int32) {
	if a.Kind == own || g.kind[a.Kind].key.need == g.env.Views.Needs.Need(g.env.State, a.Sub) {
		return
	}
	g.kind[own].on, a.Kind = g.kind[a.Kind].on, own // units that it got on hosts count
}

// roomBy adds up by value of an attribute how many units of an ask fit the lots of the turn, whatever limits say.
func (g *Granter) roomBy(a *pool.Ask, places *cluster.Places) []int64 {
	sum := make([]int64, len(places.Text))
	g.addRoom(a, places, sum, maps.Clone(g.kind[a.Kind].on))
	return sum
}

// addRoom adds to roomBy. on is how many units are on each host, where max_per_host is set.
func (g *Granter) addRoom(a *pool.Ask, places *cluster.Places, sum []int64, on map[cluster.HostID]int64) {
	most := g.kind[a.Kind].most
	g.eachFit(a, func(k cluster.ParcelID, units int64) bool {
		host := g.env.Plan.Parcels.Host[k]
		if on != nil {
			units = min(units, max(0, most-on[host]))
			on[host] += units
		}
		if value := places.Of[host]; value != cluster.NoID {
			sum[value] = share.Add(sum[value], units)
		}
		return true
	})
}

// count adds to a tally how many units of an ask fit the lots of the turn. They count in limits until uncount.
// O(rows of the lots).
func (g *Granter) count(a *pool.Ask, t *tally) {
	s := &g.kind[a.Kind]
	if s.on != nil && t.on == nil {
		t.on = maps.Clone(s.on)
	}
	g.eachFit(a, func(k cluster.ParcelID, units int64) bool {
		if t.on != nil {
			host := g.env.Plan.Parcels.Host[k]
			units = min(units, max(0, s.most-t.on[host]))
			t.on[host] += min(units, t.most-t.units)
		}
		return g.countIn(a, t, min(units, t.most-t.units)) && t.units < t.most
	})
}

// eachFit calls f for the parcels of the lots of the turn that have room for units of an ask, with how many fit, until
// it is false. O(rows with room).
func (g *Granter) eachFit(a *pool.Ask, f func(k cluster.ParcelID, units int64) bool) {
	g.eachRoom(a.Kind, f)
}

// countIn adds units to a tally, as far as share limits bear them; it is false where they do not bear all.
func (g *Granter) countIn(a *pool.Ask, t *tally, units int64) bool {
	e := g.env
	if e.Limits == nil {
		t.units += units
		return true
	}
	leaf, size := e.State.Node(a.Sub), e.State.Shape.Size(a.Shape)
	for range units {
		if over, _ := e.Limits.Over(&e.Env, leaf, g.top, size); over != plan.None {
			return false
		}
		e.Limits.Add(&e.Env, leaf, g.top, size, 1)
		t.spent = append(t.spent, g.top)
		t.units++
	}
	return true
}

// uncount takes what a tally counted out of limits again.
func (g *Granter) uncount(a *pool.Ask, t *tally) {
	e := g.env
	for _, top := range t.spent {
		e.Limits.Add(&e.Env, e.State.Node(a.Sub), top, e.State.Shape.Size(a.Shape), -1)
	}
	t.spent = t.spent[:0]
}

// formOwn gives a gang all that it is given at once on its leaf's own parcels, by preference, or passes it over.
func (g *Granter) formOwn(a *pool.Ask, out *Decisions) {
	own := a.Kind
	if a.Passed = !g.fitsWhole(a); a.Passed {
		return
	}
	defer g.anywhere(a, own)
	for range a.Least {
		at, row := g.seek(a.Kind)
		if row == room.NoRow {
			panic(fmt.Sprintf("BUG: a gang of %d units does not fit", a.Least))
		}
		k, on := g.take(a.Kind, at, row)
		g.sets.Hold(a.Sub, k)
		out.add(g.env, a.Sub, k, on)
	}
	a.Has += a.Least
	a.Least, g.formed = 1, true
}

// Formed tells whether any gang was given all of its min_units since it was asked last: the next units of it may fit
// what had its turn before.
func (g *Granter) Formed() bool {
	formed := g.formed
	g.formed = false
	return formed
}

// Waiting lists the gangs that wait after the last pool's turn, in the order in which they try to form over all that
// their leaves draw on: leaf by leaf as MD-16 has them in the root's pool, those that a ratio of 0 keeps from that
// last. O(sub-allocations).
func (g *Granter) Waiting(e *Env, gangs []cluster.SubID) (subs []cluster.SubID) {
	s, waits := e.State, map[plan.Node]bool{}
	for _, sub := range gangs {
		if s.Short(sub) > 0 && s.Forming(sub) {
			waits[s.Node(sub)] = true
		}
	}
	if len(waits) == 0 {
		return nil
	}
	g.env, g.top, g.leaves = e, plan.Root, g.leaves[:0]
	for leaf := range plan.Node(s.Policy.Len()) {
		if waits[leaf] {
			g.leaves = append(g.leaves, int32(leaf))
		}
	}
	g.net.Sum(&e.Env, e.Promises, plan.Root)
	g.rounds.usage = g.net.Stakes(&e.Env, g.rounds.usage)
	if g.race.begin(&e.Env, plan.Root, g.leaves, g.rounds.usage) {
		for leaf := g.race.next(); leaf != nobody; leaf = g.race.next() {
			subs = g.waitingOf(subs, plan.Node(leaf))
			delete(waits, plan.Node(leaf))
			g.race.served(leaf, 0, false)
		}
	}
	for _, leaf := range g.leaves {
		if waits[plan.Node(leaf)] {
			subs = g.waitingOf(subs, plan.Node(leaf))
		}
	}
	return subs
}

// waitingOf adds the gangs of a leaf that wait, in the order of CYC-10.
func (g *Granter) waitingOf(subs []cluster.SubID, leaf plan.Node) []cluster.SubID {
	e := g.env
	g.queue.Reset()
	g.queue.Add(&e.Env, leaf, func(sub cluster.SubID) int64 {
		if e.Undone[sub] || !e.State.Forming(sub) {
			return e.State.Sub.Wanted[sub]
		}
		return e.State.Sub.Held[sub] + e.Promises.Units[sub]
	})
	for len(g.queue.Leaf) > 0 && g.queue.Advance(0) {
		a := &g.queue.Ask[g.queue.Next(0)]
		subs = append(subs, a.Sub)
		a.Passed = true
		g.queue.Settle(0)
	}
	return subs
}

// ready readies the turn of one gang in the pool of a consumer, or on its leaf's own parcels; nil where there is
// nothing for it.
func (g *Granter) ready(e *Env, top plan.Node, sub cluster.SubID) *pool.Ask {
	g.env, g.top, g.only = e, top, &pool.Ask{Sub: sub}
	defer func() { g.only = nil }()
	if g.fill(false); len(g.leaves) == 0 {
		return nil
	}
	if g.layLots(g.least()); len(g.lots.list) == 0 {
		return nil
	}
	g.lookup()
	return &g.queue.Ask[0]
}

// MayForm tells whether a gang is short of all its min_units beside what it is promised, and nothing of it is left.
func MayForm(e *Env, sub cluster.SubID) bool {
	return e.State.Short(sub)-e.Promises.Units[sub] >= e.State.Sub.MinUnits[sub] && e.State.Staying(sub) == 0
}

// Fits tells whether all min_units of a gang fit what its leaf draws on now: together where it must be, and else where
// it can. Then it is held to that value, also one that may be anywhere. O(parcels), together for each value with room
// for all.
func (g *Granter) Fits(e *Env, sub cluster.SubID) bool {
	places, prefers := e.Views.Needs.Seeks(sub)
	if places == nil {
		return g.fits(e, sub)
	}
	least := e.State.Sub.MinUnits[sub]
	for value, units := range g.Room(e, sub, places) {
		if units < least {
			continue
		}
		e.Views.Needs.Hold(sub, int32(value))
		if g.fits(e, sub) {
			return true
		}
		e.Views.Needs.Free(sub)
	}
	return prefers && g.fits(e, sub)
}

// fits is Fits where a gang may be now.
func (g *Granter) fits(e *Env, sub cluster.SubID) bool {
	s := e.State
	t := tally{most: s.Sub.MinUnits[sub]}
	ask := pool.Ask{Sub: sub, Shape: s.Sub.Shape[sub]}
	for top := s.Node(sub); top != plan.None && t.units < t.most; top = s.Policy.Parent[top] {
		if a := g.ready(e, top, sub); a != nil {
			g.count(a, &t)
		}
	}
	g.uncount(&ask, &t)
	return t.units == s.Sub.MinUnits[sub]
}

// Room adds up by value of an attribute how many units of a sub-allocation fit what its leaf draws on now, whatever
// limits say and whatever it is promised. O(parcels).
func (g *Granter) Room(e *Env, sub cluster.SubID, places *cluster.Places) []int64 {
	s := e.State
	sum := make([]int64, len(places.Text))
	var on map[cluster.HostID]int64
	g.all = true
	defer func() { g.all = false }()
	for top := s.Node(sub); top != plan.None; top = s.Policy.Parent[top] {
		a := g.ready(e, top, sub)
		if a == nil {
			continue
		}
		if on == nil {
			on = maps.Clone(g.kind[a.Kind].on)
		}
		g.addRoom(a, places, sum, on)
	}
	return sum
}

// Part gives a gang up to so many units of what its leaf draws on through the pool of a consumer, or owns, and tells
// how many those are. The decisions are added to out.
func (g *Granter) Part(e *Env, top plan.Node, sub cluster.SubID, most int64, out *Decisions) (units int64) {
	a := g.ready(e, top, sub)
	for a != nil && units < most {
		k, on, ok := g.place(a)
		if !ok {
			break
		}
		out.add(g.env, sub, k, on)
		units++
	}
	return units
}
