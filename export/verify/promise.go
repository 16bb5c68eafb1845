package verify

import (
	"slices"
	"strings"
)

// limits checks INV-4 and, of loans, INV-3: after a cycle that granted something, no limit above it is exceeded.
func (v *verifier) limits() {
	v.brokeGrants()
	net := map[string]map[string][]int64{} // MD plans with limits: what consumers hold beside what is under reclaim
	for at, labels := range v.given {
		p := v.m.policy.byName[at.plan]
		if p == nil || v.m.subs[at.key] == nil {
			continue
		}
		w := p.at(v.now, v.m.policy.zone)
		for path := at.consumer; path != "/" && path != ""; path = parentOf(path) {
			e := w.entry[path]
			switch {
			case e == nil:
			case p.md && len(e.limit) > 0 && !v.hazy[p.name] && !v.dim():
				if !drawn(labels, path) {
					continue
				}
				if net[p.name] == nil {
					net[p.name] = v.net(p, false)
				}
				for name, limit := range e.limit {
					d, _ := v.m.policy.dimension(name)
					if v.m.subs[at.key].size[d] > 0 {
						v.limit(Fault{Rule: "INV-4", Table: "grants", Plan: p.name, Consumer: path,
							What: "share limit of " + name + " after a grant"}, limit, net[p.name][path][d])
					}
				}
			case !p.md && e.most != none && p.exclusive == "":
				v.limit(Fault{Rule: "INV-4", Table: "grants", Plan: p.name, Consumer: path,
					What: "slots held after a grant, and the limit"}, e.most, v.m.account(p.name, path).slots)
			}
		}
		for l := range labels {
			pooled := l.origin == "share_pool" || l.origin == "public_pool" || l.origin == "private_pool"
			v.is(at.about("INV-4", "grants", "granted from a pool, and a ratio of 0 stands above it"),
				!pooled || !barredBelow(w, at.consumer, l.pool))
			if l.lender != "" && !p.md {
				v.loan(p, w, at, l.lender)
			}
			if l.origin == "share_pool" && !v.relabelled && p.exclusive == "" {
				v.drawnFrom(p, at, l.pool)
			}
		}
	}
}

// drawn tells whether any of some labels is of a pool above a consumer.
func drawn(labels map[label]int64, path string) bool {
	for l := range labels {
		if l.pool != "" && path != l.pool && under(path, l.pool) {
			return true
		}
	}
	return false
}

// drawnFrom checks the pool that a unit is said to come from: the first on the way up of which not all is drawn. What
// is drawn is known before the cycle's grants and after them.
func (v *verifier) drawnFrom(p *plan, at spot, pool string) {
	f := v.figures[p.name]
	if f == nil {
		return
	}
	whole := func(path string) (n int64) {
		for _, below := range append([]string{"/"}, v.m.policy.paths...) {
			if under(below, path) {
				n += f.pool[below]
			}
		}
		return n
	}
	for path := parentOf(at.consumer); path != "/" && path != ""; path = parentOf(path) {
		all := whole(path)
		if path == pool {
			v.is(at.about("SLOT-5", "grants", "granted from the pool of %s, of which all %d slots were drawn before",
				pool, all), f.drawn[path] < all)
			return
		}
		v.is(at.about("SLOT-5", "grants", "granted from the pool of %s, while that of %s is not drawn", pool, path),
			v.m.account(p.name, path).shared >= all)
	}
}

// barredBelow tells whether a ratio of 0 stands between a leaf and a pool, or anywhere above it in slot plans.
func barredBelow(w *window, leaf, pool string) bool {
	for path := leaf; path != "/" && path != "" && path != pool; path = parentOf(path) {
		if e := w.entry[path]; e != nil && e.ratio == 0 {
			return true
		}
	}
	return false
}

func (v *verifier) limit(f Fault, most, got int64) {
	f.Expected, f.Got = "at most "+grouped(most), grouped(got)
	v.is(f, got <= most)
}

// net is what every consumer of an MD plan has drawn from pools above it, beside what is under reclaim. Where it is not
// told which units of a pile that is: at least, or at most.
func (v *verifier) net(p *plan, most bool) map[string][]int64 {
	sum := map[string][]int64{}
	for _, pile := range v.m.piles {
		if s := v.m.subs[pile.key]; pile.plan != p.name || s != nil && s.orphan {
			continue
		}
		for l, n := range pile.label {
			leaving := min(n, pile.leaving)
			if most {
				leaving = max(0, pile.leaving-(pile.units-n))
			}
			path := pile.consumer
			for ; l.pool != "" && path != l.pool && path != "/" && path != ""; path = parentOf(path) {
				if sum[path] == nil {
					sum[path] = make([]int64, len(v.m.policy.dimensions))
				}
				plus(sum[path], pile.size, n-leaving)
			}
		}
	}
	return sum
}

// loan checks a loan that was granted: limits of both, whom they deal with, and that it is none of the lender's
// reserve.
func (v *verifier) loan(p *plan, w *window, at spot, lender string) {
	f, borrower, owner := v.figures[p.name], w.entry[at.consumer], w.entry[lender]
	if borrower == nil || owner == nil {
		return
	}
	v.is(at.about("SLOT-2", "grants", "%s must not lend to it, or it must not borrow from %s", lender, lender),
		deals(owner.lendTo, lender, at.consumer) && deals(borrower.borrowFrom, at.consumer, lender))
	if p.exclusive != "" || f == nil {
		return
	}
	a, b := v.m.account(p.name, at.consumer), v.m.account(p.name, lender)
	if borrower.borrow != none {
		v.limit(of("INV-4", "grants", p.name, at.consumer, "slots borrowed after a loan"), borrower.borrow, a.borrowed)
	}
	v.limit(of("INV-4", "grants", p.name, lender, "slots lent after a loan"), owner.lend, b.lent)
	v.limit(of("INV-3", "grants", p.name, lender, "slots lent after a loan, of those that are not reserved"),
		f.owned[lender]-f.reserved[lender], b.lent)
	v.limit(of("INV-3", "grants", p.name, lender, "slots lent and held as its own after a loan"), f.owned[lender],
		b.lent+b.owned)
}

// deals tells whether a list of peers lets a leaf deal with another.
func deals(list []string, self, other string) bool {
	if len(list) == 0 {
		return true
	}
	for _, name := range list {
		if name == "any" || name == "siblings" && parentOf(self) == parentOf(other) ||
			strings.HasPrefix(name, "/") && under(other, name) {
			return true
		}
	}
	return false
}

// promises checks what binds after every cycle, and what only binds at a fixed point.
func (v *verifier) promises() {
	v.limits()
	v.lots()
	v.disturbance()
	v.youngestFirst()
	waits := map[string]bool{}
	for _, f := range v.shortfallRows() {
		if f.reason == "waiting_for_reclaim" {
			waits[f.plan] = true
		}
	}
	for _, p := range v.m.policy.plans {
		if p.md && waits[p.name] && v.m.leaving == 0 {
			v.m.hidden[p.name]++ // somebody waits for what was granted and taken back, which no row tells
		}
		if p.md {
			v.conserving(p, waits[p.name])
			v.ordered(p)
		} else {
			v.reserves(p)
			v.taken(p)
		}
	}
	still := len(v.begun) == 0 && v.m.leaving == 0 && len(waits) == 0 && !v.relabelled && !v.dim()
	// no unit comes of age, no budget is used up or renewed,
	timeless := len(v.m.policy.runtime) == 0 && len(v.spent) == 0 &&
		len(v.past) == 0 // and no ratio counts otherwise
	if v.stable && v.inputs == 0 && !v.switched && v.policyCycle != v.cycle && timeless {
		v.is(Fault{Rule: "CYC-2", Table: "cycles",
			What: "something happened in the cycle after a fixed point, with the same input"}, still)
		for _, name := range []string{"consumers", "amounts", "shares", "shortfalls"} {
			v.is(Fault{Rule: "CYC-2", Table: name,
				What: "it is another in the cycle after a fixed point, with the same input"},
				!v.fresh(name) || v.frameDay())
		}
	}
	if v.stable = still; still {
		v.quiet = 0
		v.atRest()
	}
	v.is(Fault{Rule: "INV-10", Table: "cycles", What: "no fixed point after 10,000 cycles with the same input"},
		v.quiet <= 10_000)
}

// frameDay tells whether the cycle is the first of a UTC day, in which state tables are written anew.
func (v *verifier) frameDay() bool { return v.lastCycle == 0 || dayOf(v.now) != dayOf(v.last) }

func dayOf(us int64) int64 { return us / (24 * 3600 * 1e6) }

// disturbance checks INV-7: nobody is given units that count as those that are taken back from it in the same cycle.
func (v *verifier) disturbance() {
	for _, c := range v.newClaims {
		if c.units == 0 || !reasons[c.reason].taker {
			continue
		}
		for l := range v.given[c.spot] {
			same := c.reason == "recall" && l.origin == "borrowed" && l.lender == c.forConsumer ||
				c.reason == "fair_share" && l.origin == "share_pool"
			v.is(c.about("INV-7", "reclaims", "reason %s, and it was granted units as %s there in the same cycle",
				c.reason, l.words()), !same)
		}
	}
}

// reserves checks INV-3 in plans of owners: after a cycle that granted units from a pool or on loan, every owner's
// reserve that it does not use is idle, or under reclaim; save what the budget does not let it have yet.
func (v *verifier) reserves(p *plan) {
	f := v.figures[p.name]
	if f == nil || p.exclusive != "" || f.hybrid > 0 || v.dim() {
		return
	}
	granted := false
	for at, labels := range v.given {
		for l := range labels {
			granted = granted || at.plan == p.name && l.origin != "owned"
		}
	}
	if !granted {
		return
	}
	room, leaving := int64(0), map[string]int64{}
	for _, free := range v.roomOf(p).free {
		room += free[0]
	}
	for _, pile := range v.m.piles {
		if pile.plan == p.name {
			room += pile.leaving * pile.size[0]
			leaving[pile.consumer] += pile.leaving * pile.size[0]
		}
	}
	for _, path := range v.m.policy.leaves(p) {
		a := v.m.account(p.name, path)
		room -= max(0, min(f.reserved[path], f.owned[path]-a.lent)-a.owned)
		if p.budget != none {
			room += max(0, a.owned+a.lent-f.owned[path]-leaving[path])
		}
	}
	v.is(Fault{Rule: "INV-3", Table: "grants", Plan: p.name, What: "reserved slots were given to others",
		Expected: "none", Got: grouped(-room)}, room >= 0)
}

// conserving checks INV-6 in MD plans: no unmet unit that its rules allow fits an ok host. While anything is under
// reclaim, or promised, some of what is free is kept for takers, which the log does not tell; while another window is
// near, for those who will have it then.
func (v *verifier) conserving(p *plan, waits bool) {
	if v.nears(p) {
		return
	}
	if p.subtle() {
		v.conservingOwn(p)
		return
	}
	if waits || v.dim() || v.isUntold(p) || v.takers[p.name] || !v.fresh("shortfalls") && !v.busy(p.name) {
		return
	}
	w := p.at(v.now, v.m.policy.zone)
	if v.leaves(p.name) || v.limitsAgain(p, w) {
		return
	}
	asked := map[roomKey]bool{}
	for _, f := range v.shorts() {
		s := v.m.subs[f.key]
		if f.plan != p.name || s == nil || s.orphan || v.atLimit(p, w, s) {
			continue
		}
		id := roomKey{keyOf(s.size), s.cond, s.need != ""}
		if s.perHost == none && asked[id] {
			continue
		}
		asked[id] = true
		r := v.roomOf(p)
		for i, h := range r.host {
			if !covers(r.free[i], s.size) || !v.sits(p, s.size, h) || s.perHost != none && v.on(s, h) >= s.perHost ||
				!v.m.may(s, h) {
				continue
			}
			v.is(spot{f.key, h.name}.about("INV-6", "shortfalls", "it is short, and a unit of it fits the host"), false)
			break
		}
		v.report.Checks["INV-6"]++
	}
}

// limitsAgain tells whether units of a plan with share limits stay, in this cycle, with holders that were to give them
// back: what these were handed in the cycle for which others gave may have been over a limit beside them, and have been
// taken back at once, which leaves its room to the next cycle (CYC-1).
func (v *verifier) limitsAgain(p *plan, w *window) bool {
	for _, e := range w.entry {
		if len(e.limit) > 0 {
			return slices.ContainsFunc(v.cancelled, func(c *claim) bool { return c.plan == p.name })
		}
	}
	return false
}

// atLimit tells whether a ratio of 0, a budget that is used up, or a share limit keeps a sub-allocation from another
// unit.
func (v *verifier) atLimit(p *plan, w *window, s *sub) bool {
	if v.brokeBelow(p.name, s.consumer, "/") != "" {
		return true
	}
	for path := s.consumer; path != "/" && path != ""; path = parentOf(path) {
		e := w.entry[path]
		if e == nil || e.ratio == 0 {
			return true
		}
		for name, limit := range e.limit {
			if d, ok := v.m.policy.dimension(name); ok && s.size[d] > 0 &&
				v.m.account(p.name, path).size[d]+s.size[d] > limit {
				return true
			}
		}
	}
	return false
}
