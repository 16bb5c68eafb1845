package cluster

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Settle applies CYC-5: what is held on hosts that are lost is released; then what is held beyond what is wanted; then
// the excess of hosts that shrank below what they hold. Before that, what is under reclaim and due by now comes back
// (CYC-8). The releases wait in Released for emit. The cost follows the reclaims, parcels and sub-allocations that
// changed.
func (s *State) Settle(nowUS int64) {
	s.heedHosts()
	s.openWindows(nowUS)
	s.chargeBudgets(nowUS)
	s.expire(nowUS)
	s.settleOrphans(nowUS)
	s.vacate()
	s.trimAll()
	for i := range s.Plans {
		p := &s.Plans[i]
		s.sizeUp(p)
		p.Dirty = p.Dirty || p.Owns && p.Stirred // its cycles are counted
		// Releasing appends to Changed; what it frees exceeds nothing.
		for _, k := range p.Changed {
			if p.HasDevices() {
				s.evict(p, k)
			}
			if p.Parcels.exceeded(k) {
				s.relieve(p, p.Parcels.Begin(k))
			}
		}
	}
	s.forgetOrphans()
	s.breakGangs()
	s.forgetExcess()
	s.settleLost(nowUS)
	s.hush()
	s.heed()
	s.tellBudgets()
}

// stir notes that hosts, windows or groups of a plan changed: all whom fair share took from may take again
// (docs/shares.md).
func (s *State) stir(p *Plan) {
	p.Stirred = true
	s.forgive(p)
}

// forgive lets all whom fair share took from take again. O(sub-allocations), the first time in a cycle.
func (s *State) forgive(p *Plan) {
	if !p.Turned {
		return
	}
	for sub, of := range s.Sub.Plan {
		if of == p.Index {
			s.Sub.Turns[sub] = 0
		}
	}
	p.Turned, p.Dirty = false, true
}

// forgiveLeaf lets all sub-allocations of a leaf take again. O(those).
func (s *State) forgiveLeaf(p *Plan, leaf plan.Node) {
	for a := p.FirstAlloc[leaf]; a != NoID; a = s.Alloc.Next[a] {
		for one := s.Alloc.First[a]; one != NoID; one = s.Sub.Next[one] {
			s.Sub.Turns[one] = 0
		}
	}
}

// Turn notes that fair share takes for a sub-allocation, or from it.
func (s *State) Turn(sub SubID, from bool) {
	if t := &s.Sub.Turns[sub]; (*t&1 == 1) != from {
		*t++
		s.Plans[s.Sub.Plan[sub]].Turned = true
	}
}

// Finish ends a cycle: its releases have been emitted, what nobody names is forgotten.
func (s *State) Finish(cycle, nowUS int64) {
	for _, sub := range s.gone {
		if s.Sub.Alloc[sub] != NoID {
			s.forget(sub)
		}
	}
	s.gone, s.Released, s.Reclaims, s.NewPlan = s.gone[:0], s.Released[:0], s.Reclaims[:0], false
	s.Relabelled, s.Renamed, s.Renumbered = false, false, false
	for i := range s.Plans {
		p := &s.Plans[i]
		if p.Dirty {
			s.rateBudgets(p)
		}
		p.Dirty, p.again, p.Rebuilt, p.Resized, p.Stirred = p.again, false, false, false, false
		p.Changed, p.Seen = slices.Delete(p.Changed, 0, p.Seen), 0
	}
	s.outsideDirty = false
	s.Cycle, s.NowUS = cycle, nowUS
	s.Times.add(cycle, nowUS)
}

// vacate releases what is held on hosts of which nothing is left.
func (s *State) vacate() {
	for i := range s.Plans {
		p := &s.Plans[i]
		for _, k := range p.Changed {
			if p.Parcels.exceeded(k) && s.isLost(p, p.Parcels.Begin(k)) {
				s.relieve(p, p.Parcels.Begin(k))
			}
		}
	}
}

// isLost tells whether a plan has nothing of a host, whose first parcel is k.
func (s *State) isLost(p *Plan, k ParcelID) bool {
	whole := make([]int64, p.Dimensions())
	for d := range whole {
		whole[d] = p.Parcels.freeOn(k, d)
	}
	for at, end := k, p.Parcels.End(k); at < end; at++ {
		for q := p.Parcels.First[at]; q != NoID; q = s.Holding.NextOnParcel[q] {
			for d, u := range s.Size(s.Holding.Sub[q])[:len(whole)] {
				whole[d] += u * s.Holding.Units[q]
			}
		}
	}
	return !slices.ContainsFunc(whole, func(amount int64) bool { return amount > 0 })
}

// exceeded tells whether more is held on the host of a parcel than it has.
func (p *Parcels) exceeded(k ParcelID) bool {
	for d := range p.Free {
		if p.Free[d][k] < 0 && p.freeOn(p.Begin(k), d) < 0 {
			return true
		}
	}
	return false
}

// relieve releases units of a host, whose first parcel is k, in CYC-5's order, until no dimension is
// exceeded. Units that take nothing in an exceeded dimension are passed over
// (docs/decisions.md, D-11).
func (s *State) relieve(p *Plan, k ParcelID) {
	for _, q := range s.LastFirst(p, k, p.Parcels.End(k)) {
		var n int64
		for d, u := range s.Size(s.Holding.Sub[q])[:p.Dimensions()] {
			if over := -p.Parcels.freeOn(k, d); over > 0 && u > 0 {
				n = max(n, (over+u-1)/u)
			}
		}
		n = min(n, s.Holding.Units[q])
		if n > 0 {
			s.release(q, n, decision.CauseHostLost)
		}
	}
}

// LastFirst lists the holdings of the parcels from k to end, all of one host, as CYC-5 takes them: under reclaim first,
// then borrowed, shared, owned, then last rank, then the newest. The slice is borrowed until the next call.
func (s *State) LastFirst(p *Plan, k, end ParcelID) []HoldingID {
	s.victim = s.victim[:0]
	for ; k < end; k++ {
		for q := p.Parcels.First[k]; q != NoID; q = s.Holding.NextOnParcel[q] {
			s.victim = append(s.victim, q)
		}
	}
	slices.SortFunc(s.victim, func(a, b HoldingID) int {
		sa, sb := s.Holding.Sub[a], s.Holding.Sub[b]
		return cmp.Or(s.leavingFirst(a, b), cmp.Compare(s.claim(a), s.claim(b)),
			cmp.Compare(p.rank(s.Node(sb)), p.rank(s.Node(sa))), s.Newer(a, b))
	})
	return s.victim
}

// rank is a consumer's place in rank order; orphans come after all.
func (p *Plan) rank(n plan.Node) int32 {
	if n == plan.None {
		return int32(len(p.RankOrder))
	}
	return p.RankOrder[n]
}
