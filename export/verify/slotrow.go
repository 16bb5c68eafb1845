package verify

// wholes is what a plan with exclusive placement counts: whole hosts. ok is false where a host has units of several
// holders or kinds, which the log tells only in part.
func (v *verifier) wholes(p *plan) (of map[string]*account, ok bool) {
	of, ok = map[string]*account{}, true
	at := func(path string) *account {
		if of[path] == nil {
			of[path] = &account{}
		}
		return of[path]
	}
	v.hostsOf(p, func(h *host, in bool) {
		leaf, kind := "", label{}
		for spot, pile := range v.m.onHost[h.name] {
			if spot.plan != p.name {
				continue
			}
			for l := range pile.label {
				ok = ok && (leaf == "" || leaf == spot.consumer && kind == l)
				leaf, kind = spot.consumer, l
			}
			if s := v.m.subs[spot.key]; s != nil && s.orphan {
				ok = false
			}
		}
		if leaf == "" {
			return
		}
		size := v.m.worth(h, p)[0]
		if !in && (h.gone || h.plan != "") {
			size = 0
		}
		for path := leaf; path != "/" && path != ""; path = parentOf(path) {
			a := at(path)
			a.slots += size
			switch kind.origin {
			case "owned":
				a.owned += size
			case "share_pool":
				a.shared += size
			case "borrowed":
				a.borrowed += size
			}
		}
		for path := kind.lender; path != "/" && path != ""; path = parentOf(path) {
			at(path).lent += size
		}
	})
	return of, ok
}

// bygone is, by lender and those above it, slots that hybrid leaves borrowed before they were that, from leaves that
// are hybrid too by now: they are no loans any more. Of an owner that is not hybrid they are lent until a switch has
// taken them back, and are owed, by borrower and those above it: they are none of what hybrid branches have.
func (v *verifier) bygone(p *plan) (bygone, owed map[string]int64) {
	entry := p.at(v.now, v.m.policy.zone).entry
	bygone, owed = map[string]int64{}, map[string]int64{}
	for at, pile := range v.m.piles {
		if e := entry[at.consumer]; at.plan != p.name || pile.orphan || e == nil || e.kind != "hybrid" {
			continue
		}
		for l, n := range pile.label {
			to, from := bygone, l.lender
			if lender := entry[l.lender]; lender != nil && lender.kind != "hybrid" {
				to, from = owed, at.consumer
			}
			for path := from; l.lender != "" && path != "/" && path != ""; path = parentOf(path) {
				to[path] += n * pile.size[0]
			}
		}
	}
	return bygone, owed
}

// slotPlan holds a slot plan's rows of consumers against what it owns, deserves and holds.
func (v *verifier) slotPlan(p *plan, t *rows, seen map[[2]string]int) {
	s := v.figures[p.name]
	if s == nil || s.vague || !v.fresh("consumers") {
		return
	}
	bygone, owed := v.bygone(p)
	held := func(path string) *account {
		a := v.m.account(p.name, path)
		if n := bygone[path]; n > 0 {
			b := *a
			a, b.lent = &b, a.lent-n
		}
		return a
	}
	exact := true
	if p.exclusive != "" {
		var of map[string]*account
		of, exact = v.wholes(p)
		held = func(path string) *account {
			if a := of[path]; a != nil {
				return a
			}
			return &account{}
		}
	}
	waits := v.waiting(p.name)
	free := s.freeShown(v.m.policy, func(path string) int64 { return held(path).slots - owed[path] })
	r := slotRow{verifier: v, p: p, s: s, t: t, owed: owed, down: map[string][3]int64{}}
	for i := len(v.m.policy.paths) - 1; i >= 0; i-- {
		path := v.m.policy.paths[i]
		row, ok := seen[[2]string{p.name, path}]
		if !ok {
			continue
		}
		r.owns(row, path)
		if exact {
			r.holds(row, path, held(path), free, waits)
		}
		r.sums(row, path)
	}
}

// waiting are the leaves of a plan that are promised something.
func (v *verifier) waiting(plan string) map[string]bool {
	waits := map[string]bool{}
	for _, f := range v.shortfallRows() {
		if f.plan == plan && f.reason == "waiting_for_reclaim" {
			waits[f.consumer] = true
		}
	}
	return waits
}

// slotRow checks rows of a slot plan, children before their parents.
type slotRow struct {
	*verifier
	p     *plan
	s     *slots
	t     *rows
	owed  map[string]int64    // by hybrid consumer: what is to go back to owners (bygone)
	loans map[string]span     // what of loans quotas have in them, once it is asked for
	down  map[string][3]int64 // by parent: sums of its children's quota, lent and free
}

func (r *slotRow) number(name string, row int) int64 { return r.t.number[name].at(row) }

// figure holds one figure against what it should be.
func (r *slotRow) figure(rule, name, path string, row int, want int64) {
	r.is(of("log", "consumers", r.p.name, path, name+" is missing"), !r.t.number[name].missing(row))
	r.equal(of(rule, "consumers", r.p.name, path, name), want, r.number(name, row))
}

// owns checks what follows from the policy and the hosts.
func (r *slotRow) owns(row int, path string) {
	e, s := r.s.w.entry[path], r.s
	r.figure("SLOT-1", "owned_configured", path, row, e.owns)
	missing := r.t.number["slot_limit"].missing(row)
	f := of("SLOT-4", "consumers", r.p.name, path, "slot_limit")
	if r.is(f, missing == (e.most == none)) && !missing {
		r.equal(f, e.most, r.number("slot_limit", row))
	}
	if e.kind == "hybrid" {
		r.figure("SLOT-21", "owned", path, row, s.scaled[path])
		r.figure("SLOT-21", "reserved", path, row, s.keeps[path])
		r.figure("SLOT-21", "static_quota", path, row, s.scaled[path])
		r.figure("SLOT-23", "quota", path, row, s.quota[path])
		return
	}
	r.figure("SLOT-13", "owned", path, row, s.owned[path])
	r.figure("SLOT-2", "reserved", path, row, s.reserved[path])
	r.figure("SLOT-6", "static_quota", path, row, s.static[path])
}

// holds checks what it holds and lends, and its quota, which counts what it borrowed.
func (r *slotRow) holds(row int, path string, a *account, free map[string]int64, waits map[string]bool) {
	if r.s.w.entry[path].kind == "hybrid" {
		r.hybridHolds(row, path, a, free)
		return
	}
	r.figure("INV-9", "held_owned", path, row, a.owned)
	r.figure("INV-9", "held_shared", path, row, a.shared)
	r.figure("INV-9", "held_borrowed", path, row, a.borrowed)
	r.figure("INV-9", "lent", path, row, a.lent)
	if !r.m.policy.leaf(path) {
		return
	}
	r.quotaShown(row, path)
	idle := max(0, r.s.owned[path]-a.owned-a.lent)
	if !waits[path] {
		r.figure("SLOT-28", "free", path, row, idle)
		return
	}
	r.is(Fault{Rule: "SLOT-28", Table: "consumers", Plan: r.p.name, Consumer: path,
		What:     "free is more than its own idle slots",
		Expected: grouped(idle), Got: grouped(r.number("free", row))}, r.number("free", row) <= idle)
}

// hybridHolds is holds of a hybrid consumer: leaves by what they own now, branches by their leaves.
func (r *slotRow) hybridHolds(row int, path string, a *account, free map[string]int64) {
	if r.m.policy.leaf(path) {
		own := min(a.slots-r.owed[path], r.s.scaled[path])
		r.figure("INV-9", "held_owned", path, row, own)
		r.figure("INV-9", "held_borrowed", path, row, a.slots-own)
	}
	r.figure("INV-9", "held_shared", path, row, 0)
	r.is(Fault{Rule: "INV-9", Table: "consumers", Plan: r.p.name, Consumer: path,
		What:     "lent is more than others borrowed from it",
		Expected: grouped(a.lent), Got: grouped(r.number("lent", row))}, r.number("lent", row) <= a.lent)
	r.figure("SLOT-28", "free", path, row, free[path])
}

// sums checks that a branch's figures are the sums of its children's, where they are.
func (r *slotRow) sums(row int, path string) {
	hybrid := r.s.w.entry[path].kind == "hybrid"
	if below, ok := r.down[path]; ok {
		if !hybrid {
			r.figure("SLOT-11", "quota", path, row, below[0])
			r.figure("SLOT-28", "free", path, row, below[1])
		} else {
			r.figure("INV-9", "held_owned", path, row, below[1])
			r.figure("INV-9", "held_borrowed", path, row, below[2])
		}
	}
	up := r.down[parentOf(path)]
	if hybrid {
		up[1] += r.number("held_owned", row)
		up[2] += r.number("held_borrowed", row)
	} else {
		up[0] += r.number("quota", row)
		up[1] += r.number("free", row)
	}
	r.down[parentOf(path)] = up
}
