package cluster

import (
	"math"
	"slices"
)

// timesMost is of how many cycles the state knows the times; when there are twice as many the older half goes.
const timesMost = 1 << 16

// Times are the times of the latest cycles, so that the age of a holding can be told from the cycle that granted it
// (REQ-4).
type Times struct {
	first int64   // the cycle of the first
	us    []int64 // µs since 1970, a cycle each
}

// add notes the time of a cycle that is finished.
func (t *Times) add(cycle, nowUS int64) {
	if len(t.us) == 0 || cycle != t.first+int64(len(t.us)) {
		t.first, t.us = cycle, t.us[:0]
	}
	if t.us = append(t.us, nowUS); len(t.us) >= 2*timesMost {
		t.us, t.first = slices.Delete(t.us, 0, timesMost), t.first+timesMost
	}
}

// Of is the time of a cycle. What ran before the first cycle counts as granted in it; a cycle that is not known any
// more was long ago.
func (t *Times) Of(cycle int64) int64 {
	if i := max(cycle, 1) - t.first; i >= 0 && i < int64(len(t.us)) {
		return t.us[i]
	}
	return math.MinInt64 / 2
}

// Young tells whether units that a cycle granted have run for less than so long at a time. Those of the cycle that is
// being decided do not run yet.
func (s *State) Young(granted, nowUS, runtimeUS int64) bool {
	if runtimeUS <= 0 || granted > s.Cycle {
		return false
	}
	return s.Cycle == 0 || nowUS-s.Times.Of(granted) < runtimeUS // before the first cycle is done nothing has run
}
