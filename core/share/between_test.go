package share

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func bigs(v ...int64) (w []*big.Int) {
	for _, n := range v {
		w = append(w, big.NewInt(n))
	}
	return w
}

func TestBetween(t *testing.T) {
	for _, c := range []struct {
		name         string
		total        int64
		weight       []int64
		floor, limit []int64
		want         []int64
	}{
		{"in proportion", 9, []int64{1, 2}, []int64{0, 0}, nil, []int64{3, 6}},
		{"the first had a fraction and gets what is left", 10, []int64{1, 2}, []int64{0, 0}, nil, []int64{4, 6}},
		{"who had no fraction gets nothing of the rest", 6, []int64{2, 1, 1}, []int64{0, 0, 0}, nil, []int64{3, 2, 1}},
		{"a floor binds", 10, []int64{1, 9}, []int64{4, 0}, nil, []int64{4, 6}},
		{"a limit binds", 10, []int64{1, 9}, []int64{0, 0}, []int64{99, 5}, []int64{5, 5}},
		{"both bind", 10, []int64{1, 1, 8}, []int64{4, 0, 0}, []int64{9, 9, 5}, []int64{4, 1, 5}},
	} {
		out := make([]int64, len(c.weight))
		Between(c.total, bigs(c.weight...), c.floor, c.limit, out)
		if !slices.Equal(out, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, out, c.want)
		}
	}
}

// TestBetweenBounds checks that parts add up, keep to floors and limits, and are in proportion where neither binds.
func TestBetweenBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "n")
		weight := rapid.SliceOfN(rapid.Int64Range(1, 9), n, n).Draw(t, "weight")
		floor, limit := make([]int64, n), make([]int64, n)
		var low, high int64
		for i := range n {
			floor[i] = rapid.Int64Range(0, 10).Draw(t, "floor")
			limit[i] = floor[i] + rapid.Int64Range(0, 20).Draw(t, "more")
			low, high = low+floor[i], high+limit[i]
		}
		total := rapid.Int64Range(low, high).Draw(t, "total")
		out := make([]int64, n)
		Between(total, bigs(weight...), floor, limit, out)
		var sum int64
		for i := range n {
			sum += out[i]
			if out[i] < floor[i] || out[i] > limit[i] {
				t.Fatalf("part %d is %d, of %d to %d", i, out[i], floor[i], limit[i])
			}
			for j := range n { // nobody above its floor is more than one part ahead of one below its limit
				if out[i] > floor[i] && out[j] < limit[j] && (out[i]-1)*weight[j] > (out[j]+1)*weight[i] {
					t.Fatalf("part %d (%d of weight %d) is ahead of part %d (%d of %d)", i, out[i], weight[i], j,
						out[j], weight[j])
				}
			}
		}
		if sum != total {
			t.Fatalf("gave %d of %d: %v", sum, total, out)
		}
	})
}
