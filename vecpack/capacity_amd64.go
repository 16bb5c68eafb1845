//go:build !purego

package vecpack

import "golang.org/x/sys/cpu"

var hasAVX2 = cpu.X86.HasAVX2

// foursMin is from how many rows on four are looked at together; exactMost has the bits of amounts that floats divide
// exactly, weightMost those of weights that a product goes by.
const (
	foursMin   = 16
	exactMost  = 1<<48 - 1
	weightMost = 1<<32 - 1
)

// capacityOfFours is Capacity where the machine can look at four rows at a time, and where amounts and weights are not
// too large for that: for a below 2⁴⁸ and b from 1, ⌊a × r⌋ in floats is ⌊a ÷ b⌋ where r is at least 1 ÷ b and no more
// than (1 + 2⁻⁵⁰) ÷ b. Then a × r, rounded or not, is no less than the quotient, and from the next whole number a ÷ b
// is at least 1 ÷ b away, which is more than it gains.
func capacityOfFours(column [][]int64, unit, weight []int64) (sum int64, ok bool) {
	if !hasAVX2 || len(column) == 0 || len(column[0]) < foursMin {
		return 0, false
	}
	var have [16]*int64
	var reciprocal [16]float64
	dims, rows := 0, len(column[0])&^3
	for d, u := range unit {
		if u > 0 {
			have[dims], reciprocal[dims] = &column[d][:rows][0], 1/float64(u)*(1+0x1p-51)
			dims++
		}
	}
	if dims == 0 {
		return 0, true
	}
	var any, anyWeight uint64
	if weight == nil {
		sum, any = sumLeast(&have[0], &reciprocal[0], dims, rows)
	} else {
		sum, any, anyWeight = sumLeastTimes(&have[0], &reciprocal[0], dims, rows, &weight[:rows][0])
	}
	if any > exactMost || anyWeight > weightMost {
		return 0, false
	}
	return sum + capacity(column, unit, weight, rows), true
}

// keysOfFours is Keys for as many vectors as four divides, where the machine can look at four at a time; it tells how
// many those are. Their quotients are those of whole numbers: a divisor is at most (4 × 1023²)² < 2⁴⁴, so that a
// quotient that is no whole number is at least 2⁻⁴⁴ away from the next one, and floats below 512 are closer than that.
func keysOfFours(dst []uint32, have []uint64, want uint64) int {
	rows := len(dst) &^ 3
	if !hasAVX2 || rows == 0 {
		return 0
	}
	length := []uint64{want}
	keyLoop(&dst[0], &have[:rows][0], rows, want, float64(dot(length, length)))
	return rows
}
