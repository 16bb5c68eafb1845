// Package place says which parcel gets the next unit: best fit, stacked or
// balanced (SLOT-31, MD-20, docs/decisions.md D-1 … D-3). What it answers is a
// function of the parcels' capacity and free room alone; all that it keeps only
// makes the answer quick.
package place

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/vecpack"
)

// Best fit tells parcels apart by the shape of their free room (D-2), four levels
// in up to four dimensions or two in up to eight, and by how much it is: class =
// shape × fullnesses + fullness.
const (
	shapesMax  = 256
	fullnesses = 4
	classesMax = shapesMax * fullnesses
)

const (
	weightBits = 58 // of the weight of a full dimension
	stepBits   = 46 // of it below the finest step: a full dimension counts 2¹² steps
)

// Field is the parcels of one plan, sorted by where the next unit should go. It
// keeps a copy of their free room in a form made for the question "does it fit":
// Take takes units off that copy while granting, Sync brings it up to the parcels
// between cycles.
type Field struct {
	parcels   *cluster.Parcels
	placement plan.Placement
	weight    []int64 // by dimension
	levels    int     // best fit: 4 or 2
	shapes    int     // that the placement tells apart
	sorted            // by parcel
	shift     [vecpack.Lanes]uint
	exact     bool               // the words say all: at most four dimensions, none shifted
	room      []int64            // by parcel and dimension: free room, unless exact
	free      []int64            // by parcel: weighted free room; of a shut parcel -1
	regained  []cluster.ParcelID // that Regain told of since Sync
	weighed   int                // how often the weights changed: what is made by them is good for one number
	tree      tree               // balanced: the greatest free room below each node
}

// Sync brings the field up to a plan's parcels at the start of a cycle. The cost
// follows the parcels that changed, unless the largest capacity of a dimension did.
func (f *Field) Sync(p *cluster.Plan) {
	f.regained = f.regained[:0]
	f.forget()
	p.Seen = len(p.Changed)
	rebuilt := p.Rebuilt || f.parcels != &p.Parcels || f.placement != p.Terms.Placement
	if !rebuilt && len(p.Changed) == 0 {
		return
	}
	f.parcels, f.placement = &p.Parcels, p.Terms.Placement
	if (rebuilt || p.Resized) && f.weigh(rebuilt) {
		f.weighed++
		f.reset()
		return
	}
	for _, k := range p.Changed {
		f.put(k)
	}
	if f.placement == plan.Balanced {
		for _, k := range p.Changed {
			f.tree.update(f, k)
		}
	}
}

// weigh sets the weights and class bounds, and tells whether they changed. O(parcels × dimensions).
func (f *Field) weigh(changed bool) bool {
	dims := len(f.parcels.Cap)
	if len(f.weight) != dims {
		f.weight = make([]int64, dims)
	}
	was := f.shift
	f.exact, f.shift = dims <= vecpack.Lanes, [vecpack.Lanes]uint{}
	for d, column := range f.parcels.Cap {
		var most, w int64
		for w, open := range f.parcels.Open {
			for ; open != 0; open &= open - 1 {
				most = max(most, column[w<<6+bits.TrailingZeros64(open)])
			}
		}
		if most > 0 {
			w = 1 << weightBits / most
		}
		changed = changed || f.weight[d] != w
		f.weight[d] = w
		for d < vecpack.Lanes && most>>f.shift[d] > vecpack.LaneMax {
			f.shift[d]++
			f.exact = false
		}
	}
	f.shapes, f.levels = 1, 0
	if f.placement == plan.BestFit {
		f.levels = 4
		if dims > 4 {
			f.levels = 2
		}
		for range min(dims, 8) {
			f.shapes *= f.levels
		}
	}
	return changed || f.shift != was
}

// reset puts every parcel where it belongs. O(parcels × dimensions).
func (f *Field) reset() {
	n := f.parcels.Len()
	f.free = resize(f.free, n)
	if !f.exact || f.placement == plan.Balanced {
		f.room = resize(f.room, n*len(f.weight))
	} else {
		f.room = nil
	}
	f.begin(n, f.shapes*fullnesses)
	f.quiet = true
	for k := range n {
		f.put(cluster.ParcelID(k))
	}
	f.quiet = false
	if f.placement == plan.Balanced {
		f.tree.build(f)
	}
}

// put computes a parcel's copy and class from its columns.
func (f *Field) put(k cluster.ParcelID) {
	if !f.parcels.IsOpen(k) {
		f.free[k] = -1
		f.enter(int32(k), shut)
		return
	}
	var free int64
	var lane [vecpack.Lanes]int64
	begun := false // something is held there, or kept: also where it has nothing of that (D-3)
	for d, w := range f.weight {
		v := f.parcels.Available(d, k)
		begun = begun || v < f.parcels.Cap[d][k]
		v = max(0, v)
		free += v * w
		if d < len(lane) {
			lane[d] = v >> f.shift[d]
		}
		if f.room != nil {
			f.room[int(k)*len(f.weight)+d] = v
		}
	}
	f.word[k], f.free[k] = vecpack.Pack(lane[:]), free
	f.enter(int32(k), f.classOf(k, begun))
}

func (f *Field) classOf(k cluster.ParcelID, begun bool) int16 {
	switch {
	case f.placement == plan.BestFit:
		return f.bestFit(k)
	case begun:
		return 0
	}
	return 1
}

// bestFit is the class of a parcel (D-2): its shape says per dimension how much
// free room there is next to the roomiest dimension's, its fullness how much that is.
func (f *Field) bestFit(k cluster.ParcelID) int16 {
	var step [8]uint64
	var most uint64
	n := min(len(f.weight), len(step))
	for d := range n {
		var v int64
		if f.exact {
			v = int64(f.word[k] >> (16 * d) & vecpack.LaneMax)
		} else {
			v = f.room[int(k)*len(f.weight)+d]
		}
		step[d] = uint64(v*f.weight[d]) >> stepBits
		most = max(most, step[d])
	}
	shape, place := 0, 1
	for d := range n {
		shape += place * level(step[d], most, f.levels)
		place *= f.levels
	}
	return int16(shape*fullnesses + level(most, 1<<(weightBits-stepBits), fullnesses))
}

// level is the step of a dimension next to the largest of all dimensions: with four
// levels 3 above a half, 2 above a quarter, 1 above a sixteenth; with two 1 above a
// quarter. It adds up comparisons instead of branching on them, which nobody could predict.
func level(step, most uint64, levels int) int {
	quarter := above(4*step, most)
	if levels == 2 {
		return quarter
	}
	return above(2*step, most) + quarter + above(16*step, most)
}

// above is 1 when a > b, else 0.
func above(a, b uint64) int {
	n := 0
	if a > b {
		n = 1
	}
	return n
}

// levelSize is what a level stands for when a class is compared with a unit.
var levelSize = [2][4]int64{{0, 2, 6, 12}, {0, 1}}

// rank sorts the shapes for a unit: the most like it first, so that what stays
// behind can still be used together. Likeness is (level · unit)² ÷ level², the
// squared cosine; ties by number. O(shapes log shapes).
func (f *Field) rank(size []int64, order *[shapesMax]uint8) {
	type likeness struct{ dot2, norm uint64 }
	var like [shapesMax]likeness
	for shape := range f.shapes {
		order[shape] = uint8(shape)
	}
	if f.levels == 0 {
		return
	}
	sizes := &levelSize[0]
	if f.levels == 2 {
		sizes = &levelSize[1]
	}
	var unit [8]int64
	n := min(len(size), len(unit))
	for d, u := range size[:n] {
		unit[d] = (min(u, f.most(d))*f.weight[d] + 1<<stepBits - 1) >> stepBits
	}
	for shape := range f.shapes {
		var dot, norm int64
		rest := shape
		for _, u := range unit[:n] {
			l := sizes[rest%f.levels]
			rest /= f.levels
			dot += l * u
			norm += l * l
		}
		like[shape] = likeness{uint64(dot * dot), uint64(max(norm, 1))}
	}
	slices.SortFunc(order[:f.shapes], func(a, b uint8) int {
		x, y := like[a], like[b]
		// dot ≤ 12 × 4096 × 4 < 2¹⁸ and norm ≤ 4 × 144, so the products are exact.
		return cmp.Or(cmp.Compare(y.dot2*x.norm, x.dot2*y.norm), cmp.Compare(a, b))
	})
}

// most is the largest amount of a dimension that its weight is made for.
func (f *Field) most(d int) int64 {
	if f.weight[d] == 0 {
		return 0
	}
	return 1 << weightBits / f.weight[d]
}

// Unit is a unit size as a field sees it; good until the field's next Sync.
type Unit struct {
	size   []int64
	need   []int // dimensions in which size is not zero
	word   uint64
	weight int64
	never  bool // larger than any parcel
}

// Unit prepares a unit size.
func (f *Field) Unit(size []int64) Unit {
	u := Unit{size: size}
	var lane [vecpack.Lanes]int64
	for d, v := range size {
		if v == 0 {
			continue
		}
		u.need = append(u.need, d)
		if f.weight[d] == 0 || v > 1<<weightBits/f.weight[d] {
			u.never = true
			return u
		}
		u.weight += v * f.weight[d]
		if d < len(lane) {
			lane[d] = min(v>>f.shift[d], vecpack.LaneMax)
		}
	}
	u.word = vecpack.Pack(lane[:])
	return u
}

// fits tells whether an open parcel has room for a unit.
func (f *Field) fits(k cluster.ParcelID, u *Unit) bool {
	return vecpack.Covers(f.word[k], u.word) && (f.exact || f.roomFor(k, u))
}

func (f *Field) roomFor(k cluster.ParcelID, u *Unit) bool {
	room := f.room[int(k)*len(f.weight):]
	for _, d := range u.need {
		if room[d] < u.size[d] {
			return false
		}
	}
	return true
}

// Take takes a unit off an open parcel that it fits. O(1) when the words say all,
// O(dimensions) otherwise, O(log parcels) when balanced.
func (f *Field) Take(k cluster.ParcelID, u *Unit) {
	f.free[k] -= u.weight
	if f.exact {
		f.word[k] -= u.word
	}
	if f.room != nil {
		f.takeRoom(k, u)
	}
	c := int16(0)
	switch f.placement {
	case plan.BestFit:
		c = f.bestFit(k)
	case plan.Balanced:
		f.tree.update(f, k)
		return
	}
	if c != f.class[k] {
		f.enter(int32(k), c)
	}
}

// takeRoom takes a unit off the exact figures, and off the words that are not exact.
func (f *Field) takeRoom(k cluster.ParcelID, u *Unit) {
	dims := len(f.weight)
	room := f.room[int(k)*dims : (int(k)+1)*dims]
	for _, d := range u.need {
		room[d] -= u.size[d]
	}
	if f.exact {
		return
	}
	var lane [vecpack.Lanes]int64
	for d := range min(dims, len(lane)) {
		lane[d] = room[d] >> f.shift[d]
	}
	f.word[k] = vecpack.Pack(lane[:])
}

// Regain brings the field up to a parcel that gained room while granting. O(1), O(log parcels) when balanced.
func (f *Field) Regain(k cluster.ParcelID) {
	f.regained = append(f.regained, k)
	f.put(k)
	if f.placement == plan.Balanced {
		f.tree.update(f, k)
	}
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return append(s[:cap(s)], make([]T, n-cap(s))...)[:n]
	}
	return s[:n]
}
