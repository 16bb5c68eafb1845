package oracle

import (
	"maps"
	"slices"
)

// What a `lead` before another window of an MD plan opens is given and taken back for it, by docs/shares.md, "Lead".

// corner is a sub-allocation on a host.
type corner struct {
	sub  *sub
	host *host
}

// outlook is what the coming window's cycle would do.
type outlook struct {
	given, taken map[corner]int64
	due          map[corner]int64 // the last deadline of what it has under reclaim
}

// nears tells whether another window will be open a `lead` from now.
func (g *round) nears() bool { return g.mdWindowAt(g.in, g.nowUS+g.m.LeadUS) != g.w }

// foresee plays the plan's cycle as if the coming window were open, and undoes it all.
func (g *round) foresee() *outlook {
	defer g.remember()()
	g.lookUS = g.m.LeadUS
	g.own(g.in, &Result{})
	n := newRound(g.Cluster, g.in)
	n.hold()
	n.restore(n.bears, n.bearsThere)
	n.turns()
	o := &outlook{map[corner]int64{}, map[corner]int64{}, map[corner]int64{}}
	for _, u := range n.units(func(*unit) bool { return true }) {
		at := corner{u.sub, u.host}
		switch {
		case u.leaves():
			o.taken[at]++
			o.due[at] = max(o.due[at], u.due, g.nowUS)
		case u.cycle == g.cycle && (u.origin == owned || !n.awaitedOn(u.host)):
			o.given[at]++
		}
	}
	return o
}

// awaitedOn tells whether anything of a host is promised.
func (g *round) awaitedOn(h *host) bool {
	return len(g.mine(func(s *set) bool { return s.target == h })) > 0 ||
		slices.ContainsFunc(g.joined, func(j joined) bool { return j.host == h })
}

// remember gives a function that makes everything what it is now, but for turns that fair share took.
func (c *Cluster) remember() (restore func()) {
	was, estates, seen := *c, slices.Clone(c.estates), map[*estate]estate{}
	was.sets, was.released = slices.Clone(c.sets), maps.Clone(c.released)
	was.reclaimed, was.notes = maps.Clone(c.reclaimed), maps.Clone(c.notes)
	was.stopped = slices.Clone(c.stopped)
	for _, e := range estates {
		seen[e] = *e
	}
	sets, units, held, on := map[*set]set{}, map[*unit]unit{}, map[*sub]int64{}, map[*host][]*unit{}
	for _, s := range c.sets {
		sets[s] = *s
	}
	for _, h := range c.hosts {
		on[h] = slices.Clone(h.units)
		for _, u := range h.units {
			units[u] = *u
		}
	}
	for _, a := range c.allocs {
		for _, s := range a.subs {
			held[s] = s.held
		}
	}
	return func() {
		*c = was
		c.estates = estates
		for e, v := range seen {
			*e = v
		}
		for s, v := range sets {
			*s = v
		}
		for u, v := range units {
			*u = v
		}
		for s, n := range held {
			s.held = n
		}
		for h, list := range on {
			h.units = list
		}
	}
}

// follow grants what the coming window would, as far as the present one bears it.
func (g *round) follow(o *outlook) {
	g.mark()
	g.loose = true // room may stay idle
	for _, s := range g.below(0) {
		for _, h := range g.hosts {
			for n := g.units(func(u *unit) bool {
				return u.sub == s && u.host == h &&
					u.cycle == g.cycle
			}); int64(len(n)) < o.given[corner{s, h}] &&
				!g.forming[s] && g.pledged(s) < s.short() && !g.small(s) && g.grantAt(s, h); {
				n = append(n, nil)
			}
		}
	}
	for _, q := range g.pools() {
		delete(g.rests, q.at)
		delete(g.packs, q.at)
		q.counts()
	}
	g.stand()
}

// grantAt grants a unit on the first parcel of a host, by pools from the nearest up,
// that has room which nothing keeps from it.
func (g *round) grantAt(s *sub, h *host) bool {
	leaf := s.alloc.leaf
	for _, owner := range g.nearest(leaf, g.parcels(g.in, h)) {
		t, q := g.parcel(h, owner), g.pool(g.meet(leaf, owner))
		_, _, over := q.limited(s, q.claimed)
		if fits(s.size, g.room(leaf, t)) && !over && !q.barred(leaf) && !g.tooSlow(leaf, t) {
			g.grantOn(s, t)
			return true
		}
	}
	return false
}

// makeWay puts under reclaim what the coming window would take back and is not yet:
// host by host, of each in the order of CYC-5.
func (g *round) makeWay(o *outlook) {
	list, leaving := g.units(func(u *unit) bool { return stays(u) && u.cycle < g.cycle }), map[corner]int64{}
	for _, u := range g.units((*unit).leaves) {
		leaving[corner{u.sub, u.host}]++
	}
	slices.SortStableFunc(list, g.byHost)
	for _, u := range list {
		at := corner{u.sub, u.host}
		if leaving[at] >= o.taken[at] {
			continue
		}
		if !g.affords(1) {
			return
		}
		leaving[at]++
		g.spent++
		u.set, u.number, u.due = &set{number: g.next(), plan: g.in, reason: "window_switch"}, g.next(), o.due[at]
		g.reclaimed[claim{u.sub, u.host, "issued", "window_switch", nil, u.due, deviceText(u.devices)}]++
	}
}
