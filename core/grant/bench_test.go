package grant_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/grant"
	"github.com/stintd/stint/core/md"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/view"
	"github.com/stintd/stint/datasets"
)

// BenchmarkGrant hands out a million units of 200 sizes to 10,000 consumers on 100,000 hosts, in turn with core/md's
// stage and with this package, and tells the medians: of all that the stage does, and of the loop of MD-16 alone.
func BenchmarkGrant(b *testing.B) {
	d, err := datasets.Grid(datasets.Options{Hosts: 100_000, Consumers: 10_000, Units: 1_000_000, Shapes: 200, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	p, err := plan.Parse("plan.yaml", d.Plan)
	if err != nil {
		b.Fatal(err)
	}
	var today, rebuilt, turn []float64
	for b.Loop() {
		s := stateOf(b, p, d)
		m := entitled(s)
		begin := time.Now()
		m.Grant(func() {})
		today = append(today, float64(time.Since(begin).Microseconds())/1e3)
		was := s.HeldUnits()

		s = stateOf(b, p, d)
		entitled(s)
		begin = time.Now()
		inPool := handOut(s)
		rebuilt = append(rebuilt, float64(time.Since(begin).Microseconds())/1e3)
		turn = append(turn, float64(inPool.Microseconds())/1e3)
		if now := s.HeldUnits(); now != was {
			b.Fatalf("%d units are held, core/md grants %d", now, was)
		}
	}
	for _, one := range []struct {
		name string
		ms   []float64
	}{{"today-ms", today}, {"rebuilt-ms", rebuilt}, {"turn-ms", turn}} {
		slices.Sort(one.ms)
		b.ReportMetric(one.ms[len(one.ms)/2], one.name)
	}
}

// stateOf is a state with the input of a data set.
func stateOf(b *testing.B, p *plan.Policy, d *datasets.Dataset) *cluster.State {
	s, err := cluster.New(p)
	if err == nil {
		err = s.SetHosts(d.Hosts, true)
	}
	if err == nil {
		err = s.SetDemand("s", d.Demand)
	}
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// entitled carries a state to its grant stage.
func entitled(s *cluster.State) *md.Planner {
	s.Settle(60e6)
	m := new(md.Planner)
	s.Plans[0].Rebuilt, s.Plans[0].Dirty = true, true
	m.Attach(s, &s.Plans[0], 60e6)
	m.Own()
	m.Entitle()
	return m
}

// handOut is the stage by this package; it tells how long the public pool's turn took.
func handOut(s *cluster.State) (turn time.Duration) {
	p := &s.Plans[0]
	var views view.Views
	var granter grant.Granter
	views.Follow(s, p)
	e := grant.Env{Env: pool.New(s, p, &views), Promises: new(pool.Promises), Needs: new(grant.Needs), Rules: grant.NewRules(p)}
	e.Promises.Sum(e.Env)
	e.Limits = grant.NewLimits(&e)
	for _, n := range e.List() {
		var out grant.Decisions
		begin := time.Now()
		granter.Pool(&e, n, &out)
		turn += time.Since(begin)
		runs, parcels := out.Runs(&e, s.Cycle+1, nil)
		s.HoldAll(nil, runs, parcels, nil)
		views.Follow(s, p)
	}
	return turn
}
