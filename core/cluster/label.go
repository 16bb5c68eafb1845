package cluster

import (
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// CountsAs is what units of a leaf count as on a parcel of an owner (docs/ownership.md, "Parcels"): its own, or of the
// pool where the ways up from both meet, lent by the owner unless that has the pool. NoID owns what is
// public. A leaf's labels on two parcels of a host are never the same. O(depth).
func (s *State) CountsAs(leaf plan.Node, owner ConsumerID) (origin int32, pool, lender ConsumerID) {
	at := s.nodeOf(owner)
	switch at {
	case plan.None:
		return decision.OriginPublicPool, s.ConsumerOf[plan.Root], NoID
	case leaf:
		return decision.OriginOwned, NoID, NoID
	}
	t, meet := &s.Policy.Tree, at
	for leaf < meet || leaf >= t.End[meet] {
		meet = t.Parent[meet]
	}
	origin, lender = decision.OriginPrivatePool, owner
	if meet == plan.Root {
		origin = decision.OriginPublicPool
	}
	if meet == at {
		lender = NoID
	}
	return origin, s.ConsumerOf[meet], lender
}

// name makes units count as what their leaf and the owner of their parcel say. In slot plans the planner does that.
func (s *State) name(p *Plan, q HoldingID) {
	if p.Slots != nil {
		return
	}
	h := &s.Holding
	sub := h.Sub[q]
	origin, pool, lender := s.CountsAs(s.leafOf(sub), p.Parcels.Owner[h.Parcel[q]])
	if h.Origin[q] == origin && h.Pool[q] == pool && h.Lender[q] == lender {
		return
	}
	s.tell(q, -h.Units[q])
	s.shift(q)
	h.Origin[q], h.Pool[q], h.Lender[q] = origin, pool, lender
	s.tell(q, h.Units[q])
	p.Dirty, p.again, s.Relabelled = true, true, true
}

// tell adds units to what the pair of a holding holds, and to what of it is under reclaim when the holding is.
func (s *State) tell(q HoldingID, units int64) {
	h := &s.Holding
	pairs, pair := &s.Plans[s.Sub.Plan[h.Sub[q]]].Pairs, s.PairOf(h.Sub[q], h.Pool[q])
	pairs.Units[pair] += units
	s.flow(h.Sub[q], h.Pool[q], h.Lender[q], units)
	if h.Set[q] != NoID {
		pairs.Leaving[pair] += units
	}
}

// leafOf is the leaf for which a sub-allocation's units count; what orphans hold counts for the whole.
func (s *State) leafOf(sub SubID) plan.Node {
	return s.Plans[s.Sub.Plan[sub]].Pairs.Leaf[s.Sub.Pair[sub]]
}

// PairOf is the pair of units of a sub-allocation that are held from a pool, NoID: on its leaf's own parcels. O(1) for the
// public pool, else O(pairs of the leaf).
func (s *State) PairOf(sub SubID, pool ConsumerID) PairID {
	p := &s.Plans[s.Sub.Plan[sub]]
	if p.Slots != nil || pool == s.ConsumerOf[plan.Root] {
		return s.Sub.Pair[sub]
	}
	return p.pair(s.leafOf(sub), s.Sub.Shape[sub], pool)
}

// FindPair is PairOf, but NoID when there is no such pair yet.
func (s *State) FindPair(sub SubID, pool ConsumerID) PairID {
	p := &s.Plans[s.Sub.Plan[sub]]
	if pool == s.ConsumerOf[plan.Root] {
		return s.Sub.Pair[sub]
	}
	q := p.FirstPair[s.leafOf(sub)]
	for q != NoID && (p.Pairs.Shape[q] != s.Sub.Shape[sub] || p.Pairs.Pool[q] != pool) {
		q = p.Pairs.Next[q]
	}
	return q
}

// pair gives the pair of a leaf, shape and pool in a plan, adding it when it is new.
// O(pairs of the leaf).
func (p *Plan) pair(leaf plan.Node, shape ShapeID, pool ConsumerID) PairID {
	for q := p.FirstPair[leaf]; q != NoID; q = p.Pairs.Next[q] {
		if p.Pairs.Shape[q] == shape && p.Pairs.Pool[q] == pool {
			return q
		}
	}
	q := PairID(len(p.Pairs.Leaf))
	p.Pairs.Leaf = append(p.Pairs.Leaf, leaf)
	p.Pairs.Shape = append(p.Pairs.Shape, shape)
	p.Pairs.Pool = append(p.Pairs.Pool, pool)
	p.Pairs.Units = append(p.Pairs.Units, 0)
	p.Pairs.Leaving = append(p.Pairs.Leaving, 0)
	p.Pairs.Next = append(p.Pairs.Next, p.FirstPair[leaf])
	p.FirstPair[leaf] = q
	return q
}
