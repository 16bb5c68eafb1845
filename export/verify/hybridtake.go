package verify

import (
	"math/big"
	"slices"
)

// hybridTakes checks how much is taken from hybrid branches, and from whom (SLOT-27, SLOT-30), where all units take one
// slot.
func (v *verifier) hybridTakes(p *plan, f *slots, claims []*claim) {
	if !v.calmBefore(p) || v.foreign(p, f.w) || p.keep {
		return
	}
	t := v.takenOf(p, f, claims)
	if t == nil || t.total == 0 {
		return
	}
	lacking := f.lacks(v.m.policy, func(path string) int64 { return v.m.account(p.name, path).slots })["/"]
	g := Fault{Rule: "SLOT-30", Table: "reclaims", Plan: p.name}
	g.What = "slots taken from hybrid branches, and those that others need"
	v.limit(g, t.owners+t.below+lacking, t.total)
	if t.reserveOnly && t.mixed && t.total <= t.above["/"] && !v.anyClosed(p) && !v.anyLimit(p, f) {
		want := map[string]int64{}
		f.give(v.m.policy, "/", t.total, t.above, want)
		for _, leaf := range v.m.policy.leaves(p) {
			if f.w.entry[leaf].kind == "hybrid" {
				v.equal(of("SLOT-27", "reclaims", p.name, leaf, "its part of what reserves need"), want[leaf],
					t.from[leaf])
			}
		}
	}
}

// hybridTaken is what a cycle took from hybrid branches, and what for.
type hybridTaken struct {
	from        map[string]int64 // by leaf
	total       int64
	above       map[string]int64 // by consumer and for the root: what leaves at and below it hold above their quotas
	owners      int64            // what owners lack of their reserves, or of their own for what they want
	below       int64            // what leaves lack of their quotas
	mixed       bool             // there are owners
	reserveOnly bool             // all was taken for reserves, and no hybrid leaf got anything
}

// takenOf computes it; nil where some units take several slots, or go because their consumer must not have them.
func (v *verifier) takenOf(p *plan, f *slots, claims []*claim) *hybridTaken {
	t := &hybridTaken{from: map[string]int64{}, above: map[string]int64{}, reserveOnly: true}
	for k, s := range v.m.subs {
		if k.plan == p.name && !s.orphan && s.size[0] != 1 {
			return nil
		}
	}
	for _, c := range claims {
		if f.w.entry[c.consumer].kind != "hybrid" {
			if c.reason == "drain" || c.reason == "ownership_change" { // its owner needs another slot in its place
				t.owners += c.units
			}
			continue
		}
		switch c.reason {
		case "drain", "ownership_change", "plan_change", "window_switch":
			return nil
		case "over_limit":
			if v.capMay(p, f, c.consumer) {
				return nil
			}
		}
		t.from[c.consumer] += c.units
		t.total += c.units
		t.reserveOnly = t.reserveOnly && c.reason == "reserve"
	}
	for at := range v.given {
		e := f.w.entry[at.consumer]
		t.reserveOnly = t.reserveOnly && !(at.plan == p.name && e != nil && e.kind == "hybrid")
	}
	for _, leaf := range v.m.policy.leaves(p) {
		a := v.m.account(p.name, leaf)
		if f.w.entry[leaf].kind != "hybrid" {
			t.mixed = true
			reserve := max(0, min(f.reserved[leaf], f.owned[leaf]-a.lent)-a.owned)
			own := max(0, f.owned[leaf]-a.owned-a.lent)
			t.owners += max(reserve, min(own, max(0, v.wantedBy(p, leaf)-a.slots)))
			continue
		}
		t.below += max(0, f.quota[leaf]-a.slots)
		for path := leaf; path != ""; path = parentOf(path) {
			t.above[path] += max(0, a.slots-f.quota[leaf])
		}
	}
	return t
}

// foreign tells whether anything of a plan is held that counts as hybrid, and is not, or the other way round.
func (v *verifier) foreign(p *plan, w *window) bool {
	for at, pile := range v.m.piles {
		for l := range pile.label {
			if e := w.entry[at.consumer]; at.plan == p.name && e != nil &&
				(e.kind == "hybrid") != (l.origin == "hybrid") {
				return true
			}
		}
	}
	return false
}

// wantedBy is what a leaf wants in slots.
func (v *verifier) wantedBy(p *plan, leaf string) (sum int64) {
	for k, s := range v.m.subs {
		if k.plan == p.name && k.consumer == leaf && !s.orphan {
			sum += s.units * s.size[0]
		}
	}
	return sum
}

// anyClosed tells whether anything of a plan is held on a host that is not ok.
func (v *verifier) anyClosed(p *plan) bool {
	for at := range v.m.piles {
		if at.plan == p.name && !v.open(p, at.host) {
			return true
		}
	}
	return false
}

// anyLimit tells whether a hybrid consumer has a limit.
func (v *verifier) anyLimit(p *plan, f *slots) bool {
	for path, e := range f.w.entry {
		if p.member[path] && e.kind == "hybrid" && e.most != none {
			return true
		}
	}
	return false
}

// give divides what is to be given at a consumer among those below it, level by level, in proportion to how far each is
// above its quota; what rounding leaves goes one each, in reverse rank order, to those that had a fraction (SLOT-27).
func (s *slots) give(p *policy, path string, amount int64, above, out map[string]int64) {
	if p.leaf(path) && path != "/" {
		out[path] = amount
		return
	}
	children := slices.DeleteFunc(p.sorted(s.plan, s.w, path),
		func(c string) bool { return s.w.entry[c].kind != "hybrid" })
	part, fraction, rest := make([]int64, len(children)), make([]bool, len(children)), amount
	for i, c := range children {
		if above[path] == 0 {
			continue
		}
		q, r := new(big.Int).QuoRem(new(big.Int).Mul(big.NewInt(amount), big.NewInt(above[c])),
			big.NewInt(above[path]), new(big.Int))
		part[i], fraction[i] = q.Int64(), r.Sign() != 0
		rest -= part[i]
	}
	for i := range slices.Backward(children) {
		if rest > 0 && fraction[i] {
			part[i]++
			rest--
		}
	}
	for i, c := range children {
		s.give(p, c, part[i], above, out)
	}
}

// limitsKept checks that hybrid limits keep what reserves below them need (SLOT-26): no grant fills it, and where
// others hold it already that much is under reclaim, as far as anybody is above its quota who could give it (INV-3).
func (v *verifier) limitsKept(p *plan, f *slots) {
	if v.owing(p, f.w) || !v.anyLimit(p, f) && f.hybrid == 0 {
		return
	}
	held := func(path string) int64 { return v.m.account(p.name, path).slots }
	new := map[string]int64{}
	for at, labels := range v.given {
		for l, n := range labels {
			for path := at.consumer; at.plan == p.name && l.origin == "hybrid" && v.m.subs[at.key] != nil &&
				path != ""; path = parentOf(path) {
				new[path] += n * v.m.subs[at.key].size[0]
			}
		}
	}
	gone := map[string]int64{}
	for at, pile := range v.m.piles {
		for path := at.consumer; at.plan == p.name && pile.leaving > 0 && path != ""; path = parentOf(path) {
			gone[path] += pile.leaving * pile.size[0]
		}
	}
	before := f.lacks(v.m.policy, func(path string) int64 { return held(path) - new[path] })
	after := f.lacks(v.m.policy, held)
	net := f.lacks(v.m.policy, func(path string) int64 { return held(path) - gone[path] })
	for path, e := range f.w.entry {
		if !p.member[path] || e.kind != "hybrid" || e.most == none {
			continue
		}
		if is := held(path) + after[path]; new[path] > 0 && is > held(path)-new[path]+before[path] {
			g := of("SLOT-26", "grants", p.name, path,
				"slots held after a grant, with what reserves below it need, and the limit")
			v.limit(g, e.most, is)
		}
		is := held(path) - gone[path] + net[path]
		if is > e.most && net[path] > 0 && p.budget == none && p.share && !p.keep && v.gives(p, f, path, gone) {
			g := of("INV-3", "reclaims", p.name, path,
				"slots held, with what reserves below it need, that are not under reclaim, and the limit")
			v.limit(g, e.most, is)
		}
	}
}

// gives tells whether a leaf below a consumer has a unit on an ok host that it holds above its quota, and that nothing
// is under way of.
func (v *verifier) gives(p *plan, f *slots, path string, gone map[string]int64) bool {
	for at, pile := range v.m.piles {
		above := v.m.account(p.name, at.consumer).slots - gone[at.consumer] - f.quota[at.consumer]
		if at.plan == p.name && under(at.consumer, path) && !pile.orphan && pile.units > pile.leaving && v.open(p,
			at.host) && above >= pile.size[0] {
			return true
		}
	}
	return false
}
