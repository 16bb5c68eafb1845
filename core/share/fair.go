package share

import "math/bits"

// This file has the arithmetic of fair reclaim by usage quotas (MD-17).

// Slack is by how much shares may differ and still count as equal, where distances from quotas are compared: 2⁻³² of a
// pool. Usages and quotas lose up to one 2⁻⁴⁸ for each leaf and unit size to rounding, and rounding must decide no tie.
const Slack = 1 << 16

// Squares is by how much a move lowers the sum of the squares of distances from quotas (MD-17), exactly. The zero value
// is a move of nothing.
type Squares struct {
	hi int64
	lo uint64
}

// Add counts a leaf that comes nearer to its quota by moved ≥ 0, or passes it: moved × (2 × distance − moved), as the
// square of the distance was distance² and is (distance − moved)². Of a leaf that goes farther the distance is below 0.
func (s *Squares) Add(distance, moved int64) {
	by := 2*distance - moved // shares are a few times One at most
	abs := uint64(max(by, -by))
	hi, lo := bits.Mul64(abs, uint64(moved))
	carry := uint64(0)
	if by < 0 {
		s.lo, carry = bits.Sub64(s.lo, lo, 0)
		s.hi -= int64(hi + carry)
		return
	}
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.hi += int64(hi + carry)
}

// Lower tells whether the sum is lower after the move.
func (s *Squares) Lower() bool { return s.hi > 0 || s.hi == 0 && s.lo > 0 }

// Band is how far a leaf must be from its quota before its unit moves: by the unit's usage, and by so many thousandths
// of the quota (fair_band).
func Band(quota, unit, milli int64) int64 {
	part, _ := Scale(quota, milli, 1000)
	return max(unit, part)
}
