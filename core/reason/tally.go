package reason

import (
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/room"
	"github.com/stintd/stint/core/view"
)

// tallies count, of what consumers and all below them own, the parcels that have less than each size, and add up what is
// free there, as those see it who draw on it through pools of one depth. A tally is made when it is asked for first, and
// then kept from cycle to cycle by the rooms that change.
type tallies struct {
	size  [][]int64 // by dimension: the sizes of units that are short, or were, ascending
	count int       // tallies that there are
	at    map[place][]*tally
}

// tally is what is counted of the parcels of a place, on open hosts that a requirement selects, within a grace.
type tally struct {
	need  *plan.Requirement
	us    int64
	mask  []uint64 // by row; nil: all open ones
	rows  int
	below [][]int // by dimension, then size: rows that have less
	free  []total // by dimension: of all rows; less than nothing counts as nothing
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

// covers tells whether a total is an amount or more.
func (t total) covers(v int64) bool { return t.hi > 0 || t.lo >= uint64(v) }

// talliesMost is how many tallies are kept at most.
const talliesMost = 1 << 12

// reset forgets all tallies.
func (v *tallies) reset() {
	v.count, v.at = 0, map[place][]*tally{}
}

// know takes in the sizes of units; tallies that do not count one of them are forgotten.
func (v *tallies) know(dims int, shapes [][]int64) {
	if len(v.size) != dims {
		v.size = make([][]int64, dims)
	}
	fresh := v.at == nil
	for _, size := range shapes {
		for d, amount := range size {
			if at, ok := slices.BinarySearch(v.size[d], amount); amount > 0 && !ok {
				v.size[d] = slices.Insert(v.size[d], at, amount)
				fresh = true
			}
		}
	}
	if fresh {
		v.reset()
	}
}

// placeOf is where a size stands among those of a dimension.
func (v *tallies) placeOf(d int, size int64) int {
	at, _ := slices.BinarySearch(v.size[d], size)
	return at
}

// of is the tally of the rows from … to-1, which are those of a place. O(rows × dimensions) for the first time.
func (v *tallies) of(l *level, at place, from, to view.Row, need *plan.Requirement, us int64, mask []uint64) *tally {
	for _, t := range v.at[at] {
		if t.need == need && t.us == us {
			return t
		}
	}
	if v.count == talliesMost {
		v.reset()
	}
	t := &tally{need: need, us: us, mask: mask, below: make([][]int, len(v.size)), free: make([]total, len(v.size))}
	for d := range v.size {
		t.below[d] = make([]int, len(v.size[d])+1)
	}
	for row := room.Row(from); row < room.Row(to); row++ {
		if l.set.Has(row) && has(mask, row) {
			t.rows++
			for d, amount := range l.index.Free(row) {
				t.below[d][v.more(d, amount)]++
				t.free[d].add(max(0, amount))
			}
		}
	}
	for d := range v.size {
		for i := 1; i < len(t.below[d]); i++ {
			t.below[d][i] += t.below[d][i-1]
		}
	}
	v.count++
	v.at[at] = append(v.at[at], t)
	return t
}

// more is the place of the first size that is more than an amount.
func (v *tallies) more(d int, amount int64) int {
	at, _ := slices.BinarySearch(v.size[d], amount+1)
	return at
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
			for i := v.more(d, is[d]); i < v.more(d, was[d]); i++ {
				t.below[d][i]++
			}
			for i := v.more(d, was[d]); i < v.more(d, is[d]); i++ {
				t.below[d][i]--
			}
		}
	}
}

// has tells whether a row is in a bitset, where nil has all.
func has(mask []uint64, row room.Row) bool { return mask == nil || mask[row>>6]>>(uint(row)&63)&1 == 1 }
