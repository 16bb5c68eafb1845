package reclaim_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// TestLikeToday holds that clusters of some thousand hosts, in which no search looks at all parcels, are decided like
// by core/md: set by set.
func TestLikeToday(t *testing.T) {
	for _, one := range []struct {
		name                     string
		make                     func(o datasets.Options) (*datasets.Dataset, error)
		hosts, consumers, shapes int
		units                    int64
		seed                     uint64
	}{
		{"grid", datasets.Grid, 6_000, 600, 100, 60_000, 1},
		{"hetero", datasets.Hetero, 3_000, 100, 40, 30_000, 2},
		{"lenders", datasets.Lenders, 30_000, 3_000, 200, 300_000, 1},
		{"lenders, few", datasets.Lenders, 3_000, 100, 40, 60_000, 3},
		{"owners", datasets.Owners, 3_000, 300, 40, 60_000, 1},
	} {
		t.Run(one.name, func(t *testing.T) {
			if testing.Short() && one.hosts > 10_000 {
				t.Skip("large")
			}
			o := datasets.Options{Hosts: one.hosts, Consumers: one.consumers, Units: one.units, Shapes: one.shapes}
			o.Seed = one.seed
			d, err := one.make(o)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Parse("plan.yaml", d.Plan)
			if err != nil {
				t.Fatal(err)
			}
			likeToday(t, stateOf(t, p, d))
		})
	}
}

// TestLikeTodayLater is the same after two cycles, when all ask for something else and have other ratios: much that
// runs is taken back.
func TestLikeTodayLater(t *testing.T) {
	for _, one := range []struct {
		name string
		make func(o datasets.Options) (*datasets.Dataset, error)
	}{{"grid", datasets.Grid}, {"hetero", datasets.Hetero}, {"lenders", datasets.Lenders}, {"owners", datasets.Owners}} {
		t.Run(one.name, func(t *testing.T) {
			o := datasets.Options{Hosts: 2_000, Consumers: 100, Units: 60_000, Shapes: 12, Seed: 2}
			d, err := one.make(o)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Parse("plan.yaml", d.Plan)
			if err != nil {
				t.Fatal(err)
			}
			s := stateOf(t, p, d)
			for n := range int64(2) {
				cycle.Run(s, n+1, new(decision.Cycle))
			}
			o.Seed += 50
			later, err := one.make(o)
			if err == nil {
				err = s.SetDemand("s", later.Demand)
			}
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			text := regexp.MustCompile(`ratio: \d+`).ReplaceAllFunc(d.Plan, func([]byte) []byte {
				n++
				return fmt.Appendf(nil, "ratio: %d", n*7%11+1)
			})
			if p, err = plan.Parse("plan.yaml", text); err == nil {
				err = s.SetPolicy(p, false)
			}
			if err != nil {
				t.Fatal(err)
			}
			if likeToday(t, s); s.Leaving() == 0 {
				t.Error("nothing that runs is taken back")
			}
		})
	}
}

// likeToday carries a state through a cycle, and holds it against a copy for which core/md does all.
func likeToday(t *testing.T, s *cluster.State) {
	t.Helper()
	today := s.Clone()
	granted(today).Reclaim(func() {})
	granted(s)
	var decided medians
	takeBack(s, &decided)
	got, want := sets(s), sets(today)
	if len(want) == 0 {
		t.Error("nothing is promised")
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("set %d of %d: %s\ncore/md: %s", i, len(want), got[i], want[i])
		}
	}
	if told(s) != told(today) || !slices.Equal(s.Sub.Held, today.Sub.Held) {
		t.Fatalf("%s; core/md: %s", told(s), told(today))
	}
}

// sets are the sets of a state that have takers, each in a line, in the order in which they were made.
func sets(s *cluster.State) (list []string) {
	var ids []cluster.SetID
	for id, number := range s.Set.Number {
		if number > 0 && s.Set.Taker[id] != cluster.NoID {
			ids = append(ids, cluster.SetID(id))
		}
	}
	slices.SortFunc(ids, func(a, b cluster.SetID) int { return int(s.Set.Number[a] - s.Set.Number[b]) })
	for _, id := range ids {
		list = append(list, fmt.Sprintf("reason %d, %d units for sub-allocation %d on parcel %d, victims %d",
			s.Set.Reason[id], s.Set.Units[id], s.Set.Taker[id], s.Aim(id), s.Set.First[id]))
	}
	return list
}
