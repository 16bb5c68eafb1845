package verify

import (
	"cmp"
	"slices"
	"strings"
)

// run0 takes units as held since the cycle before; what they count as tells the keyframe.
func (v *verifier) run0(g *grid) {
	for row := range g.rows {
		h := v.m.hosts[g.text(row, "host")]
		if h == nil {
			continue
		}
		units, _ := g.whole(row, "units")
		at := spot{g.key(row, h.plan), h.name}
		if units > 0 {
			v.m.sit(v.m.put(at, v.unlabelled(h.plan), units, v.cycle), untold, units)
		}
	}
}

// resync makes what a source holds what a table says is running (D-33): what is missing is held as if granted in the
// last cycle, what is too much comes back as if the client had given it back.
func (v *verifier) resync(source string, g *grid) {
	runs := map[spot]int64{}
	var order []spot
	for row := range g.rows {
		if at, ok := v.heldAt(g, row); ok {
			n, _ := g.whole(row, "units")
			if _, twice := runs[at]; !twice {
				order = append(order, at)
			}
			runs[at] += n
		}
	}
	for at, p := range v.m.piles {
		if s := v.m.subs[at.key]; s != nil && s.source == source {
			v.m.ask(p, 0, max(0, p.rest()-runs[at]))
		}
	}
	for _, at := range order {
		held, n := int64(0), runs[at]
		if p := v.m.piles[at]; p != nil {
			held = p.rest()
		}
		if n > held {
			v.runs(at, n-held)
		}
	}
}

// runs adds units that a service says are running, beyond what was held. In an MD plan they go to the parts of their
// host that they fit: those of their leaf first, then by pools from the nearest up, in each the pool's own before lent
// ones; what fits none goes to the first (ownership.md).
func (v *verifier) runs(at spot, units int64) {
	t, s := v.m.policy.byName[at.plan], v.m.subs[at.key]
	v.overrun[at.host] = true
	if t == nil || s == nil || !t.md || v.strange[t.name] {
		v.m.sit(v.m.put(at, v.unlabelled(at.plan), units, v.cycle), untold, units)
		return
	}
	way, ok := v.way(t, at)
	if !ok {
		v.m.sit(v.m.put(at, label{}, units, v.cycle), untold, units)
		return
	}
	rest := units
	for _, c := range way {
		if n := min(rest, fitOf(s.size, c.size)); n > 0 {
			v.m.sit(v.m.put(at, labelOf(at.consumer, c.owner), n, v.cycle), untold, n)
			rest -= n
		}
	}
	if rest > 0 {
		v.m.sit(v.m.put(at, labelOf(at.consumer, way[0].owner), rest, v.cycle), untold, rest)
	}
}

// way lists the parts of a host with what is free of them, in the order in which units of a leaf go there. ok is false
// when that is not told: the host was changed since it was split, or of what is held in several parts something came
// back.
func (v *verifier) way(t *plan, at spot) (way []parcel, ok bool) {
	list := v.m.parcels(v.m.estates[t.name], t, at.host)
	if len(list) == 1 {
		return list, true
	}
	whole := v.m.worth(v.m.hosts[at.host], t)
	for _, c := range list {
		way = append(way, parcel{c.owner, slices.Clone(c.size)})
		plus(whole, c.size, -1)
	}
	if !zero(whole) {
		return nil, false
	}
	for on, p := range v.m.onHost[at.host] {
		if p.units != p.rest() && len(p.label) > 1 || p.label[label{}] > 0 {
			return nil, false
		}
		for l := range p.label {
			i := slices.IndexFunc(way, func(c parcel) bool { return c.owner == l.owner(on.consumer) })
			if i < 0 {
				return nil, false
			}
			n := p.label[l]
			if len(p.label) == 1 {
				n = p.rest()
			}
			plus(way[i].size, p.size, -n)
		}
	}
	depth := func(c parcel) int { return strings.Count(strings.TrimSuffix(meet(at.consumer, c.owner), "/"), "/") }
	lent := func(c parcel) int {
		if labelOf(at.consumer, c.owner).lender != "" {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(way, func(a, b parcel) int {
		return cmp.Or(cmp.Compare(depth(b), depth(a)),
			cmp.Compare(lent(a), lent(b)))
	})
	return way, true
}

// unlabelledIn tells whether it is not known what some units of a plan count as.
func (v *verifier) unlabelledIn(t *plan) bool {
	for at, p := range v.m.piles {
		if at.plan == t.name && p.label[label{}] > 0 {
			return true
		}
	}
	return false
}

// heldAt is the spot that a row of units that run, or are given back, is about; false when there is no such host.
func (v *verifier) heldAt(g *grid, row int) (at spot, ok bool) {
	h := v.m.hosts[g.text(row, "host")]
	if h == nil {
		return at, false
	}
	at = spot{g.key(row, h.plan), h.name}
	if p := v.m.piles[at]; p != nil && p.rest() > 0 {
		return at, true
	}
	var others []spot // on a host that left its plan, or of another size
	for other, p := range v.m.onHost[h.name] {
		if other.consumer == at.consumer && other.allocation == at.allocation && other.sub == at.sub && p.rest() > 0 {
			others = append(others, other)
		}
	}
	if len(others) > 0 {
		slices.SortFunc(others, func(a, b spot) int { return cmp.Compare(v.m.arrived(a.key), v.m.arrived(b.key)) })
		at = others[0]
	}
	return at, true
}

// unlabelled is what units count as that run at the start: only a keyframe tells, save in a public pool.
func (v *verifier) unlabelled(plan string) label {
	if t := v.m.policy.byName[plan]; t != nil && t.md && !t.owners {
		return label{origin: "public_pool", pool: "/"}
	}
	return label{}
}

// ask takes note of units that clients give back.
func (v *verifier) ask(g *grid) {
	for row := range g.rows {
		at, ok := v.heldAt(g, row)
		p := v.m.piles[at]
		if !ok || p == nil {
			continue
		}
		units, _ := g.whole(row, "units")
		device := g.text(row, "device")
		if !g.yes(row, "done") {
			v.m.asks(p, 0, device, units)
			continue
		}
		units = v.m.asks(p, 1, device, units)
		if s := v.m.subs[at.key]; s != nil {
			s.units = max(0, s.units-units)
			s.lower()
		}
	}
}
