package md

import (
	"cmp"
	"math"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// pool is what one consumer has to share (MD-2, MD-8): its own parcels, and what those below it lend. The root's is the
// public pool; its own parcels are those that nobody owns. Parcels are rows of owners.parcel.
type pool struct {
	node           plan.Node // whose it is
	end            plan.Node // one past the last consumer below it
	id             cluster.ConsumerID
	own, lent, all int32 // its own parcels are those from own to lent, the lent ones from there to all
	grace          int64 // who may take longer may not draw on it (MD-9)
	figures        int32 // where its figures by consumer begin
	live           bool  // its stakes are kept up to date
	short          bool  // something is outstanding in it
	refused        bool  // a share limit kept units from it while granting
	again          bool  // its figures were corrected after its quotas were computed
	firstPair      cluster.PairID
	rests
}

// at is where a pool's figures of a consumer in it stand.
func (o *pool) at(n plan.Node) int32 { return o.figures + int32(n-o.node) }

// pools are a plan's pools and what consumers have of them. What a pool costs goes by its parcels, leaves and demand:
// most of many pools are small.
type pools struct {
	list  []pool  // the deepest consumers' first, equally deep ones in tree order, the root's last
	index []int32 // by Node: its pool in list, NoID: none

	// By pool and consumer: see pool.at.
	usage        []int64 // share usage (MD-12)
	stake        []int64 // share usage of what is net
	wanted, held []int64 // units, outstanding ones included; held from the pool
	demand       []int64 // usage demand (MD-13)
	quota        []int64 // usage quota (MD-14)

	nextPair []cluster.PairID // by PairID: the pool's next
	restOf   []restLevel      // by depth of the pool's consumer
}

// layPools finds out who has a pool: the root, and every consumer in whose subtree something is owned but leaves,
// whose parcels are their own.
func (m *Planner) layPools() {
	p := &m.pools
	p.list, p.index = p.list[:0], resized(p.index, m.policy.Len())
	for n := plan.Node(m.policy.Len() - 1); n >= plan.Root; n-- {
		p.index[n] = cluster.NoID
		own, lent, all := m.parcelRange(n)
		if n != plan.Root && (own == all || m.policy.Leaf(n)) {
			continue
		}
		p.list = append(p.list, pool{node: n, end: m.policy.End[n], id: m.s.ConsumerOf[n], own: own, lent: lent, all: all, grace: m.poolGrace(n)})
	}
	slices.SortFunc(p.list, func(a, b pool) int {
		return cmp.Or(cmp.Compare(m.policy.Depth[b.node], m.policy.Depth[a.node]), cmp.Compare(a.node, b.node))
	})
	figures := int32(0)
	for i := range p.list {
		o := &p.list[i]
		p.index[o.node], o.figures = int32(i), figures
		figures += int32(o.end - o.node)
	}
	n := int(figures)
	p.usage, p.stake, p.wanted = zeroed(p.usage, n), zeroed(p.stake, n), zeroed(p.wanted, n)
	p.held, p.demand, p.quota = zeroed(p.held, n), zeroed(p.demand, n), zeroed(p.quota, n)
	m.layRests()
	m.fairness.onHand.forget(&m.p.Parcels, n)
	m.recalls.outer = m.recalls.outer[:0]
}

// parcelRange says which rows of owners.parcel a consumer and those below it own.
func (m *Planner) parcelRange(n plan.Node) (own, lent, all int32) {
	if !m.p.Parcels.Owned {
		return 0, 0, 0
	}
	first := m.owners.first
	return first[n], first[n+1], first[m.policy.End[n]]
}

// layPublic makes the public pool's own parcels those without an owner.
func (m *Planner) layPublic() {
	o := &m.public
	if !m.p.Parcels.Owned {
		o.parcels = nil
		return
	}
	o.parcels = zeroed(o.parcels, m.p.Parcels.Words())
	for k, owner := range m.p.Parcels.Owner {
		if owner == cluster.NoID {
			o.parcels[k>>6] |= 1 << (uint(k) & 63)
		}
	}
}

// root is the public pool.
func (m *Planner) root() *pool { return &m.pools.list[len(m.pools.list)-1] }

// poolOf is the pool of a consumer, nil when it has none (any more).
func (m *Planner) poolOf(id cluster.ConsumerID) *pool {
	if id == cluster.NoID {
		return nil
	}
	if n := m.s.NodeOf[id]; n != plan.None && m.pools.index[n] != cluster.NoID {
		return m.poolAt(n)
	}
	return nil
}

// poolAt is the pool of a consumer that has one.
func (m *Planner) poolAt(n plan.Node) *pool { return &m.pools.list[m.pools.index[n]] }

// eachPoolAbove calls f for the pools of the consumers above one, the nearest first.
func (m *Planner) eachPoolAbove(n plan.Node, f func(o *pool)) {
	for n = m.policy.Parent[n]; n != plan.None; n = m.policy.Parent[n] {
		if m.pools.index[n] != cluster.NoID {
			f(m.poolAt(n))
		}
	}
}

// exists tells whether a leaf in a pool may draw on any parcel through it.
func (m *Planner) exists(o *pool, leaf plan.Node) bool {
	if o.node == plan.Root || o.lent > o.own {
		return true
	}
	own, _, all := m.parcelRange(m.toward(leaf, o.node))
	return own > o.lent || all < o.all
}

// toward is the child of a consumer on the way down to one below it. O(depth).
func (m *Planner) toward(below, up plan.Node) plan.Node {
	for m.policy.Parent[below] != up {
		below = m.policy.Parent[below]
	}
	return below
}

// meet is the consumer through whose pool a leaf draws on a parcel: where the ways up from leaf and owner meet. It is the leaf when
// the parcel is its own.
func (m *Planner) meet(leaf plan.Node, k cluster.ParcelID) plan.Node {
	owner := m.p.Parcels.Owner[k]
	if owner == cluster.NoID {
		return plan.Root
	}
	n := m.s.NodeOf[owner]
	for leaf < n || leaf >= m.policy.End[n] {
		n = m.policy.Parent[n]
	}
	return n
}

// via is the pool from which units of a sub-allocation on a parcel are held, NoID: on its leaf's own.
func (m *Planner) via(sub cluster.SubID, k cluster.ParcelID) cluster.ConsumerID {
	_, pool, _ := m.s.CountsAs(m.p.Pairs.Leaf[m.s.Sub.Pair[sub]], m.p.Parcels.Owner[k])
	return pool
}

// poolGrace is the most grace that those who draw on a consumer's pool may have; MaxInt64 when none is set.
func (m *Planner) poolGrace(n plan.Node) int64 {
	if n == plan.Root {
		return unlessSet(m.p.MD.PublicGraceUS)
	}
	return unlessSet(m.set.PrivateUS[n])
}

func unlessSet(us int64) int64 {
	if us == plan.Unlimited {
		return math.MaxInt64
	}
	return us
}

// grace is the grace of an owner's parcels in the pool of a consumer above it (MD-9): the smallest of the lenders' and the
// pool's. A leaf's own parcels have none. Top is the pool's consumer, or the leaf. O(depth).
func (m *Planner) grace(owner cluster.ConsumerID, top plan.Node) int64 {
	if m.policy.Leaf(top) {
		return math.MaxInt64
	}
	us := m.poolGrace(top)
	if mutant == 13 {
		us = math.MaxInt64
	}
	if owner == cluster.NoID || mutant == 11 {
		return us
	}
	for n := m.s.NodeOf[owner]; n != top; n = m.policy.Parent[n] {
		us = min(us, unlessSet(m.set.LendGraceUS[n]))
		if mutant == 12 {
			break
		}
	}
	return us
}

// due is when units of a holding that are put under reclaim now are to be given back: after the smaller of its
// holder's grace and that of its parcel in the pool.
func (m *Planner) due(q cluster.HoldingID) int64 {
	h := &m.s.Holding
	us := m.policy.ReclaimUS[m.s.Node(h.Sub[q])]
	if pool := h.Pool[q]; pool != cluster.NoID && mutant != 14 {
		us = min(us, m.grace(m.p.Parcels.Owner[h.Parcel[q]], m.s.NodeOf[pool]))
	}
	return m.nowUS + us
}

// sumIn adds every consumer's figure in a pool to its parent's, from the leaves up.
func (m *Planner) sumIn(o *pool, figure []int64) {
	at := figure[o.figures:]
	for n := o.end - 1; n > o.node; n-- {
		up := m.policy.Parent[n] - o.node
		at[up] = share.Add(at[up], at[n-o.node])
	}
}

// enlist deals the plan's pairs out to their pools. O(pairs).
func (m *Planner) enlist() {
	for i := range m.pools.list {
		m.pools.list[i].firstPair, m.pools.list[i].live = cluster.NoID, false
	}
	m.pools.nextPair = m.pools.nextPair[:0]
	m.enlistNew()
}

// enlistNew does so with pairs that are new.
func (m *Planner) enlistNew() {
	for q := len(m.pools.nextPair); q < len(m.p.Pairs.Pool); q++ {
		m.pools.nextPair = append(m.pools.nextPair, cluster.NoID)
		if o := m.poolOf(m.p.Pairs.Pool[q]); o != nil {
			m.pools.nextPair[q], o.firstPair = o.firstPair, cluster.PairID(q)
		}
	}
}

// weigh adds up the stakes in a pool from what is net (docs/shares.md).
func (m *Planner) weigh(o *pool) {
	at := m.pools.stake[o.figures : o.figures+int32(o.end-o.node)]
	clear(at)
	for q := o.firstPair; q != cluster.NoID; q = m.pools.nextPair[q] {
		if net := m.promise.net[q]; net != 0 {
			leaf := m.p.Pairs.Leaf[q] - o.node
			at[leaf] = share.Add(at[leaf], share.Fraction(net, m.capacity(o, m.p.Pairs.Shape[q])))
		}
	}
	m.sumIn(o, m.pools.stake)
	o.live = true
}

// public is what is the root's own: the parcels that nobody owns.
type public struct {
	parcels  []uint64 // bitset; nil: all
	capacity capacities
}

// has tells whether a bitset of parcels, nil for all, has one.
func has(parcels []uint64, k cluster.ParcelID) bool {
	return parcels == nil || parcels[k>>6]>>(uint(k)&63)&1 == 1
}
