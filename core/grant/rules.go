//go:build !rounds

package grant

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// Best fit tells parcels apart by the shape of their free room, four levels in up to four dimensions or two in up to
// eight, and by how much it is (D-2): class = shape × fullnesses + fullness.
const (
	fullnesses = 4
	classesMax = 256 * fullnesses
)

const (
	weightBits = 58 // of the weight of a full dimension
	stepBits   = 46 // of it below the finest step: a full dimension counts 2¹² steps
)

// Rules are a plan's rules of placement (MD-20, docs/decisions.md D-2, D-3): functions of a parcel's free room and a
// unit's size alone.
type Rules struct {
	placement plan.Placement
	most      []int64 // by dimension: the largest capacity of an open parcel
	weight    []int64 // by dimension
	levels    int     // best fit: 4 or 2
	shapes    int     // that best fit tells apart
	ranks     [][]uint8
	devices   devices
}

// NewRules are the rules of a plan as its parcels are now. O(parcels × dimensions).
func NewRules(p *cluster.Plan) *Rules {
	r := &Rules{placement: p.Terms.Placement, levels: 4, shapes: 1, devices: devicesOf(p)}
	for _, column := range p.Parcels.Cap {
		most, weight := int64(0), int64(0)
		for w, open := range p.Parcels.Open {
			for ; open != 0; open &= open - 1 {
				most = max(most, column[w<<6+bits.TrailingZeros64(open)])
			}
		}
		if most > 0 {
			weight = 1 << weightBits / most
		}
		r.most, r.weight = append(r.most, most), append(r.weight, weight)
	}
	if len(r.weight) > 4 {
		r.levels = 2
	}
	for range min(len(r.weight), 8) {
		r.shapes *= r.levels
	}
	return r
}

// equal tells whether other rules say the same.
func (r *Rules) equal(o *Rules) bool {
	return r.placement == o.placement && slices.Equal(r.most, o.most) && r.devices == o.devices
}

// weigh is the weighted free room of a parcel, which balanced goes by.
func (r *Rules) weigh(free []int64) (sum int64) {
	for d, w := range r.weight {
		sum += max(0, free[d]) * w
	}
	return sum
}

// class is where a parcel of so much free room stands: under best fit its shape and fullness, under stacked 0 for one
// that is in use, else 1.
func (r *Rules) class(free []int64, begun bool) int {
	switch {
	case r.placement == plan.BestFit:
		return r.bestFit(free)
	case begun:
		return 0
	}
	return 1
}

func (r *Rules) bestFit(free []int64) int {
	var step [8]uint64
	var most uint64
	n := min(len(r.weight), len(step))
	for d := range n {
		step[d] = uint64(max(0, free[d])*r.weight[d]) >> stepBits
		most = max(most, step[d])
	}
	shape, place := 0, 1
	for d := range n {
		if r.levels == 2 {
			shape += place * above(4*step[d], most)
		} else {
			shape += place * (above(2*step[d], most) + above(4*step[d], most) + above(16*step[d], most))
		}
		place *= r.levels
	}
	const full = 1 << (weightBits - stepBits)
	return shape*fullnesses + above(2*most, full) + above(4*most, full) + above(16*most, full)
}

// above is 1 when a > b, else 0: a sum of comparisons, as nobody could predict the branches.
func above(a, b uint64) int {
	n := 0
	if a > b {
		n = 1
	}
	return n
}

// levelSize is what a level stands for when a shape is compared with a unit.
var levelSize = [2][4]int64{{0, 2, 6, 12}, {0, 1}}

// rank sorts the shapes for a unit, the most like it first: likeness is (level · unit)² ÷ level², ties by number. O(1)
// but for the first time that it is asked for a shape.
func (r *Rules) rank(shape cluster.ShapeID, size []int64) []uint8 {
	for int(shape) >= len(r.ranks) {
		r.ranks = append(r.ranks, nil)
	}
	if r.ranks[shape] != nil {
		return r.ranks[shape]
	}
	type likeness struct{ dot2, norm uint64 }
	like, order, unit := make([]likeness, r.shapes), make([]uint8, r.shapes), make([]int64, min(len(size), 8))
	for d := range unit {
		if w := r.weight[d]; w > 0 {
			unit[d] = (min(size[d], 1<<weightBits/w)*w + 1<<stepBits - 1) >> stepBits
		}
	}
	sizes := &levelSize[0]
	if r.levels == 2 {
		sizes = &levelSize[1]
	}
	for i := range like {
		var dot, norm int64
		rest := i
		for _, u := range unit {
			l := sizes[rest%r.levels]
			rest /= r.levels
			dot += l * u
			norm += l * l
		}
		like[i], order[i] = likeness{uint64(dot * dot), uint64(max(norm, 1))}, uint8(i)
	}
	slices.SortFunc(order, func(a, b uint8) int {
		x, y := like[a], like[b] // dot ≤ 12 × 4096 × 4 < 2¹⁸ and norm ≤ 4 × 144: the products are exact
		return cmp.Or(cmp.Compare(y.dot2*x.norm, x.dot2*y.norm), cmp.Compare(a, b))
	})
	r.ranks[shape] = order
	return order
}
