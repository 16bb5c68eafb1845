package reason_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/reason"
	"github.com/stintd/stint/core/view"
	"github.com/stintd/stint/datasets"
)

// site is a state that the engine brings to rest, and what is kept of it for reasons.
type site struct {
	state   *cluster.State
	runner  cycle.Runner
	out     decision.Cycle
	nowUS   int64
	views   view.Views
	reasons reason.Reasons
}

// newSite is a state with the input of a data set.
func newSite(tb testing.TB, d *datasets.Dataset, err error) *site {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	p, err := plan.Parse("plan.yaml", d.Plan)
	if err != nil {
		tb.Fatal(err)
	}
	v := new(site)
	if v.state, err = cluster.New(p); err == nil {
		err = v.state.SetHosts(d.Hosts, true)
	}
	if err == nil {
		err = v.state.SetDemand("s", d.Demand)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// rest runs cycles to a fixed point, where no unit joins sets under way.
func (v *site) rest(tb testing.TB) {
	tb.Helper()
	for range 100 {
		v.nowUS += 600e6
		if v.runner.Run(v.state, v.nowUS, &v.out); v.out.Summary.Stable() {
			return
		}
	}
	tb.Fatal("no fixed point")
}

// env is what reasons go by at rest: nothing was denied or joined, and all is as it was once everything was granted.
func (v *site) env() *reason.Env {
	p := &v.state.Plans[0]
	v.views.Follow(v.state, p)
	e := &reason.Env{Env: pool.New(v.state, p, &v.views), Promises: new(pool.Promises), Figures: new(pool.Book)}
	e.Promises.Sum(e.Env)
	e.Limits = pool.NewLimits(&e.Env, e.Promises)
	e.Granted = e.Limits
	e.Figures.Sum(&e.Env, e.Promises)
	return e
}

// lines are shortfalls as text; those of the table as the engine filled it.
func (v *site) lines(out *reason.Shortfalls) (got, want []string) {
	s := v.state
	for i, sub := range out.Sub.Values() {
		blocker, detail := decision.Null, ""
		if n := out.Blocker.At(i); n != plan.None {
			blocker = int32(s.ConsumerOf[n])
		}
		if text := out.Detail.At(i); text != decision.Null {
			detail = out.Details.String(text)
		}
		got = append(got, fmt.Sprint(s.Sub.Consumer[sub], s.Alloc.Name[s.Sub.Alloc[sub]], s.Sub.Name[sub],
			out.Units.At(i), out.Reason.At(i), out.Dimension.At(i), blocker, out.Until.At(i), " ", detail))
	}
	t := &v.out.Shortfalls
	for i, units := range t.UnitsShort {
		want = append(want, fmt.Sprint(t.Consumer.Code[i], t.Allocation.Code[i], t.Sub.Code[i], units, t.Reason.Code[i],
			t.Dimension.Code[i], t.Blocker.Code[i], t.Until[i], " ", t.Detail.At(i)))
	}
	return got, want
}

// TestLarge holds reasons on clusters in which whole ranges of parcels are counted at once, kept from one fixed point
// to the next, against the engine's, which are kept from cycle to cycle.
func TestLarge(t *testing.T) {
	o := datasets.Options{Hosts: 1_500, Consumers: 120, Units: 120_000, Shapes: 30, Seed: 7}
	all := map[string]int{}
	for name, make := range map[string]func(datasets.Options) (*datasets.Dataset, error){
		"grid": datasets.Grid, "hetero": datasets.Hetero, "gpu": datasets.GPU, "lenders": datasets.Lenders,
	} {
		t.Run(name, func(t *testing.T) {
			d, err := make(o)
			v := newSite(t, d, err)
			for round := range 4 {
				v.rest(t)
				out := reason.Shortfalls{Details: new(cluster.Names)}
				v.reasons.Explain(v.env(), &out)
				got, want := v.lines(&out)
				for i := range max(len(got), len(want)) {
					if i >= len(got) || i >= len(want) || got[i] != want[i] {
						t.Fatalf("round %d, row %d: %q, want %q", round, i, got[i:min(i+1, len(got))],
							want[i:min(i+1, len(want))])
					}
					all[decision.Reasons[out.Reason.At(i)]]++
				}
				v.change(t, d, round)
			}
			if v.reasons.Rebuilt() > 1 {
				t.Errorf("rooms were made anew %d times", v.reasons.Rebuilt())
			}
		})
	}
	if t.Logf("rows by reason: %v", all); len(all) < 4 {
		t.Error("few reasons came up")
	}
}

// change has one row in a hundred want something else.
func (v *site) change(tb testing.TB, d *datasets.Dataset, round int) {
	units := slices.Clone(d.Demand.Units)
	for i := round; i < len(units); i += 100 {
		units[i] += int64(1 + i%3)
	}
	next := *d.Demand
	next.Units = units
	if err := v.state.SetDemand("s", &next); err != nil {
		tb.Fatal(err)
	}
}
