package share

import (
	"math/big"
	"math/rand/v2"
	"slices"
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

func TestFarther(t *testing.T) {
	const step = Slack
	for _, c := range []struct {
		x, rx, y, ry int64
		want         int
	}{
		{3 * step, 1, 2 * step, 1, 1}, {2 * step, 1, 6 * step, 3, 0}, {2 * step, 1, 7 * step, 3, -1},
		{0, 1, step, 5, -1},
		{-2 * step, 1, -6 * step, 3, 0}, {-2 * step, 1, -7 * step, 3, 1}, {-step, 1, step, 9, -1},
		{step, 9, -step, 1, 1},
		{2*step + step/3, 1, 2 * step, 1, 0}, {2*step - step/3, 1, 2 * step, 1, 0}, // less than a step is no difference
		{step, 0, 9 * step, 1, 1}, {9 * step, 1, step, 0, -1}, {step, 0, 9 * step, 0, 0},
		{One, 1 << 53, One, 1<<53 - 1, -1},
	} {
		if got := Farther(c.x, c.rx, c.y, c.ry); got != c.want {
			t.Errorf("Farther(%d, %d, %d, %d) is %d, not %d", c.x, c.rx, c.y, c.ry, got, c.want)
		}
	}
}

// TestOrder moves, removes and puts back ids at random, and holds the order against one that is sorted anew.
func TestOrder(t *testing.T) {
	for _, last := range []bool{false, true} {
		r := rand.New(rand.NewPCG(3, 4))
		o := Order{Last: last}
		o.Reset(50)
		distance, ratio := make([]int64, 50), make([]int64, 50)
		for id := range int32(50) {
			distance[id], ratio[id] = (r.Int64N(9)-4)*Slack, 1+r.Int64N(3)
			o.Add(id, distance[id], ratio[id], 100-id)
		}
		o.Sort()
		for range 1000 {
			id := int32(r.IntN(50))
			switch distance[id] = (r.Int64N(9) - 4) * Slack; {
			case !o.Has(id):
				o.Put(id, distance[id], ratio[id], 100-id)
			case r.IntN(3) == 0:
				o.Remove(id)
			default:
				o.Move(id, distance[id])
			}
			if o.Has(id) && o.Distance(id) != distance[id] || !o.Has(id) && o.Distance(id) != 0 {
				t.Fatalf("the distance of %d is %d, not %d", id, o.Distance(id), distance[id])
			}
			want := slices.Clone(o.List)
			slices.SortFunc(want, func(a, b int32) int {
				order := Farther(distance[b], ratio[b], distance[a], ratio[a])
				if order == 0 {
					order = int(b - a) // the tie is the smaller, the later the id
				}
				if last {
					return -order
				}
				return order
			})
			if !slices.Equal(o.List, want) {
				t.Fatalf("last %v: in order %v, not %v", last, o.List, want)
			}
		}
	}
}
