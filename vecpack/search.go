package vecpack

import "math/bits"

// FirstWord is the first word from one on that covers want, -1 when there is none. O(words).
func FirstWord(word []uint64, from int, want uint64) int {
	for i := from; i < len(word); i++ {
		if Covers(word[i], want) {
			return i
		}
	}
	return -1
}

// MostOf is the most of some words in each lane.
func MostOf(word []uint64) (most uint64) {
	for _, w := range word {
		most = Most(most, w)
	}
	return most
}

// CoverRows tells which rows of a block of 64, of those whose bits are set, cover want, and the most of them in each
// lane.
func CoverRows(word []uint64, rows, want uint64) (set, most uint64) {
	if rows == ^uint64(0) {
		return coverBlock(word, want)
	}
	for ; rows != 0; rows &= rows - 1 {
		i := bits.TrailingZeros64(rows)
		if most = Most(most, word[i]); Covers(word[i], want) {
			set |= 1 << i
		}
	}
	return set, most
}
