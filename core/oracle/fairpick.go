package oracle

import (
	"slices"
)

// fitter tells whether a unit fits a parcel, both now and net, when some units on it are gone; and whether another one
// there would help.
func (g *round) fitter(s *sub, t parcel) (enough func(chosen []*unit) bool, helps func(chosen []*unit, u *unit) bool) {
	room := least(g.room(s.alloc.leaf, t), g.netRoom(s.alloc.leaf, t))
	with := func(chosen []*unit) []int64 {
		v := slices.Clone(room)
		for _, u := range chosen {
			plus(v, u.sub.size, 1)
		}
		return v
	}
	return func(chosen []*unit) bool { return fits(s.size, with(chosen)) }, func(chosen []*unit, u *unit) bool {
		now := with(chosen)
		for d, n := range s.size {
			if n > max(0, now[d]) && u.sub.size[d] > 0 {
				return true
			}
		}
		return false
	}
}

// pickOf chooses among units of a parcel those that make a unit fit: one alone if there is such a one, else one after
// the other that helps and may be taken; those not needed are dropped again, of each sub-allocation the last chosen
// first.
func (g *round) pickOf(s *sub, t parcel, here []*unit, may func(u *unit) bool) (chosen []*unit, ok bool) {
	enough, _ := g.fitter(s, t)
	for _, u := range here {
		if enough([]*unit{u}) {
			return []*unit{u}, true
		}
	}
	return g.inTurn(s, t, here, may)
}

// inTurn chooses units of a parcel one after the other, each that helps and may be taken, until a unit fits; those not
// needed are dropped again, of each sub-allocation the last chosen first.
func (g *round) inTurn(s *sub, t parcel, here []*unit, may func(u *unit) bool) (chosen []*unit, ok bool) {
	enough, helps := g.fitter(s, t)
	for _, u := range here {
		if helps(chosen, u) && may(u) {
			chosen = append(chosen, u)
		}
	}
	if !enough(chosen) {
		return nil, false
	}
	for _, u := range slices.Clone(chosen) {
		last := len(chosen) - 1 // of the sub-allocation's: those granted in this cycle are chosen first (CYC-1)
		for last >= 0 && chosen[last].sub != u.sub {
			last--
		}
		if last < 0 {
			continue
		}
		if rest := slices.Delete(slices.Clone(chosen), last, last+1); enough(rest) {
			if chosen[last] != u && u.cycle == g.cycle {
				g.notes["kept an older unit than one of this cycle"]++
			}
			chosen = rest
		}
	}
	return chosen, true
}
