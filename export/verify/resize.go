package verify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// A sub-allocation whose unit size changes is a new one (SPEC chapter 7). Tables name both alike, but only one is
// wanted, and settle releases what the other holds. Until then the model has the other under a key of its own, and has
// it back under the plain key when its size comes back.

// sized is the sub-allocation of a key with a unit size, a new one if there is none.
func (m *model) sized(k key, size []int64) *sub {
	s := m.subs[k]
	if s != nil && !s.orphan && slices.Equal(s.size, size) {
		return s
	}
	if s != nil {
		m.move(s, former(k, s))
		s.named, s.units = false, 0
		if s.orphan {
			s.units = s.held
		}
	}
	for _, was := range m.formers(k) {
		if !was.orphan && slices.Equal(was.size, size) {
			m.move(was, k)
			return was
		}
	}
	m.arrival++
	s = &sub{key: k, size: size, arrival: m.arrival}
	m.subs[k] = s
	return s
}

// former is the key of a sub-allocation when another size of it is wanted.
func former(k key, s *sub) key {
	if k.old = fmt.Sprint(s.size); s.orphan {
		k.old = "gone" + k.old
	}
	return k
}

// formers are the sub-allocations of a key that had other sizes, the oldest first.
func (m *model) formers(k key) (list []*sub) {
	for at := range m.former[k] {
		if s := m.subs[at]; s != nil {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *sub) int { return cmp.Compare(a.arrival, b.arrival) })
	return list
}

// move gives a sub-allocation another key, with what it holds.
func (m *model) move(s *sub, to key) {
	from := s.key
	delete(m.subs, from)
	m.indexFormer(from, false)
	s.key, m.subs[to] = to, s
	m.indexFormer(to, true)
	if s.held == 0 {
		return
	}
	if m.spots == nil {
		m.spots = map[key][]string{}
		for at := range m.piles {
			m.spots[at.key] = append(m.spots[at.key], at.host)
		}
	}
	for _, host := range m.spots[from] {
		at := spot{from, host}
		p := m.piles[at]
		delete(m.piles, at)
		delete(m.onHost[host], at)
		p.key = to
		m.piles[p.spot] = p
		m.hang(p)
		if p.leaving == 0 {
			continue
		}
		for _, list := range m.claims {
			for _, c := range list {
				if c.spot == at {
					c.spot = p.spot
				}
			}
		}
	}
	m.spots[to], m.spots[from] = m.spots[from], nil
}

// indexFormer keeps the list of former sub-allocations by key.
func (m *model) indexFormer(k key, is bool) {
	switch {
	case k.old == "":
	case !is:
		delete(m.former[k.row()], k)
	case m.former[k.row()] == nil:
		m.former[k.row()] = map[key]bool{k: true}
	default:
		m.former[k.row()][k] = true
	}
}

// listFormer lists former sub-allocations anew: a policy renames some, and takes the place of others away.
func (m *model) listFormer() {
	m.spots, m.former = nil, map[key]map[key]bool{}
	for k := range m.subs {
		m.indexFormer(k, true)
	}
}

// located is a spot of which something is held: that of a row, or one of a former sub-allocation that it can be about.
func (m *model) located(at spot) spot {
	if m.piles[at] != nil || len(m.former) == 0 {
		return at
	}
	for _, s := range m.formers(at.key) {
		if was := (spot{s.key, at.host}); m.piles[was] != nil {
			return was
		}
	}
	return at
}

// released is the spot that a row of releases is about: what clients gave back is of the size that it was then, what is
// released for a reclaim of that which is under it, and what is beyond demand of a size that is wanted no more, as long
// as there is any.
func (v *verifier) released(at spot, l label, device string, number int64, why string) spot {
	if len(v.m.former[at.key]) == 0 {
		return at
	}
	var may []spot
	for _, s := range v.m.formers(at.key) {
		may = append(may, spot{s.key, at.host})
	}
	may = append(may, at)
	may = slices.DeleteFunc(may, func(at spot) bool { return v.m.piles[at] == nil })
	merit := func(at spot) (n int) {
		p := v.m.piles[at]
		if cause := map[string]int{"client": 0, "done": 1}; p.asked != [2]int64{} {
			if i, ok := cause[why]; ok && p.asked[i] > p.back[i] {
				n += 4
			}
		}
		if slices.ContainsFunc(v.m.claims[number], func(c *claim) bool { return c.spot == at }) {
			n += 2
		}
		if p.seats[device] > 0 || p.seats[untold] > 0 {
			n += 8
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(p.label)),
			func(have label) bool { return have.origin == l.origin && have.lender == l.lender }) {
			n++
		}
		return n
	}
	best := at
	for i, one := range may {
		if i == 0 || merit(one) > merit(best) {
			best = one
		}
	}
	return best
}

// forget ends the time of former sub-allocations: what they held is released. Orphans stay until they have given all
// back.
func (v *verifier) forget() {
	v.m.spots = nil
	for k, all := range v.m.former {
		for at := range all {
			s := v.m.subs[at]
			if s == nil { // forgotten since
				delete(all, at)
				continue
			}
			if s.orphan && s.held > 0 {
				continue
			}
			v.equal(at.about("CYC-5", "releases", "held of another unit size than is wanted"), 0, s.held)
			for spot := range v.m.piles {
				if s.held > 0 && spot.key == at {
					delete(v.m.piles, spot)
					delete(v.m.onHost[spot.host], spot)
				}
			}
			delete(v.m.subs, at)
			delete(all, at)
			v.m.replaced++
		}
		if len(all) == 0 {
			delete(v.m.former, k)
		}
	}
}
