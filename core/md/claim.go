package md

import (
	"math"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
	"github.com/stintd/stint/vecpack"
)

// claim is what the taker of a round, one unit that looks for victims, may take: worked out once for each consumer next to its way up to the
// pool, and from that for each pair that is asked about.
type claim struct {
	pool    *pool // whose takers are served, nil: none
	loop    int64 // counts the pools whose takers were served
	round   int64
	gets    int64
	way     []plan.Node          // by depth: the consumers on its way up, the pool's included
	onWay   []int64              // by Node: the last round in which it was on the way
	beside  []margin             // by Node: of those next to the way, and of leaves below them
	first   []margin             // by tops.firsts, in the root's pool: of the taker's own it is no bound
	limit   [elsewhere + 1]int64 // by tops.list: what no unit below it may give more than; no bound on the taker's way, and for what is elsewhere
	pair    []yield              // by PairID
	worth   [vecpack.Lanes]worth // in the pool, by dimension, of the first ones
	gifts   bool                 // some unit gives nothing: no worth bounds what is given
	least   []int64              // by Node in the pool: no unit below it gives less
	ofShape []int64              // by ShapeID: no unit of it gives less
	free    bool                 // no pact stands in anyone's way
	bear    []leeway             // by depth: what pacts let the shares on the way become
}

// margin is the most share that units below a consumer next to the way may give; below 0: none may be taken.
type margin struct{ round, most int64 }

// yield is what a unit of a pair gives, and how many units may be taken.
type yield struct {
	known int64 // the round, and in its last mostBits what mostOf said in it
	gives int64 // below 0: nothing of it is to be had in the pool
	loop  int64 // of which pool's takers gives is, 0: not known
	leaf  plan.Node
}

// leeway is how far the shares of consumers may rise or fall before a pact does not stand any more: of the one at a depth of the way and all above it,
// and how far those of it and all below it may rise.
type leeway struct{ rise, fall, below int64 }

// layLeast finds out how little units give, before the takers of a pool are served. O(pairs and consumers in it).
func (m *Planner) layLeast(o *pool) {
	c := &m.fairness.claim
	c.loop++
	c.worth, c.gifts = [vecpack.Lanes]worth{}, false
	c.pool, c.least = o, resized(c.least, int(o.end-o.node))
	for i := range c.least {
		c.least[i] = math.MaxInt64
	}
	c.ofShape = resized(c.ofShape, m.s.Shape.Len())
	for i := range c.ofShape {
		c.ofShape[i] = math.MaxInt64
	}
	for q := o.firstPair; q != cluster.NoID; q = m.pools.nextPair[q] {
		if m.promise.net[q] > 0 {
			leaf, shape, gives := m.p.Pairs.Leaf[q]-o.node, m.p.Pairs.Shape[q], -m.change(q, -1)
			c.least[leaf], c.ofShape[shape] = min(c.least[leaf], gives), min(c.ofShape[shape], gives)
		}
	}
	for shape, gives := range c.ofShape {
		if gives < math.MaxInt64 {
			c.value(m.s.Shape.Size(cluster.ShapeID(shape)), gives)
		}
	}
	for n := o.end - 1; n > o.node; n-- {
		up := m.policy.Parent[n] - o.node
		c.least[up] = min(c.least[up], c.least[n-o.node])
	}
}

// lower takes in that a unit of a pair may give less than any did below its leaf. O(depth).
func (m *Planner) lower(o *pool, q cluster.PairID) {
	c, shape, gives := &m.fairness.claim, m.p.Pairs.Shape[q], -m.change(q, -1)
	if gives < c.ofShape[shape] {
		c.ofShape[shape] = gives
		c.value(m.s.Shape.Size(shape), gives)
	}
	for n := m.p.Pairs.Leaf[q]; n != o.node && gives < c.least[n-o.node]; n = m.policy.Parent[n] {
		c.least[n-o.node] = gives
	}
}

// layClaim readies it for a taker's unit. O(depth), and the pacts of those on its way.
func (m *Planner) layClaim(o *pool, taker plan.Node, gets int64) {
	c, depth := &m.fairness.claim, m.policy.Depth
	c.round++
	c.gets = gets
	c.onWay, c.beside = resized(c.onWay, m.policy.Len()), resized(c.beside, m.policy.Len())
	c.way, c.bear = resized(c.way, int(depth[taker])+1), resized(c.bear, int(depth[taker])+1)
	for n := taker; ; n = m.policy.Parent[n] {
		c.onWay[n], c.way[depth[n]] = c.round, n
		if n == o.node {
			break
		}
	}
	if c.free = len(m.fairness.pacts.known) == 0 || mutant == 55; c.free {
		return
	}
	below, top := int64(math.MaxInt64), depth[o.node]
	for d := depth[taker]; d > top; d-- {
		one := m.boundOf(o, c.way[d])
		below = min(below, one.rise)
		c.bear[d] = leeway{one.rise, one.fall, below}
	}
	c.bear[top] = leeway{math.MaxInt64, math.MaxInt64, below}
	for d := top + 1; d <= depth[taker]; d++ {
		c.bear[d].rise, c.bear[d].fall = min(c.bear[d].rise, c.bear[d-1].rise), min(c.bear[d].fall, c.bear[d-1].fall)
	}
}

// mayGive tells whether one unit of a pair may be taken for the taker of this round, by itself. O(1) but for the first time in a round.
func (m *Planner) mayGive(o *pool, pair cluster.PairID) bool { return m.mostOf(o, pair) > 0 }

// mostOf is how many units of a pair may be taken for the taker of this round at most: of several together only fewer may.
func (m *Planner) mostOf(o *pool, pair cluster.PairID) int64 {
	c := &m.fairness.claim
	if int(pair) >= len(c.pair) {
		c.pair = append(c.pair, make([]yield, len(m.p.Pairs.Leaf)-len(c.pair))...)
	}
	one := &c.pair[pair]
	if known := one.known - c.round<<mostBits; known >= 0 {
		return known
	}
	units := m.grants(o, pair)
	one.known = c.round<<mostBits | units
	return units
}

// mostBits is of the largest number that mostOf says.
const mostBits = 20

// grants is mostOf for the first time in a round. O(depth) for the first pair of a leaf, or where there are pacts.
func (m *Planner) grants(o *pool, pair cluster.PairID) int64 {
	c := &m.fairness.claim
	one := m.yieldOf(o, pair)
	if one.gives < 0 || one.leaf == c.way[len(c.way)-1] {
		return 0 // nothing there, or the taker itself
	}
	most := &c.beside[one.leaf]
	if most.round != c.round {
		*most = *m.marginAt(o, m.nextToWay(one.leaf))
	}
	if !most.bears(one.gives) || !c.free && !m.keepsPacts(o, one.leaf, m.nextToWay(one.leaf), one.gives) {
		return 0
	}
	return most.units(one.gives)
}

// nextToWay is the consumer next to the way of this round that a leaf is below, or is. O(depth).
func (m *Planner) nextToWay(leaf plan.Node) plan.Node {
	c := &m.fairness.claim
	for up := m.policy.Parent[leaf]; c.onWay[up] != c.round; up = m.policy.Parent[up] {
		leaf = up
	}
	return leaf
}

// bears tells whether units that give so much may be taken as far as it goes by the shares of those next to the way.
func (g *margin) bears(gives int64) bool { return gives <= g.most || mutant == 48 && g.most >= 0 }

// units is how many that give so much each may be taken.
func (g *margin) units(gives int64) int64 {
	if gives <= 0 || mutant == 48 {
		return 1<<mostBits - 1
	}
	return min(g.most/gives, 1<<mostBits-1)
}

// marginAt is the margin of a consumer next to the way of this round.
func (m *Planner) marginAt(o *pool, a plan.Node) *margin {
	c := &m.fairness.claim
	if c.beside[a].round != c.round {
		c.beside[a] = m.marginOf(o, a)
	}
	return &c.beside[a]
}

// yieldOf is what a unit of a pair gives, as it stands.
func (m *Planner) yieldOf(o *pool, pair cluster.PairID) *yield {
	c := &m.fairness.claim
	one := &c.pair[pair]
	if one.loop != c.loop {
		one.loop, one.leaf, one.gives = c.loop, m.p.Pairs.Leaf[pair], -1
		if m.p.Pairs.Pool[pair] == o.id && m.promise.net[pair] > 0 {
			one.gives = -m.change(pair, -1)
		}
	}
	return one
}

// forgetYield drops what a unit of a pair gives, as something of the pair changed. O(depth).
func (m *Planner) forgetYield(q cluster.PairID) {
	c := &m.fairness.claim
	if int(q) < len(c.pair) {
		c.pair[q].loop = 0
	}
	if c.pool != nil && m.p.Pairs.Pool[q] == c.pool.id && m.promise.net[q] > 0 {
		m.lower(c.pool, q)
	}
}

// marginOf works out how much units below a consumer next to the way may give: see ahead.
func (m *Planner) marginOf(o *pool, a plan.Node) margin {
	c := &m.fairness.claim
	b := c.way[m.policy.Depth[a]]
	ra, rb := m.set.Ratio[a], m.set.Ratio[b]
	if lower := m.set.Priority[a] < m.set.Priority[b]; lower || m.set.Priority[a] > m.set.Priority[b] || ra == 0 || rb == 0 {
		if lower || m.set.Priority[a] == m.set.Priority[b] && ra == 0 && rb > 0 {
			return margin{c.round, math.MaxInt64}
		}
		return margin{c.round, -1}
	}
	x := m.pools.stake[o.at(a)]
	return margin{c.round, min(x, withSlack(x-reach(m.pools.stake[o.at(b)]+c.gets, ra, rb)))}
}

// withSlack is the most that someone may give who, without slack, might give so much; below 0: nothing, not even units that give
// nothing. It turns round what slackOf says.
func withSlack(room int64) int64 {
	switch {
	case room >= even:
		return room + even
	case room >= 0:
		return 2 * room
	case room >= -even:
		return 0
	}
	return -1
}

// reach is the least share of someone of ratio ra that is, for its ratio, no less than a share y of someone of ratio rb.
func reach(y, ra, rb int64) int64 {
	need, cut := share.Scale(y, ra, rb)
	if cut {
		need++
	}
	return need
}

// keepsPacts tells whether all pacts that stand still do when a victim below a, next to the way, gives so much and the taker has its unit.
func (m *Planner) keepsPacts(o *pool, victim, a plan.Node, gives int64) bool {
	c, depth := &m.fairness.claim, m.policy.Depth[a]
	if c.bear[depth].below < c.gets {
		return false
	}
	if more := c.gets - gives; more > c.bear[depth-1].rise || -more > c.bear[depth-1].fall {
		return false
	}
	for n := victim; c.onWay[n] != c.round; n = m.policy.Parent[n] {
		if m.boundOf(o, n).fall < gives {
			return false
		}
	}
	return true
}
