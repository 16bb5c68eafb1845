package md

import (
	"math"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/line"
	"github.com/stintd/stint/core/place"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// granter is the loops of MD-16 over the pools and their scratch memory. While a
// loop runs it works on copies made for it (the line's turns, the field's words); what it gave
// is booked into the state when it is done.
type granter struct {
	*Planner

	race   share.Race
	line   line.Line
	hungry hungry
	leaves []plan.Node // of them, those in the loop
	step   []step      // in the public pool by PairID, in others as stepOf says
	stepOf []int32     // by SubID
	kinds  []leafKind  // by ShapeID: scratch
	visit  int64       // counts loops, and leaves in them
	shapes []cluster.ShapeID
	renew  renewal

	lot    place.Lot
	lend   bool      // the lot has something
	open   bool      // public parcels are to be had
	found  []int32   // by SubID: its number, from 1, in find, or among the desk's finders where nothing is owned; 0: not known
	find   []found   // where anything is owned
	top    plan.Node // whose pool it is
	barred bool      // promised units are kept out of the line
	vec    []int64   // scratch

	relay  relay
	given  []gift             // unit by unit
	served []cluster.SubID    // who was given something in loops that were gathered
	from   batch              // where the gifts of the loop begin
	second *granter           // who serves beside it where the stage is spread
	batch  []batch            // what loops gave that were not booked yet
	gave   bool               // any loop gave something
	parcel []cluster.ParcelID // of gifts that are dealt out
	runs   []cluster.Run      // in them, of batch
	both   struct {           // of two granters: scratch
		parcel []cluster.ParcelID
		runs   []cluster.Run
	}
	booked []cluster.HoldingID // what was granted, of one step after the other; of each in the order of D-14
	steps  int                 // how many they are

	meanwhile func() // see Grant
}

// found is where a sub-allocation's units are looked for: its numbers among public parcels and in the lot, NoID until it asks there.
type found struct {
	public, lot int32
	counts      bool // with max_per_host: what one finds the other is to know
}

// leafKind is the units of one size of a leaf in a loop.
type leafKind struct {
	visit int64 // of which loop, or leaf in one
	step  int32
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
	left                         int64 // units until the capacity; unknown: it was not asked for yet
}

// Grant gives takers what was held for them, then leaves what is free on their own parcels, and
// hands out what is free in the pools, from the deepest consumers' up to the public one (MD-7, MD-8, MD-16). Meanwhile, which goes by nothing of that, is
// called beside it or behind it, or both.
func (m *Planner) Grant(meanwhile func()) {
	g := &m.grant
	g.meanwhile = meanwhile
	g.Planner = m
	g.booked, g.steps, g.gave = g.booked[:0], 0, false
	m.begin()
	m.outlook = m.foresee()
	if m.ordered == nil { // only what is under way makes review or fulfil ask the desk
		g.openDesk()
	}
	g.review()
	g.fulfil()
	short := g.warm()
	if m.ordered != nil {
		g.openDesk()
	}
	g.empty()
	g.given = slices.Grow(g.given, int(min(short, giftsReserved)))
	two := g.maySpread(short)
	if m.nears() {
		g.follow()
	} else {
		g.grantOwn(two && len(g.promise.ofSub) == 0)
	}
	for _, sub := range g.hungry.short { // promised units are kept out of the queues
		g.line.Sub[sub].Bar = g.promise.units[sub]
	}
	g.barred = true
	for pools := m.pools.list; len(pools) > 0; {
		n := 1
		for n < len(pools) && m.policy.Depth[pools[n].node] == m.policy.Depth[pools[0].node] {
			n++
		}
		g.grantPools(pools[:n], two)
		pools = pools[n:]
	}
	g.meanwhile()
}

// openDesk readies the desk for those who look for room.
func (g *granter) openDesk() {
	g.awaitOrder()
	g.desk.Begin(&g.desk, g.public.parcels)
}

// grantPools hands out what is free in pools of consumers that are equally deep, so that none is below another.
func (g *granter) grantPools(pools []pool, two bool) {
	if two && len(pools) > 1 && !g.nears() {
		g.inTwo(len(pools), func(g *granter, i int) { g.servePool(&pools[i], int32(i)) })
		for i := range pools {
			g.freshen(&pools[i])
		}
		g.bookPools(pools)
		return
	}
	for i := range pools {
		g.servePool(&pools[i], int32(i))
		g.freshen(&pools[i])
		g.bookPools(pools)
	}
}

// servePool brings a pool's capacities up to what is held now, and hands out what is free in it.
func (g *granter) servePool(o *pool, at int32) {
	g.refresh(o, &g.renew)
	o.live, o.refused = false, false
	if !g.nears() && g.grantPool(o) {
		g.close(at)
	}
}

// begin readies what recall and fair reclaim note in a cycle.
func (m *Planner) begin() {
	f := &m.fairness
	f.denied, f.undone, f.joinedAt, f.joinedOn = map[cluster.SubID]bool{}, map[cluster.SubID]bool{}, nil, nil
	f.regain, f.gained, f.last, f.sought, m.grant.barred = f.regain[:0], f.gained[:0], cluster.NoID, false, false
	if m.budget = m.p.Terms.ReclaimBudget; m.budget == plan.Unlimited {
		m.budget = math.MaxInt64
	}
	m.turns = m.p.PromisesMost()
}

// grantPool hands out what is free in a pool: from its consumer always to
// the child of the highest share priority, among equals to the one with the least
// usage ÷ ratio, down to a leaf, one unit a step (MD-16). It tells whether anything may have been given, which is not booked. Time is units × (levels ×
// log children + dimensions) and, once, shapes × parcels.
func (g *granter) grantPool(o *pool) bool {
	g.top = o.node
	if !g.lineUp(o) {
		return false
	}
	node, outstanding, has := g.ready(o)
	if !has || !g.race.Start() {
		return false
	}
	g.readyRelay(o, outstanding)
	if o.node != plan.Root {
		g.serveAll(o)
	} else { // nothing is booked before it is done
		cluster.Both(true, func() { g.serveAll(o) }, g.lookAhead)
	}
	for n := range node { // in place, also where the race was begun anew
		g.pools.stake[int(o.figures)+n] = node[n].Usage
	}
	g.gather()
	return true
}

// lookAhead brings up what later stages keep as far as it is known by now what is held. What else there will be they bring up themselves.
func (m *Planner) lookAhead() {
	m.followHoldings()
	m.canvassSome()
	m.laySome()
	m.bringUpTouched(m.root())
	m.seekBelow()
	m.lookOutSome()
	m.grant.meanwhile()
}

// lineUp puts the leaves with outstanding demand that may draw on a pool in line, and tells whether there are any.
func (g *granter) lineUp(o *pool) bool {
	from, _ := slices.BinarySearch(g.hungry.leaf, o.node)
	g.leaves = g.leaves[:0]
	for _, leaf := range g.hungry.leaf[from:] {
		if leaf >= o.end {
			break
		}
		if g.policy.ReclaimUS[leaf] <= o.grace && g.line.Open(leaf) {
			g.leaves = append(g.leaves, leaf)
		}
	}
	return len(g.leaves) > 0
}

// ready readies what a pool has to give, and tells whether that is anything; the race of those in line, and how many units they are short of. Of the
// public pool both are done at once.
func (g *granter) ready(o *pool) (node []share.Entrant, outstanding int64, has bool) {
	if o.node != plan.Root {
		if has = g.layLot(o); has {
			g.weigh(o)
			node, g.step = g.enter(o), g.step[:0]
			outstanding = g.prepare(o)
		}
		return node, outstanding, has
	}
	g.known()
	cluster.Both(true, func() {
		if has = g.layLot(o); has {
			outstanding = g.prepare(o)
		}
	}, func() {
		g.weigh(o)
		node = g.enter(o)
		g.layStep(o)
	})
	return node, outstanding, has
}

// enter readies the race of those in line. O(consumers in the pool).
func (g *granter) enter(o *pool) []share.Entrant {
	node := g.race.Reset(int(o.end - o.node))
	for i := range node {
		n := o.node + plan.Node(i)
		node[i] = share.Entrant{
			Usage: g.pools.stake[int(o.figures)+i], Ratio: g.set.Ratio[n], Priority: g.set.Priority[n],
			Tie: int32(n), Parent: int32(g.policy.Parent[n] - o.node),
		}
	}
	node[0].Parent = -1
	for _, leaf := range g.leaves {
		node[leaf-o.node].In = true
	}
	return node
}

// layLot readies what a pool has to give, and tells whether that is anything: its own parcels come before lent ones,
// own ones by their consumer's preference, the best first, lent ones by their owner's, the worst first (MD-6).
func (g *granter) layLot(o *pool) bool {
	g.open, g.lend = o.node == plan.Root && g.hasPublic(), false
	if o.own == o.all {
		return g.open
	}
	g.lot.Begin(&g.desk)
	if o.all-o.own >= narrowMin && len(g.pooled) == 0 {
		g.lot.Narrow(g.shapesInLine())
	}
	side, grace := plan.Node(plan.None), o.grace
	owner := cluster.ConsumerID(cluster.NoID)
	for row := o.own; row < o.all; row++ {
		k := g.owners.parcel[row]
		if !g.lot.MayUse(k) || !g.p.Parcels.IsOpen(k) || !g.hasRoom(k) {
			continue
		}
		one := place.Item{Parcel: k, Tier: int32(g.preference(o.node, k)), Side: cluster.NoID, Grace: o.grace}
		var rest []int64
		if row >= o.lent {
			if at := g.p.Parcels.Owner[k]; at != owner {
				n := g.s.NodeOf[at]
				owner, side, grace = at, g.toward(n, o.node), g.grace(at, o.node)
			}
			one.Tier, one.Side, one.Grace = lentTier-int32(g.preference(g.s.NodeOf[owner], k)), int32(side), grace
			if mutant == 23 {
				one.Tier = lentTier - preferences + int32(g.preference(g.s.NodeOf[owner], k))
			}
			if g.reserved(k, o.node) {
				n := len(g.p.Parcels.Cap)
				g.vec = resized(g.vec, 2*n)
				rest = g.vec[:n]
				g.spareBeside(k, o.node, false, rest, g.vec[n:])
			}
		}
		g.lot.Add(one, rest)
	}
	g.lend = g.lot.Close()
	g.find = g.find[:0]
	return g.open || g.lend
}

// narrowMin is from how many parcels on those on which nobody in line fits are left out.
const narrowMin = 64

// shapesInLine lists the sizes of units that the leaves in the loop are short of.
func (g *granter) shapesInLine() []cluster.ShapeID {
	g.shapes = g.shapes[:0]
	g.kinds = resized(g.kinds, g.s.Shape.Len())
	g.visit++
	g.eachInLine(func(sub cluster.SubID, t *line.Turn) {
		if kind := &g.kinds[g.s.Sub.Shape[sub]]; kind.visit != g.visit && t.Held+t.Bar < t.Wanted {
			kind.visit = g.visit
			g.shapes = append(g.shapes, g.s.Sub.Shape[sub])
		}
	})
	return g.shapes
}

// lentTier is above all tiers of lent parcels and below none: their tiers are lentTier less their owners' preference.
const lentTier = 2*preferences + 1

// hasPublic tells whether any parcel of the root's own may get grants.
func (g *granter) hasPublic() bool {
	if g.public.parcels == nil {
		return true
	}
	for w, set := range g.public.parcels {
		if set&g.p.Parcels.Open[w] != 0 {
			return true
		}
	}
	return false
}

// hasRoom tells whether anything of a parcel is free beside what sets keep.
func (g *granter) hasRoom(k cluster.ParcelID) bool {
	for d := range g.p.Parcels.Free {
		if g.p.Parcels.Available(d, k) > 0 {
			return true
		}
	}
	return false
}

// prepare readies those in line, and usage steps in pools but the public one; it tells how many units they are short of.
func (g *granter) prepare(o *pool) (outstanding int64) {
	public := o.node == plan.Root
	g.found, g.stepOf = resized(g.found, len(g.s.Sub.Wanted)), resized(g.stepOf, len(g.s.Sub.Wanted))
	g.kinds = resized(g.kinds, g.s.Shape.Len())
	for _, leaf := range g.leaves {
		g.visit++
		for _, sub := range g.hungry.of(leaf) {
			t := &g.line.Sub[sub]
			t.Given, g.found[sub] = 0, 0
			outstanding = share.Add(outstanding, max(0, t.Wanted-t.Held-t.Bar))
			if g.stepOf[sub] = int32(g.s.Sub.Pair[sub]); public {
				continue
			}
			kind := &g.kinds[g.s.Sub.Shape[sub]]
			if kind.visit != g.visit {
				*kind = leafKind{g.visit, int32(len(g.step))}
				g.step = append(g.step, step{left: unknown})
			}
			g.stepOf[sub] = kind.step
		}
	}
	return outstanding
}

// layStep readies usage steps in the public pool of those in line, for what is net.
func (g *granter) layStep(o *pool) {
	g.step = resized(g.step, len(g.p.Pairs.Units))
	g.eachInLine(func(sub cluster.SubID, _ *line.Turn) {
		q := g.s.Sub.Pair[sub]
		g.step[q] = newStep(g.promise.net[q], g.capacity(o, g.p.Pairs.Shape[q]))
	})
}

// usage is what one unit more of a sub-allocation adds to its leaf's usage of the pool of the loop.
func (g *granter) usage(o *pool, sub cluster.SubID) int64 {
	one := &g.step[g.stepOf[sub]]
	if one.left == unknown {
		net := int64(0)
		if q := g.s.FindPair(sub, o.id); q != cluster.NoID {
			net = g.promise.net[q]
		}
		*one = newStep(net, g.capacity(o, g.s.Sub.Shape[sub]))
	}
	return one.next()
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
func (g *granter) serve(o *pool, leaf plan.Node) (usage int64, stays bool) {
	for {
		for sub := g.line.Next(leaf); sub != cluster.NoID; sub = g.line.Next(leaf) {
			k := cluster.ParcelID(cluster.NoID)
			if len(g.fairness.undone) == 0 || !g.fairness.undone[sub] {
				k = g.seek(o, leaf, sub)
			}
			if k != cluster.NoID {
				g.given = append(g.given, gift{sub, k})
				if len(g.pooled) > 0 {
					g.shift(sub, o.id, 1)
				}
				usage = g.usage(o, sub)
				g.line.Served(leaf)
				return usage, g.line.Advance(leaf)
			}
			g.line.Sub[sub].Passed = true
			g.line.Pass(leaf) // fits nowhere, and will not in this loop
			g.relay.calm = 0
		}
		if !g.line.Advance(leaf) {
			return 0, false
		}
	}
}

// seek takes room for a unit of a sub-allocation in a pool, NoID when there is none or a share limit stands against it.
func (g *granter) seek(o *pool, leaf plan.Node, sub cluster.SubID) cluster.ParcelID {
	if _, _, over := g.overLimit(leaf, sub); over {
		o.refused = true
		return cluster.NoID
	}
	number := &g.found[sub]
	if !g.lend { // public parcels alone
		if *number == 0 {
			*number = g.desk.Lookup(sub) + 1
		}
		f := g.desk.At(*number - 1)
		k := f.Find()
		if k != cluster.NoID {
			f.Give(k)
		}
		return k
	}
	if *number == 0 {
		one := found{lot: cluster.NoID, counts: g.s.Sub.MaxPerHost[sub] != plan.Unlimited}
		if g.open {
			one.public = g.desk.Lookup(sub)
		}
		g.find = append(g.find, one)
		*number = int32(len(g.find))
	}
	at := &g.find[*number-1]
	if at.lot == cluster.NoID && at.counts {
		at.lot = g.inLot(o, leaf, sub)
	}
	if g.open {
		f := g.desk.At(at.public)
		if k := f.Find(); k != cluster.NoID {
			f.Give(k)
			if at.counts {
				g.lot.Count(at.lot, k)
			}
			return k
		}
	}
	if at.lot == cluster.NoID {
		at.lot = g.inLot(o, leaf, sub)
	}
	k := g.lot.Find(at.lot)
	if k != cluster.NoID {
		if g.lot.Give(at.lot, k); g.open && at.counts {
			g.desk.At(at.public).Count(k, 1)
		}
	}
	return k
}

// inLot gives the number by which the lot of a pool knows a sub-allocation.
func (g *granter) inLot(o *pool, leaf plan.Node, sub cluster.SubID) int32 {
	return g.lot.Lookup(sub, place.Who{Side: int32(g.toward(leaf, o.node)), Grace: g.policy.ReclaimUS[leaf]})
}

// eachInLine calls f for the sub-allocations with outstanding demand of the leaves in the loop, in the order of D-14.
func (g *granter) eachInLine(f func(sub cluster.SubID, t *line.Turn)) {
	for _, leaf := range g.leaves {
		for _, sub := range g.hungry.of(leaf) {
			f(sub, &g.line.Sub[sub])
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

// overLimit tells which share limit (MD-18) one more unit from the pool of the loop would exceed: of the leaf or a branch
// above it, below the pool.
func (g *granter) overLimit(leaf plan.Node, sub cluster.SubID) (at plan.Node, dimension int, over bool) {
	return g.overLimitOf(g.pooled, leaf, sub, g.top)
}

// overLimitOf tells the same of a consumer's pool, by other amounts that consumers hold.
func (m *Planner) overLimitOf(pooled [][]int64, leaf plan.Node, sub cluster.SubID, top plan.Node) (at plan.Node, dimension int, over bool) {
	if len(pooled) == 0 {
		return 0, 0, false
	}
	size := m.s.Size(sub)
	for n := leaf; n != top; n = m.policy.Parent[n] {
		for d := range pooled {
			if most := m.limit(n, d); most != plan.Unlimited && size[d] > 0 && pooled[d][n]+size[d] > most {
				return n, d, true
			}
		}
	}
	return 0, 0, false
}
