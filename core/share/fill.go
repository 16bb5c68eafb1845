package share

import (
	"math/bits"
	"slices"
)

// Divider divides a total among siblings. It keeps scratch memory between calls;
// the zero value is ready. It is not safe for concurrent use.
type Divider struct {
	order  []int32
	member []int32
}

// FillByPriority divides total among siblings, those of the highest priority first;
// what they cannot use goes to the next (MD-14). Larger priorities are served first.
// Among equals it divides in proportion to ratio, none getting more than limit[i], what
// is left over being divided again, until nothing is left or all are at their limits
// (water-filling); a ratio of 0 gets nothing. The parts are whole; what rounding leaves
// goes one each to the first that had a fraction. The parts are written to out; what
// could not be given is returned. All slices have one entry per sibling and hold
// numbers ≥ 0 (priorities any). O(n log n).
func (v *Divider) FillByPriority(total int64, priority []int32, ratio, limit, out []int64) (left int64) {
	v.order = v.order[:0]
	for i := range ratio {
		v.order = append(v.order, int32(i))
	}
	slices.SortStableFunc(v.order, func(a, b int32) int {
		switch pa, pb := priority[a], priority[b]; {
		case pa > pb:
			return -1
		case pa < pb:
			return 1
		}
		return 0
	})
	clear(out)
	for from := 0; from < len(v.order) && total > 0; {
		to := from + 1
		for to < len(v.order) && priority[v.order[to]] == priority[v.order[from]] {
			to++
		}
		v.member = append(v.member[:0], v.order[from:to]...)
		total = v.fill(total, v.member, ratio, limit, out)
		from = to
	}
	return total
}

// fill is the water-filling among the members, whose order it changes.
// Members are sorted by the level limit ÷ ratio at which each is full; those below
// the common level total ÷ Σ ratio get their limit, the rest get their part.
func (v *Divider) fill(total int64, member []int32, ratio, limit, out []int64) int64 {
	n := 0
	var sum int64
	for _, i := range member {
		if ratio[i] > 0 && limit[i] > 0 {
			member[n], sum, n = i, Add(sum, ratio[i]), n+1
		}
	}
	member = member[:n]
	slices.SortFunc(member, func(a, b int32) int {
		switch {
		case Less(limit[a], ratio[a], limit[b], ratio[b]):
			return -1
		case Less(limit[b], ratio[b], limit[a], ratio[a]):
			return 1
		}
		return int(a - b)
	})
	for len(member) > 0 {
		i := member[0]
		if !reached(limit[i], sum, total, ratio[i]) {
			break
		}
		out[i] = limit[i]
		total, sum, member = total-limit[i], sum-ratio[i], member[1:]
	}
	if len(member) == 0 || total == 0 {
		return total
	}
	return spread(total, sum, member, ratio, out)
}

// reached tells whether limit × sum ≤ total × ratio: at the common level the limit is full.
func reached(limit, sum, total, ratio int64) bool {
	ah, al := bits.Mul64(uint64(limit), uint64(sum))
	bh, bl := bits.Mul64(uint64(total), uint64(ratio))
	return ah < bh || ah == bh && al <= bl
}

// spread gives each member ⌊total × ratio ÷ sum⌋ and what that leaves one each, in
// order of the siblings, to those who had a fraction (SLOT-24). No member passes its limit: each
// limit is above total × ratio ÷ sum. Returns 0.
func spread(total, sum int64, member []int32, ratio, out []int64) int64 {
	slices.Sort(member)
	left := total
	for _, i := range member {
		out[i] = Part(total, ratio[i], sum)
		left -= out[i]
	}
	for _, i := range member {
		if left == 0 {
			break
		}
		if hi, lo := bits.Mul64(uint64(total), uint64(ratio[i])); bits.Rem64(hi, lo, uint64(sum)) != 0 {
			out[i]++
			left--
		}
	}
	return 0
}
