// Package vecpack holds stint's inner loops: kernels on flat slices and bitset words that know nothing of clusters.
// Portable Go is the definition of each; where assembly is its twin, the tag purego turns it off.
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
