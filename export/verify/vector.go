package verify

import (
	"math/bits"
	"slices"
)

// plus adds b, so many times, to a.
func plus(a, b []int64, times int64) []int64 {
	for d := range a {
		a[d] += b[d] * times
	}
	return a
}

// least is the lesser of two vectors, dimension by dimension.
func least(a, b []int64) []int64 {
	v := slices.Clone(a)
	for d := range v {
		v[d] = min(v[d], b[d])
	}
	return v
}

// zero tells whether a vector is nothing in every dimension.
func zero(v []int64) bool { return !slices.ContainsFunc(v, func(n int64) bool { return n != 0 }) }

// fraction is a/b, 0 when b is.
type fraction struct{ a, b int64 }

// larger is the larger of f and a/b, b being more than 0.
func (f fraction) larger(a, b int64) fraction {
	x, xl := bits.Mul64(uint64(a), uint64(f.b))
	y, yl := bits.Mul64(uint64(f.a), uint64(b))
	if f.b == 0 || x > y || x == y && xl > yl {
		return fraction{a, b}
	}
	return f
}

// of is so much of n, rounded down.
func (f fraction) of(n int64) int64 {
	if f.b == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(f.a))
	q, _ := bits.Div64(hi, lo, uint64(f.b))
	return int64(q)
}

// along completes what is taken in named dimensions of a whole: the others go along by the largest named fraction
// (MD-1).
func along(whole, taken []int64, named func(d int) bool) {
	var f fraction
	for d, n := range whole {
		if named(d) && n > 0 {
			f = f.larger(taken[d], n)
		}
	}
	for d, n := range whole {
		if !named(d) {
			taken[d] = f.of(n)
		}
	}
}
