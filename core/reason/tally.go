package reason

import (
	"math"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/room"
	"github.com/stintd/stint/core/view"
)

// tallies count, of what consumers and all below them own, the parcels that have less than each size, and add up what
// is free there, as those see it who draw on it through pools of one depth. A tally is made when it is asked for first,
// and then kept from cycle to cycle by the rooms that change.
type tallies struct {
	size []sizes // by dimension: of units that are short, or may be
	kept int     // numbers in all tallies
	at   map[place][]*tally
}

// sizes are the sizes of units in one dimension, ascending.
type sizes struct {
	size  []int64
	shift uint
	// by amount, without its last bits: the place of the first size that is more than the least such amount
	start []int32
}

// tally is what is counted of the parcels of a place, on open hosts that a requirement selects, within a grace.
type tally struct {
	need  *plan.Requirement
	us    int64
	mask  []uint64 // by row; nil: all open ones
	rows  int
	set   rowSet
	below [][]int32 // by dimension, then size: rows that have less
	free  []total   // by dimension: of all rows; less than nothing counts as nothing
}

// place is a range of rows in a level: what the consumer and all below it own.
type place struct {
	depth int32
	node  plan.Node
}

// total is a sum of amounts, which may be more than an int64 holds.
type total struct{ hi, lo uint64 }

// add adds an amount.
func (t *total) add(v int64) {
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, uint64(v), 0)
	t.hi += carry
}

// sub takes an amount off.
func (t *total) sub(v int64) { t.less(total{0, uint64(v)}) }

// plus adds a total.
func (t *total) plus(o total) {
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, o.lo, 0)
	t.hi += o.hi + carry
}

// less takes a total off.
func (t *total) less(o total) {
	var borrow uint64
	t.lo, borrow = bits.Sub64(t.lo, o.lo, 0)
	t.hi -= o.hi + borrow
}

// carries is how many times a total has an amount above 0, at most the largest int64.
func (t total) carries(v int64) int64 {
	if t.hi >= uint64(v) {
		return math.MaxInt64
	}
	n, _ := bits.Div64(t.hi, t.lo, uint64(v))
	return int64(min(n, math.MaxInt64))
}

// numbersMost is how many numbers are kept in all tallies at most.
const numbersMost = 1 << 23

// shapesMost is of how many unit sizes of a state all are counted, whether units of them are short or not.
const shapesMost = 1 << 10

// reset forgets all tallies.
func (v *tallies) reset() {
	v.kept, v.at = 0, map[place][]*tally{}
}

// know takes in the sizes of units that are short; where one of them is not known all tallies are forgotten, and sizes
// taken in of which units may be short next.
func (v *tallies) know(s *cluster.State, dims int, asks []ask) {
	missing := v.at == nil || len(v.size) != dims
	for i := range asks {
		for d, amount := range asks[i].size {
			missing = missing || amount > 0 && !v.size[d].has(amount)
		}
	}
	if !missing {
		return
	}
	v.size = make([]sizes, dims)
	for i := range asks {
		v.take(asks[i].size)
	}
	for shape := range cluster.ShapeID(s.Shape.Len()) {
		if s.Shape.Len() <= shapesMost {
			v.take(s.Shape.Size(shape))
		}
	}
	for d := range v.size {
		v.size[d].index()
	}
	v.reset()
}

// take takes in a size.
func (v *tallies) take(size []int64) {
	for d := range v.size {
		if size[d] > 0 {
			v.size[d].size = append(v.size[d].size, size[d])
		}
	}
}

// index sorts the sizes and makes them searchable.
func (z *sizes) index() {
	slices.Sort(z.size)
	z.size = slices.Compact(z.size)
	const places = 1 << 10
	for len(z.size) > 0 && z.size[len(z.size)-1]>>z.shift >= places {
		z.shift++
	}
	at := int32(0)
	for i := range int64(places) {
		for int(at) < len(z.size) && z.size[at] <= i<<z.shift {
			at++
		}
		z.start = append(z.start, at)
	}
}

// has tells whether a size is there.
func (z *sizes) has(size int64) bool {
	_, ok := slices.BinarySearch(z.size, size)
	return ok
}

// more is the place of the first size that is more than an amount; behind all where none is.
func (z *sizes) more(amount int64) int32 {
	if amount < 0 {
		return 0
	}
	n := int32(len(z.size))
	if amount>>z.shift >= int64(len(z.start)) {
		return n
	}
	at := z.start[amount>>z.shift]
	for at < n && z.size[at] <= amount {
		at++
	}
	return at
}

// placeOf is where a size stands among those of a dimension.
func (v *tallies) placeOf(d int, size int64) int {
	at, _ := slices.BinarySearch(v.size[d].size, size)
	return at
}

// of is the tally of the rows from … to-1, which are those of a place. O(rows × dimensions) for the first time.
func (v *tallies) of(l *level, at place, from, to view.Row, need *plan.Requirement, us int64, mask []uint64) *tally {
	for _, t := range v.at[at] {
		if t.need == need && t.us == us {
			return t
		}
	}
	if v.kept > numbersMost {
		v.reset()
	}
	t := &tally{need: need, us: us, mask: mask, below: make([][]int32, len(v.size)), free: make([]total, len(v.size))}
	for d := range v.size {
		t.below[d] = make([]int32, len(v.size[d].size)+1)
		v.kept += len(t.below[d])
	}
	for row := room.Row(from); row < room.Row(to); row++ {
		if l.set.Has(row) && has(mask, row) {
			t.rows++
			t.set += rowAt(at.depth, row)
			for d, amount := range l.index.Free(row)[:len(v.size)] {
				t.below[d][v.size[d].more(amount)]++
				t.free[d].add(max(0, amount))
			}
		}
	}
	for d := range v.size {
		for i := 1; i < len(t.below[d]); i++ {
			t.below[d][i] += t.below[d][i-1]
		}
	}
	v.at[at] = append(v.at[at], t)
	return t
}

// move brings the tallies of a place up to the room of a row that is another.
func (v *tallies) move(at place, row room.Row, was, is []int64) {
	for _, t := range v.at[at] {
		if !has(t.mask, row) {
			continue
		}
		for d := range is {
			t.free[d].sub(max(0, was[d]))
			t.free[d].add(max(0, is[d]))
			from, to := v.size[d].more(was[d]), v.size[d].more(is[d])
			for i := to; i < from; i++ { // sizes that the row had room for
				t.below[d][i]++
			}
			for i := from; i < to; i++ {
				t.below[d][i]--
			}
		}
	}
}

// has tells whether a row is in a bitset, where nil has all.
func has(mask []uint64, row room.Row) bool { return mask == nil || mask[row>>6]>>(uint(row)&63)&1 == 1 }
