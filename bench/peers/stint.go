package main

import (
	"slices"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
)

// stint has stint place the units: medians of cold cycles, each of which begins with a state that knows nothing, and
// hosts and demand as columns. The first one does not count. Errors: tables that the policy refuses.
func stint(o *options) (*placed, error) {
	policy, err := o.policy()
	if err != nil {
		return nil, err
	}
	hosts, demand := o.tables()
	p := &placed{Ended: "all"}
	var seconds, cpu []float64
	for round := range o.cycles + 1 {
		before, begin := usage(), time.Now()
		s, err := cluster.New(policy)
		if err == nil {
			err = s.SetHosts(hosts, true)
		}
		if err == nil {
			err = s.SetDemand("peers", demand)
		}
		if err != nil {
			return nil, err
		}
		var runner cycle.Runner
		var out decision.Cycle
		runner.Run(s, 0, &out)
		after := usage()
		p.Units, p.PeakBytes = out.Summary.UnitsGranted, after.peak
		if round > 0 {
			seconds, cpu = append(seconds, time.Since(begin).Seconds()), append(cpu, after.seconds-before.seconds)
		}
	}
	p.Seconds, p.CPU = median(seconds), median(cpu)
	return p, nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
