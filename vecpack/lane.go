package vecpack

import "math/bits"

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
