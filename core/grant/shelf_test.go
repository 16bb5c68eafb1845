//go:build !rounds

package grant

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/view"
	"github.com/stintd/stint/ingest/table"
)

// TestLotsAreKept holds what pools are given by lots that were kept from turn to turn against what they are given by
// lots laid anew, while units come and go, sets keep room, and hosts close.
func TestLotsAreKept(t *testing.T) {
	units, turns, closed, brought := 0, 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		placement := rapid.SampledFrom([]string{"best_fit", "stacked", "balanced"}).Draw(t, "placement")
		policy := strings.Replace(owners, "    resource_groups:", "    placement: "+placement+"\n    resource_groups:",
			1)
		hosts := []string{"h1,12,12", "h2,16,8", "h3,9,20", "h4,10,10"}
		demand := func() string {
			rows := "consumer,allocation,units,ncpus,maxmem\n"
			for i, size := range []string{"/A/A1,a,%d,1,1", "/A/A2,b,%d,2,1", "/B,c,%d,1,3", "/B,d,%d,2,2"} {
				rows += fmt.Sprintf(size+"\n", rapid.IntRange(0, 9).Draw(t, fmt.Sprint("wanted ", i)))
			}
			return rows
		}
		s := ownedState(t, policy, "host,ncpus,maxmem\n"+strings.Join(hosts, "\n")+"\n", demand())
		p := &s.Plans[0]
		var v view.Views
		kept := Granter{Eager: true}
		for range rapid.IntRange(1, 5).Draw(t, "rounds") {
			for _, n := range []plan.Node{1, plan.Root} {
				v.Follow(s, p)
				e := &Env{Env: pool.New(s, p, &v), Promises: new(pool.Promises)}
				e.Promises.Sum(e.Env)
				var anew Granter
				var got, want Decisions
				was := kept.shelf.kept[n]
				kept.Pool(e, n, &got)
				if was != nil && was == kept.shelf.kept[n] {
					brought++
				}
				anew.Pool(e, n, &want)
				if !slices.Equal(got.Sub.Values(), want.Sub.Values()) ||
					!slices.Equal(got.Parcel.Values(), want.Parcel.Values()) {
					t.Fatalf("pool of %d: %v on %v, want %v on %v", n, got.Sub.Values(), got.Parcel.Values(),
						want.Sub.Values(), want.Parcel.Values())
				}
				runs, parcels := got.Runs(e, s.Cycle+1, nil)
				s.HoldAll(nil, runs, parcels)
				units += got.Sub.Len()
				turns++
			}
			closed += disturb(t, s, hosts, demand)
		}
	})
	if t.Logf("%d units in %d turns, %d with lots that were kept; %d hosts closed", units, turns, brought,
		closed); units == 0 || closed == 0 || brought < turns/4 {
		t.Error("too little came up")
	}
}

// disturb changes something of a state, and tells how many hosts it closed.
func disturb(t *rapid.T, s *cluster.State, hosts []string, demand func() string) (closed int) {
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	o := table.Options{Format: table.CSV, Dimensions: s.Policy.Dimensions}
	if rapid.Bool().Draw(t, "other demand") {
		d, err := table.ReadDemand(strings.NewReader(demand()), o)
		must(err)
		must(s.SetDemand("s", d))
	}
	if rapid.IntRange(0, 2).Draw(t, "other hosts") == 0 {
		state := rapid.SampledFrom([]string{"ok", "closed", "draining"}).Draw(t, "state")
		h, err := table.ReadHosts(strings.NewReader("host,state,ncpus,maxmem\n"+
			strings.Replace(rapid.SampledFrom(hosts).Draw(t, "host"), ",", ","+state+",", 1)+"\n"), o)
		must(err)
		if must(s.SetHosts(h, false)); state != "ok" {
			closed = 1
		}
	}
	s.Settle(s.NowUS + 60e6)
	for q, sub := range s.Holding.Sub {
		if sub == cluster.NoID || s.Holding.Set[q] != cluster.NoID || rapid.IntRange(0, 3).Draw(t, "stays") > 0 {
			continue
		}
		units := rapid.Int64Range(1, s.Holding.Units[q]).Draw(t, "units")
		if rapid.Bool().Draw(t, "goes") {
			s.Shrink(cluster.HoldingID(q), units)
			continue
		}
		taker := cluster.SubID(rapid.IntRange(0, len(s.Sub.Wanted)-1).Draw(t, "taker"))
		if s.Short(taker) > 0 {
			set := s.OpenSet(&s.Plans[0], s.Holding.Parcel[q], decision.ReclaimFairShare, taker, 60e6)
			s.TakeBack(set, cluster.HoldingID(q), units, 900e6)
			s.Promise(set, 1)
		}
	}
	return closed
}
