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
	leaving := int64(0)
	if h.Set[q] != NoID {
		leaving = h.Units[q]
	}
	s.recordOf(ChangeRelabelled, q, -h.Units[q], -leaving)
	s.tell(q, -h.Units[q])
	h.Origin[q], h.Pool[q], h.Lender[q] = origin, pool, lender
	s.tell(q, h.Units[q])
	s.recordOf(ChangeRelabelled, q, h.Units[q], leaving)
	p.Dirty, p.again, s.Relabelled = true, true, true
}

// tell adds units to what the pair of a holding holds, and to what of it is under reclaim when the holding is.
func (s *State) tell(q HoldingID, units int64) {
	h := &s.Holding
	pairs, pair := &s.Plans[s.Sub.Plan[h.Sub[q]]].Pairs, s.PairOf(h.Sub[q], h.Pool[q])
	pairs.Units[pair] += units
	if h.Set[q] != NoID {
		pairs.Leaving[pair] += units
	}
}

// leafOf is the leaf for which a sub-allocation's units count; what orphans hold counts for the whole.
func (s *State) leafOf(sub SubID) plan.Node {
	return s.Plans[s.Sub.Plan[sub]].Pairs.Leaf[s.Sub.Pair[sub]]
}

// PairOf is the pair of units of a sub-allocation that are held from a pool, NoID: on its leaf's own parcels. O(1) for
// the public pool, else O(pairs of the leaf).
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
	leaf := s.leafOf(sub)
	q, _ := p.Pairs.find(p.FirstPair[leaf], pairKey{leaf, s.Sub.Shape[sub], pool})
	return q
}

// pairKey is by what a pair is found.
type pairKey struct {
	leaf  plan.Node
	shape ShapeID
	pool  ConsumerID
}

// pairsWalked is how many pairs of a leaf are looked through one by one. A leaf with more has them all in Pairs.many.
const pairsWalked = 32

// find is the pair of a key, NoID when there is none; first is the first pair of the key's leaf.
// It tells how many it looked through. O(1).
func (r *Pairs) find(first PairID, key pairKey) (q PairID, walked int) {
	for q = first; q != NoID && walked < pairsWalked; q = r.Next[q] {
		if r.Shape[q] == key.shape && r.Pool[q] == key.pool {
			return q, walked
		}
		walked++
	}
	if q != NoID {
		if q, ok := r.many[key]; ok {
			return q, walked
		}
	}
	return NoID, walked
}

// pair gives the pair of a leaf, shape and pool in a plan, adding it when it is new. O(1).
func (p *Plan) pair(leaf plan.Node, shape ShapeID, pool ConsumerID) PairID {
	r, key := &p.Pairs, pairKey{leaf, shape, pool}
	q, walked := r.find(p.FirstPair[leaf], key)
	if q != NoID {
		return q
	}
	q = PairID(len(r.Leaf))
	r.Leaf = append(r.Leaf, leaf)
	r.Shape = append(r.Shape, shape)
	r.Pool = append(r.Pool, pool)
	r.Units = append(r.Units, 0)
	r.Leaving = append(r.Leaving, 0)
	r.Next = append(r.Next, p.FirstPair[leaf])
	p.FirstPair[leaf] = q
	if last := r.Next[q]; walked == pairsWalked {
		if _, listed := r.many[r.keyOf(last)]; listed {
			r.many[key] = q
		} else {
			r.list(q)
		}
	}
	return q
}

func (r *Pairs) keyOf(q PairID) pairKey { return pairKey{r.Leaf[q], r.Shape[q], r.Pool[q]} }

// list puts a pair and all behind it, which are of one leaf, into the index.
func (r *Pairs) list(q PairID) {
	if r.many == nil {
		r.many = map[pairKey]PairID{}
	}
	for ; q != NoID; q = r.Next[q] {
		r.many[r.keyOf(q)] = q
	}
}

// index makes the index of pairs; first are those of each leaf.
func (r *Pairs) index(first []PairID) {
	r.many = nil
	for _, head := range first {
		n := 0
		for q := head; q != NoID && n <= pairsWalked; q = r.Next[q] {
			n++
		}
		if n > pairsWalked {
			r.list(head)
		}
	}
}
