package main

import (
	"testing"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// BenchmarkCold is the suites as Go benchmarks, for profiles.
func BenchmarkCold(b *testing.B) {
	for _, s := range suites {
		b.Run(s.Name, func(b *testing.B) {
			d, err := s.make(datasets.Options{Hosts: s.Hosts, Consumers: s.Consumers, Units: s.Units, Shapes: s.Shapes,
				Seed: 1})
			if err != nil {
				b.Fatal(err)
			}
			p, err := plan.Parse("plan.yaml", d.Plan)
			if err != nil {
				b.Fatal(err)
			}
			r := &result{suite: s, data: d, policy: p}
			b.ReportAllocs()
			for b.Loop() {
				if err := r.once(true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
