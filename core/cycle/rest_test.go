package cycle_test

import (
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// TestLendersRest plays thousands of consumers in four levels with units of many sizes, who take from each other what
// is fair at one level and not at another: with turns (docs/shares.md) they come to rest (INV-10), without they do not
// in a thousand cycles. One unit more does not have them begin anew.
func TestLendersRest(t *testing.T) {
	s, d := lenders(t, datasets.Options{Hosts: 5000, Consumers: 5000, Units: 50_000, Shapes: 200, Seed: 1})
	var runner cycle.Runner
	var out decision.Cycle
	for change := range 3 { // others want something else: their leaves may take again
		switch change {
		case 1:
			for row := 1; row < len(d.Demand.Units); row += 10 {
				d.Demand.Units[row] = d.Demand.Units[row]/2 + 1
			}
		case 2:
			d.Demand.Units[0]++
		}
		if err := s.SetDemand("x", d.Demand); err != nil {
			t.Fatal(err)
		}
		cycles, reclaims := 0, int64(0)
		for still := false; !still; still = out.Summary.Stable() {
			if cycles++; cycles > 150 {
				t.Fatalf("no fixed point within %d cycles of change %d", cycles-1, change)
			}
			runner.Run(s, s.NowUS+60e6, &out)
			for i, n := range out.Reclaims.Units {
				if out.Reclaims.Reason.At(i) == "fair_share" {
					reclaims += n
				}
			}
		}
		t.Logf("change %d: at rest after %d cycles, %d units taken back for shares", change, cycles, reclaims)
		if change < 2 && reclaims == 0 {
			t.Error("nothing was taken back")
		}
		if change == 2 && reclaims > 10 {
			t.Errorf("for one unit that somebody wants more %d were taken back", reclaims)
		}
	}
	if err := s.Verify(); err != nil {
		t.Fatal(err)
	}
}

// lenders is a state with the policy and hosts of a cluster of lenders, and its demand to be set.
func lenders(t *testing.T, o datasets.Options) (*cluster.State, *datasets.Dataset) {
	t.Helper()
	d, err := datasets.Lenders(o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Parse("plan.yaml", d.Plan)
	if err != nil {
		t.Fatal(err)
	}
	s, err := cluster.New(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetHosts(d.Hosts, true); err != nil {
		t.Fatal(err)
	}
	return s, d
}

// TestTurns holds that fair reclaim from a sub-allocation counts as a turn of that sub-allocation (INV-10): /A has all
// 8 units, and /B takes its half.
func TestTurns(t *testing.T) {
	p, err := plan.Parse("plan.yaml", []byte("stint: 1\ndimensions: [ncpus]\n"+
		"resource_groups: [{name: G, hosts: [h]}]\nconsumers: [{path: /A}, {path: /B}]\n"+
		"md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A}, {path: /B}]}]"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := cluster.New(p)
	if err != nil {
		t.Fatal(err)
	}
	w := tables{p, 0}
	host := oracle.Host{Name: "h", State: "ok", Size: map[string]int64{"ncpus": 8}}
	if err := s.SetHosts(w.hosts([]oracle.Host{host}), true); err != nil {
		t.Fatal(err)
	}
	var runner cycle.Runner
	var out decision.Cycle
	for i, consumer := range []string{"/A", "/B"} {
		demand := oracle.Demand{Consumer: consumer, Allocation: "a", Units: 8, Size: map[string]int64{"ncpus": 1},
			MaxPerHost: plan.Unlimited}
		if err := s.SetDemand(consumer, w.demand([]oracle.Demand{demand})); err != nil {
			t.Fatal(err)
		}
		runner.Run(s, s.NowUS+60e6, &out)
		if got, want := s.Sub.Turns[0], int8(i); got != want {
			t.Errorf("when %s asks /A has had %d turns, want %d", consumer, got, want)
		}
	}
	if out.Summary.UnitsReclaimed != 4 {
		t.Errorf("%d units are taken back, want 4", out.Summary.UnitsReclaimed)
	}
}
