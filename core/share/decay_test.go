package share

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestRoots computes the roots again, by square roots of whole numbers of 320 bits.
func TestRoots(t *testing.T) {
	const wide = 320
	root := new(big.Int).Lsh(big.NewInt(1), wide-1) // a half
	for i, got := range roots {
		root.Sqrt(root.Lsh(root, wide))
		if want := new(big.Int).Rsh(root, wide-64); want.Uint64() != got {
			t.Errorf("root %d is %#x, want %#x", i+1, got, want)
		}
	}
}

// TestLeft compares with the exponential function, which is not exact itself.
func TestLeft(t *testing.T) {
	const day = 24 * 3600 * 1_000_000
	for _, c := range []struct {
		elapsed, half int64
		want          float64
	}{
		{0, day, 1}, {day, day, 0.5}, {2 * day, day, 0.25}, {day / 2, day, math.Sqrt2 / 2},
		{61 * day, day, math.Exp2(-61)}, {62 * day, day, 0},
		{1, 365 * day, 1}, {1 << 53, 60_000_000, 0},
	} {
		if got := float64(Left(c.elapsed, c.half)) / float64(LeftWhole); math.Abs(got-c.want) > 1e-13 {
			t.Errorf("after %d of %d: %v, want %v", c.elapsed, c.half, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		half := rapid.Int64Range(60_000_000, 365*day).Draw(t, "half")
		a, b := rapid.Int64Range(0, 3*half).Draw(t, "a"), rapid.Int64Range(0, 3*half).Draw(t, "b")
		left := Left(a, half)
		if want := math.Exp2(-float64(a) / float64(half)); math.Abs(float64(left)/float64(LeftWhole)-want) > 1e-13 {
			t.Fatalf("after %d of %d: %v, want %v", a, half, left, want)
		}
		if a < b && Left(b, half) > left {
			t.Fatal("more is left after a longer time")
		}
	})
}

// TestDecay holds averages against whole numbers without bound, and between what they are averages of.
func TestDecay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was, now := rapid.Int64Range(0, math.MaxInt64).Draw(t, "was"), rapid.Int64Range(0, math.MaxInt64).Draw(t, "now")
		left := rapid.Uint64Range(0, LeftWhole).Draw(t, "left")
		a := new(big.Int).Mul(big.NewInt(was), new(big.Int).SetUint64(left))
		b := new(big.Int).Mul(big.NewInt(now), new(big.Int).SetUint64(LeftWhole-left))
		want := a.Rsh(a.Add(a, b), 62).Int64()
		if got := Decay(was, now, left); got != want {
			t.Fatalf("%d, then %d, with %d left: %d, want %d", was, now, left, got, want)
		}
	})
}

func TestLowered(t *testing.T) {
	for _, c := range []struct {
		used, fair, base float64 // of the pool
		weight, want     int64
	}{
		{0.5, 0.25, 0.5, 1000, 67}, {0.5, 0.25, 0.5, 2000, 50}, {0.5, 0.25, 0.5, 10000, 17}, {0.7, 0.5, 0.5, 1000, 71},
		{0.5, 0.5, 0.5, 1000, 100},
		{0.4, 0.5, 0.5, 1000, 100}, {1, 0, 0, 1000, 10}, {1, 0.05, 0.05, 1000, 10}, {0.1, 0, 0.5, 1, 100},
	} {
		part := func(f float64) int64 { return int64(f * float64(One)) }
		if got := Lowered(part(c.used), part(c.fair), part(c.base), c.weight); got != c.want {
			t.Errorf("%v used of %v, by %v: %d, want %d", c.used, c.fair, c.base, got, c.want)
		}
	}
	if got := Lowered(Slack+5, 5, 0, 10000); got != 100 {
		t.Errorf("the slack counts: %d", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		used := rapid.Int64Range(0, math.MaxInt64).Draw(t, "used")
		fair := rapid.Int64Range(0, math.MaxInt64).Draw(t, "fair")
		base := rapid.Int64Range(fair, math.MaxInt64).Draw(t, "base")
		weight := rapid.Int64Range(1, 10000).Draw(t, "weight")
		if got := Lowered(used, fair, base, weight); got < 10 || got > 100 || used <= fair && got != 100 {
			t.Fatal(got)
		}
	})
}
