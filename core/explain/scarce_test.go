package explain

import (
	"strings"
	"testing"
)

func TestScarce(t *testing.T) {
	for _, c := range []struct {
		prices []Price
		want   string
	}{
		{[]Price{{"ncpus", 1}, {"maxmem", 0}, {"gpus", 3}}, "gpus 75 %, ncpus 25 %"},
		{[]Price{{"ncpus", 999}, {"gpus", 1}}, "ncpus 100 %"},
		{[]Price{{"ncpus", 0}}, "no dimension is scarce"},
		{nil, "no dimension is scarce"},
	} {
		if got := scarce(c.prices); !strings.Contains(got, c.want) || strings.Contains(got, "maxmem") {
			t.Errorf("%v: %q, want %q", c.prices, got, c.want)
		}
	}
}

// TestName: prices are told of shortfalls for which there is no room, in their plan alone.
func TestName(t *testing.T) {
	e := &Explanation{Plans: []Part{
		{Plan: "a", Shortfalls: []Shortfall{{Reason: "fragmented"}, {Reason: "over_quota"},
			{Reason: "pool_exhausted"}}},
		{Plan: "b", Shortfalls: []Shortfall{{Reason: "fragmented"}}},
	}}
	e.Name("a", []Price{{"ncpus", 1}})
	for i, want := range []int{1, 0, 1} {
		if got := len(e.Plans[0].Shortfalls[i].Because); got != want {
			t.Errorf("%s: %d sentences, want %d", e.Plans[0].Shortfalls[i].Reason, got, want)
		}
	}
	if len(e.Plans[1].Shortfalls[0].Because) != 0 {
		t.Error("another plan has the prices too")
	}
}
