package verify

import "slices"

// spread is what is on the parcels of a plan's ok hosts after the cycle, for MD plans in which parcels, grace or pools
// matter.
type spread struct {
	list  []place
	drawn map[string][]int64 // by consumer: what is held through pools above it (MD-18)
	seen  map[reachKey]*reach
}

// place is a parcel of an ok host.
type place struct {
	host *host
	parcel
	free []int64 // of it, beside what other parcels have too much
	on   holders
}

type reachKey struct {
	leaf string
	size sizeKey
	cond *expr
}

// reach is what of a spread a sub-allocation may use, but for max_per_host.
type reach struct {
	all  []seat
	pool []string // the pools that exist for its leaf, from the root down
}

// seat is a parcel on which a unit may run.
type seat struct {
	*place
	pool string
	room []int64
	slow bool // its grace is too long for it
}

// spreadOf makes the spread of a plan.
func (v *verifier) spreadOf(p *plan) *spread {
	if s := v.spreads[p.name]; s != nil {
		return s
	}
	s := &spread{drawn: map[string][]int64{}, seen: map[reachKey]*reach{}}
	for _, name := range sortedKeys(v.m.hosts) {
		if h := v.m.hosts[name]; h.plan == p.name && h.state == "ok" {
			s.list = append(s.list, v.places(p, h)...)
		}
	}
	dims := len(v.m.policy.dimensions)
	for at, pile := range v.m.piles {
		if at.plan != p.name {
			continue
		}
		for l, n := range pile.label {
			if l.pool == "" {
				continue
			}
			for path := at.consumer; path != l.pool && path != "/"; path = parentOf(path) {
				if s.drawn[path] == nil {
					s.drawn[path] = make([]int64, dims)
				}
				plus(s.drawn[path], pile.size, n)
			}
		}
	}
	v.spreads[p.name] = s
	return s
}

// places are the parcels of a host. What one has too much of is missing on the host: it is taken off what is free on
// the others, in their order.
func (v *verifier) places(p *plan, h *host) (list []place) {
	on := v.m.holders(p, h.name)
	missing := make([]int64, len(v.m.policy.dimensions))
	for _, c := range v.m.parcels(v.m.estates[p.name], p, h.name) {
		free := plus(slices.Clone(c.size), on.sum(len(c.size), func(x holder) bool { return x.owner == c.owner }), -1)
		list = append(list, place{h, c, free, on})
		for d, n := range free {
			missing[d] += max(0, -n)
		}
	}
	for _, one := range list {
		for d, n := range one.free {
			less := max(0, min(n, missing[d]))
			one.free[d] -= less
			missing[d] -= less
		}
	}
	return list
}

// graceIn is the most grace that whoever holds a parcel of an owner through a pool may have (MD-9), none when any.
func (t *plan) graceIn(w *window, owner, pool string) int64 {
	most := none
	bound := func(us int64) {
		if us != none && (most == none || us < most) {
			most = us
		}
	}
	if pool == "/" {
		bound(t.pubGrace)
	} else if e := w.entry[pool]; e != nil {
		bound(e.poolGrace)
	}
	for _, x := range lenders(owner, pool) {
		if e := w.entry[x]; e != nil {
			bound(e.lendGrace)
		}
	}
	return most
}

// slow tells whether a leaf's grace is too long for a parcel of an owner.
func (v *verifier) slow(t *plan, w *window, leaf, owner string) bool {
	pool := meet(leaf, owner)
	if pool == leaf {
		return false
	}
	most := t.graceIn(w, owner, pool)
	return most != none && v.m.policy.grace[leaf] > most
}

// roomFor is what a parcel has for a leaf: what is free there, beside the reserves of those who lend it.
func (e *estate) roomFor(one *place, leaf, pool string) []int64 {
	room := slices.Clone(one.free)
	for _, x := range lenders(one.owner, pool) {
		keeps := e.aside[aside{x, one.owner, one.host.name}]
		if keeps == nil {
			continue
		}
		out := one.on.sum(len(room), func(h holder) bool { return h.owner == one.owner && !under(h.leaf, x) })
		for d := range room {
			room[d] = min(room[d], one.size[d]-keeps[d]-out[d])
		}
	}
	return room
}

// reachOf is what a sub-allocation may use.
func (v *verifier) reachOf(p *plan, w *window, s *sub) *reach {
	all := v.spreadOf(p)
	id := reachKey{s.consumer, keyOf(s.size), s.cond}
	if r := all.seen[id]; r != nil {
		return r
	}
	r, e := &reach{}, v.estateOf(p.name)
	for i := range all.list {
		one := &all.list[i]
		if !v.m.may(s, one.host) {
			continue
		}
		pool := meet(s.consumer, one.owner)
		r.all = append(r.all, seat{one, pool, e.roomFor(one, s.consumer, pool), v.slow(p, w, s.consumer, one.owner)})
	}
	pools := v.poolsOf(p)
	for path := parentOf(s.consumer); path != ""; path = parentOf(path) {
		if pool := pools[path]; pool != nil && pool.exists(s.consumer) {
			r.pool = append(r.pool, path)
		}
	}
	slices.Reverse(r.pool)
	all.seen[id] = r
	return r
}

// stop is a limit that keeps a sub-allocation from a pool.
type stop struct{ reason, dimension, blocker string }

// stopped finds the ratio of 0, the budget that is used up, or the share limit that keeps one unit more of a
// sub-allocation from a pool, the nearest to its leaf, ratios first (D-26).
func (v *verifier) stopped(p *plan, w *window, s *sub, pool string) (stop, bool) {
	for path := s.consumer; path != pool && path != "/"; path = parentOf(path) {
		if w.entry[path].ratio == 0 {
			return stop{"share_limit", "", path}, true
		}
	}
	if path := v.brokeBelow(p.name, s.consumer, pool); path != "" {
		return stop{"budget", "", path}, true
	}
	drawn := v.spreadOf(p).drawn
	for path := s.consumer; path != pool && path != "/"; path = parentOf(path) {
		for d, name := range v.m.policy.dimensions {
			limit, ok := w.entry[path].limit[name]
			if !ok || s.size[d] == 0 {
				continue
			}
			has := s.size[d]
			if drawn[path] != nil {
				has += drawn[path][d]
			}
			if has > limit {
				return stop{"share_limit", name, path}, true
			}
		}
	}
	return stop{}, false
}
