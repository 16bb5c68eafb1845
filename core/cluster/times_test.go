package cluster

import "testing"

// TestTimes asks for the age of what ran before the first cycle, of what the first and the last cycle granted, and of
// what was forgotten.
func TestTimes(t *testing.T) {
	var s State
	if !s.Young(0, 100, 50) {
		t.Error("what ran before the first cycle is not young in it")
	}
	for cycle := int64(1); cycle <= 2*timesMost; cycle++ {
		s.Times.add(cycle, cycle*10)
		s.Cycle = cycle
	}
	now := s.Cycle*10 + 10
	for _, c := range []struct {
		what             string
		granted, runtime int64
		want             bool
	}{
		{"without a min_runtime", s.Cycle, 0, false},
		{"granted in the last cycle", s.Cycle, 11, true},
		{"of age to the microsecond", s.Cycle, 10, false},
		{"granted in this cycle", s.Cycle + 1, 1000, false},
		{"the oldest that is known", timesMost + 1, now, true},
		{"not known any more", timesMost, now, false},
	} {
		if got := s.Young(c.granted, now, c.runtime); got != c.want {
			t.Errorf("%s: got %v, want %v", c.what, got, c.want)
		}
	}
	var first State
	first.Times.add(1, 1000)
	first.Cycle = 1
	if !first.Young(0, 1500, 501) || first.Young(0, 1500, 500) {
		t.Error("what ran before the first cycle does not count as granted in it")
	}
}
