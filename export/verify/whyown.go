package verify

import "slices"

// barriers are what stands between a unit and parcels that have room.
type barriers struct {
	fits, open, openFits bool      // it fits a parcel's room; there is a host not full of it; it fits there
	free                 bool      // it fits one that it may be given
	covered              bool      // one that it may be given has room, with devices or without
	grace                bool      // its grace keeps it from room, or from all parcels
	limited              bool      // a limit keeps it from room
	limit                stop      // that of the deepest such pool
	large                bool      // it fits an empty parcel
	sizes, rooms         [][]int64 // of all parcels; of those that it may be given
	given                []seat    // the latter
}

// barriersOf looks at all parcels that a sub-allocation may use.
func (v *verifier) barriersOf(p *plan, w *window, s *sub, r *reach) (b barriers) {
	slow, deepest := 0, -1
	type verdict struct {
		stop stop
		is   bool
	}
	stops := map[string]verdict{} // by pool
	for _, one := range r.all {
		b.sizes = append(b.sizes, one.size)
		covered := covers(one.room, s.size)
		fits := covered && v.sits(p, s.size, one.host)
		b.large, b.fits = b.large || covers(one.size, s.size), b.fits || fits
		if one.slow {
			slow++
		}
		if s.perHost != none && v.on(s, one.host) >= s.perHost {
			continue
		}
		b.open, b.openFits = true, b.openFits || fits
		at, known := stops[one.pool]
		if !known {
			at.stop, at.is = v.stopped(p, w, s, one.pool)
			stops[one.pool] = at
		}
		limit, limited := at.stop, at.is
		switch {
		case !one.slow && !limited:
			b.rooms, b.given = append(b.rooms, one.room), append(b.given, one)
			b.free, b.covered = b.free || fits, b.covered || covered
		case !limited:
			b.grace = b.grace || fits
		case !one.slow && fits && depthOf(one.pool) > deepest:
			b.limited, b.limit, deepest = true, limit, depthOf(one.pool)
		}
	}
	b.grace = b.grace || len(r.all) > 0 && slow == len(r.all)
	return b
}

func depthOf(path string) (n int) {
	for ; path != "/"; path = parentOf(path) {
		n++
	}
	return n
}

// whyOwn is D-7 as docs/shares.md has it, for MD plans in which consumers own hosts or pools ask for a grace.
func (v *verifier) whyOwn(p *plan, s *sub) (r found, blocker string, sure bool) {
	if v.shareOf[p.name] == nil || v.hazy[p.name] {
		return r, "", false
	}
	w, e := p.at(v.now, v.m.policy.zone), v.estateOf(p.name)
	reach := v.reachOf(p, w, s)
	if len(reach.all) == 0 && s.need != "" {
		return found{reason: "no_host_matches"}, "", true
	}
	limit, limited := v.stopped(p, w, s, reach.pool[len(reach.pool)-1]) // then those above are too
	if owns := e.owned[s.consumer]; limited && (owns == nil || zero(owns)) {
		return found{limit.reason, limit.dimension}, limit.blocker, true
	}
	b := v.barriersOf(p, w, s, reach)
	switch {
	case len(reach.all) > 0 && !b.large:
		return found{"too_big", v.scarce(s, b.sizes)}, "", true
	case len(reach.all) > 0 && (!b.open || b.fits && !b.openFits):
		return found{reason: "max_per_host"}, "", true
	case b.grace:
		return found{reason: "grace_filter"}, "", true
	case e.unmet[s.consumer] && v.withinOwn(p, e, s):
		return found{reason: "ownership_unmet"}, "", true
	case limited:
		return found{limit.reason, limit.dimension}, limit.blocker, true
	case b.limited:
		return found{b.limit.reason, b.limit.dimension}, b.limit.blocker, true
	}
	if !b.free && b.covered {
		return found{"fragmented", p.device}, "", true
	}
	if r.dimension = v.scarce(s, b.rooms); !b.free && covers(sumOf(b.rooms, len(s.size)), s.size) {
		return found{"fragmented", r.dimension}, "", true
	}
	r.reason, blocker = v.outdone(p, w, s, reach.pool)
	return r, blocker, true
}

// withinOwn tells whether what a leaf holds on its own parcels with a unit more is within what is configured.
func (v *verifier) withinOwn(p *plan, e *estate, s *sub) bool {
	has := make([]int64, len(s.size))
	for at, pile := range v.m.piles {
		if at.plan != p.name || at.consumer != s.consumer {
			continue
		}
		for l, n := range pile.label {
			if l.origin == "owned" {
				plus(has, pile.size, n)
			}
		}
	}
	configured := e.asked(s.consumer, len(s.size))
	for d, u := range s.size {
		if u > 0 && has[d]+u > configured[d] {
			return false
		}
	}
	return true
}

// outdone is the reason of a unit that others of a pool keep from it: of that nearest to the root which takes any.
func (v *verifier) outdone(p *plan, w *window, s *sub, pools []string) (reason, blocker string) {
	at, made := pools[0], v.poolsOf(p)
	for _, path := range pools {
		if made[path].capacity(s.size) > 0 {
			at = path
			break
		}
	}
	all := v.shareOf[p.name][at]
	share := usageOf(1, max(1, made[at].capacity(s.size)))
	over := false
	for path := s.consumer; path != at && path != "/"; path = parentOf(path) {
		best := ""
		for _, c := range v.m.policy.children[parentOf(path)] {
			if a := all[c]; a != nil && p.member[c] && w.entry[c].priority > w.entry[path].priority && a.held > 0 &&
				(best == "" || a.usage > all[best].usage) {
				best = c
			}
		}
		if best != "" {
			blocker = best
		}
		a := all[path]
		over = over || a != nil && a.usage >= share && a.usage-share >= a.quota
	}
	switch {
	case blocker != "":
		return "lower_priority", blocker
	case over:
		return "over_quota", ""
	}
	return "pool_exhausted", ""
}

// likely checks what a reason of an MD plan cannot be, or cannot be without, whatever sets keep for takers.
func (v *verifier) likely(p *plan, s *sub, f shortfallRow) {
	if v.shareOf[p.name] == nil || v.hazy[p.name] {
		return
	}
	w, e := p.at(v.now, v.m.policy.zone), v.estateOf(p.name)
	r := v.reachOf(p, w, s)
	say := func(ok bool, why string) { v.is(f.about("D-7", "shortfalls", "reason %s, and %s", f.reason, why), ok) }
	is := func(names ...string) bool { return slices.Contains(names, f.reason) }
	b := v.barriersOf(p, w, s, r)
	say((len(r.all) == 0 && s.need != "") == is("no_host_matches"), "the hosts that match are otherwise")
	if is("no_host_matches", "share_limit", "budget") {
		return
	}
	say((len(r.all) > 0 && !b.large) == is("too_big"), "the parcels that it may use are otherwise")
	if is("too_big", "max_per_host") {
		return
	}
	say(!is("grace_filter") || slices.ContainsFunc(r.all, func(one seat) bool { return one.slow }),
		"its grace is short enough for all parcels")
	say(len(r.all) == 0 || is("grace_filter") || slices.ContainsFunc(r.all, func(one seat) bool { return !one.slow }),
		"its grace is too long for all parcels")
	if is("grace_filter") {
		return
	}
	say((e.unmet[s.consumer] && v.withinOwn(p, e, s)) == is("ownership_unmet"), "what it owns is otherwise")
	var rooms [][]int64
	for _, one := range r.all { // limits may not have stopped it while units that are under reclaim now were not
		if !one.slow && (s.perHost == none || v.on(s, one.host) < s.perHost) {
			rooms = append(rooms, one.room)
		}
	}
	say(!is("fragmented") || f.units <= carries(sumOf(rooms, len(s.size)), s.size),
		"there is not room enough in sum for its units")
	if is("lower_priority", "over_quota", "pool_exhausted") && !v.unsteady(p) {
		reason, blocker := v.outdone(p, w, s, r.pool)
		say(reason == f.reason && blocker == f.blocker, "by its shares it is "+reason+" "+blocker)
	}
}

// conservingOwn checks INV-6 where parcels or graces matter: no unmet unit that its rules allow fits a parcel that it
// may be given.
func (v *verifier) conservingOwn(p *plan) {
	if v.dim() || v.isUntold(p) || v.hazy[p.name] || v.takers[p.name] || !v.still(p) ||
		!v.fresh("shortfalls") && !v.busy(p.name) {
		return
	}
	w := p.at(v.now, v.m.policy.zone)
	for _, f := range v.shorts() {
		s := v.m.subs[f.key]
		if f.plan != p.name || s == nil || s.orphan {
			continue
		}
		v.is(f.about("INV-6", "shortfalls", "it is short, and a unit of it fits a parcel that it may use"),
			!v.barriersOf(p, w, s, v.reachOf(p, w, s)).free)
	}
}
