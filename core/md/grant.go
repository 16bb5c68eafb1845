package md

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/place"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// granter is the loop of MD-16 over one pool and its scratch memory. While the
// loop runs it works on copies made for it (hot, the field's words); what it gave
// is booked into the state when it is done.
type granter struct {
	*Planner

	// The tree of consumers that may still get something.
	twig   []twig      // by Node
	queues []queue     // by Node, of leaves in the tree
	leaves []plan.Node // with outstanding demand, in tree order
	kept   []plan.Node // the twigs' heaps

	hot    []hot  // by SubID, of the leaves' sub-allocations
	step   []step // by PairID
	given  []gift // unit by unit
	parcel []cluster.ParcelID
	booked []cluster.HoldingID // this cycle's grants, in the order of D-14
}

// twig is what the loop needs of a consumer, in one place. Its children in the tree
// are a heap, kept[first : first+size], the next to be served on top.
type twig struct {
	usage, ratio int64
	priority     int32
	parent       plan.Node
	first, size  int32
}

// queue is a leaf's demand: the allocation being served and its sub-allocations
// that may still get something, the least satisfied on top (CYC-10).
type queue struct {
	alloc cluster.AllocID
	subs  []cluster.SubID
}

// hot is what the loop needs of a sub-allocation, in one place.
type hot struct {
	held, wanted int64
	seq          int64
	given        int32 // units given in this cycle
	pair         cluster.PairID
	find         int32 // number of its finding + 1, 0: not looked up yet
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
// exactly ⌊(n+1) × 2⁴⁸ ÷ capacity⌋ less the same of n.
type step struct {
	whole, rest, carry, capacity int64
}

// Grant hands out what is free in the public pool (MD-16): from the root always to
// the child of the highest share priority, among equals to the one with the least
// usage ÷ ratio, down to a leaf, one unit a step. Time is units × (levels ×
// log children + dimensions) and, once, shapes × parcels.
func (m *Planner) Grant() {
	g := &m.grant
	g.Planner = m
	g.given, g.booked = g.given[:0], g.booked[:0]
	if !g.plantTree() {
		return
	}
	g.prepare()
	for g.twig[plan.Root].size > 0 {
		leaf := plan.Root
		for t := &g.twig[leaf]; t.size > 0; t = &g.twig[leaf] {
			leaf = g.kept[t.first]
		}
		g.settle(leaf, g.serve(leaf))
	}
	for n := range g.twig {
		g.usage[n] = g.twig[n].usage
	}
	g.book()
}

// plantTree builds the tree of leaves with outstanding demand whose ratios are
// above 0, and tells whether there are any. O(consumers + sub-allocations).
func (g *granter) plantTree() bool {
	n := g.policy.Len()
	g.twig, g.queues, g.leaves = resized(g.twig, n), resized(g.queues, n), g.leaves[:0]
	g.hot = resized(g.hot, len(g.s.Sub.Wanted))
	for c := range g.twig {
		g.twig[c] = twig{usage: g.usage[c], ratio: g.set.Ratio[c], priority: g.set.Priority[c], parent: g.policy.Parent[c]}
	}
	short := g.count()
	g.given = slices.Grow(g.given, int(min(short, giftsReserved)))
	g.kept = resized(g.kept, n)
	used := int32(0)
	for c := range g.twig { // parents come before their children
		t := &g.twig[c]
		grows := t.size > 0 || len(g.queues[c].subs) > 0
		t.first, used = used, used+t.size
		t.size = 0
		if t.parent == plan.None || t.ratio == 0 || !grows || g.twig[t.parent].ratio == 0 && t.parent != plan.Root {
			continue
		}
		above := &g.twig[t.parent]
		g.kept[above.first+above.size] = plan.Node(c)
		above.size++
		if g.policy.Leaf(plan.Node(c)) {
			g.leaves = append(g.leaves, plan.Node(c))
		}
	}
	for c := range g.twig {
		h := g.heap(&g.twig[c])
		for i := len(h)/2 - 1; i >= 0; i-- {
			g.sink(h, i)
		}
	}
	return g.twig[plan.Root].size > 0
}

// count opens the queues of all leaves, counts every twig's children that may get
// something into its size, and adds up the units that are short.
func (g *granter) count() (short int64) {
	for c := plan.Node(len(g.twig) - 1); c > plan.Root; c-- {
		t := &g.twig[c]
		grows := t.size > 0
		g.queues[c].subs = g.queues[c].subs[:0]
		if a := g.p.FirstAlloc[c]; a != cluster.NoID {
			short = share.Add(short, g.warm(c))
			grows = g.open(c, a)
		}
		if grows && t.ratio > 0 {
			g.twig[t.parent].size++
		} else {
			t.size = 0
		}
	}
	return short
}

func (g *granter) heap(t *twig) []plan.Node { return g.kept[t.first : t.first+t.size] }

// warm copies what the loop needs of a leaf's sub-allocations, and adds up what they are short of.
func (g *granter) warm(leaf plan.Node) (short int64) {
	b := &g.s.Sub
	for a := g.p.FirstAlloc[leaf]; a != cluster.NoID; a = g.s.Alloc.Next[a] {
		for sub := g.s.Alloc.First[a]; sub != cluster.NoID; sub = b.Next[sub] {
			g.hot[sub] = hot{held: b.Held[sub], wanted: b.Wanted[sub], seq: b.Seq[sub], pair: b.Pair[sub]}
			short = share.Add(short, max(0, b.Wanted[sub]-b.Held[sub]))
		}
	}
	return short
}

// open makes a leaf's queue stand at the first allocation from a on that is short
// of something, and tells whether there is one.
func (g *granter) open(leaf plan.Node, a cluster.AllocID) bool {
	q := &g.queues[leaf]
	for ; a != cluster.NoID; a = g.s.Alloc.Next[a] {
		q.alloc, q.subs = a, q.subs[:0]
		for sub := g.s.Alloc.First[a]; sub != cluster.NoID; sub = g.s.Sub.Next[sub] {
			if h := &g.hot[sub]; h.held < h.wanted {
				q.subs = append(q.subs, sub)
			}
		}
		if len(q.subs) > 0 {
			for i := len(q.subs)/2 - 1; i >= 0; i-- {
				g.sinkSub(q.subs, i)
			}
			return true
		}
	}
	q.subs = q.subs[:0]
	return false
}

// prepare readies finders and usage steps for a grant stage.
func (g *granter) prepare() {
	g.desk.Begin()
	g.step = resized(g.step, len(g.p.Pairs.Units))
	for q, shape := range g.p.Pairs.Shape {
		g.step[q] = newStep(g.p.Pairs.Units[q], g.capacity.of(shape))
	}
}

func newStep(units, capacity int64) step {
	if capacity <= units {
		return step{capacity: 0}
	}
	rest := share.One % capacity
	return step{share.One / capacity, rest, mulMod(units, rest, capacity), capacity}
}

// serve tries to give the leaf one unit. It is false when nothing of the leaf fits
// any more or it wants no more.
func (g *granter) serve(leaf plan.Node) bool {
	q := &g.queues[leaf]
	for {
		for len(q.subs) > 0 {
			sub := q.subs[0]
			if k, f := g.seek(leaf, sub); k != cluster.NoID {
				g.give(leaf, sub, k, f)
				if h := &g.hot[sub]; h.held == h.wanted {
					g.popSub(q)
				} else {
					g.sinkSub(q.subs, 0)
				}
				return len(q.subs) > 0 || g.open(leaf, g.s.Alloc.Next[q.alloc])
			}
			g.popSub(q) // fits nowhere, and will not in this cycle
		}
		if !g.open(leaf, g.s.Alloc.Next[q.alloc]) {
			return false
		}
	}
}

// seek is the parcel for a unit of a sub-allocation, NoID when there is none or a share limit stands against it.
func (g *granter) seek(leaf plan.Node, sub cluster.SubID) (cluster.ParcelID, *place.Finding) {
	if _, _, over := g.overLimit(leaf, sub); over {
		return cluster.NoID, nil
	}
	f := g.finder(sub)
	return f.Find(), f
}

// give puts a unit on a parcel and updates usages up the path.
func (g *granter) give(leaf plan.Node, sub cluster.SubID, k cluster.ParcelID, f *place.Finding) {
	h := &g.hot[sub]
	h.held++
	h.given++
	g.given = append(g.given, gift{sub, k})
	f.Give(k)
	more := g.step[h.pair].next()
	for n := leaf; n != plan.None; n = g.twig[n].parent {
		g.twig[n].usage += more // a pool's usages add up to no more than its dimensions
	}
	if len(g.pooled) > 0 {
		g.pool(leaf, g.s.Size(sub))
	}
}

// pool adds a unit to what the leaf and the branches above it hold from the pool.
func (g *granter) pool(leaf plan.Node, size []int64) {
	for n := leaf; n != plan.None; n = g.policy.Parent[n] {
		for d := range g.pooled {
			g.pooled[d][n] += size[d]
		}
	}
}

// book makes holdings of what was given, one for each sub-allocation and parcel, in
// the order of D-14: the gifts are dealt out to their sub-allocations, then each
// one's parcels are sorted. O(units log (units of a sub-allocation)).
func (g *granter) book() {
	g.parcel = resized(g.parcel, len(g.given))
	at := int32(0)
	g.eachServed(func(sub cluster.SubID, h *hot) {
		at += h.given
		h.find = at // from here on the end of its parcels, counted down below
	})
	for i := len(g.given) - 1; i >= 0; i-- {
		h := &g.hot[g.given[i].sub]
		h.find--
		g.parcel[h.find] = g.given[i].parcel
	}
	rows := 0
	g.eachServed(func(_ cluster.SubID, h *hot) {
		row := g.parcel[h.find : h.find+h.given]
		slices.Sort(row)
		rows++
		for i := 1; i < len(row); i++ {
			if row[i] != row[i-1] {
				rows++
			}
		}
	})
	g.s.Holding.Reserve(rows)
	g.booked = slices.Grow(g.booked, rows)
	row := cluster.Holding{Granted: g.s.Cycle + 1, Origin: decision.OriginPublicPool, Pool: g.s.ConsumerOf[plan.Root], Lender: cluster.NoID}
	g.eachServed(func(sub cluster.SubID, h *hot) {
		row.Sub = sub
		g.booked = g.s.Hold(g.booked, row, g.parcel[h.find:h.find+h.given])
	})
}

// eachServed calls f for the sub-allocations that were given something, in the order of D-14.
func (g *granter) eachServed(f func(sub cluster.SubID, h *hot)) {
	for _, leaf := range g.leaves {
		for a := g.p.FirstAlloc[leaf]; a != cluster.NoID; a = g.s.Alloc.Next[a] {
			for sub := g.s.Alloc.First[a]; sub != cluster.NoID; sub = g.s.Sub.Next[sub] {
				if h := &g.hot[sub]; h.given > 0 {
					f(sub, h)
				}
			}
		}
	}
}

// next is what one more unit adds to the usage; nothing once the pool is used up whole.
func (s *step) next() int64 {
	if s.capacity == 0 {
		return 0
	}
	more := s.whole
	if s.carry += s.rest; s.carry >= s.capacity {
		s.carry -= s.capacity
		more++
	}
	return more
}

// overLimit tells which share limit (MD-18) one more unit would exceed: of the leaf or a branch above it.
func (g *granter) overLimit(leaf plan.Node, sub cluster.SubID) (at plan.Node, dimension int, over bool) {
	if len(g.pooled) == 0 {
		return 0, 0, false
	}
	size := g.s.Size(sub)
	for n := leaf; n != plan.Root; n = g.policy.Parent[n] {
		for d := range g.pooled {
			if most := g.limit(n, d); most != plan.Unlimited && size[d] > 0 && g.pooled[d][n]+size[d] > most {
				return n, d, true
			}
		}
	}
	return 0, 0, false
}

// finder is the finding of a sub-allocation's shape and requirement.
func (g *granter) finder(sub cluster.SubID) *place.Finding {
	h := &g.hot[sub]
	if h.find == 0 {
		h.find = g.desk.Lookup(sub) + 1
	}
	return g.desk.At(h.find - 1)
}
