package share

import "math/bits"

// LeftWhole is what Left gives when nothing has decayed.
const LeftWhole uint64 = 1 << leftBits

const leftBits = 62

// roots are ⌊2⁶⁴ × 2^(−2⁻ⁱ)⌋ for i from 1 on: what is left after a half, a quarter, an eighth … of a half-life.
var roots = [...]uint64{
	0xb504f333f9de6484, 0xd744fccad69d6af4, 0xeac0c6e7dd24392e, 0xf5257d152486cc2c,
	0xfa83b2db722a033a, 0xfd3e0c0cf486c174, 0xfe9e115c7b8f884b, 0xff4ecb59511ec8a5,
	0xffa756521c8daed1, 0xffd3a751c0f7e10b, 0xffe9d2b2f7db2755, 0xfff4e91bff1b8c3d,
	0xfffa747ea0040664, 0xfffd3a3b7814eb53, 0xfffe9d1cc60ddab1, 0xffff4e8e25879bfa,
	0xffffa7470363f451, 0xffffd3a37dda0313, 0xffffe9d1bdf703ae, 0xfffff4e8debe025e,
	0xfffffa746f4fa150, 0xfffffd3a37a3f8b0, 0xfffffe9d1bd1065a, 0xffffff4e8de845ad,
	0xffffffa746f41376, 0xffffffd3a37a05e3, 0xffffffe9d1bd01fb, 0xfffffff4e8de80c0,
	0xfffffffa746f4050, 0xfffffffd3a37a024, 0xfffffffe9d1bd011, 0xffffffff4e8de808,
	0xffffffffa746f404, 0xffffffffd3a37a02, 0xffffffffe9d1bd01, 0xfffffffff4e8de80,
	0xfffffffffa746f40, 0xfffffffffd3a37a0, 0xfffffffffe9d1bd0, 0xffffffffff4e8de8,
	0xffffffffffa746f4, 0xffffffffffd3a37a, 0xffffffffffe9d1bd, 0xfffffffffff4e8de,
	0xfffffffffffa746f, 0xfffffffffffd3a37, 0xfffffffffffe9d1b, 0xffffffffffff4e8d,
}

// Left is what a time leaves of 1 that halves in every half-life: 2^(−elapsed ÷ half), in 2⁻⁶² (D-164). The fraction of
// a half-life is rounded down to 2⁻⁴⁸; its bits are multiplied by, the largest first, each product rounded down. So it
// is the same on every machine. Elapsed is ≥ 0, half > 0.
func Left(elapsed, half int64) uint64 {
	halvings := elapsed / half
	if halvings >= leftBits {
		return 0
	}
	hi, lo := bits.Mul64(uint64(elapsed%half), 1<<len(roots))
	part, _ := bits.Div64(hi, lo, uint64(half))
	left := LeftWhole
	for i, root := range roots {
		if part>>(len(roots)-1-i)&1 == 1 {
			left, _ = bits.Mul64(left, root)
		}
	}
	return left >> halvings
}

// Decay is what a usage was, and since then another is, averaged: was × left + now × (1 − left), rounded down. Both are
// ≥ 0, and so the average is between them, or one 2⁻⁴⁸ less.
func Decay(was, now int64, left uint64) int64 {
	hi, lo := bits.Mul64(uint64(was), left)
	nowHi, nowLo := bits.Mul64(uint64(now), LeftWhole-left)
	lo, carry := bits.Add64(lo, nowLo, 0)
	return int64((hi+nowHi+carry)<<(64-leftBits) | lo>>leftBits)
}

// Lowered is by what a ratio counts of who used more than its fair part lately, in hundredths, to the nearest (D-165):
// base ÷ (base + weight × (used − fair)), at least a tenth. The weight is in thousandths. What is above the fair part
// by the slack or less counts as nothing.
func Lowered(used, fair, base, weightMilli int64) int64 {
	const whole, least = 100, 10
	if used-fair <= Slack {
		return whole
	}
	more, _ := Scale(used-fair, weightMilli, 1000)
	sum := uint64(Add(base, more))
	hi, lo := bits.Mul64(uint64(base), 2*whole)
	lo, carry := bits.Add64(lo, sum, 0)
	n, _ := bits.Div64(hi+carry, lo, 2*sum)
	return max(least, int64(n))
}
