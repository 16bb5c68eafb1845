package vecpack

import "math/bits"

// Coordinates are whole numbers from 0 to CoordinateMax, four to a word, in lanes as of Pack.
const (
	CoordinateMax = 1<<10 - 1
	ScoreMax      = 512
	// TieBits is how many low bits of a key of Keys break ties between equal scores.
	TieBits = 14
)

// Keys writes to dst how alike vectors are to one direction, a vector of coordinates in words of four each: the words
// of vector i are have[i×words … (i+1)×words-1] with words = len(want). The likeness is the squared cosine in parts of
// ScoreMax, ⌊ScoreMax × (have·want)² ÷ (have² × want²)⌋, 0 where the divisor is 0. A key is the likeness and, in the
// TieBits low bits, how much the sum of the vector's coordinates falls short of the largest: of two vectors of one
// likeness the shorter one has the larger key. At most four words, so that no product leaves 64 bits.
func Keys(dst []uint32, have, want []uint64) {
	from := 0
	if len(want) == 1 {
		from = keysOfFours(dst, have, want[0])
	}
	keys(dst, have, want, from)
}

// keys is the definition of Keys, of the vectors from one on.
func keys(dst []uint32, have, want []uint64, from int) {
	length := dot(want, want)
	for i := from; i < len(dst); i++ {
		one := have[i*len(want):][:len(want)]
		likeness, by := uint64(0), dot(one, one)*length
		if by > 0 {
			d := dot(one, want)
			likeness = ScoreMax * d * d / by
		}
		short := uint64(1<<TieBits - 1)
		for _, w := range one {
			short -= sumOfLanes(w)
		}
		dst[i] = uint32(likeness<<TieBits | short)
	}
}

// dot is the sum of the products of the lanes of two vectors.
func dot(a, b []uint64) (sum uint64) {
	for i, x := range a {
		y := b[i]
		sum += x&0xffff*(y&0xffff) + x>>16&0xffff*(y>>16&0xffff) + x>>32&0xffff*(y>>32&0xffff) + x>>48*(y>>48)
	}
	return sum
}

// sumOfLanes is the sum of four coordinates.
func sumOfLanes(w uint64) uint64 { return w * 0x0001_0001_0001_0001 >> 48 }

// Threshold is the n-th largest of some keys, for 0 < n ≤ len(keys), and how many of those equal to it belong to the n
// largest. It counts keys by their highest bits, then those of the place by the next. O(keys), no allocation.
func Threshold(key []uint32, n int) (least uint32, ties int) {
	var count [1 << digit]int32
	prefix, mask := uint32(0), uint32(0)
	for shift := 32 - bits.LeadingZeros32(maxKey); shift > 0; {
		shift = max(0, shift-digit)
		clear(count[:])
		for _, k := range key {
			if k&mask == prefix {
				count[k>>shift&(1<<digit-1)]++
			}
		}
		at := len(count) - 1
		for ; n > int(count[at]); at-- {
			n -= int(count[at])
		}
		prefix |= uint32(at) << shift
		mask |= (1<<digit - 1) << shift
	}
	return prefix, n
}

// digit is how many bits Threshold looks at in one pass, maxKey the largest key.
const (
	digit  = 8
	maxKey = ScoreMax<<TieBits | 1<<TieBits - 1
)
