package share

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestFractionIsExact holds Fraction and Demand against big.Int.
func TestFractionIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.Int64Range(0, 1<<53).Draw(t, "units")
		capacity := rapid.Int64Range(0, 1<<53).Draw(t, "capacity")
		want := new(big.Int)
		if m := max(units, capacity); m > 0 {
			want.Div(new(big.Int).Mul(big.NewInt(units), big.NewInt(One)), big.NewInt(m))
		}
		if got := Fraction(units, capacity); got != want.Int64() {
			t.Fatalf("Fraction(%d, %d) = %d, want %v", units, capacity, got, want)
		}
		up := int64(0)
		if capacity > 0 {
			q, r := new(big.Int).DivMod(new(big.Int).Mul(big.NewInt(units), big.NewInt(One)), big.NewInt(capacity),
				new(big.Int))
			if r.Sign() > 0 {
				q.Add(q, big.NewInt(1))
			}
			up = One
			if q.Cmp(big.NewInt(One)) < 0 {
				up = q.Int64()
			}
		}
		if got := Demand(units, capacity); got != up {
			t.Fatalf("Demand(%d, %d) = %d, want %d", units, capacity, got, up)
		}
	})
}

func TestLessComparesExactly(t *testing.T) {
	big53 := int64(1) << 53
	for _, c := range []struct {
		a, ra, b, rb int64
		want         bool
	}{
		{1, 1, 2, 1, true},
		{1, 3, 1, 2, true},
		{1, 2, 2, 4, false},
		{big53 * 512, big53, big53*512 - 1, big53, false},
		{One - 1, math.MaxInt32, One, math.MaxInt32, true},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - 1, false},
	} {
		if got := Less(c.a, c.ra, c.b, c.rb); got != c.want {
			t.Errorf("Less(%d/%d, %d/%d) = %v", c.a, c.ra, c.b, c.rb, got)
		}
	}
}

func TestSumsSaturate(t *testing.T) {
	if Add(math.MaxInt64, 1) != math.MaxInt64 || Add(3, 4) != 7 {
		t.Error("Add")
	}
	if Mul(1<<40, 1<<40) != math.MaxInt64 || Mul(3, 4) != 12 {
		t.Error("Mul")
	}
}

// The worked examples of MD-14: A 1, B 2 of high priority, C of low.
func TestFillByPriority(t *testing.T) {
	for _, c := range []struct {
		name     string
		total    int64
		priority []int32
		ratio    []int64
		limit    []int64
		want     []int64
		left     int64
	}{
		{"two of high priority leave nothing", 9, []int32{1, 1, 0}, []int64{1, 2, 1}, []int64{99, 99, 99},
			[]int64{3, 6, 0}, 0},
		{"what a limit leaves is divided again", 12, []int32{0, 0, 0}, []int64{1, 1, 1}, []int64{2, 99, 99},
			[]int64{2, 5, 5}, 0},
		{"what the high cannot use goes down", 12, []int32{5, -1}, []int64{1, 1}, []int64{4, 99}, []int64{4, 8}, 0},
		{"ratio 0 gets nothing", 12, []int32{0, 0}, []int64{0, 1}, []int64{99, 3}, []int64{0, 3}, 9},
		{"the first gets what rounding leaves", 10, []int32{0, 0, 0}, []int64{1, 1, 1}, []int64{99, 99, 99},
			[]int64{4, 3, 3}, 0},
	} {
		out := make([]int64, len(c.ratio))
		left := new(Divider).FillByPriority(c.total, c.priority, c.ratio, c.limit, out)
		if !slices.Equal(out, c.want) || left != c.left {
			t.Errorf("%s: got %v left %d, want %v left %d", c.name, out, left, c.want, c.left)
		}
	}
}

// TestFillIsFair checks the definition of water-filling: all is given or all are
// full, and nobody below its limit is more than one part behind another.
func TestFillIsFair(t *testing.T) {
	var v Divider
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		ratio := rapid.SliceOfN(rapid.Int64Range(0, 5), n, n).Draw(t, "ratio")
		limit := rapid.SliceOfN(rapid.Int64Range(0, 1000), n, n).Draw(t, "limit")
		total := rapid.Int64Range(0, 4000).Draw(t, "total")
		out := make([]int64, n)
		left := v.FillByPriority(total, make([]int32, n), ratio, limit, out)
		given := left
		for i := range out {
			given += out[i]
			if out[i] > limit[i] || ratio[i] == 0 && out[i] > 0 {
				t.Fatalf("part %d is %d of limit %d, ratio %d", i, out[i], limit[i], ratio[i])
			}
			if left > 0 && ratio[i] > 0 && out[i] < limit[i] {
				t.Fatalf("%d is left, part %d is not full", left, i)
			}
			for j := range out {
				if ratio[i] > 0 && ratio[j] > 0 && out[i] < limit[i] && out[j] > 0 &&
					(out[j]-1)*ratio[i] > (out[i]+1)*ratio[j] {
					t.Fatalf("part %d (%d of ratio %d) is ahead of part %d (%d of %d)", j, out[j], ratio[j], i, out[i],
						ratio[i])
				}
			}
		}
		if given != total {
			t.Fatalf("gave %d of %d", given, total)
		}
	})
}
