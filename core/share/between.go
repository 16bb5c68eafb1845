package share

import (
	"math"
	"math/big"
	"math/bits"
)

// Scale is ⌊a × b ÷ c⌋ for numbers ≥ 0 and whether something was cut off; it saturates at the
// largest int64, and is 0 when c is 0.
func Scale(a, b, c int64) (v int64, cut bool) {
	if c == 0 {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64, false
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, math.MaxInt64)), r != 0
}

// Between divides a total among siblings in proportion to weights, none below its floor or above its limit
// (nil: no limit), exactly: with the one λ for which the parts max(floor, min(limit, λ × weight)) add
// up to the total. The parts are rounded as SLOT-24 says: down, then one each, in order, to those who had a
// fraction. The caller sees to Σ floor ≤ total ≤ Σ limit. Weights are ≥ 0 and of any size. O(n²) at worst,
// O(n) when few floors and limits bind.
func Between(total int64, weight []*big.Int, floor, limit, out []int64) {
	active := make([]int, 0, len(weight))
	for i := range weight {
		active = append(active, i)
	}
	left := total
	var sum, n big.Int
	for {
		sum.SetInt64(0)
		for _, i := range active {
			sum.Add(&sum, weight[i])
		}
		n.SetInt64(max(0, left))
		kept := bound(active, &n, &sum, weight, floor, limit, out)
		if len(kept) == len(active) {
			break
		}
		left = total
		active = kept
		in := make([]bool, len(weight))
		for _, i := range active {
			in[i] = true
		}
		for i := range weight {
			if !in[i] {
				left -= out[i]
			}
		}
	}
	roundOff(left, active, &n, &sum, weight, out)
}

// bound takes those out of the active whose floor or limit binds at λ = n ÷ sum, the side that weighs
// more, and sets their parts. It returns who is left.
func bound(active []int, n, sum *big.Int, weight []*big.Int, floor, limit, out []int64) (kept []int) {
	var below, above, part, at big.Int
	side := func(i int) int {
		part.Mul(n, weight[i]) // part ÷ sum is what it would get
		if at.Mul(at.SetInt64(floor[i]), sum); part.Cmp(&at) < 0 {
			return -1
		}
		if limit != nil {
			if at.Mul(at.SetInt64(limit[i]), sum); part.Cmp(&at) > 0 {
				return 1
			}
		}
		return 0
	}
	for _, i := range active {
		switch side(i) {
		case -1:
			below.Add(&below, at.Sub(&at, &part))
		case 1:
			above.Add(&above, part.Sub(&part, &at))
		}
	}
	order := below.Cmp(&above)
	for _, i := range active {
		switch s := side(i); {
		case s < 0 && order >= 0:
			out[i] = floor[i]
		case s > 0 && order <= 0:
			out[i] = limit[i]
		default:
			kept = append(kept, i)
		}
	}
	return kept
}

// roundOff gives the active ⌊n × weight ÷ sum⌋ and what is then left of so much one each, in order,
// to those who had a fraction.
func roundOff(left int64, active []int, n, sum *big.Int, weight []*big.Int, out []int64) {
	fraction := make([]bool, len(active))
	var q, r big.Int
	for k, i := range active {
		out[i] = 0
		if sum.Sign() > 0 {
			q.QuoRem(q.Mul(n, weight[i]), sum, &r)
			out[i], fraction[k] = q.Int64(), r.Sign() != 0
		}
		left -= out[i]
	}
	for k, i := range active {
		if left > 0 && fraction[k] {
			out[i]++
			left--
		}
	}
}
