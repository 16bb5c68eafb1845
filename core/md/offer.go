package md

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
	"github.com/stintd/stint/vecpack"
)

// offer is what those who may give could give the taker of a round on any parcel. Where shares are nearly even, as they are most of the time, consumers
// of the upper levels have less to spare than a large unit takes, and those below them hold something on a quarter of all parcels: none of these but
// those with much free, or with something of who is near to the taker, need be looked at.
type offer struct {
	tried int      // parcels by the taker of this round
	round int64    // of the claim that the rest is of
	open  bool     // nothing bounds it
	most  uint64   // from all but those who are near, packed: they have so much share to spare
	near  []uint64 // bitset by ParcelID: those who are near hold something there that they may give

	beyond []beyond // parcels that it tells to be of no use, which come between those that are to be tried next
}

// beyond is a parcel that comes before one of those to be tried next.
type beyond struct {
	spotOf
	before int
}

// worth is the most that units of a pool take for what they give, in a dimension: so much for so much share.
type worth struct{ amount, gives int64 }

const (
	offerFrom = 64      // parcels are tried before it is asked for
	nearMost  = 16      // consumers at most that those who are near are, each with all below it
	nearHeld  = 1 << 10 // holdings at most that these have
)

// isBeyond tells whether a parcel is known to have no room for the unit of this round, as victimsOn would say.
func (m *Planner) isBeyond(o *pool, k cluster.ParcelID) bool {
	v := &m.fairness.onHand
	f := &v.offer
	if f.tried < offerFrom && !m.Eager {
		return false
	}
	if f.round != m.fairness.claim.round {
		m.layOffer(o)
	}
	return !f.open && !has(f.near, k) && has(v.fresh, k) && v.free[k] != v.most && !vecpack.Covers(v.free[k]+f.most, v.want)
}

// failBeyond notes that the parcels of no use before one of those that are tried are: as if they had been tried.
func (m *Planner) failBeyond(t *trial, before int) {
	f := &m.fairness.onHand.offer
	n := 0
	for ; n < len(f.beyond) && f.beyond[n].before <= before; n++ {
		if at := f.beyond[n].spotOf; !m.taken(at) {
			m.fail(t, at.k)
		}
	}
	f.beyond = f.beyond[:copy(f.beyond, f.beyond[n:])]
}

// layOffer finds the offer to the taker of this round. O(consumers next to its way, and what those who are near hold).
func (m *Planner) layOffer(o *pool) {
	c, f := &m.fairness.claim, &m.fairness.onHand.offer
	f.round, f.open, f.near = c.round, c.gifts || mutant == 44 || mutant == 48, zeroed(f.near, m.p.Parcels.Words())
	var sum [vecpack.Lanes]int64
	for d := len(c.way) - 1; c.way[d] != o.node && !f.open; d-- {
		for n := m.policy.First[c.way[d-1]]; n != plan.None; n = m.policy.Next[n] {
			if n == c.way[d] || !m.p.Terms.Member[n] || m.pools.stake[o.at(n)] == 0 {
				continue
			}
			switch spare := m.marginAt(o, n); {
			case !spare.bears(c.least[n-o.node]):
			case m.isNear(o, n):
				m.markNear(o, n, spare)
			case mutant != 77:
				for lane, best := range c.worth {
					amount, _ := share.Scale(best.amount, spare.most, max(1, best.gives))
					sum[lane] = share.Add(sum[lane], amount)
				}
			}
		}
	}
	f.most = m.fairness.onHand.packHalf(sum)
}

// isNear tells whether a consumer next to the way counts as near: few are below it, which held something on few parcels when they were listed last.
func (m *Planner) isNear(o *pool, n plan.Node) bool {
	if m.Eager {
		return m.policy.Leaf(n) && n&1 == 0 // in small trees, too, some are not
	}
	held, few := 0, m.policy.End[n]-n <= nearMost
	for leaf := n; few && leaf < m.policy.End[n]; leaf++ {
		held += len(m.fairness.onHand.leaf[o.at(leaf)].held)
		few = held <= nearHeld
	}
	return few
}

// markNear marks the parcels on which those below a consumer next to the way hold what they may give.
func (m *Planner) markNear(o *pool, n plan.Node, most *margin) {
	near, c := m.fairness.onHand.offer.near, &m.fairness.claim
	for leaf := n; leaf < m.policy.End[n]; leaf++ {
		if !m.policy.Leaf(leaf) || m.pools.stake[o.at(leaf)] == 0 || !most.bears(c.least[leaf-o.node]) {
			continue
		}
		held := m.holdsOf(o, leaf)
		for _, same := range held.same {
			if most.bears(c.ofShape[same.shape]) {
				for _, k := range held.parcel[same.from:same.to] {
					near[k>>6] |= 1 << (uint(k) & 63)
				}
			}
		}
	}
}

// packHalf packs amounts rounded up; what is more than half of a lane holds, which is more than any parcel has, as that.
func (v *onHand) packHalf(amount [vecpack.Lanes]int64) uint64 {
	for d := range amount {
		amount[d] = min(amount[d], vecpack.LaneMax/2<<v.shift[d])
	}
	return v.pack(amount[:], true)
}

// value takes in that a unit of a shape gives so much share, less than any did.
func (c *claim) value(size []int64, gives int64) {
	c.gifts = c.gifts || gives <= 0
	for d := range min(len(size), len(c.worth)) {
		if best := &c.worth[d]; best.gives == 0 || !c.gifts && share.Less(best.amount, best.gives, size[d], gives) {
			*best = worth{size[d], gives}
		}
	}
}
