package vecpack

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSearch holds the searches among packed words against loops over single amounts.
func TestSearch(t *testing.T) {
	lane := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, LaneMax))
	vector := rapid.Custom(func(t *rapid.T) [Lanes]int64 {
		var v [Lanes]int64
		for i := range v {
			v[i] = lane.Draw(t, "lane")
		}
		return v
	})
	rapid.Check(t, func(t *rapid.T) {
		amounts := rapid.SliceOfN(vector, 64, 64).Draw(t, "amounts")
		want, rows := vector.Draw(t, "want"), rapid.Uint64().Draw(t, "rows")
		if rapid.Bool().Draw(t, "all") {
			rows = ^uint64(0)
		}
		word, first, from := make([]uint64, 64), -1, rapid.IntRange(0, 64).Draw(t, "from")
		var set, of, most, mostOf uint64
		for i, have := range amounts {
			word[i] = Pack(have[:])
			fits := true
			for d := range have {
				fits = fits && have[d] >= want[d]
			}
			if mostOf = Most(mostOf, word[i]); fits {
				set |= 1 << i
				if i >= from && first < 0 {
					first = i
				}
			}
			if rows>>i&1 == 1 {
				most = Most(most, word[i])
			}
		}
		of = set & rows
		need := Pack(want[:])
		if got := FirstWord(word, from, need); got != first {
			t.Fatalf("first word %d, want %d", got, first)
		}
		if got := MostOf(word); got != mostOf {
			t.Fatalf("most %x, want %x", got, mostOf)
		}
		if got, top := coverBlock(word, need); got != set || top != mostOf {
			t.Fatalf("block %x most %x, want %x most %x", got, top, set, mostOf)
		}
		if got, top := CoverRows(word, rows, need); got != of || top != most {
			t.Fatalf("rows %x most %x, want %x most %x", got, top, of, most)
		}
	})
}
