package vecpack

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawWord draws a word of four coordinates, small ones and the largest often.
func drawWord(t *rapid.T) uint64 {
	coordinate := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, CoordinateMax),
		rapid.Just(int64(CoordinateMax)))
	return Pack([]int64{coordinate.Draw(t, "x"), coordinate.Draw(t, "y"), coordinate.Draw(t, "z"),
		coordinate.Draw(t, "w")})
}

// TestKeysAreExact holds Keys against the words of its comment in big numbers.
func TestKeysAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words, n := rapid.IntRange(1, 4).Draw(t, "words"), rapid.IntRange(0, 40).Draw(t, "vectors")
		word := rapid.Custom(drawWord)
		want := rapid.SliceOfN(word, words, words).Draw(t, "direction")
		have := rapid.SliceOfN(word, n*words, n*words).Draw(t, "vectors")
		if rapid.Bool().Draw(t, "parallel") && n > 0 {
			copy(have, want)
		}
		got := make([]uint32, n)
		Keys(got, have, want)
		for i := range n {
			one := have[i*words:][:words]
			likeness, d, by := new(big.Int), big.NewInt(0), big.NewInt(0)
			short := int64(1<<TieBits - 1)
			var a, b int64
			var ab int64
			for at, w := range one {
				for lane := range Lanes {
					x, y := int64(w>>(16*lane)&0xffff), int64(want[at]>>(16*lane)&0xffff)
					a, b, ab, short = a+x*x, b+y*y, ab+x*y, short-x
				}
			}
			d.Mul(big.NewInt(ab), big.NewInt(ab)).Mul(d, big.NewInt(ScoreMax))
			if by.Mul(big.NewInt(a), big.NewInt(b)); by.Sign() > 0 {
				likeness.Div(d, by)
			}
			if key := likeness.Int64()<<TieBits | short; int64(got[i]) != key {
				t.Fatalf("key %d of %x in direction %x is %d, want %d", i, one, want, got[i], key)
			}
		}
	})
}

// TestThreshold holds Threshold against sorting.
func TestThreshold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]uint32{3, 1 << TieBits, maxKey}).Draw(t, "most")
		keys := rapid.SliceOfN(rapid.Uint32Range(0, most), 1, 200).Draw(t, "keys")
		n := rapid.IntRange(1, len(keys)).Draw(t, "n")
		least, ties := Threshold(keys, n)
		sorted := slices.Sorted(slices.Values(keys))
		slices.Reverse(sorted)
		above := 0
		for _, k := range keys {
			if k > least {
				above++
			}
		}
		if least != sorted[n-1] || ties != n-above {
			t.Fatalf("the %d largest of %v end at %d with %d, want %d with %d", n, keys, least, ties, sorted[n-1],
				n-above)
		}
	})
}

// BenchmarkKeys measures candidates scored, and selected, per second.
func BenchmarkKeys(b *testing.B) {
	have, dst := make([]uint64, 4096), make([]uint32, 4096)
	for i := range have {
		have[i] = uint64(i*2654435761) & 0x03ff_03ff_03ff_03ff
	}
	want := []uint64{Pack([]int64{100, 20, 300, 1})}
	b.Run("keys", func(b *testing.B) {
		b.SetBytes(int64(8 * len(have)))
		for b.Loop() {
			Keys(dst, have, want)
		}
	})
	b.Run("threshold", func(b *testing.B) {
		b.SetBytes(int64(4 * len(have)))
		for b.Loop() {
			Threshold(dst, len(dst)/8)
		}
	})
}
