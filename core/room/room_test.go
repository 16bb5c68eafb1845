package room_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/room"
)

// world is an index with two sets, and the same as plain slices.
type world struct {
	index room.Index
	sets  [2]room.Set
	free  [][]int64
	in    [2][]bool
	open  []bool
	most  []int64
}

func newWorld(t *rapid.T) *world {
	w := &world{}
	rows := rapid.SampledFrom([]int{0, 1, 63, 64, 65, 130, 4096, 4200, 8300}).Draw(t, "rows")
	for range rapid.IntRange(1, 6).Draw(t, "dimensions") { // some too wide for a lane, some more than lanes
		w.most = append(w.most, rapid.SampledFrom([]int64{0, 1, 3, 9, 1 << 14, 1<<15 - 1, 1 << 15, 1 << 40}).Draw(t,
			"most"))
	}
	w.index.Reset(rows, w.most)
	w.open = make([]bool, rows)
	for range rows {
		v := make([]int64, len(w.most))
		for d := range v {
			v[d] = -1
		}
		w.free = append(w.free, v)
	}
	for i := range w.sets {
		w.sets[i].Reset(rows)
		w.in[i] = make([]bool, rows)
	}
	return w
}

// amount draws how much of a dimension, much of it next to what a lane cannot tell apart.
func (w *world) amount(t *rapid.T, d int) int64 {
	most := w.most[d]
	return min(most, rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, most),
		rapid.Int64Range(max(0, most-3), most)).Draw(t, "amount"))
}

func (w *world) row(t *rapid.T) room.Row {
	if len(w.free) == 0 {
		t.Skip("no rows")
	}
	return room.Row(rapid.IntRange(0, len(w.free)-1).Draw(t, "row"))
}

func (w *world) size(t *rapid.T) []int64 {
	v := make([]int64, len(w.most))
	for d := range v {
		if rapid.Bool().Draw(t, "needed") {
			v[d] = w.amount(t, d)
		}
	}
	if v[0] == 0 && rapid.IntRange(0, 9).Draw(t, "beyond all") == 0 {
		v[0] = w.most[0] + 1
	}
	some := false
	for _, n := range v {
		some = some || n > 0
	}
	if !some {
		v[len(v)-1] = 1
	}
	return v
}

func (w *world) fits(row int, size []int64) bool {
	for d, n := range size {
		if n > 0 && w.free[row][d] < n {
			return false
		}
	}
	return true
}

// TestIndex holds the three questions against plain loops while rows gain and lose room and come and go.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "rows put") {
					row := w.row(t)
					for d := range w.most {
						w.free[row][d] = w.amount(t, d)
						if rapid.IntRange(0, 9).Draw(t, "below 0") == 0 {
							w.free[row][d] = -1
						}
					}
					w.index.Put(row, w.free[row])
					for i := range w.sets {
						if w.in[i][row] || rapid.Bool().Draw(t, "in") {
							w.sets[i].Add(&w.index, row)
							w.in[i][row] = true
						}
					}
				}
			},
			"shut": func(t *rapid.T) {
				row := w.row(t)
				w.index.Shut(row)
				for d := range w.most {
					w.free[row][d] = -1
				}
			},
			"remove": func(t *rapid.T) {
				row := w.row(t)
				for i := range w.sets {
					if w.in[i][row] {
						w.sets[i].Remove(row)
						w.in[i][row] = false
					}
				}
			},
			"take": func(t *rapid.T) {
				size := w.size(t)
				need := w.index.Need(size)
				row := w.index.First(&w.sets[0], &need, 0, nil)
				if row == room.NoRow {
					return
				}
				w.index.Take(row, &need)
				for d, n := range size {
					w.free[row][d] -= n
				}
			},
			"ask": func(t *rapid.T) { w.ask(t) },
		})
	})
}

// TestHints holds searches that begin where earlier ones for the same were against searches from the first row on.
func TestHints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "rows")
		var x room.Index
		var set room.Set
		var h room.Hints[int64]
		most := []int64{rapid.Int64Range(4, 1<<17).Draw(t, "most"), 4}
		x.Reset(n, most)
		set.Reset(n)
		masks := [][]uint64{nil, make([]uint64, (n+63)/64)}
		for i := range masks[1] {
			masks[1][i] = rapid.Uint64().Draw(t, "mask")
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "put") {
				row := room.Row(rapid.IntRange(0, n-1).Draw(t, "row"))
				free := []int64{rapid.Int64Range(-1, most[0]).Draw(t, "a"), rapid.Int64Range(-1, 4).Draw(t, "b")}
				h.Put(&x, &set, row, free)
				continue
			}
			size := []int64{most[0] * rapid.Int64Range(0, 4).Draw(t, "quarters") / 4,
				rapid.Int64Range(1, 2).Draw(t, "size")}
			need, mask := x.Need(size), masks[rapid.IntRange(0, 1).Draw(t, "which")]
			want := x.First(&set, &need, 0, mask)
			if row := h.First(&x, &set, &need, mask, size[0]<<2|size[1]); row != want {
				t.Fatalf("size %v: row %d, want %d", size, row, want)
			}
		}
	})
}

// ask asks all questions of both sets.
func (w *world) ask(t *rapid.T) {
	size, from := w.size(t), rapid.IntRange(0, len(w.free)).Draw(t, "from")
	need := w.index.Need(size)
	var mask []uint64
	words := (len(w.free) + 63) / 64
	if rapid.Bool().Draw(t, "masked") {
		mask = rapid.SliceOfN(rapid.Uint64(), words, words).Draw(t, "mask")
	}
	for i := range w.sets {
		first, n, dst := room.NoRow, 0, make([]uint64, words)
		for row := range w.free {
			if !w.in[i][row] || !w.fits(row, size) {
				continue
			}
			dst[row>>6] |= 1 << (row & 63)
			if mask == nil || mask[row>>6]>>(row&63)&1 == 1 {
				if n++; row >= from && first == room.NoRow {
					first = room.Row(row)
				}
			}
		}
		got := make([]uint64, words)
		if w.index.Mask(got, &w.sets[i], &need); !equal(got, dst) {
			t.Fatalf("size %v: rows %x have room, want %x", size, got, dst)
		}
		if row := w.index.First(&w.sets[i], &need, room.Row(from), mask); row != first {
			t.Fatalf("size %v from %d: row %d, want %d", size, from, row, first)
		}
		to := rapid.IntRange(from, len(w.free)).Draw(t, "to")
		if first >= room.Row(to) {
			first = room.NoRow
		}
		if row := w.index.FirstIn(&w.sets[i], &need, room.Row(from), room.Row(to), mask); row != first {
			t.Fatalf("size %v in %d … %d: row %d, want %d", size, from, to, row, first)
		}
		if row := w.index.Count(&w.sets[i], &need, mask); row != n {
			t.Fatalf("size %v: %d rows, want %d", size, row, n)
		}
	}
}

func equal(a, b []uint64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}
