package room

import (
	"math/bits"

	"github.com/stintd/stint/vecpack"
)

// Gather appends the first rows of a set from one on that have room for a size and whose bit is set in mask (nil: any),
// until there are most of them. O(rows appended, blocks that may have room, and spans).
func (x *Index) Gather(dst []Row, s *Set, need *Need, from Row, mask []uint64, most int) []Row {
	if need.never || !s.May(need) {
		return dst
	}
	for b, end := int(from>>6), len(s.block); b < end && len(dst) < most; b++ {
		if b&63 == 0 || b == int(from>>6) {
			if !vecpack.Covers(s.span[b>>6], need.word) {
				b |= 63
				continue
			}
		}
		if !vecpack.Covers(s.block[b], need.word) {
			if b&63 == 63 {
				s.lower(b >> 6)
			}
			continue
		}
		var set uint64
		set, s.block[b] = vecpack.CoverRows(x.word[b<<6:b<<6+64], s.rows[b], need.word)
		if b == int(from>>6) {
			set &^= 1<<(uint(from)&63) - 1
		}
		if mask != nil {
			set &= mask[b]
		}
		for ; set != 0 && len(dst) < most; set &= set - 1 {
			if row := Row(b<<6 + bits.TrailingZeros64(set)); x.exact || x.exactly(row, need) {
				dst = append(dst, row)
			}
		}
	}
	return dst
}
