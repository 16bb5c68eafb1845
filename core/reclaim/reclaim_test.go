package reclaim

import (
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/owner"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/view"
	"github.com/stintd/stint/ingest/table"
)

// stageOf is a state in which something is held, and a stage over its first plan.
func stageOf(t *testing.T, policy, hosts, demand, running string) (*Stage, *Decisions) {
	t.Helper()
	p, err := plan.Parse("policy.yaml", []byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	s, err := cluster.New(p)
	if err != nil {
		t.Fatal(err)
	}
	o := table.Options{Format: table.CSV, Dimensions: p.Dimensions}
	h, err := table.ReadHosts(strings.NewReader(hosts), o)
	if err == nil {
		err = s.SetHosts(h, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := table.ReadDemand(strings.NewReader(demand), o)
	if err == nil {
		err = s.SetDemand("s", d)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := table.ReadHoldings(strings.NewReader(running), o, false)
	if err == nil {
		err = s.AddRunning("s", r)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Settle(60e6)
	return laid(s)
}

// laid is a stage over the first plan of a state.
func laid(s *cluster.State) (*Stage, *Decisions) {
	p, views, g, out := &s.Plans[0], new(view.Views), new(Stage), new(Decisions)
	views.Follow(s, p)
	g.Begin(&Env{
		Env: pool.New(s, p, views), Cycle: NewCycle(s, p), NowUS: 60e6,
		Selected: func(cluster.NeedID) []uint64 { return nil },
	}, out)
	return g, out
}

const twoLeaves = `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: G, select: "select(ncpus > 0)"}]
consumers: [{path: /A, reclaim_grace: 5m}, {path: /B}]
md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A}, {path: /B}]}]
`

// TestFairBooked holds that what is decided is what the state does once it is booked: a leaf with all of a pool gives
// half of it, unit by unit, to one that has nothing; as one set a parcel, after its grace.
func TestFairBooked(t *testing.T) {
	g, out := stageOf(t, twoLeaves, "host,ncpus\nh1,8\nh2,8\n",
		"consumer,allocation,units,ncpus\n/A,a,16,1\n/B,b,16,1\n",
		"consumer,allocation,host,units\n/A,a,h1,8\n/A,a,h2,8\n")
	g.Fair()
	s := g.s
	out.Book(s, g.p, 60e6)
	if err := s.Verify(); err != nil {
		t.Fatal(err)
	}
	if s.Leaving() != 8 || s.Promised() != 8 {
		t.Fatalf("%d units are under reclaim, %d promised; want 8 and 8", s.Leaving(), s.Promised())
	}
	for q, set := range s.Holding.Set {
		if s.Holding.Sub[q] != cluster.NoID && set != cluster.NoID && s.Holding.Due[q] != 360e6 {
			t.Errorf("%d units are due at %d", s.Holding.Units[q], s.Holding.Due[q])
		}
	}
	sets := 0
	for _, number := range s.Set.Number {
		if number > 0 {
			sets++
		}
	}
	if sets != 1 { // the newest first: all of one host
		t.Errorf("%d sets", sets)
	}
}

// TestReviewLapses holds that a set lapses when its taker does not want anything any more, and its victims stay.
func TestReviewLapses(t *testing.T) {
	g, out := stageOf(t, twoLeaves, "host,ncpus\nh1,8\n", "consumer,allocation,units,ncpus\n/A,a,8,1\n/B,b,8,1\n",
		"consumer,allocation,host,units\n/A,a,h1,8\n")
	g.Fair()
	out.Book(g.s, g.p, 60e6)
	s := g.s
	s.Finish(1, 60e6)
	d, err := table.ReadDemand(strings.NewReader("consumer,allocation,units,ncpus\n/A,a,8,1\n/B,b,1,1\n"),
		table.Options{Format: table.CSV, Dimensions: s.Policy.Dimensions})
	if err == nil {
		err = s.SetDemand("s", d)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Settle(120e6)
	g, out = laid(s)
	g.Review()
	out.Book(s, g.p, 120e6)
	if err := s.Verify(); err != nil {
		t.Fatal(err)
	}
	if s.Leaving() != 1 || s.Promised() != 1 {
		t.Fatalf("%d units are under reclaim, %d promised; want 1 and 1", s.Leaving(), s.Promised())
	}
}

// TestPrefer holds that a unit is promised on the leaf's own parcels that are asked for, and on no others; and that
// what is granted meanwhile takes room.
func TestPrefer(t *testing.T) {
	const policy = `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: G, hosts: [h1, h2]}]
consumers: [{path: /A}, {path: /B}]
md_plans:
  - name: p
    resource_groups: [{name: G}]
    reclaim_for_preference: true
    consumers: [{path: /A, own: [{group: G, percent: 100}]}, {path: /B}]
`
	const hosts, demand = "host,ncpus\nh1,4\nh2,4\n", "consumer,allocation,units,ncpus\n/A,a,8,1\n/B,b,4,1\n"
	g, _ := stageOf(t, policy, hosts, demand, "consumer,allocation,host,units\n/B,b,h1,4\n")
	s := g.s
	var owned owner.Decisions
	new(owner.Passes).Decide(owner.New(s, g.p), &owned)
	owned.Book(s, g.p)
	g, out := laid(s)
	a := slices.IndexFunc(s.Sub.Consumer, func(c cluster.ConsumerID) bool {
		return s.Consumer.String(int32(c)) == "/A"
	})
	on := func(host string) func(k cluster.ParcelID) bool {
		return func(k cluster.ParcelID) bool { return s.Host.String(int32(g.p.Parcels.Host[k])) == host }
	}
	if !g.Prefer(cluster.SubID(a), on("h1")) {
		t.Fatal("nothing is recalled of h1")
	}
	for k := range cluster.ParcelID(g.p.Parcels.Len()) {
		for n := 0; n < 4 && on("h2")(k); n++ {
			g.Hold(cluster.SubID(a), k)
		}
	}
	if g.Prefer(cluster.SubID(a), on("h2")) {
		t.Fatal("h2 is full of what /A was granted, and something is promised there")
	}
	out.Book(s, g.p, 60e6)
	if s.Leaving() != 1 || s.Promised() != 1 || g.sets.list[0].reason != decision.ReclaimRecall {
		t.Fatalf("%d units are under reclaim, %d promised", s.Leaving(), s.Promised())
	}
}
