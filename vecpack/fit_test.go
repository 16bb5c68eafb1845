package vecpack

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestReciprocalIsExact(t *testing.T) {
	edge := []int64{0, 1, 2, 3, 7, 63, 64, 1<<31 - 1, 1 << 32, 1<<53 - 1, 1 << 53, math.MaxInt64 - 1, math.MaxInt64}
	for _, n := range edge {
		for _, d := range edge[1:] {
			if got := NewReciprocal(d).Div(n); got != n/d {
				t.Errorf("%d / %d = %d, want %d", n, d, got, n/d)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n, d := rapid.Int64Min(0).Draw(t, "n"), rapid.Int64Min(1).Draw(t, "d")
		if got := NewReciprocal(d).Div(n); got != n/d {
			t.Fatalf("%d / %d = %d, want %d", n, d, got, n/d)
		}
	})
}

// columns draws rows × dimensions of small figures and a unit size.
func columns(t *rapid.T) (column [][]int64, unit []int64) {
	rows := rapid.IntRange(0, 200).Draw(t, "rows")
	for range rapid.IntRange(1, 4).Draw(t, "dimensions") {
		column = append(column, rapid.SliceOfN(rapid.Int64Range(0, 9), rows, rows).Draw(t, "column"))
		unit = append(unit, rapid.Int64Range(0, 5).Draw(t, "unit"))
	}
	return column, unit
}

// fits is how many units fit one row: the least over dimensions with unit > 0 of
// ⌊column[d][row] ÷ unit[d]⌋. A unit that is zero in all dimensions fits 0 times.
func fits(column [][]int64, unit []int64, row int) int64 {
	least := int64(-1)
	for d, u := range unit {
		if u > 0 {
			if n := column[d][row] / u; least < 0 || n < least {
				least = n
			}
		}
	}
	return max(least, 0)
}

func TestCapacityIsTheSumOfFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		column, unit := columns(t)
		weight := rapid.SliceOfN(rapid.Int64Range(0, 3), len(column[0]), len(column[0])).Draw(t, "weight")
		var plain, weighted int64
		for row := range column[0] {
			n := fits(column, unit, row)
			plain, weighted = plain+n, weighted+n*weight[row]
		}
		if got := Capacity(column, unit, nil); got != plain {
			t.Fatalf("Capacity = %d, want %d", got, plain)
		}
		if got := Capacity(column, unit, weight); got != weighted {
			t.Fatalf("weighted Capacity = %d, want %d", got, weighted)
		}
	})
}

// TestCapacityOfFoursIsItsDefinition draws amounts next to where a quotient changes, up to those that floats do not
// divide exactly.
func TestCapacityOfFoursIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(0, 70).Draw(t, "rows")
		most := int64(1) << rapid.SampledFrom([]int{3, 20, 47, 48, 52, 62}).Draw(t, "bits")
		amount := rapid.OneOf(rapid.Int64Range(1, 9), rapid.Int64Range(1, most),
			rapid.Int64Range(max(1, most-3), most+3))
		var column [][]int64
		var unit []int64
		for range rapid.IntRange(1, 4).Draw(t, "dimensions") {
			u := amount.Draw(t, "unit")
			column = append(column, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) int64 {
				near := rapid.Int64Range(0, most/u).Draw(t, "times")*u + rapid.Int64Range(-1, 1).Draw(t, "more")
				return rapid.SampledFrom([]int64{0, max(0, near), max(0, near), amount.Draw(t, "amount")}).Draw(t,
					"have")
			}), rows, rows).Draw(t, "column"))
			if rapid.IntRange(0, 5).Draw(t, "none") == 0 {
				u = 0
			}
			unit = append(unit, u)
		}
		few := rapid.Int64Range(0, 1<<rapid.SampledFrom([]int{1, 31, 32, 33, 62}).Draw(t, "weight bits"))
		weight := rapid.SliceOfN(few, rows, rows).Draw(t, "weight")
		for _, weight := range [][]int64{nil, weight} {
			if got, want := Capacity(column, unit, weight), capacity(column, unit, weight, 0); got != want {
				t.Fatalf("Capacity(%v, %v, %v) = %d, want %d", column, unit, weight, got, want)
			}
		}
	})
}

func BenchmarkCapacity(b *testing.B) {
	column, weight, unit := make([][]int64, 4), slices.Repeat([]int64{3}, 870), []int64{4000, 16 << 30, 100 << 30, 1}
	for d := range column {
		for row := range 870 {
			column[d] = append(column[d], unit[d]*int64(row%7)+int64(row))
		}
	}
	for name, weight := range map[string][]int64{"plain": nil, "weighted": weight} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Capacity(column, unit, weight)
			}
		})
	}
}

func TestCoverBlockIsItsDefinition(t *testing.T) {
	edge := []int64{0, 1, 2, LaneMax / 2, LaneMax - 1, LaneMax}
	rapid.Check(t, func(t *rapid.T) {
		lane := rapid.OneOf(rapid.SampledFrom(edge), rapid.Int64Range(0, LaneMax))
		four := rapid.Custom(func(t *rapid.T) uint64 {
			return Pack(rapid.SliceOfN(lane, Lanes, Lanes).Draw(t, "lanes"))
		})
		word := rapid.SliceOfN(rapid.OneOf(four, rapid.Just[uint64](0)), 64, 64).Draw(t, "word")
		want := four.Draw(t, "want")
		if rapid.Bool().Draw(t, "one of them") {
			want = word[rapid.IntRange(0, 63).Draw(t, "row")]
		}
		wantSet, wantMost := cover(word, want)
		if set, most := coverBlock(word, want); set != wantSet || most != wantMost {
			t.Fatalf("coverBlock = %x, %x, want %x, %x", set, most, wantSet, wantMost)
		}
	})
}

func TestCoversComparesEveryLane(t *testing.T) {
	edge := []int64{0, 1, 2, LaneMax / 2, LaneMax - 1, LaneMax}
	rapid.Check(t, func(t *rapid.T) {
		lane := rapid.OneOf(rapid.SampledFrom(edge), rapid.Int64Range(0, LaneMax))
		have := rapid.SliceOfN(lane, Lanes, Lanes).Draw(t, "have")
		want := rapid.SliceOfN(lane, Lanes, Lanes).Draw(t, "want")
		covers := true
		for i := range have {
			covers = covers && have[i] >= want[i]
		}
		if got := Covers(Pack(have), Pack(want)); got != covers {
			t.Fatalf("Covers(%v, %v) = %v", have, want, got)
		}
		most := make([]int64, Lanes)
		for i := range have {
			most[i] = max(have[i], want[i])
		}
		if got := Most(Pack(have), Pack(want)); got != Pack(most) {
			t.Fatalf("Most(%v, %v) = %x", have, want, got)
		}
	})
}
