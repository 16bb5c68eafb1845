package cluster

import (
	"math"
	"testing"

	"github.com/stintd/stint/core/decision"
)

// TestRan: how long units have run goes by the time of their cycle, as far as it is known.
func TestRan(t *testing.T) {
	var times, none Times
	if got := none.ran(0, 500); got != 0 {
		t.Errorf("before the first cycle units ran %d µs", got)
	}
	for cycle := int64(1); cycle <= 2*timesMost; cycle++ { // the older half goes
		times.add(cycle, cycle*10)
	}
	now := int64(2*timesMost*10 + 10)
	for _, c := range []struct {
		what          string
		granted, want int64
	}{
		{"by the last cycle", 2 * timesMost, 10},
		{"by this one", 2*timesMost + 1, 0},
		{"by none that a state of before tells", math.MaxInt64, 0},
		{"by the oldest that is known", timesMost + 1, timesMost * 10},
		{"by one that is not known any more", 3, timesMost * 10},
		{"before the first", 0, timesMost * 10},
	} {
		if got := times.ran(c.granted, now); got != c.want {
			t.Errorf("granted %s: %d µs, want %d", c.what, got, c.want)
		}
	}
}

// TestLostBy: only what a client or a deadline ends of a reclaim is lost; sums stay within what a number holds.
func TestLostBy(t *testing.T) {
	var s State
	s.Times.add(1, 0)
	for cause, name := range decision.Causes {
		want := map[string]int64{"client": 10, "grace_expired": 10}[name]
		if got := s.lostBy(&Release{Units: 2, Cause: int32(cause), Number: 7, Granted: 1}, 5999); got != want {
			t.Errorf("%s: %d ms, want %d", name, got, want)
		}
		if got := s.lostBy(&Release{Units: 2, Cause: int32(cause), Granted: 1}, 5999); got != 0 {
			t.Errorf("%s, of no reclaim: %d ms", name, got)
		}
	}
	all := s.lostBy(&Release{Units: math.MaxInt64, Cause: decision.CauseClient, Number: 7, Granted: 1}, 5999)
	if all != math.MaxInt64 || saturatingAdd(all, all) != math.MaxInt64 {
		t.Errorf("%d ms, and twice that %d", all, saturatingAdd(all, all))
	}
}
