package verify

import "slices"

// slotIdle is what is idle in a slot plan after a cycle, and for whom.
type slotIdle struct {
	*slots
	free    int64            // slots of ok hosts that nobody holds
	own     map[string]int64 // by leaf: what it owns beyond what it holds as owned and lends
	claims  int64            // the sum of these
	keeps   int64            // of it, what reserves and owners' unmet demand need: all that is not lent (SLOT-10)
	hybrid  int64            // of what hybrid branches have
	lacking map[string]int64 // by hybrid consumer, and for the root: what of reserves at and below it nobody holds
}

// idleOf computes it.
func (v *verifier) idleOf(p *plan, f *slots) *slotIdle {
	s := &slotIdle{slots: f, own: map[string]int64{}, hybrid: f.hybrid}
	for _, free := range v.roomOf(p).free {
		s.free += max(0, free[0])
	}
	wants := map[string]int64{}
	for k, b := range v.m.subs {
		if k.plan == p.name && !b.orphan {
			wants[k.consumer] += b.units * b.size[0]
		}
	}
	for _, leaf := range v.m.policy.leaves(p) {
		a := v.m.account(p.name, leaf)
		if f.w.entry[leaf].kind == "hybrid" {
			s.hybrid -= a.slots
			continue
		}
		idle := max(0, f.owned[leaf]-a.owned-a.lent)
		s.own[leaf] = idle
		s.claims += idle
		reserve := max(0, min(f.reserved[leaf], f.owned[leaf]-a.lent)-a.owned)
		s.keeps += max(reserve, min(idle, max(0, wants[leaf]-a.slots)))
	}
	s.lacking = f.lacks(v.m.policy, func(path string) int64 { return v.m.account(p.name, path).slots })
	return s
}

// lacks is what of hybrid consumers' reserves nobody holds, of each with those below it.
func (s *slots) lacks(p *policy, held func(path string) int64) map[string]int64 {
	free := map[string]int64{}
	for _, path := range slices.Backward(p.paths) {
		if s.member[path] && s.w.entry[path].kind == "hybrid" {
			free[path] = max(free[path], s.keeps[path]-held(path), 0)
			free[parentOf(path)] += free[path]
		}
	}
	return free
}

// poolsBelow is what the pools of a consumer and of all below it have.
func (s *slots) poolsBelow(path string) (sum int64) {
	for at, n := range s.pool {
		if under(at, path) {
			sum += n
		}
	}
	return sum
}

// pooled is what of the pools a leaf may still draw: below a ratio of 0 no more than is of the branch itself (SLOT-4).
func (s *slots) pooled(leaf string, drawn func(path string) int64) int64 {
	if e := s.w.entry[leaf]; e.ratio == 0 || e.kind == "hybrid" {
		return 0
	}
	least := int64(1 << 62)
	for path := parentOf(leaf); path != ""; path = parentOf(path) {
		if path != "/" && s.w.entry[path].ratio > 0 {
			continue
		}
		least = min(least, s.poolsBelow(path)-drawn(path))
	}
	return least
}

// lendable tells which lender could lend a unit to a leaf, which wants it on a host where there is room; "" is none.
func (v *verifier) lendable(s *slotIdle, leaf string, each int64) string {
	e := s.w.entry[leaf]
	if e.kind == "hybrid" || e.borrow == 0 || e.borrow != none && v.m.account(s.name,
		leaf).borrowed+each > e.borrow || s.free-each < s.keeps {
		return ""
	}
	return v.lenderFor(s.slots, leaf, each)
}

// lenderFor is the first who has as much idle that may be lent to a leaf, "" when nobody has.
func (v *verifier) lenderFor(s *slots, leaf string, each int64) string {
	e := s.w.entry[leaf]
	for _, lender := range v.m.policy.leaves(s.plan) {
		a, o := v.m.account(s.name, lender), s.w.entry[lender]
		idle := min(s.owned[lender]-a.owned-a.lent, s.owned[lender]-s.reserved[lender]-a.lent, o.lend-a.lent)
		if lender != leaf && o.kind != "hybrid" && idle >= each && deals(o.lendTo, lender, leaf) &&
			deals(e.borrowFrom, leaf, lender) {
			return lender
		}
	}
	return ""
}

// owing tells whether anything is borrowed in a plan of which lender or borrower is hybrid by now.
func (v *verifier) owing(p *plan, w *window) bool {
	kind := func(path string) bool { e := w.entry[path]; return e == nil || e.kind == "hybrid" }
	for at, pile := range v.m.piles {
		if at.plan != p.name {
			continue
		}
		for l := range pile.label {
			if l.lender != "" && (kind(at.consumer) || kind(l.lender)) {
				return true
			}
		}
	}
	return false
}
