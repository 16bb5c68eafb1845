package md

import (
	"cmp"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// yield is what a unit of a pair gives as it stands, and how many may be taken for the taker of a round at most.
type yield struct {
	gives, known int64 // known: gives is, 0: not
	round, most  int64
}

// yieldOf is what a unit of a pair counts, as it stands.
func (m *Planner) yieldOf(o *pool, pair cluster.PairID) int64 { return m.knownYield(pair).gives }

func (m *Planner) knownYield(pair cluster.PairID) *yield {
	f := &m.fairness
	if int(pair) >= len(f.yield) {
		f.yield = append(f.yield, make([]yield, len(m.p.Pairs.Leaf)-len(f.yield))...)
	}
	one := &f.yield[pair]
	if one.known != f.onHand.lap {
		if one.known, one.gives = f.onHand.lap, 0; m.promise.net[pair] > 0 {
			one.gives = -m.change(pair, -1)
		}
	}
	return one
}

// forgetYield drops what a unit of a pair gives, as something of the pair changed.
func (f *fairs) forgetYield(q cluster.PairID) {
	if int(q) < len(f.yield) {
		f.yield[q].known = 0
	}
}

// mayGive tells whether a leaf that is so far above its quota may give a unit that counts so much to the taker of this round: it or the taker is
// as far from its quota as its band.
func (m *Planner) mayGive(o *pool, leaf plan.Node, surplus, gives int64) bool {
	return surplus > share.Slack && (m.fairness.taker.banded || mutant == 55 || surplus+share.Slack >= m.band(o, leaf, gives))
}

// lowers tells whether a unit of a leaf, given alone to the taker of this round, lowers the sum of squares.
func (m *Planner) lowers(o *pool, leaf plan.Node, gives int64) bool {
	sum := m.fairness.taker.begin()
	sum.Add(-m.deficit(o, leaf)-share.Slack, gives)
	return sum.Lower() || mutant == 48
}

// begin is what the taker's unit changes of the sum of squares.
func (t *taker) begin() (sum share.Squares) {
	sum.Add(t.deficit-share.Slack, t.gets)
	return sum
}

// mostOf is how many units of a pair may be taken for the taker of this round, or more: of several together only fewer may.
func (m *Planner) mostOf(o *pool, pair cluster.PairID) int64 {
	f, leaf := &m.fairness, m.p.Pairs.Leaf[pair]
	if leaf == f.taker.leaf || m.p.Pairs.Pool[pair] != o.id || m.promise.net[pair] <= 0 {
		return 0
	}
	one := m.knownYield(pair)
	if one.round == f.round {
		return one.most
	}
	one.round, one.most = f.round, 0
	if surplus := -m.deficit(o, leaf); m.mayGive(o, leaf, surplus, one.gives) {
		one.most = mostUnits(surplus, one.gives)
	}
	return one.most
}

// mostUnits is how many units that count so much one may give that is so far above its quota, or more: it is above it before each.
func mostUnits(surplus, gives int64) int64 {
	if gives <= 1 {
		return many
	}
	return (surplus-share.Slack-1)/(gives-1) + 1 // what a unit counts may be one 2⁻⁴⁸ less than the one before
}

// moved is units of a pair that change hands.
type moved struct {
	pair  cluster.PairID
	units int64
}

// addMoved adds units of a pair.
func addMoved(list []moved, pair cluster.PairID, units int64) []moved {
	for i := range list {
		if list[i].pair == pair {
			list[i].units += units
			return list
		}
	}
	return append(list, moved{pair, units})
}

// eachGiver calls f for each leaf that units are of, with what they count together: as much as its usage is less without them, or, with a
// sign of 1, as much as it is more when it has them again.
func (m *Planner) eachGiver(list []moved, sign int64, f func(leaf plan.Node, gives int64)) {
	for i, one := range list {
		leaf, gives, first := m.p.Pairs.Leaf[one.pair], int64(0), true
		for j, other := range list {
			if m.p.Pairs.Leaf[other.pair] == leaf {
				first = first && j >= i
				gives += sign * m.change(other.pair, sign*other.units)
			}
		}
		if first {
			f(leaf, gives)
		}
	}
}

// newest sorts holdings: the latest grant first, then the sub-allocation and the parcel that came last. Those that differ in nothing, as what is lent to an
// owner and what it was before may when the owner is gone, stand by their numbers.
func (m *Planner) newest(a, b cluster.HoldingID) int {
	h := &m.s.Holding
	return cmp.Or(cmp.Compare(h.Granted[b], h.Granted[a]), cmp.Compare(m.s.Sub.Seq[h.Sub[b]], m.s.Sub.Seq[h.Sub[a]]),
		cmp.Compare(h.Parcel[b], h.Parcel[a]), cmp.Compare(a, b))
}

// victimFirst orders holdings from a pool as victims.
func (m *Planner) victimFirst(a, b *giver) int {
	if a.leaf == b.leaf {
		return m.newest(a.q, b.q)
	}
	return m.fairness.givers.Before(int32(a.leaf), int32(b.leaf))
}

// pairIn is the pair of units that a sub-allocation holds from a pool.
func (m *Planner) pairIn(o *pool, sub cluster.SubID) cluster.PairID { return m.s.PairOf(sub, o.id) }

// gain is what one unit more would add to the stake of a sub-allocation's leaf in a pool.
func (m *Planner) gain(o *pool, sub cluster.SubID) int64 {
	if q := m.s.FindPair(sub, o.id); q != cluster.NoID {
		return m.change(q, 1)
	}
	return share.Fraction(1, m.capacity(o, m.s.Sub.Shape[sub]))
}
