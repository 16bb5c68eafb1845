package verify

// slotRest checks a slot plan at a fixed point.
func (v *verifier) slotRest(p *plan) {
	f := v.figures[p.name]
	if f == nil {
		f = v.entitle(p)
	}
	if p.exclusive != "" {
		v.exclusiveRest(p, f)
		return
	}
	if f.vague {
		return
	}
	if v.owing(p, f.w) {
		v.report.cannot("INV-2, INV-5 and INV-6 at fixed points of the plan %s, while loans from before a switch run",
			p.name)
		return
	}
	idle := v.idleOf(p, f)
	for _, row := range v.shorts() {
		s := v.m.subs[row.key]
		switch {
		case row.plan != p.name || s == nil || s.orphan:
		case f.w.entry[s.consumer].kind == "hybrid":
			v.hybridRest(idle, s)
		default:
			if !v.shut(p, f.w, s) && p.budget != 0 {
				v.owner(p, f, s)
			}
			if !v.capped(p, f.w, s) {
				v.unused(idle, s)
				v.sharing(idle, s)
			}
		}
	}
}

// capped tells whether a unit more would exceed a share.max or limit.
func (v *verifier) capped(p *plan, w *window, s *sub) bool {
	for path := s.consumer; path != "/" && path != ""; path = parentOf(path) {
		if e := w.entry[path]; e != nil && e.most != none && v.m.account(p.name, path).slots+s.size[0] > e.most {
			return true
		}
	}
	return false
}

// shut tells whether a share.max keeps a unit more that its leaf owns out: within it owned comes first, and what other
// leaves below hold from loans and pools is taken back for it, where it does not run on closed hosts (SLOT-4, D-57).
func (v *verifier) shut(p *plan, w *window, s *sub) bool {
	for path := s.consumer; path != "/" && path != ""; path = parentOf(path) {
		e := w.entry[path]
		if e == nil || e.most == none {
			continue
		}
		stays := s.size[0]
		for at, pile := range v.m.piles {
			if at.plan != p.name || !under(at.consumer, path) || pile.orphan {
				continue
			}
			h := v.m.hosts[at.host]
			ok := h != nil && h.plan == p.name && h.state == "ok"
			for l, n := range pile.label {
				if !ok || at.consumer == s.consumer || l.origin == "owned" || l.origin == "" {
					stays += n * pile.size[0]
				}
			}
		}
		if stays > e.most {
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
		v.is(spot{s.key, h.name}.about("INV-2", "shortfalls",
			"it is short, and its own %d idle and %d lent slots there would do", own, lent), own+lent < s.size[0])
	}
}

// fits tells whether a unit fits the free room of a host that it may use.
func (v *verifier) fits(p *plan, s *sub) bool {
	r := v.roomOf(p)
	for i, h := range r.host {
		if v.usable(s, h) && r.free[i][0] >= s.size[0] {
			return true
		}
	}
	return false
}

// unused checks INV-6: nobody goes short whose unit would fit free room that it may use.
func (v *verifier) unused(idle *slotIdle, s *sub) {
	if !v.fits(idle.plan, s) || v.brokeBelow(idle.name, s.consumer, "/") != "" {
		return
	}
	each, pool := s.size[0], idle.pooled(s.consumer, func(path string) int64 {
		return v.m.account(idle.name,
			path).shared
	})
	v.is(s.about("INV-6", "shortfalls", "it is short, and %d slots of pools are idle", pool), pool < each ||
		idle.free-idle.claims < each)
	lender := v.lendable(idle, s.consumer, each)
	v.is(s.about("INV-6", "shortfalls", "it is short, and %s could lend to it", lender), lender == "")
}

// hybridRest checks INV-6 and INV-5 of a sub-allocation under the hybrid policy.
func (v *verifier) hybridRest(idle *slotIdle, s *sub) {
	leaf, each := s.consumer, s.size[0]
	after := idle.lacks(v.m.policy, func(path string) int64 {
		n := v.m.account(idle.name, path).slots
		if under(leaf, path) {
			n += each
		}
		return n
	})
	for path := leaf; path != "/"; path = parentOf(path) {
		if most := idle.w.entry[path].most; most != none && v.m.account(idle.name, path).slots+each+after[path] > most {
			return
		}
	}
	if v.fits(idle.plan, s) {
		v.is(s.about("INV-6", "shortfalls", "it is short, and %d slots of hybrid branches are idle", idle.hybrid),
			idle.hybrid-each < after["/"] || idle.free-each < idle.claims)
	}
	if !idle.plan.share || idle.keep || idle.budget == 0 || idle.dimmed(v) || v.m.account(idle.name,
		leaf).slots+each > idle.quota[leaf] {
		return
	}
	for at, pile := range v.m.piles {
		if at.plan != idle.name || at.consumer == leaf || idle.w.entry[at.consumer] == nil ||
			idle.w.entry[at.consumer].kind != "hybrid" || pile.orphan || v.m.subs[at.key].gang() {
			continue
		}
		h, size := v.m.hosts[at.host], pile.size[0]
		above := v.m.account(idle.name, at.consumer).slots - idle.quota[at.consumer]
		if !v.usable(s, h) || above < size || size < each || idle.hybrid+size-each < after["/"] {
			continue
		}
		v.is(s.about("INV-5", "shortfalls", "it is short and below its quota, and %s holds a unit above its own "+
			"on %s that would make room", at.consumer, at.host), false)
		return
	}
	v.report.Checks["INV-5"]++
}

// dimmed tells whether reserves may need what is taken from those above their quotas, or reclaims are under way that
// are not known.
func (s *slotIdle) dimmed(v *verifier) bool {
	return v.dim() || s.lacking["/"] > 0 || s.claims > s.free
}

// exclusiveRest checks INV-2 and INV-6 in a plan whose hosts serve one holder each.
func (v *verifier) exclusiveRest(p *plan, f *slots) {
	if p.share && p.budget != 0 {
		v.report.cannot("INV-5 at fixed points of the plan %s, whose hosts serve one holder each", p.name)
	}
	of, exact := v.wholes(p)
	if !exact {
		v.report.cannot("INV-2 and INV-6 at fixed points of the plan %s, while hosts have units of several holders",
			p.name)
		return
	}
	at := func(path string) account {
		if a := of[path]; a != nil {
			return *a
		}
		return account{}
	}
	spare := int64(0)
	for i, h := range v.roomOf(p).host {
		if v.roomOf(p).free[i][0] == h.cap[0] {
			spare += h.cap[0]
		}
	}
	for _, leaf := range v.m.policy.leaves(p) {
		if f.w.entry[leaf].kind != "hybrid" {
			spare -= max(0, f.owned[leaf]-at(leaf).owned-at(leaf).lent)
		}
	}
	for _, row := range v.shorts() {
		if s := v.m.subs[row.key]; row.plan == p.name && s != nil && !s.orphan {
			v.exclusiveUnit(p, f, s, at, spare)
		}
	}
}

// exclusiveUnit looks for a host that a unit could have: one of its holder's, an empty one, or one that its owner lent.
func (v *verifier) exclusiveUnit(p *plan, f *slots, s *sub, at func(path string) account, spare int64) {
	r, leaf, e := v.roomOf(p), s.consumer, f.w.entry[s.consumer]
	a := at(leaf)
	own := f.owned[leaf] - a.owned - a.lent
	pool, empty, all := f.pooled(leaf, func(path string) int64 { return at(path).shared }), 0, true
	for i, h := range r.host {
		if !v.usable(s, h) || h.cap[0] < s.size[0] {
			continue
		}
		c, bears := h.cap[0], true
		for path := leaf; path != "/"; path = parentOf(path) {
			bears = bears && (f.w.entry[path].most == none || at(path).slots+c <= f.w.entry[path].most)
		}
		on := v.m.onHost[h.name]
		mine, lent := len(on) > 0, len(on) > 0
		for spot, pile := range on {
			mine = mine && spot.plan == p.name && spot.consumer == leaf && (p.exclusive == "consumer" ||
				spot.allocation == s.allocation)
			for l := range pile.label {
				lent = lent && l.lender == leaf
			}
		}
		g := spot{s.key, h.name}.about("INV-6", "shortfalls", "it is short, and its holder's host has room for it")
		v.is(g, !mine || r.free[i][0] < s.size[0])
		g.Rule, g.What = "INV-2", "it is short, and it lent the host"
		v.is(g, !lent || !bears || own < 0 || e.kind == "hybrid" || p.budget == 0)
		if len(on) == 0 && c > 0 {
			empty++
			all = all && bears && e.kind != "hybrid" && (own >= 1 && spare >= c-own || pool >= 1 && spare >= c)
		}
	}
	v.is(s.about("INV-6", "shortfalls", "it is short, and %d empty hosts would do", empty), empty == 0 || !all)
}
