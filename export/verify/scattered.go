package verify

import (
	"crypto/sha256"
	"fmt"
	"math"
)

// scattered is what of an MD plan's free room no row of the reason fragmented has named yet (docs/spec/md.md, Reasons).
type scattered struct {
	plan   []int64           // of all parcels
	of     map[given][]int64 // by the parcels that a unit may be given
	by     map[*expr]given   // by requirement, where nobody owns anything and max_per_host does not matter
	unsure bool              // a row came before of whose parcels the tables do not tell
	short  map[key]int64     // units that are not promised
	last   key               // whose rows were counted last
	units  int64             // how many of them it names
}

// given tells apart the sets of parcels that units may be given, with the pool of each: the digest of their names.
type given [sha256.Size]byte

// sumOf is the sum of rooms, where a room below 0 counts as 0.
func sumOf(rooms [][]int64, dims int) []int64 {
	sum := make([]int64, dims)
	for _, room := range rooms {
		for d, n := range room {
			sum[d] += max(0, n)
		}
	}
	return sum
}

// carries is how many units of a size a sum would carry if it could be cut at will.
func carries(sum, size []int64) int64 {
	units := int64(math.MaxInt64)
	for d, u := range size {
		if u > 0 {
			units = min(units, max(0, sum[d])/u)
		}
	}
	return units
}

// areFree checks that all that fragmented names in a plan, taken together, is free on its hosts.
func (v *verifier) areFree(list []shortfallRow) {
	left := map[string][]int64{}
	for _, f := range list {
		p, s := v.m.policy.byName[f.plan], v.m.subs[f.key]
		if f.reason != "fragmented" || p == nil || !p.md || s == nil || v.dim() {
			continue
		}
		if left[p.name] == nil {
			left[p.name] = sumOf(v.roomOf(p).free, len(s.size))
		}
		if v.is(f.about("D-7", "shortfalls", "reason fragmented, and the plan has not so much free for all rows of it"),
			f.units <= carries(left[p.name], s.size)) {
			plus(left[p.name], s.size, -f.units)
		}
	}
}

// scatteredIn is the free room of a plan that no row named yet.
func (v *verifier) scatteredIn(p *plan) *scattered {
	c := v.scattered[p.name]
	if c == nil {
		c = &scattered{of: map[given][]int64{}, by: map[*expr]given{}, short: map[key]int64{}}
		for _, f := range v.shortfallRows() {
			if f.plan == p.name && f.reason != "waiting_for_reclaim" {
				c.short[f.key] += f.units
			}
		}
		rooms := v.roomOf(p).free
		if p.subtle() {
			rooms = nil
			for _, one := range v.spreadOf(p).list {
				rooms = append(rooms, one.free)
			}
		}
		c.plan = sumOf(rooms, len(v.m.policy.dimensions))
		v.scattered[p.name] = c
	}
	return c
}

// unsure notes that nothing follows for rows that come after one of which the tables do not tell what it may use.
func (v *verifier) unsure(p *plan, f shortfallRow) {
	if p.md && f.reason == "fragmented" {
		v.scatteredIn(p).unsure = true
	}
}

// carried checks the units of a row of a sub-allocation that room stops which is free in sum alone: fragmented names n,
// other reasons the rest. It is not known where rows before it are not.
func (v *verifier) carried(p *plan, s *sub, f shortfallRow) (n int64, known bool) {
	c := v.scatteredIn(p)
	if c.last != f.key {
		left := v.leftFor(p, s)
		c.last, c.units = f.key, min(c.short[f.key], carries(c.plan, s.size), carries(left, s.size))
		plus(c.plan, s.size, -c.units)
		plus(left, s.size, -c.units)
	}
	if c.unsure {
		return 0, false
	}
	want := c.short[f.key] - c.units
	if f.reason == "fragmented" {
		want = c.units
	}
	v.equal(f.about("D-7", "shortfalls", "units of reason %s, beside free room that is scattered", f.reason), want,
		f.units)
	return c.units, true
}

// leftFor is what no row named yet of what is free on the parcels that a unit may be given.
func (v *verifier) leftFor(p *plan, s *sub) []int64 {
	c := v.scatteredIn(p)
	at, known := c.by[s.cond]
	if known && s.perHost == none && !p.subtle() {
		return c.of[at]
	}
	names, rooms := v.mayGet(p, s)
	at = sha256.Sum256(names)
	if c.of[at] == nil {
		c.of[at] = sumOf(rooms, len(s.size))
	}
	if s.perHost == none {
		c.by[s.cond] = at
	}
	return c.of[at]
}

// mayGet are the parcels that a unit may be given, by name with their pools, and their rooms.
func (v *verifier) mayGet(p *plan, s *sub) (names []byte, rooms [][]int64) {
	if p.subtle() {
		w := p.at(v.now, v.m.policy.zone)
		b := v.barriersOf(p, w, s, v.reachOf(p, w, s))
		for _, one := range b.given {
			names = fmt.Appendln(names, one.host.name, one.owner, one.pool)
		}
		return names, b.rooms
	}
	r := v.roomOf(p)
	for i, h := range r.host {
		if v.m.may(s, h) && (s.perHost == none || v.on(s, h) < s.perHost) {
			names, rooms = fmt.Appendln(names, h.name), append(rooms, r.free[i])
		}
	}
	return names, rooms
}

// outrun is the reason of units beyond those that scattered room would carry, short of the same dimension.
func (v *verifier) outrun(p *plan, s *sub, dimension string) (r found, blocker string) {
	w, pools := p.at(v.now, v.m.policy.zone), []string{"/"}
	if p.subtle() {
		pools = v.reachOf(p, w, s).pool
	}
	r.dimension = dimension
	r.reason, blocker = v.outdone(p, w, s, pools)
	return r, blocker
}
