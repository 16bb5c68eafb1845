package verify

import "slices"

// atRest checks what binds at a fixed point: owners first (INV-2), work conserved (INV-6), fair (INV-5).
func (v *verifier) atRest() {
	for _, p := range v.m.policy.plans {
		if p.md && v.nears(p) {
			v.report.cannot("INV-2 and INV-5 at fixed points of the plan %s, while another window is near", p.name)
			continue
		}
		if p.md {
			v.ownersFirst(p)
			v.fairMD(p)
			v.fairPools(p)
			continue
		}
		w := p.at(v.now, v.m.policy.zone)
		if p.exclusive != "" || p.lead > 0 || slices.ContainsFunc(p.windows, func(w *window) bool { return w.hybrid() }) {
			v.report.cannot("INV-2, INV-5 and INV-6 at fixed points of the plan %s, with hybrid branches, exclusive hosts or a lead", p.name)
			continue
		}
		f := v.figures[p.name]
		if f == nil {
			f = v.entitle(p)
		}
		for _, row := range v.shorts() {
			if s := v.m.subs[row.key]; row.plan == p.name && s != nil && !s.orphan && !v.capped(p, w, s) {
				v.owner(p, f, s)
				v.unused(p, w, f, s)
			}
		}
	}
}

func (w *window) hybrid() bool {
	for _, e := range w.entry {
		if e.kind == "hybrid" {
			return true
		}
	}
	return false
}

// capped tells whether a unit more would exceed a share.max.
func (v *verifier) capped(p *plan, w *window, s *sub) bool {
	for path := s.consumer; path != "/" && path != ""; path = parentOf(path) {
		if e := w.entry[path]; e != nil && e.most != none && v.m.account(p.name, path).slots+s.size[0] > e.most {
			return true
		}
	}
	return false
}

// usable tells whether a host may get one more unit, were it empty.
func (v *verifier) usable(s *sub, h *host) bool {
	return v.m.may(s, h) && (s.perHost == none || v.on(s, h) < s.perHost)
}

// owner checks INV-2: nobody goes short whose unit fits its own idle slots together with what it lent on one host.
func (v *verifier) owner(p *plan, f *slots, s *sub) {
	a := v.m.account(p.name, s.consumer)
	r := v.roomOf(p)
	for i, h := range r.host {
		if !v.usable(s, h) {
			continue
		}
		lent := int64(0)
		for _, pile := range v.m.onHost[h.name] {
			for l, n := range pile.label {
				if l.lender == s.consumer {
					lent += n * pile.size[0]
				}
			}
		}
		own := min(r.free[i][0], max(0, f.owned[s.consumer]-a.owned-a.lent))
		v.is(spot{s.key, h.name}.about("INV-2", "shortfalls", "it is short, and its own %d idle and %d lent slots there would do", own, lent), own+lent < s.size[0])
	}
}

// unused checks INV-6: nobody goes short whose unit would fit free room that it may use.
func (v *verifier) unused(p *plan, w *window, f *slots, s *sub) {
	each, pools, spare, fits := s.size[0], int64(0), int64(0), false
	r := v.roomOf(p)
	for i, h := range r.host {
		spare += r.free[i][0]
		fits = fits || v.usable(s, h) && r.free[i][0] >= each
	}
	if !fits {
		return
	}
	for _, n := range f.pool {
		pools += n
	}
	leaves := v.m.policy.leaves(p)
	for _, path := range leaves {
		a := v.m.account(p.name, path)
		pools, spare = pools-a.shared, spare-max(0, f.owned[path]-a.owned-a.lent)
	}
	v.is(s.about("INV-6", "shortfalls", "it is short, and %d slots of pools are idle", pools), barred(w, s.consumer) || pools < each || spare < each)
	e := w.entry[s.consumer]
	if e.borrow == 0 || e.borrow != none && v.m.account(p.name, s.consumer).borrowed+each > e.borrow || spare < 0 {
		return
	}
	for _, lender := range leaves {
		a, o := v.m.account(p.name, lender), w.entry[lender]
		idle := min(f.owned[lender]-a.owned-a.lent, f.owned[lender]-f.reserved[lender]-a.lent, o.lend-a.lent)
		v.is(s.about("INV-6", "shortfalls", "it is short, and %s could lend to it", lender),
			lender == s.consumer || idle < each || !deals(o.lendTo, lender, s.consumer) || !deals(e.borrowFrom, s.consumer, lender))
	}
}

// fairMD checks INV-5 in a public pool at a fixed point, where nothing but shares decides: all units of one size, no
// requirement or limit, and everybody takes its share back.
func (v *verifier) fairMD(p *plan) {
	w := p.at(v.now, v.m.policy.zone)
	if p.owners || !p.share || p.pubGrace != none {
		return
	}
	for path, e := range w.entry {
		if p.member[path] && (!e.takes || len(e.limit) > 0 || e.ratio == 0) {
			return
		}
	}
	for _, h := range v.m.hosts {
		if used := v.m.used(h.name, p.name, 1); (h.plan != p.name || h.state != "ok") && used[0] > 0 {
			return // nothing there is a victim
		}
	}
	hungry, size := map[string]bool{}, []int64(nil)
	for k, s := range v.m.subs {
		if k.plan != p.name || s.units == 0 && s.held == 0 {
			continue
		}
		if size == nil {
			size = s.size
		}
		if s.orphan || s.need != "" || s.perHost != none || !slices.Equal(size, s.size) {
			return
		}
		if match, large := v.fitsEmpty(p, s); s.units > s.held && match && large && !v.turned(k) {
			for path := k.consumer; path != "/" && path != ""; path = parentOf(path) {
				hungry[path] = true
			}
		}
	}
	units := func(path string) int64 { return v.m.account(p.name, path).units }
	for _, a := range v.m.policy.paths {
		for _, b := range v.m.policy.children[parentOf(a)] {
			if a == b || !p.member[a] || !p.member[b] || units(a) == 0 || !hungry[b] {
				continue
			}
			x, y := w.entry[a], w.entry[b]
			v.is(of("INV-5", "consumers", p.name, b, "it goes short while "+a+", of lower priority, holds units of the pool"), x.priority >= y.priority)
			v.is(of("INV-5", "consumers", p.name, b, "it goes short while "+a+" could give up a unit for it and be ahead even then"),
				x.priority != y.priority || (units(a)-1)*y.ratio <= (units(b)+1)*x.ratio)
		}
	}
}
