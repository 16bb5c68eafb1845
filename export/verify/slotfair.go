package verify

// sharing checks INV-5 of a sub-allocation whose leaf draws on pools by ratio: where a unit more leaves it within its
// part of the pools, no leaf that is above its own by a unit holds one from the pools on a host where that would make
// room (SLOT-5 ⑤). It is told of dynamic quotas, where no ratio of 0 stands above either, and owners and reserves leave
// the room to the pools.
func (v *verifier) sharing(idle *slotIdle, s *sub) {
	leaf, each := s.consumer, s.size[0]
	switch {
	case !idle.plan.share || idle.plan.static || idle.budget == 0 || idle.dimmed(v) || idle.barred(leaf):
		return
	case v.m.account(idle.name, leaf).shared+each > idle.dynamic[leaf]:
		return
	}
	pool := idle.poolsBelow("/") - v.m.account(idle.name, "/").shared
	for at, pile := range v.m.piles {
		other, size := at.consumer, pile.size[0]
		if at.plan != idle.name || other == leaf || pile.orphan || idle.w.entry[other] == nil ||
			idle.barred(other) || !fromPool(pile) {
			continue
		}
		above := v.m.account(idle.name, other).shared - idle.dynamic[other]
		if above < size || size < each || pool+size < each || idle.free+size-each < idle.claims ||
			!v.usable(s, v.m.hosts[at.host]) {
			continue
		}
		v.is(s.about("INV-5", "shortfalls", "it is short and below its part of the pools, and %s holds a unit above "+
			"its own on %s that would make room", other, at.host), false)
		return
	}
	v.report.Checks["INV-5"]++
}

// barred tells whether a leaf is no sharer, or a ratio of 0 stands at or above it.
func (s *slots) barred(leaf string) bool {
	for path := leaf; path != "/" && path != ""; path = parentOf(path) {
		if e := s.w.entry[path]; e == nil || e.kind == "hybrid" || e.ratio == 0 {
			return true
		}
	}
	return false
}

// fromPool tells whether a pile has a unit that counts as drawn from a pool.
func fromPool(p *pile) bool {
	for l, n := range p.label {
		if l.origin == "share_pool" && n > 0 {
			return true
		}
	}
	return false
}
