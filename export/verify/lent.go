package verify

import "slices"

// labelOf is what units of a leaf count as on an owner's parcel.
func labelOf(leaf, owner string) label {
	if owner == leaf {
		return label{origin: "owned"}
	}
	l := label{origin: "private_pool", pool: meet(leaf, owner)}
	if l.pool == "/" {
		l.origin = "public_pool"
	}
	if owner != l.pool {
		l.lender = owner
	}
	return l
}

// parcelOf finds an owner's parcel of a host.
func (v *verifier) parcelOf(t *plan, host, owner string) (parcel, bool) {
	list := v.m.parcels(v.m.estates[t.name], t, host)
	i := slices.IndexFunc(list, func(c parcel) bool { return c.owner == owner })
	if i < 0 {
		return parcel{}, false
	}
	return list[i], true
}

// misplaced tells why units of a leaf cannot count as they are said to on a host of an MD plan, "" when they can.
func (v *verifier) misplaced(t *plan, at spot, l label) string {
	owner := l.owner(at.consumer)
	if _, ok := v.parcelOf(t, at.host, owner); !ok {
		return owner + " has no part of the host"
	}
	if want := labelOf(at.consumer, owner); want != l {
		return "on what " + owner + " owns it counts as " + want.words()
	}
	return ""
}

// lots checks, in MD plans in which consumers own hosts or pools ask for a grace, where units lie after the cycle.
func (v *verifier) lots() {
	for at, labels := range v.given {
		t := v.m.policy.byName[at.plan]
		if t == nil || !t.subtle() || v.hazy[t.name] || v.m.subs[at.key] == nil {
			continue
		}
		w := t.at(v.now, v.m.policy.zone)
		for l := range labels {
			owner := l.owner(at.consumer)
			v.is(at.about("MD-9", "grants", "its grace is too long for what %s owns", owner),
				!v.slow(t, w, at.consumer, owner))
			v.fitsThere(t, at, owner)
		}
	}
	for _, t := range v.m.policy.plans {
		if !t.md || v.hazy[t.name] || !v.frame && !v.busy(t.name) {
			continue
		}
		if v.frame {
			v.placed(t)
		}
		if t.budget == none && !v.dim() {
			v.crowded(t)
			v.overLimits(t)
		}
	}
}

// fitsThere checks that an owner's parcel bore what was granted there, beside what is reserved of it (INV-1, INV-3).
func (v *verifier) fitsThere(t *plan, at spot, owner string) {
	c, ok := v.parcelOf(t, at.host, owner)
	if !ok {
		return
	}
	size, e := v.m.subs[at.key].size, v.estateOf(t.name)
	on := v.m.holders(t, at.host)
	held := on.sum(len(size), func(x holder) bool { return x.owner == owner })
	for d, u := range size {
		v.is(at.about("INV-1", "grants", "more %s is held on what %s owns of the host than that is: %d of %d",
			v.m.policy.dimensions[d], owner, held[d], c.size[d]),
			u == 0 || held[d] <= c.size[d])
	}
	for _, x := range lenders(owner, meet(at.consumer, owner)) {
		keeps := e.aside[aside{x, owner, at.host}]
		if keeps == nil {
			continue
		}
		out := on.sum(len(size), func(h holder) bool { return h.owner == owner && !under(h.leaf, x) })
		for d, u := range size {
			v.is(at.about("INV-3", "grants", "with it others hold %d %s of what %s reserves %d of", out[d],
				v.m.policy.dimensions[d], x, keeps[d]),
				u == 0 || out[d]+keeps[d] <= c.size[d])
		}
	}
}

// placed checks what all units of a plan count as, in cycles of which a keyframe tells it.
func (v *verifier) placed(t *plan) {
	for at, p := range v.m.piles {
		if at.plan != t.name || v.m.subs[at.key] == nil || v.m.subs[at.key].orphan {
			continue
		}
		for l := range p.label {
			why := v.misplaced(t, at, l)
			v.is(at.about("INV-1", "holdings", "held as %s: %s", l.words(), why), why == "")
		}
	}
}

// crowded checks that what parcels hold beyond what they have, and what others hold of reserves, is under reclaim
// (INV-1, INV-3).
func (v *verifier) crowded(t *plan) {
	e := v.m.estates[t.name]
	if e == nil {
		return
	}
	for host, list := range e.split {
		on := v.m.holders(t, host)
		net := func(ok func(x holder) bool) []int64 {
			sum := make([]int64, len(v.m.policy.dimensions))
			for _, x := range on {
				if ok(x) {
					plus(sum, x.size, x.units-x.leaving)
				}
			}
			return sum
		}
		for _, c := range list {
			held := net(func(x holder) bool { return x.owner == c.owner })
			f := Fault{Rule: "INV-1", Table: "reclaims", Plan: t.name, Consumer: c.owner, Host: host}
			for d, name := range v.m.policy.dimensions {
				f.What = "more " + name + " is held on its part of the host than that is, and is not under reclaim"
				v.limit(f, c.size[d], held[d])
			}
			for _, x := range lenders(c.owner, "/") {
				keeps := e.aside[aside{x, c.owner, host}]
				if keeps == nil {
					continue
				}
				out := net(func(h holder) bool { return h.owner == c.owner && !under(h.leaf, x) })
				for d, name := range v.m.policy.dimensions {
					f.Rule, f.Consumer, f.What = "INV-3", x,
						"others hold "+name+" that it reserves of "+c.owner+"'s part of the host, and it is not "+
							"under reclaim"
					v.limit(f, c.size[d], out[d]+keeps[d])
				}
			}
		}
	}
}

// overLimits checks that what is over a share limit, or a ratio of 0, is under reclaim (MD-18).
func (v *verifier) overLimits(t *plan) {
	net, w := v.net(t, false), t.at(v.now, v.m.policy.zone)
	for _, path := range v.m.policy.paths {
		e := w.entry[path]
		if !t.member[path] || net[path] == nil {
			continue
		}
		for d, name := range v.m.policy.dimensions {
			limit, ok := e.limit[name]
			if e.ratio == 0 {
				limit, ok = 0, true
			}
			if ok {
				v.limit(Fault{Rule: "MD-18", Table: "reclaims", Plan: t.name, Consumer: path,
					What: name + " held from pools that is not under reclaim, and the share limit"}, limit,
					net[path][d])
			}
		}
	}
}

// lawful checks a reason of an MD plan against whose parcel the units are on; it gives the labels that it may be about.
func (v *verifier) lawful(t *plan, c *claim, p *pile) (about []label) {
	w, e, h := t.at(v.now, v.m.policy.zone), v.estateOf(t.name), v.m.hosts[c.host]
	var net map[string][]int64
	for l := range p.label {
		owner, ok := l.owner(c.consumer), false
		switch c.reason {
		case "recall":
			x := meet(c.forConsumer, owner)
			ok = x != "/" && !under(c.consumer, x) && !v.slow(t, w, c.forConsumer, owner)
		case "fair_share":
			ok = c.forConsumer != c.consumer && l.pool != "" && meet(c.forConsumer, owner) == l.pool &&
				!v.slow(t, w, c.forConsumer, owner) && takes(w, c.forConsumer)
		case "reserve":
			for _, x := range lenders(owner, "/") {
				ok = ok || !under(c.consumer, x) && e.aside[aside{x, owner, c.host}] != nil
			}
		case "ownership_change":
			if ok = h == nil || h.plan != t.name; !ok {
				parcel, there := v.parcelOf(t, c.host, owner)
				held := v.m.holders(t, c.host).sum(len(p.size), func(x holder) bool { return x.owner == owner })
				for d, u := range p.size {
					ok = ok || there && u > 0 && held[d] > parcel.size[d]
				}
			}
		case "over_limit":
			if net == nil {
				net = v.net(t, true)
			}
			ok = v.wasOver(t, w, c, l, net)
		default:
			ok = true
		}
		if ok {
			about = append(about, l)
		}
	}
	return about
}

// takes tells whether a leaf, and all above it, take back for their share.
func takes(w *window, leaf string) bool {
	for path := leaf; path != "/"; path = parentOf(path) {
		if e := w.entry[path]; e == nil || !e.takes {
			return false
		}
	}
	return true
}

// wasOver tells whether a share limit or a ratio of 0 that units count for was exceeded before this cycle's reclaims.
func (v *verifier) wasOver(t *plan, w *window, c *claim, l label, net map[string][]int64) bool {
	for path := c.consumer; l.pool != "" && path != l.pool && path != "/"; path = parentOf(path) {
		e := w.entry[path]
		if e == nil {
			continue
		}
		if e.ratio == 0 {
			return true
		}
		had := slices.Clone(net[path])
		for _, o := range v.newClaims {
			if p := v.m.piles[o.spot]; p != nil && o.plan == t.name && under(o.consumer, path) {
				plus(had, p.size, o.units)
			}
		}
		for name, limit := range e.limit {
			if d, ok := v.m.policy.dimension(name); ok && had[d] > limit && v.m.piles[c.spot].size[d] > 0 {
				return true
			}
		}
	}
	return false
}

// graceFor checks the grace that a victim in an MD plan gets: the smaller of its own and that of the parcel in the pool
// (MD-10), of one of the labels that the reclaim may be about; units that went over from another taker keep their date.
func (v *verifier) graceFor(t *plan, c *claim, about []label) {
	grace, known := v.m.policy.grace[c.consumer]
	if s := v.m.subs[c.key]; s != nil && s.orphan || !known || len(about) == 0 || c.reason == "window_switch" {
		return // deadline has looked at it, lawful found no such reason, or what counts is whose the parcel will be
	}
	w, ok, over := t.at(v.now, v.m.policy.zone), false, c.reason == "recall" && v.wentOver(c)
	for _, l := range about {
		us := grace
		if most := t.graceIn(w, l.owner(c.consumer), l.pool); l.pool != "" && most != none {
			us = min(us, most)
		}
		ok = ok || c.deadline == c.issued+us
	}
	v.is(Fault{Rule: "MD-10", Table: "reclaims", Plan: c.plan, Consumer: c.consumer, Allocation: c.allocation,
		Host: c.host,
		What: "the deadline is not issued + the smaller of the holder's grace and its pool's",
		Got:  instant(c.deadline)}, ok || over)
}

// wentOver tells whether a reclaim took over the units of one that was cancelled in this cycle, with their date.
func (v *verifier) wentOver(c *claim) bool {
	return slices.ContainsFunc(v.cancelled, func(o *claim) bool {
		return o.spot == c.spot && o.deadline == c.deadline && reasons[o.reason].taker
	})
}

// ownersFirst checks INV-2 at a fixed point: nobody goes short whose unit fits a parcel of its own, or of a consumer
// above it, once outsiders gave back what they hold of it.
func (v *verifier) ownersFirst(t *plan) {
	if !t.owners || v.hazy[t.name] {
		return
	}
	w, e := t.at(v.now, v.m.policy.zone), v.estateOf(t.name)
	for _, f := range v.shorts() {
		s := v.m.subs[f.key]
		if f.plan != t.name || s == nil || s.orphan {
			continue
		}
		for _, one := range v.reachOf(t, w, s).all {
			x := one.pool
			if x == "/" || one.slow || s.perHost != none && v.on(s, one.host) >= s.perHost {
				continue
			}
			if _, stopped := v.stopped(t, w, s, x); stopped && x != s.consumer {
				continue
			}
			within := func(ok func(leaf string) bool) []int64 {
				return plus(slices.Clone(one.size), one.on.sum(len(s.size), func(h holder) bool {
					return h.owner == one.owner && under(h.leaf, x) && ok(h.leaf)
				}), -1)
			}
			room := within(func(string) bool { return true })
			for _, y := range lenders(one.owner, x) {
				if keeps := e.aside[aside{y, one.owner, one.host.name}]; keeps != nil {
					room = least(room, plus(within(func(leaf string) bool { return !under(leaf, y) }), keeps, -1))
				}
			}
			v.is(spot{s.key, one.host.name}.about("INV-2", "shortfalls",
				"it is short, and fits what %s owns there if outsiders of %s gave it back", one.owner, x),
				!covers(room, s.size))
		}
	}
}
