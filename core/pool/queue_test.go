package pool

import (
	"testing"

	"pgregory.net/rapid"
)

// TestQueue holds the order in which a leaf's demand is served against CYC-10 and D-9: allocations in turn, of one the
// ask with the least of what it wants, ties in row order.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		sizes := rapid.SliceOfN(rapid.IntRange(1, 5), 1, 4).Draw(t, "asks of allocations")
		for _, n := range sizes {
			q.alloc = append(q.alloc, int32(len(q.Ask)))
			for range n {
				wanted := rapid.Int64Range(1, 9).Draw(t, "wanted")
				q.Ask = append(q.Ask, Ask{Has: rapid.Int64Range(0, wanted-1).Draw(t, "has"), Wanted: wanted})
			}
		}
		q.lines, q.heap = []line{{0, int32(len(sizes)), -1, 0}}, make([]int32, len(q.Ask))
		for q.Advance(0) {
			want, at := int32(-1), q.Next(0)
			for a := range sizes {
				for i, end := q.asks(int32(a), int32(a+1)); i < end; i++ {
					x := &q.Ask[i]
					if !x.Passed && x.Has < x.Wanted &&
						(want < 0 || x.Has*q.Ask[want].Wanted < q.Ask[want].Has*x.Wanted) {
						want = i
					}
				}
				if want >= 0 {
					break
				}
			}
			if at != want {
				t.Fatalf("it is the turn of ask %d, want %d: %+v", at, want, q.Ask)
			}
			if rapid.IntRange(0, 3).Draw(t, "fits") == 0 {
				q.Ask[at].Passed = true
			} else {
				q.Ask[at].Has++
			}
			q.Settle(0)
		}
		for i := range q.Ask {
			if a := &q.Ask[i]; !a.Passed && a.Has < a.Wanted {
				t.Fatalf("ask %d was not served: %+v", i, a)
			}
		}
	})
}
