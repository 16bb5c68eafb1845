package cycle_test

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// processorUS is what the process has used of its processors.
func processorUS() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("BUG: " + err.Error())
	}
	return (u.Utime.Nano() + u.Stime.Nano()) / 1000
}

// BenchmarkWhole tells the processor time of each of eight cycles of 100,000 hosts and a million units, and of its
// stages: a cold one, four with nothing new, three in which one row in a hundred changed. A machine with other work
// tells little by its clock: go test -run '^$' -bench Whole -benchtime 1x ./core/cycle
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
				wholeCycles(b, d)
			}
		})
	}
}

// wholeCycles plays the cycles and logs what each took.
func wholeCycles(b *testing.B, d *datasets.Dataset) {
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
	r := cycle.Runner{Clock: processorUS}
	var out decision.Cycle
	for i := range 8 {
		began := processorUS()
		r.Run(s, int64(i+1)*600e6, &out)
		text := fmt.Sprintf("cycle %d: %d ms, %d units held", i, (processorUS()-began)/1000, s.HeldUnits())
		for stage, us := range out.Summary.StageUS {
			text += fmt.Sprintf(" · %s %d", decision.Stages[stage], us/1000)
		}
		b.Log(text)
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
