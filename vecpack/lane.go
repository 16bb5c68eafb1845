package vecpack

import (
	"math"
	"math/bits"
)

// Lanes is how many amounts a packed word holds, LaneMax the largest of them: four
// of 15 bits, each with a spare bit above it.
const (
	Lanes   = 4
	LaneMax = 1<<15 - 1
)

// spare is the spare bits of a packed word.
const spare = 0x8000_8000_8000_8000

// Pack puts up to four amounts of 0 … LaneMax into a word. Packed amounts add and
// subtract as words as long as no lane leaves its range.
func Pack(amount []int64) uint64 {
	var w uint64
	for i, v := range amount {
		w |= uint64(v) << (16 * i)
	}
	return w
}

// Covers tells whether every lane of have is at least that of want: with the spare
// bits set, no lane borrows from the next, and a spare bit survives where have ≥ want.
func Covers(have, want uint64) bool { return ((have|spare)-want)&spare == spare }

// Most is the larger of two words in every lane.
func Most(a, b uint64) uint64 {
	of := ((a | spare) - b) & spare // where a ≥ b
	of -= of >> (16 - 1)
	return a&of | b&^of
}

// FirstCover is the first row ≥ from whose bit is set in mask and (where given) in also, and whose word covers want; -1
// when there is none. some, unless nil, is a bitset of the words of mask that are not empty. top covers, by word of
// mask, the words of all rows set there, and is lowered where none of them covered want. O(words of mask; with some
// those that are not empty + words of some), and rows where top covers want.
func FirstCover(mask, some, also, top []uint64, from int, word []uint64, want uint64) int {
	for w := nextWord(some, from>>6); w < len(mask); w = nextWord(some, w+1) {
		set := mask[w]
		if set == 0 || !Covers(top[w], want) {
			continue
		}
		if w == from>>6 {
			set &^= 1<<(uint(from)&63) - 1
		}
		if also != nil {
			set &= also[w]
		}
		if set == 0 {
			continue
		}
		if mask[w] == math.MaxUint64 {
			cover, most := coverBlock(word[w<<6:w<<6+64], want)
			if top[w] = most; cover&set != 0 {
				return w<<6 + bits.TrailingZeros64(cover&set)
			}
			continue
		}
		for ; set != 0; set &= set - 1 {
			if row := w<<6 + bits.TrailingZeros64(set); Covers(word[row], want) {
				return row
			}
		}
		most := uint64(0)
		for set := mask[w]; set != 0; set &= set - 1 {
			most = Most(most, word[w<<6+bits.TrailingZeros64(set)])
		}
		top[w] = most
	}
	return -1
}

// coverBlock is which of 64 words cover want, as bits, and the most of them in each lane.
func coverBlock(word []uint64, want uint64) (set, most uint64) {
	if hasAVX2 {
		return blockCovers(&word[:64][0], want)
	}
	return cover(word, want)
}

// cover is the definition of coverBlock.
func cover(word []uint64, want uint64) (set, most uint64) {
	for i, have := range word[:64] {
		if most = Most(most, have); Covers(have, want) {
			set |= 1 << i
		}
	}
	return set, most
}

// nextWord is the first word from w on that is not empty as some says; nil: any may not be.
func nextWord(some []uint64, w int) int {
	if some == nil {
		return w
	}
	for i := w >> 6; i < len(some); i++ {
		set := some[i]
		if i == w>>6 {
			set &^= 1<<(uint(w)&63) - 1
		}
		if set != 0 {
			return i<<6 + bits.TrailingZeros64(set)
		}
	}
	return math.MaxInt
}

// Within tells whether all bits of a bitset are set in another one of the same length.
func Within(set, in []uint64) bool {
	for i, w := range set {
		if w&^in[i] != 0 {
			return false
		}
	}
	return true
}

// EachBit calls f for the bits that are set.
func EachBit(set []uint64, f func(at int)) {
	for i, w := range set {
		for ; w != 0; w &= w - 1 {
			f(i<<6 + bits.TrailingZeros64(w))
		}
	}
}
