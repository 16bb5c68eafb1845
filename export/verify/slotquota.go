package verify

// span is a figure that is told up to a least and a most.
type span struct{ least, most int64 }

// loansShown is what of loans the quotas shown have in them (SLOT-11), by leaf: those that are not being recalled, of
// each lender no more than it can do without. Which of several borrowers would give back is not told, nor which units
// of a pile are under reclaim.
func (v *verifier) loansShown(p *plan, f *slots) map[string]span {
	of := map[string]span{}
	lent, net := map[string]map[string]int64{}, map[string]int64{}
	largest := map[string]int64{}
	for at, pile := range v.m.piles {
		if at.plan != p.name || pile.orphan {
			continue
		}
		for l, n := range pile.label {
			if l.lender == "" {
				continue
			}
			least, most := max(0, n-pile.leaving), n-max(0, pile.leaving-(pile.units-n))
			s, size := of[at.consumer], pile.size[0]
			if e := f.w.entry[l.lender]; e == nil || !p.member[l.lender] {
				continue // who is gone carries nothing
			}
			of[at.consumer] = span{s.least + least*size, s.most + most*size}
			if lent[l.lender] == nil {
				lent[l.lender] = map[string]int64{}
			}
			lent[l.lender][at.consumer] += most * size
			net[l.lender] += most * size
			largest[l.lender] = max(largest[l.lender], size)
		}
	}
	for lender, from := range lent {
		beyond := net[lender] - max(0, f.owned[lender]-min(f.demand[lender], f.owned[lender]))
		if beyond <= 0 {
			continue
		}
		beyond += largest[lender] - 1 // of units that take several slots the last is wanted whole
		for leaf, n := range from {
			s := of[leaf]
			s.least = max(0, s.least-min(n, beyond))
			if len(from) == 1 && largest[lender] == 1 {
				s.most -= min(n, beyond)
			}
			of[leaf] = s
		}
	}
	return of
}

// quotaShown checks the quota of an ownership leaf.
func (r *slotRow) quotaShown(row int, path string) {
	if !r.s.known || r.switched {
		return
	}
	if r.loans == nil {
		r.loans = r.loansShown(r.p, r.s)
	}
	base, s := min(r.s.demand[path], r.s.owned[path])+r.s.dynamic[path], r.loans[path]
	if s.least == s.most {
		r.figure("SLOT-11", "quota", path, row, base+s.most)
		return
	}
	got := r.number("quota", row)
	g := of("SLOT-11", "consumers", r.p.name, path, "quota")
	g.Expected, g.Got = grouped(base+s.least)+" to "+grouped(base+s.most), grouped(got)
	r.is(g, got >= base+s.least && got <= base+s.most)
}
