package share

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestSquares compares sums of some moves with the squares themselves, in whole numbers without bound.
func TestSquares(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 10_000 {
		var sum Squares
		want := new(big.Int)
		for range 1 + r.IntN(4) {
			moved := r.Int64N(One >> r.IntN(40))
			distance := r.Int64N(2*One) - One
			if n%3 == 0 {
				distance = moved/2 + int64(r.IntN(3)) - 1 // nearly a tie
			}
			sum.Add(distance, moved)
			before, after := big.NewInt(distance), big.NewInt(distance-moved)
			want.Add(want, before.Mul(before, before)).Sub(want, after.Mul(after, after))
		}
		if sum.Lower() != (want.Sign() > 0) {
			t.Fatalf("case %d: lower %v, but the sum changes by %v", n, sum.Lower(), want)
		}
	}
}

// TestTie swaps units of equal size between who is below and who is above: it is worth it only when both together are
// farther from their quotas than one unit.
func TestTie(t *testing.T) {
	unit := One / 11
	for _, c := range []struct {
		deficit, surplus int64
		want             bool
	}{
		{unit * 2 / 3, unit / 3, false}, {unit*2/3 + 1, unit / 3, false}, {unit, unit, true}, {unit, 0, false},
		{2 * unit, Slack, true},
	} {
		var sum Squares
		sum.Add(c.deficit-Slack, unit)
		sum.Add(c.surplus-Slack, unit)
		if sum.Lower() != c.want {
			t.Errorf("deficit %d and surplus %d of units of %d: lower is %v", c.deficit, c.surplus, unit, sum.Lower())
		}
	}
}

func TestBand(t *testing.T) {
	for _, c := range []struct{ quota, unit, milli, want int64 }{
		{1000, 5, 10, 10}, {1000, 50, 10, 50}, {1000, 5, 0, 5}, {1000, 5, 1000, 1000}, {199, 1, 10, 1},
		{One, 1, 10, One / 100},
	} {
		if got := Band(c.quota, c.unit, c.milli); got != c.want {
			t.Errorf("Band(%d, %d, %d) is %d, not %d", c.quota, c.unit, c.milli, got, c.want)
		}
	}
}
