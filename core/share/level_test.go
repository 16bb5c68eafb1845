package share

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLevel holds Level against its words: with one level more the parts add up to more than the total.
func TestLevel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "siblings")
		most := rapid.SampledFrom([]int64{9, 1000, One}).Draw(t, "most")
		draw := func(name string, least, most int64) []int64 {
			return rapid.SliceOfN(rapid.Int64Range(least, most), n, n).Draw(t, name)
		}
		usage, ratio, claim := draw("usage", 0, most), draw("ratio", 1, min(most, 1<<20)), draw("claim", 0, most)
		total := rapid.Int64Range(0, 2*most).Draw(t, "total")
		part := make([]int64, n)
		Level(total, usage, ratio, claim, part)
		all := int64(0)
		for _, c := range claim {
			all += c
		}
		if all <= total {
			if !slices.Equal(part, claim) {
				t.Fatalf("parts %v, want all claims %v", part, claim)
			}
			return
		}
		low, high := int64(0), 2*most+1
		for high-low > 1 {
			if given, _ := raise(low+(high-low)/2, usage, ratio, claim); given <= total {
				low += (high - low) / 2
			} else {
				high = low + (high-low)/2
			}
		}
		for i := range part {
			if want := raised(low, usage[i], ratio[i], claim[i]); part[i] != want {
				t.Fatalf("part %d of %v, %v, %v, %d is %d, want %d at level %d", i, usage, ratio, claim, total,
					part[i], want, low)
			}
		}
	})
}
