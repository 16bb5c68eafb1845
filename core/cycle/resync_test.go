package cycle_test

import (
	"fmt"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// TestReserveAfterResync plays what random cases do not come across, as nothing is granted out of a reserve.
func TestReserveAfterResync(t *testing.T) {
	if err := reserveAfterResync(); err != nil {
		t.Fatal(err)
	}
}

// reserveAfterResync has a source say that it runs more on a lender's host than its reserve leaves, after a cycle in
// which that was left alone: the next one takes back what is too much.
func reserveAfterResync() error {
	p, err := plan.Parse("plan.yaml", []byte(`
stint: 1
dimensions: [ncpus]
resource_groups: [{name: G, select: "select(ncpus > 0)"}]
consumers: [{path: /A}, {path: /B}]
md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A, own: [{group: G, percent: 100}], reserve: {amount: {ncpus: 3}}}, {path: /B}]}]
`))
	if err != nil {
		return err
	}
	s, err := cluster.New(p)
	if err != nil {
		return err
	}
	w, size := tables{p, 0}, map[string]int64{"ncpus": 1}
	if err := s.SetHosts(w.hosts([]oracle.Host{{Name: "h1", State: "ok", Size: map[string]int64{"ncpus": 5}}}),
		true); err != nil {
		return err
	}
	if err := s.SetDemand("x",
		w.demand([]oracle.Demand{{Consumer: "/B", Allocation: "b", Units: 5, Size: size,
			MaxPerHost: plan.Unlimited}})); err != nil {
		return err
	}
	var runner cycle.Runner
	var out decision.Cycle
	runner.Run(s, 60e6, &out)
	if out.Summary.UnitsGranted != 2 {
		return fmt.Errorf("%d units granted, not 2", out.Summary.UnitsGranted)
	}
	if _, added, err := s.SetRunning("x",
		w.holdings([]oracle.Holding{{Consumer: "/B", Allocation: "b", Host: "h1", Units: 4}})); err != nil ||
		added != 2 {
		return fmt.Errorf("%d units added, not 2: %v", added, err)
	}
	runner.Run(s, 120e6, &out)
	units := int64(0)
	for row, n := range out.Reclaims.Units {
		if out.Reclaims.Reason.At(row) == "reserve" && out.Reclaims.Action.At(row) == "issued" {
			units += n
		}
	}
	if units != 2 {
		return fmt.Errorf("%d units taken back for the reserve, not 2", units)
	}
	return nil
}
