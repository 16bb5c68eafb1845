package grant_test

import (
	"slices"
	"syscall"
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
// stage and with this package, and tells the medians, in the time of a clock and in that of processors, which tells
// more on a machine that others use too: of the whole stage, and of the public pool's turn alone, without views and
// booking; and of its next turn, when one sub-allocation in a hundred has lost a unit.
func BenchmarkGrant(b *testing.B) {
	d, err := datasets.Grid(datasets.Options{Hosts: 100_000, Consumers: 10_000, Units: 1_000_000, Shapes: 200, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	p, err := plan.Parse("plan.yaml", d.Plan)
	if err != nil {
		b.Fatal(err)
	}
	var today, rebuilt, turn, next medians
	for b.Loop() {
		s := stateOf(b, p, d)
		m := owned(s)
		m.Entitle()
		today.time(func() { m.Grant(func() {}) })
		was := s.HeldUnits()
		s = stateOf(b, p, d)
		owned(s)
		var stage stage
		rebuilt.time(func() { stage.handOut(s, &turn) })
		if now := s.HeldUnits(); now != was {
			b.Fatalf("%d units are held, core/md grants %d", now, was)
		}
		for sub := 0; sub < len(s.Sub.Wanted); sub += 100 {
			if q := s.Sub.First[sub]; q != cluster.NoID {
				s.Shrink(q, 1)
			}
		}
		stage.handOut(s, &next)
	}
	today.report(b, "today")
	rebuilt.report(b, "rebuilt")
	turn.report(b, "turn")
	next.report(b, "next")
}

// medians are times in milliseconds, of a clock and of processors.
type medians struct{ clock, processor []float64 }

// time calls f and takes its time.
func (m *medians) time(f func()) {
	begin, used := time.Now(), processorTime()
	f()
	m.processor = append(m.processor, (processorTime()-used).Seconds()*1e3)
	m.clock = append(m.clock, time.Since(begin).Seconds()*1e3)
}

// report tells the medians.
func (m *medians) report(b *testing.B, name string) {
	slices.Sort(m.clock)
	slices.Sort(m.processor)
	b.ReportMetric(m.clock[len(m.clock)/2], name+"-ms")
	b.ReportMetric(m.processor[len(m.processor)/2], name+"-cpu-ms")
}

// processorTime is what all threads have used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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

// owned carries a state beyond stage own. Of a state without reclaims the stage behind it changes nothing.
func owned(s *cluster.State) *md.Planner {
	s.Settle(60e6)
	m := new(md.Planner)
	s.Plans[0].Rebuilt, s.Plans[0].Dirty = true, true
	m.Attach(s, &s.Plans[0], 60e6)
	m.Own()
	return m
}

// stage is the stage by this package.
type stage struct {
	views   view.Views
	granter grant.Granter
}

// handOut hands out what is free; turn takes the time of the public pool's turn.
func (v *stage) handOut(s *cluster.State, turn *medians) {
	p := &s.Plans[0]
	v.views.Follow(s, p)
	e := grant.Env{Env: pool.New(s, p, &v.views), Promises: new(pool.Promises)}
	e.Promises.Sum(e.Env)
	e.Limits = pool.NewLimits(&e.Env, e.Promises)
	for _, n := range e.List() {
		var out grant.Decisions
		turn.time(func() { v.granter.Pool(&e, n, &out) })
		runs, parcels := out.Runs(&e, s.Cycle+1, nil)
		s.HoldAll(nil, runs, parcels, nil)
		v.views.Follow(s, p)
	}
}
