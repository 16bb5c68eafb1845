package measure

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

func options(t *testing.T) Options {
	t.Helper()
	d, err := datasets.Grid(datasets.Options{Hosts: 60, Consumers: 8, Units: 2000, Shapes: 4, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Parse("plan.yaml", d.Plan)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Policy: p, Hosts: d.Hosts, Demand: d.Demand, Change: 0.05, Cycles: 3, Seed: 1}
}

// TestRun holds what must be the same in two runs, and that the demand is as it was before.
func TestRun(t *testing.T) {
	o := options(t)
	units := slices.Clone(o.Demand.Units)
	steps := 0
	o.Progress = func(done, all int) {
		if steps++; done != steps || all != 8 {
			t.Errorf("step %d of %d, want %d of 8", done, all, steps)
		}
	}
	first, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	if steps != 8 {
		t.Errorf("%d steps, want 8", steps)
	}
	if !slices.Equal(units, o.Demand.Units) {
		t.Error("the demand is another after measuring")
	}
	for name, q := range map[string]Quantiles{"cold": first.ColdMS, "warm": first.WarmMS,
		"unchanged": first.UnchangedMS, "floor": first.FloorMS} {
		if q.N != 3 || !(q.P50 > 0) || q.P99 < q.P50 || q.Max < q.P99 {
			t.Errorf("%s: %+v", name, q)
		}
	}
	if first.UnitsWanted != 2000 || first.UnitsPlaced <= 0 || first.UnitsPlaced > 2000 {
		t.Errorf("%d of %d units placed", first.UnitsPlaced, first.UnitsWanted)
	}
	if want := int(0.05 * float64(o.Demand.Rows)); first.Changed != max(2, want) {
		t.Errorf("%d rows changed, want %d of %d", first.Changed, want, o.Demand.Rows)
	}
	o.Progress = nil
	second, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := timeless(t, first), timeless(t, second); a != b {
		t.Errorf("two runs differ in more than times:\n%s\n%s", a, b)
	}
}

// timeless is a result without times and memory, as JSON.
func timeless(t *testing.T, r *Result) string {
	c := *r
	c.ColdMS, c.WarmMS, c.UnchangedMS, c.FloorMS = Quantiles{}, Quantiles{}, Quantiles{}, Quantiles{}
	c.ColdOverFloor, c.WarmOverFloor, c.DecisionsPerSecond, c.PeakRSSBytes = 0, 0, 0, 0
	c.AllocsPerWarmCycle, c.BytesPerWarmCycle, c.ColdStageUS, c.WarmStageUS = 0, 0, nil, nil
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRefused(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no cycle":     func(o *Options) { o.Cycles = 0 },
		"no change":    func(o *Options) { o.Change = 0 },
		"too much":     func(o *Options) { o.Change = 1.5 },
		"not a number": func(o *Options) { o.Change = math.NaN() },
		"no demand":    func(o *Options) { o.Demand.Rows = 0 },
	} {
		o := options(t)
		change(&o)
		if _, err := Run(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestQuantiles(t *testing.T) {
	var hundred []float64
	for i := range 100 {
		hundred = append(hundred, float64(100-i))
	}
	for _, c := range []struct {
		values []float64
		want   Quantiles
	}{
		{nil, Quantiles{}},
		{[]float64{7}, Quantiles{7, 7, 7, 1}},
		{[]float64{3, 1}, Quantiles{2, 3, 3, 2}},
		{hundred, Quantiles{50.5, 99, 100, 100}},
	} {
		if got := quantiles(c.values); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.values, got, c.want)
		}
	}
}

func TestShareError(t *testing.T) {
	s := decision.Shares{Usage: []float64{0.5, 0.25}, UsageQuota: []float64{0.25, 0.375}}
	if got := ShareError(&s); got != 0.25 {
		t.Errorf("%g, want 0.25", got)
	}
}
