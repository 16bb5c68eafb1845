package grant

import (
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/vecpack"
)

// How many candidates best fit looks at: so many for each unit, more where parcels differ more, and never fewer than
// frontierLeast (MD-20).
const (
	frontierLeast   = 16
	candidatesLeast = 2
	candidatesMost  = 128
	sizesPerOne     = 64 // different amounts of parcels for each candidate more
)

// weightBits is how many bits the weight of a full dimension has under balanced placement.
const weightBits = 58

// rules are a plan's rules of placement (MD-20): functions of a parcel's room and a unit's size.
type rules struct {
	placement  plan.Placement
	most       []int64 // by dimension: the largest capacity of an open parcel
	by         []vecpack.Reciprocal
	words      int // of a point: four coordinates each
	candidates int64
	devices    devices
}

// rulesOf returns the rules of a plan as its parcels are now. O(parcels × dimensions).
func rulesOf(p *cluster.Plan) *rules {
	r := &rules{placement: p.Terms.Placement, devices: devicesOf(p), words: (len(p.Parcels.Cap) + 3) / 4}
	for _, column := range p.Parcels.Cap {
		most := int64(0)
		eachOpen(p, func(k int) { most = max(most, column[k]) })
		r.most = append(r.most, most)
		r.by = append(r.by, vecpack.NewReciprocal(max(1, most)))
	}
	if r.placement == plan.BestFit {
		r.candidates = min(candidatesMost, max(candidatesLeast, int64(differing(p)/sizesPerOne)))
	}
	return r
}

// eachOpen calls f for the parcels of open hosts.
func eachOpen(p *cluster.Plan, f func(k int)) {
	for w, open := range p.Parcels.Open {
		for ; open != 0; open &= open - 1 {
			f(w<<6 + bits.TrailingZeros64(open))
		}
	}
}

// differing returns how many different amounts the open parcels of a plan have, at most as many as matter.
func differing(p *cluster.Plan) int {
	const enough = candidatesMost * sizesPerOne
	var seen, table []int32 // parcels, by hash
	table = make([]int32, 4*enough)
	for i := range table {
		table[i] = -1
	}
	same := func(a, b int32) bool {
		return !slices.ContainsFunc(p.Parcels.Cap, func(column []int64) bool { return column[a] != column[b] })
	}
	eachOpen(p, func(k int) {
		if len(seen) == enough {
			return
		}
		hash := uint64(0)
		for _, column := range p.Parcels.Cap {
			hash = (hash ^ uint64(column[k])) * 0x9e3779b97f4a7c15
			hash ^= hash >> 29
		}
		at := hash & uint64(len(table)-1)
		for ; table[at] >= 0; at = (at + 1) & uint64(len(table)-1) {
			if same(table[at], int32(k)) {
				return
			}
		}
		table[at] = int32(k)
		seen = append(seen, int32(k))
	})
	return len(seen)
}

// weigh returns the weighted room of a parcel, which balanced placement compares.
func (r *rules) weigh(free []int64) (sum int64) {
	for d, most := range r.most {
		if most > 0 {
			sum += max(0, free[d]) * (1 << weightBits / most)
		}
	}
	return sum
}

// point writes the coordinates of a parcel's room: parts of the largest amount, rounded down.
func (r *rules) point(dst []uint64, free []int64) {
	clear(dst)
	for d, most := range r.most {
		if x := min(max(0, free[d]), most); x > 0 {
			dst[d>>2] |= uint64(r.by[d].Div(vecpack.CoordinateMax*x)) << (16 * (d & 3))
		}
	}
}

// direction returns the coordinates of a unit's size, rounded up.
func (r *rules) direction(size []int64) []uint64 {
	dst := make([]uint64, r.words)
	for d := range r.most {
		dst[d>>2] |= uint64(r.coordinate(size, d)) << (16 * (d & 3))
	}
	return dst
}

// coordinate returns one coordinate of a unit's size.
func (r *rules) coordinate(size []int64, d int) int64 {
	most := r.most[d]
	if most == 0 {
		return 0
	}
	return r.by[d].Div(vecpack.CoordinateMax*min(size[d], most) + most - 1)
}

// largest returns the largest coordinate of a unit's size: large units are placed first.
func (r *rules) largest(size []int64) (most int64) {
	for d := range r.most {
		most = max(most, r.coordinate(size, d))
	}
	return most
}
