package cluster

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// TestTrimAtOnce trims many sub-allocations at once and one after the other: rows, lists and logs are the same.
func TestTrimAtOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s, n := overfed(t, r)
		twin := s.Clone()
		if !s.trimAtOnce() && len(s.excess) > 0 {
			r.Fatal("something is under reclaim")
		}
		for _, sub := range twin.excess {
			twin.trim(sub)
		}
		if len(s.Released) == 0 && n > 0 {
			r.Fatalf("nothing was released of %d units too many", n)
		}
		for _, what := range []struct {
			name string
			a, b any
		}{
			{"holdings", s.Holding, twin.Holding}, {"sub-allocations", s.Sub, twin.Sub},
			{"releases", s.Released, twin.Released},
			{"parcels", s.Plans[0].Parcels, twin.Plans[0].Parcels}, {"pairs", s.Plans[0].Pairs, twin.Plans[0].Pairs},
			{"what changed", s.Plans[0].Changed, twin.Plans[0].Changed},
			{"dirty", s.Plans[0].Dirty, twin.Plans[0].Dirty},
		} {
			if !reflect.DeepEqual(what.a, what.b) {
				r.Fatalf("%s differ: %+v, one after the other %+v", what.name, what.a, what.b)
			}
		}
	})
}

// overfed is a state of many sub-allocations, of which some hold more than they want, by so many units.
func overfed(t testing.TB, r *rapid.T) (s *State, over int64) {
	must := func(err error) {
		if err != nil {
			r.Fatal(err)
		}
	}
	var hosts, names, held []string
	for i := range rapid.IntRange(1, 12).Draw(r, "hosts") {
		hosts = append(hosts, fmt.Sprintf("a%d", i))
	}
	table := hostTable(hosts...)
	for i := range hosts {
		table.Size[0][i], table.Size[1][i] = 1<<20, 1<<20
	}
	var units []int64
	for i := range rapid.IntRange(1, 3*partMin).Draw(r, "rows") {
		name := fmt.Sprintf("%s x%d - ", rapid.SampledFrom([]string{"/P/L", "/Q", "/R"}).Draw(r, "leaf"), i)
		names = append(names, name+"one")
		for range rapid.IntRange(0, 4).Draw(r, "holdings") {
			held = append(held, name+rapid.SampledFrom(hosts).Draw(r, "host"))
			units = append(units, rapid.Int64Range(1, 9).Draw(r, "units"))
		}
	}
	s = newState(t)
	must(s.SetHosts(table, true))
	demand := demandTable(names...)
	want := func(least int64) {
		for i := range demand.Units {
			demand.Units[i] = rapid.Int64Range(least, 36).Draw(r, "wanted")
		}
		must(s.SetDemand("s", demand))
	}
	want(36)
	run := running(held...)
	run.Units = units
	must(s.AddRunning("s", run))
	settle(t, s)
	want(0)
	for sub := range s.Sub.Alloc {
		over += max(0, s.Sub.Held[sub]-s.Sub.Wanted[sub])
	}
	return s, over
}
