package reason

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/room"
	"github.com/stintd/stint/core/view"
)

// TestTallies holds what is counted of ranges of rows, and kept while rooms change, against counting row by row.
func TestTallies(t *testing.T) {
	kept, moves := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		dims, rows := rapid.IntRange(1, 3).Draw(t, "dimensions"), rapid.IntRange(1, 200).Draw(t, "rows")
		amount := func(label string) []int64 {
			return rapid.SliceOfN(rapid.Int64Range(-2, 20), dims, dims).Draw(t, label)
		}
		most := make([]int64, dims)
		for d := range most {
			most[d] = 20
		}
		var l level
		l.index.Reset(rows, most)
		l.set.Reset(rows)
		for row := range room.Row(rows) {
			if rapid.IntRange(0, 9).Draw(t, "closed") > 0 {
				l.index.Put(row, amount("free"))
				l.set.Add(&l.index, row)
			}
		}
		mask := rapid.SliceOfN(rapid.Uint64(), (rows+63)/64, (rows+63)/64).Draw(t, "mask")
		size := rapid.SliceOfN(rapid.Int64Range(0, 21), dims, dims).Draw(t, "size")
		size[0] = max(1, size[0])
		var v tallies
		another := rapid.SliceOfN(rapid.Int64Range(0, 21), dims, dims).Draw(t, "another size")
		v.know(new(cluster.State), dims, []ask{{size: size}, {size: another}})
		a := ask{size: size}
		for d, n := range size {
			if n > 0 {
				a.dims, a.place = append(a.dims, d), append(a.place, v.placeOf(d, n))
			}
		}
		from := rapid.IntRange(0, rows).Draw(t, "from")
		to := rapid.IntRange(from, rows).Draw(t, "to")
		at := place{0, 1}
		for range 20 {
			var want counts
			for row := room.Row(from); row < room.Row(to); row++ {
				if has(mask, row) && l.set.Has(row) {
					want.addRow(&a, rowAt(at.depth, row), l.index.Free(row), 1)
				}
			}
			had := len(v.at[at])
			one := v.of(&l, at, view.Row(from), view.Row(to), nil, anyGrace, mask)
			got := counts{rows: one.rows, set: one.set}
			for i, d := range a.dims {
				got.below[i], got.free[i] = int(one.below[d][a.place[i]]), one.free[d]
			}
			if kept += had; got != want {
				t.Fatalf("%v of rows %d … %d: counted %+v, want %+v", size, from, to, got, want)
			}
			row := room.Row(rapid.IntRange(0, rows-1).Draw(t, "row"))
			if !l.set.Has(row) {
				continue
			}
			is := amount("is")
			if int(row) >= from && int(row) < to {
				v.move(at, row, l.index.Free(row), is)
				moves++
			}
			l.index.Put(row, is)
			l.set.Add(&l.index, row)
		}
	})
	if kept == 0 || moves == 0 {
		t.Errorf("%d tallies were kept, %d rooms moved", kept, moves)
	}
}

// TestTotal holds sums that no int64 holds.
func TestTotal(t *testing.T) {
	var sum total
	for range 1 << 12 {
		sum.add(1 << 53)
	}
	if sum.hi == 0 || sum.carries(1<<62) != 8 || sum.carries(1) != math.MaxInt64 {
		t.Fatalf("2¹² × 2⁵³ is %+v", sum)
	}
	var half total
	for range 1 << 11 {
		half.add(1 << 53)
	}
	sum.less(half)
	for range 1<<11 - 1 {
		sum.sub(1 << 53)
	}
	if sum != (total{0, 1 << 53}) || sum.carries(1<<53) != 1 || sum.carries(1<<53+1) != 0 {
		t.Fatalf("what is left is %+v, want 2⁵³", sum)
	}
}
