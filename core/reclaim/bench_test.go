package reclaim_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/md"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/reclaim"
	"github.com/stintd/stint/core/view"
	"github.com/stintd/stint/datasets"
)

// BenchmarkReclaim takes back after the grants of a cold cycle, in turn with core/md's stage and with this package,
// and tells the medians, in the time of a clock and in that of processors: of the whole stage, and of the decisions
// alone, without views and booking. The stage of core/md computes figures beside, which are not computed here.
func BenchmarkReclaim(b *testing.B) {
	for _, one := range []struct {
		name  string
		make  func(o datasets.Options) (*datasets.Dataset, error)
		units int64
	}{
		{"grid", datasets.Grid, 1_000_000},
		{"grid of more units", datasets.Grid, 2_000_000},
		{"lending", datasets.Lenders, 1_000_000},
	} {
		b.Run(one.name, func(b *testing.B) {
			d, err := one.make(datasets.Options{Hosts: 100_000, Consumers: 10_000, Units: one.units, Shapes: 200, Seed: 1})
			if err != nil {
				b.Fatal(err)
			}
			p, err := plan.Parse("plan.yaml", d.Plan)
			if err != nil {
				b.Fatal(err)
			}
			var today, rebuilt, decided medians
			for b.Loop() {
				s := stateOf(b, p, d)
				m := granted(s)
				today.time(func() { m.Reclaim(func() {}) })
				was := told(s)
				s = stateOf(b, p, d)
				granted(s)
				rebuilt.time(func() { takeBack(s, &decided) })
				if now := told(s); now != was {
					b.Fatalf("%s; core/md: %s", now, was)
				}
				b.Log(was)
			}
			today.report(b, "today")
			rebuilt.report(b, "rebuilt")
			decided.report(b, "decided")
		})
	}
}

// told is what is held and under way, in a line.
func told(s *cluster.State) string {
	return fmt.Sprintf("%d units held, %d under reclaim, %d promised", s.HeldUnits(), s.Leaving(), s.Promised())
}

// granted carries a state beyond its grants.
func granted(s *cluster.State) *md.Planner {
	s.Settle(60e6)
	m := new(md.Planner)
	s.Plans[0].Rebuilt, s.Plans[0].Dirty = true, true
	m.Attach(s, &s.Plans[0], 60e6)
	m.Own()
	m.Entitle()
	m.Grant(func() {})
	return m
}

// takeBack is the stage by this package; decided takes the time of its decisions.
func takeBack(s *cluster.State, decided *medians) {
	p := &s.Plans[0]
	var views view.Views
	var stage reclaim.Stage
	var out reclaim.Decisions
	views.Follow(s, p)
	selected := func(need cluster.NeedID) []uint64 {
		set, _ := views.Needs.Of(s, p, need)
		return set
	}
	e := reclaim.Env{Env: pool.New(s, p, &views), Cycle: reclaim.NewCycle(s, p), NowUS: 60e6, Selected: selected}
	decided.time(func() {
		stage.Begin(&e, &out)
		stage.Rules()
		stage.Recall()
		stage.Fair()
	})
	out.Book(s, p, 60e6)
	views.Follow(s, p)
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
func stateOf(b testing.TB, p *plan.Policy, d *datasets.Dataset) *cluster.State {
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
