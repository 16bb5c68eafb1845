package measure

import (
	"math"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// TestBounds: no cycle of a generated cluster of any kind holds more than the bound says; after
// the first, when nothing is in the wrong place yet, the bound is not far off.
func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		generate func(datasets.Options) (*datasets.Dataset, error)
		least    float64 // of the bound
	}{
		"grid": {datasets.Grid, 0.95}, "gpu": {datasets.GPU, 0.85}, "hetero": {datasets.Hetero, 0.8},
		"slots": {datasets.Slots, 0.98}, "owners": {datasets.Owners, 0.5}, "lenders": {datasets.Lenders, 0.85},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := c.generate(datasets.Options{Hosts: 100, Consumers: 10, Units: 3000, Shapes: 5, Seed: 2})
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Parse("plan.yaml", d.Plan)
			if err != nil {
				t.Fatal(err)
			}
			s, err := cluster.New(p)
			if err == nil {
				err = s.SetHosts(d.Hosts, true)
			}
			if err == nil {
				err = s.SetDemand(source, d.Demand)
			}
			if err != nil {
				t.Fatal(err)
			}
			var runner cycle.Runner
			var out decision.Cycle
			for n := range 6 {
				runner.Run(s, s.NowUS+p.IntervalUS, &out)
				bounds, err := Bounds(s)
				if err != nil {
					t.Fatal(err)
				}
				if len(bounds) != len(s.Plans) {
					t.Fatalf("%d bounds of %d plans", len(bounds), len(s.Plans))
				}
				for _, b := range bounds {
					if b.Ratio > 1 || n == 0 && b.Ratio < c.least {
						t.Errorf("cycle %d, plan %s: %g of the bound is held, want from %g to 1", n+1, b.Plan, b.Ratio,
							c.least)
					}
					if len(b.Scarcity) != len(b.Dimensions) {
						t.Errorf("plan %s: scarcity of %d dimensions, there are %v", b.Plan, len(b.Scarcity),
							b.Dimensions)
					}
				}
				for i := 0; i < len(d.Demand.Units); i += 7 {
					d.Demand.Units[i] = d.Demand.Units[i]*int64(i%3) + 1
				}
				if err := s.SetDemand(source, d.Demand); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestBoundsOfSlots: of a slot plan in which more is wanted than there is, all hosts are held, and so says the bound.
func TestBoundsOfSlots(t *testing.T) {
	d, err := datasets.Slots(datasets.Options{Hosts: 3, Consumers: 2, Units: 50, Shapes: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Parse("plan.yaml", d.Plan)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(Options{Policy: p, Hosts: d.Hosts, Demand: d.Demand, Change: 0.5, Cycles: 1, Bound: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Bounds) != 1 || r.Bounds[0].Dimensions[0] != "slots" {
		t.Fatalf("%+v", r.Bounds)
	}
	b := r.Bounds[0]
	if math.Abs(b.Bound-3) > 1e-3 || b.Ratio > 1 || b.Ratio < 0.999 {
		t.Errorf("%.6f of %.6f mean hosts are held, want all 3: %+v", b.Granted, b.Bound, b.Result)
	}
}
