package oracle

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// What sets with takers (CYC-6) are in plans of either kind; rooms are vectors, in slot plans of one dimension.

// joined is a unit that will fit once sets under way are done.
type joined struct {
	sub     *sub
	host    *host
	owner   plan.Node // of the parcel, in an MD plan
	account plan.Node // in a slot plan
}

// mine are the plan's sets with takers that ok accepts.
func (f *frame) mine(ok func(s *set) bool) []*set {
	return slices.DeleteFunc(slices.Clone(f.sets), func(s *set) bool { return s.plan != f.in || s.n == 0 || !ok(s) })
}

func every(*set) bool { return true }

// left is what a set's victims still hold; kept is what of its room they do not take, which is held for the taker.
func (f *frame) left(s *set) []int64 {
	v := make([]int64, len(s.taker.size))
	for _, u := range f.units(func(u *unit) bool { return u.set == s }) {
		if f.onTarget(s, u) {
			plus(v, u.sub.size, 1)
		}
	}
	return v
}

// onTarget tells whether a victim makes room for its set's taker, and not only below a limit (MD-18.2).
func (f *frame) onTarget(s *set, u *unit) bool {
	return f.in >= len(f.p.MDPlans) || u.host == s.target && u.owner == s.owner
}

func (f *frame) kept(s *set) []int64 {
	v := s.room()
	for d, n := range f.left(s) {
		v[d] = max(0, v[d]-n)
	}
	return v
}

// inUse tells whether something is held on a host or kept there for a taker (D-3).
func (f *frame) inUse(h *host) bool {
	return len(h.units) > 0 || len(f.mine(func(s *set) bool { return s.target == h && slices.Max(f.kept(s)) > 0 })) > 0
}

// pledged is how many units of a sub-allocation are promised, as far as sets are reviewed.
func (f *frame) pledged(s *sub) int64 { return f.pledgedOn(s, func(plan.Node) bool { return true }) }

// pledgedOn is how many are promised on parcels of owners that ok accepts.
func (f *frame) pledgedOn(s *sub, ok func(owner plan.Node) bool) int64 {
	n := int64(0)
	for _, t := range f.sets {
		if t.taker == s && t.plan == f.in && t.number <= f.reviewed && ok(t.owner) {
			n += t.n
		}
	}
	for _, j := range f.joined {
		if j.sub == s && ok(j.owner) {
			n++
		}
	}
	return n
}

// counted is what counts as held of a sub-allocation where promised units wait aside.
func (f *frame) counted(s *sub) int64 { return s.held + f.pledged(s) }

// lapse lowers a set by a unit.
func (f *frame) lapse(s *set) {
	idle := f.kept(s)
	s.n--
	f.trim(s, idle)
}

// trim cancels the victims that a set no longer needs beside its idle part, the last chosen first.
func (f *frame) trim(s *set, idle []int64) {
	victims := f.units(func(u *unit) bool { return u.set == s })
	slices.SortFunc(victims, func(a, b *unit) int { return cmp.Compare(b.number, a.number) })
	for _, u := range victims {
		covers := true
		left, room := f.left(s), s.room()
		for d, n := range u.sub.size {
			if !f.onTarget(s, u) {
				n = 0
			}
			covers = covers && left[d]-n+idle[d] >= room[d]
		}
		covers = covers && !(s.n > 0 && f.in < len(f.p.MDPlans) && newRound(f.Cluster, f.in).overWith(u, f))
		if (s.n == 0 || covers) && !f.leavesWhole(u) {
			f.cancel(u)
		}
	}
}

// claim makes a set of a unit's victims, or adds them to the last set when that is for the same; false when the budget
// does not bear them.
func (f *frame) claim(s *set, victims []*unit) bool {
	units := int64(0) // those granted in this cycle are no victims, those under reclaim are already
	for _, u := range victims {
		if u.cycle < f.cycle && stays(u) {
			units++
		}
	}
	if !f.affords(units) {
		f.denied[s.taker] = true
		return false
	}
	s.plan, s.cycle = f.in, f.cycle
	if n := len(f.sets); n > 0 {
		if last := f.sets[n-1]; last.plan == s.plan && last.cycle == s.cycle && last.taker == s.taker &&
			last.target == s.target && last.owner == s.owner && last.reason == s.reason {
			s = last
		}
	}
	if s.n++; s.number == 0 {
		s.number = f.next()
		f.sets = append(f.sets, s)
	}
	for _, u := range victims {
		f.reclaim(u, s)
	}
	return true
}

// part gives the siblings at which the ways to two leaves part.
func (f *frame) part(a, b plan.Node) (x, y plan.Node) {
	wa, wb := f.way(a), f.way(b)
	i := 0
	for wa[i] == wb[i] {
		i++
	}
	return wa[i], wb[i]
}

// shortfalls gives every shortfall its reasons: what is promised waits, the rest is stopped by something.
func (f *frame) shortfalls(r *Result, reasons func(s *sub, units int64) []Shortfall) {
	for _, s := range f.below(plan.Root) {
		var rows []Shortfall
		waits := f.pledged(s)
		if waits > 0 {
			row := f.waiting(s)
			row.Units = waits
			rows = append(rows, row)
		}
		if units := s.short() - waits; units > 0 {
			rows = append(rows, reasons(s, units)...)
		}
		for _, row := range rows {
			row.Key = f.key(s)
			r.Shortfalls = append(r.Shortfalls, row)
		}
	}
}

// waiting is the shortfall of promised units: until the last deadline of the victims of sets that promise them and of
// what leaves hosts (in MD plans, parcels) where units joined (where nothing does, of all that leaves); the blocker is
// the one of that deadline whose set was made first, the first in the tree.
func (f *frame) waiting(s *sub) Shortfall {
	row, joins := Shortfall{Reason: "waiting_for_reclaim"}, false
	list := f.units(func(u *unit) bool { return u.leaves() && u.set.taker == s && u.set.n > 0 })
	for _, j := range f.joined {
		if j.sub == s {
			here := f.units(func(u *unit) bool { return u.leaves() && u.host == j.host && u.owner == j.owner })
			list, joins = append(list, here...), true
		}
	}
	if joins && len(list) == 0 {
		list = f.units((*unit).leaves)
	}
	slices.SortFunc(list, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(b.due, a.due), cmp.Compare(a.set.number, b.set.number),
			cmp.Compare(a.leaf(), b.leaf()))
	})
	if len(list) > 0 {
		row.UntilUS = list[0].due
	}
	if len(list) > 0 && !list[0].sub.alloc.orphan {
		row.Blocker = f.path(list[0].leaf())
	}
	return row
}
