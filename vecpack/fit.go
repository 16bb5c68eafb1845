// Package vecpack holds stint's inner loops: kernels on flat slices and bitset
// words that know nothing of clusters. Portable Go is the definition of each; where assembly is its twin, the tag purego turns it off.
package vecpack

import "math/bits"

// Reciprocal divides by a fixed divisor with a multiplication. Exact for
// dividends from 0 to 2⁶³-1.
type Reciprocal struct {
	mul     uint64
	divisor uint64
}

// NewReciprocal prepares division by d > 0.
func NewReciprocal(d int64) Reciprocal {
	return Reciprocal{^uint64(0) / uint64(d), uint64(d)}
}

// Div is ⌊n ÷ divisor⌋ for n ≥ 0. The product with ⌊(2⁶⁴-1) ÷ divisor⌋ is at most
// one too small, which the remainder tells.
func (r Reciprocal) Div(n int64) int64 {
	q, _ := bits.Mul64(uint64(n), r.mul)
	if uint64(n)-q*r.divisor >= r.divisor {
		q++
	}
	return int64(q)
}

//go:generate go -C _asm run main.go -out ../kernel_amd64.s -stubs ../stub_amd64.go -pkg vecpack

// Capacity is the sum over all rows of how many units fit the row, each times
// weight[row] (nil: once): the least over dimensions with unit > 0 of
// ⌊column[d][row] ÷ unit[d]⌋, and 0 for a unit that is zero in all dimensions.
// Columns hold numbers ≥ 0; the sum wraps beyond 2⁶³, which rows of at most 2⁵³
// units reach after a thousand. O(rows × dimensions), no allocation.
func Capacity(column [][]int64, unit []int64, weight []int64) int64 {
	if sum, ok := capacityOfFours(column, unit, weight); ok {
		return sum
	}
	return capacity(column, unit, weight, 0)
}

// capacity is the definition of Capacity, of the rows from one on.
func capacity(column [][]int64, unit []int64, weight []int64, from int) int64 {
	first := -1
	var rest [16]struct {
		by Reciprocal
		d  int
	}
	var by Reciprocal
	n := 0
	for d, u := range unit {
		switch {
		case u <= 0:
		case first < 0:
			first, by = d, NewReciprocal(u)
		default:
			rest[n].by, rest[n].d = NewReciprocal(u), d
			n++
		}
	}
	if first < 0 {
		return 0
	}
	var sum int64
	for row := from; row < len(column[first]); row++ {
		least := by.Div(column[first][row])
		for i := 0; i < n && least > 0; i++ {
			least = min(least, rest[i].by.Div(column[rest[i].d][row]))
		}
		if weight != nil {
			least *= weight[row]
		}
		sum += least
	}
	return sum
}

// FirstAtLeast is the first row ≥ from whose bit is set in mask and (where given)
// in also, and that has at least unit[d] in every column d; -1 when there is none.
// need lists the dimensions in which unit is not zero.
func FirstAtLeast(mask, also []uint64, from int, column [][]int64, unit []int64, need []int) int {
	w := from >> 6
	if w >= len(mask) {
		return -1
	}
	word := mask[w] &^ (1<<(uint(from)&63) - 1)
	for {
		if also != nil {
			word &= also[w]
		}
	rows:
		for word != 0 {
			row := w<<6 + bits.TrailingZeros64(word)
			word &= word - 1
			for _, d := range need {
				if column[d][row] < unit[d] {
					continue rows
				}
			}
			return row
		}
		if w++; w == len(mask) {
			return -1
		}
		word = mask[w]
	}
}

// Below sets in below the bits of the rows of mask that hold less than need in column, and clears all others.
func Below(below, mask []uint64, column []int64, need int64) {
	for w, word := range mask {
		if word == 0 {
			below[w] = 0
			continue
		}
		rows, set := column[w<<6:min(len(column), w<<6+64)], uint64(0)
		for i, v := range rows {
			set |= uint64(v-need) >> 63 << i // the sign of a difference that cannot overflow: need is at least 0
		}
		below[w] = set & word
	}
}

// CountBelow is how many rows with their bit set in mask hold less than need in column.
func CountBelow(mask []uint64, column []int64, need int64) int {
	n := 0
	for w, word := range mask {
		for ; word != 0; word &= word - 1 {
			if column[w<<6+bits.TrailingZeros64(word)] < need {
				n++
			}
		}
	}
	return n
}
