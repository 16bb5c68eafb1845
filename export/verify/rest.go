package verify

import "slices"

// atRest checks what binds at a fixed point: owners first (INV-2), work conserved (INV-6), fair (INV-5).
func (v *verifier) atRest() {
	for _, p := range v.m.policy.plans {
		switch {
		case v.nears(p):
			v.report.cannot("INV-2, INV-5 and INV-6 at fixed points of the plan %s, while another window is near", p.name)
		case p.md:
			v.ownersFirst(p)
			v.fairMD(p)
			v.fairPools(p)
		default:
			v.slotRest(p)
		}
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
