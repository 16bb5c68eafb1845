package cycle_test

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// processorTime is what the process has used of its processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("BUG: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWhole tells the processor time of eight cycles of 100,000 hosts and a million units, by core/md and by the
// packages that are to take its place: a cold one, four with nothing new, three in which one row in a hundred changed.
// Those of core/md fill their tables, the others do not: go test -run '^$' -bench Whole -benchtime 1x ./core/cycle
func BenchmarkWhole(b *testing.B) {
	for name, make := range map[string]func(datasets.Options) (*datasets.Dataset, error){
		"grid": datasets.Grid, "lenders": datasets.Lenders,
	} {
		b.Run(name, func(b *testing.B) {
			d, err := make(datasets.Options{Hosts: 100_000, Consumers: 10_000, Units: 1_000_000, Shapes: 200, Seed: 1})
			if err != nil {
				b.Fatal(err)
			}
			for range b.N {
				for _, new := range []bool{false, true} {
					wholeCycles(b, d, new)
				}
			}
		})
	}
}

// wholeCycles plays the cycles and logs what each took.
func wholeCycles(b *testing.B, d *datasets.Dataset, new bool) {
	p, err := plan.Parse("plan.yaml", d.Plan)
	if err != nil {
		b.Fatal(err)
	}
	s, err := cluster.New(p)
	if err == nil {
		err = errors.Join(s.SetHosts(d.Hosts, true), s.SetDemand("s", d.Demand))
	}
	if err != nil {
		b.Fatal(err)
	}
	g := &whole{seen: map[string]int{}, state: s}
	g.plans = append(g.plans, &planCycle{whole: g})
	var r cycle.Runner
	var out decision.Cycle
	for i := range 8 {
		now, began, laps := int64(i+1)*600e6, processorTime(), ""
		if !new {
			r.Run(s, now, &out)
		} else {
			laps = wholeCycle(g, now)
		}
		b.Logf("new %t, cycle %d: %d ms, %d units held%s", new, i, (processorTime() - began).Milliseconds(), s.HeldUnits(), laps)
		if i < 4 {
			continue
		}
		next := *d.Demand
		next.Units = slices.Clone(d.Demand.Units)
		for row := i; row < len(next.Units); row += 100 {
			next.Units[row] += int64(1 + row%3)
		}
		if err := s.SetDemand("s", &next); err != nil {
			b.Fatal(err)
		}
	}
}

// wholeCycle plays a cycle by the new packages, and tells the milliseconds of its stages.
func wholeCycle(g *whole, nowUS int64) (laps string) {
	s, one, last := g.state, g.plans[0], processorTime()
	one.lap = func(what string) {
		now := processorTime()
		laps += fmt.Sprintf(" · %s %d", what, (now - last).Milliseconds())
		last = now
	}
	s.Settle(nowUS)
	one.lap("settle")
	one.s, one.p, one.nowUS, one.granted, one.joined = s, &s.Plans[0], nowUS, false, nil
	one.own()
	one.lap("own")
	one.play()
	one.explain()
	one.lap("explain")
	s.Finish(s.Cycle+1, nowUS)
	return laps
}
