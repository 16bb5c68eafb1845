// Package share is the arithmetic of dividing: fixed-point shares, comparison of
// usage ÷ ratio, water-filling by priority, ratio and cap. Numbers in, numbers
// out; it knows no consumer and no host. Everything is exact integer arithmetic,
// so results are the same on every machine (INV-8).
package share

import (
	"math"
	"math/bits"
)

// One is the share 1.0: shares are whole numbers of 2⁻⁴⁸ (docs/decisions.md, D-5).
const One int64 = 1 << 48

// Add is a + b for amounts and shares ≥ 0; it saturates at the largest int64 (SPEC chapter 7).
func Add(a, b int64) int64 {
	if s := a + b; s >= a {
		return s
	}
	return math.MaxInt64
}

// Mul is a × b for amounts ≥ 0; it saturates at the largest int64.
func Mul(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// Fraction is ⌊units × 2⁴⁸ ÷ max(capacity, units)⌋, 0 for no units (MD-12).
func Fraction(units, capacity int64) int64 {
	if units >= capacity {
		if units <= 0 {
			return 0
		}
		return One
	}
	hi, lo := bits.Mul64(uint64(units), uint64(One))
	q, _ := bits.Div64(hi, lo, uint64(capacity)) // units < capacity, so hi < capacity
	return int64(q)
}

// Demand is min(1, units ÷ capacity), rounded up, 0 when capacity is 0 (MD-13).
func Demand(units, capacity int64) int64 {
	if capacity <= 0 || units <= 0 {
		return 0
	}
	if units >= capacity {
		return One
	}
	hi, lo := bits.Mul64(uint64(units), uint64(One))
	q, r := bits.Div64(hi, lo, uint64(capacity))
	if r > 0 {
		q++
	}
	return int64(q)
}

// Less tells whether a÷ratioA < b÷ratioB, by 128-bit cross products. Ratios are > 0.
func Less(a, ratioA, b, ratioB int64) bool {
	if ratioA == ratioB {
		return a < b
	}
	ah, al := bits.Mul64(uint64(a), uint64(ratioB))
	bh, bl := bits.Mul64(uint64(b), uint64(ratioA))
	return ah < bh || ah == bh && al < bl
}

// Float is a share as the number that people read.
func Float(s int64) float64 { return float64(s) / float64(One) }

// Part is ⌊total × ratio ÷ sum⌋ for 0 ≤ ratio ≤ sum and sum > 0.
func Part(total, ratio, sum int64) int64 {
	hi, lo := bits.Mul64(uint64(total), uint64(ratio))
	q, _ := bits.Div64(hi, lo, uint64(sum))
	return int64(q)
}
