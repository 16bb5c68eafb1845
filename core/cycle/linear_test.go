package cycle_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// ratioMax is how much longer four times as much may take: twice what is linear, so that a noisy machine passes and a
// quadratic loop (16) does not.
const ratioMax = 8

// growing is a cluster of one plan with equal hosts.
type growing struct {
	t      *testing.T
	state  *cluster.State
	tables tables
	runner cycle.Runner
	out    decision.Cycle
}

// newGrowing makes one with leaves /L0, /L1, … and hosts of 128 ncpus.
func newGrowing(t *testing.T, leaves, hosts int) *growing {
	t.Helper()
	text := "stint: 1\ndimensions: [ncpus, mem]\nresource_groups: [{name: G, select: \"select(ncpus > " +
		"0)\"}]\nconsumers:\n"
	for i := range leaves {
		text += fmt.Sprintf("- {path: /L%d}\n", i)
	}
	text += "md_plans:\n- name: p\n  resource_groups: [{name: G}]\n  consumers:\n"
	for i := range leaves {
		text += fmt.Sprintf("  - {path: /L%d}\n", i)
	}
	p, err := plan.Parse("plan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := &growing{t: t, tables: tables{p, 0}}
	if s.state, err = cluster.New(p); err != nil {
		t.Fatal(err)
	}
	rows := make([]oracle.Host, hosts)
	for i := range rows {
		rows[i] = oracle.Host{Name: fmt.Sprintf("h%d", i), State: "ok",
			Size: map[string]int64{"ncpus": 128, "mem": 1 << 20}}
	}
	s.must(s.state.SetHosts(s.tables.hosts(rows), true))
	return s
}

func (s *growing) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *growing) cycle() { s.runner.Run(s.state, s.state.NowUS+60e6, &s.out) }

// jobs is a table of n allocations of a leaf, of one unit size, with so many units each; below 0 there is no row.
func (s *growing) jobs(leaf string, n int, units func(i int) int64) *cluster.DemandTable {
	var rows []oracle.Demand
	for i := range n {
		if u := units(i); u >= 0 {
			rows = append(rows, job(leaf, i, u))
		}
	}
	return s.tables.demand(rows)
}

// job is a row of demand for units of 1 ncpus.
func job(leaf string, i int, units int64) oracle.Demand {
	return oracle.Demand{Consumer: leaf, Allocation: fmt.Sprintf("job%d", i), Units: units,
		Size: map[string]int64{"ncpus": 1}, MaxPerHost: plan.Unlimited}
}

func always(u int64) func(int) int64 { return func(int) int64 { return u } }

// growths are things that may come in any number: each gives, for one of these numbers, what is to be timed.
var growths = []struct {
	name string
	n    int
	of   func(t *testing.T, n int) func()
}{
	{"allocations of a leaf change after a fair reclaim", 2000, func(t *testing.T, n int) func() {
		s := newGrowing(t, 2, n/128+1)
		s.must(s.state.SetDemand("a", s.jobs("/L0", n, always(2))))
		s.cycle()
		s.must(s.state.SetDemand("b", s.jobs("/L1", 10, always(1))))
		s.cycle()
		if s.out.Summary.UnitsReclaimed == 0 {
			t.Fatal("nothing was reclaimed")
		}
		table := s.jobs("/L0", n, always(3))
		return func() {
			s.must(s.state.SetDemand("a", table))
			s.cycle()
		}
	}},
	{"half of the allocations of a leaf go", 4000, func(t *testing.T, n int) func() {
		s := newGrowing(t, 2, 2*n/128+1)
		s.must(s.state.SetDemand("a", s.jobs("/L0", n, always(1))))
		s.cycle()
		table := s.jobs("/L0", n, func(i int) int64 { return int64(i*7919%64/32)*2 - 1 })
		return func() {
			s.must(s.state.SetDemand("a", table))
			s.cycle()
		}
	}},
	{"half of the sub-allocations of an allocation go", 4000, func(t *testing.T, n int) func() {
		s := newGrowing(t, 1, n/128+1)
		rows := make([]oracle.Demand, n)
		for i := range rows {
			rows[i] = job("/L0", 0, 1)
			rows[i].Sub = fmt.Sprintf("s%d", i)
		}
		s.must(s.state.SetDemand("a", s.tables.demand(rows)))
		s.cycle()
		for i := 0; i < n; i += 2 {
			rows[i].Units = 0
		}
		table := s.tables.demand(rows)
		return func() {
			s.must(s.state.ChangeDemand("a", table))
			s.cycle()
		}
	}},
	{"releases of a sub-allocation that has a unit on each host", 2000, func(t *testing.T, n int) func() {
		s := newGrowing(t, 1, n)
		one := []oracle.Demand{job("/L0", 0, int64(n))}
		one[0].MaxPerHost = 1
		s.must(s.state.SetDemand("a", s.tables.demand(one)))
		s.cycle()
		rows := make([]oracle.Holding, n)
		for i := range rows {
			rows[i] = oracle.Holding{Consumer: "/L0", Allocation: "job0", Host: fmt.Sprintf("h%d", i), Units: 1}
		}
		table := s.tables.holdings(rows)
		return func() {
			_, beyond, err := s.state.Release(table)
			if s.must(err); beyond != 0 {
				t.Fatalf("%d units beyond what is held", beyond)
			}
			s.cycle()
		}
	}},
	{"units of a sub-allocation that run on each host", 2000, func(t *testing.T, n int) func() {
		s := newGrowing(t, 1, n)
		one := []oracle.Demand{job("/L0", 0, int64(n))}
		s.must(s.state.SetDemand("a", s.tables.demand(one)))
		rows := make([]oracle.Holding, n)
		for i := range rows {
			rows[i] = oracle.Holding{Consumer: "/L0", Allocation: "job0", Host: fmt.Sprintf("h%d", i), Units: 1}
		}
		table := s.tables.holdings(rows)
		return func() {
			s.must(s.state.AddRunning("a", table))
			s.cycle()
		}
	}},
	{"sizes of a leaf", 2000, func(t *testing.T, n int) func() {
		s := newGrowing(t, 1, 8)
		rows := make([]oracle.Demand, n)
		for i := range rows {
			rows[i] = job("/L0", i, 1)
			rows[i].Size = map[string]int64{"ncpus": 100, "mem": int64(i + 1)}
		}
		table := s.tables.demand(rows)
		return func() {
			s.must(s.state.SetDemand("a", table))
			s.cycle()
		}
	}},
	{"leaves", 250, func(t *testing.T, n int) func() {
		s := newGrowing(t, n, n)
		var rows []oracle.Demand
		for i := range 8 * n {
			rows = append(rows, job(fmt.Sprintf("/L%d", i%n), i, 2))
		}
		table := s.tables.demand(rows)
		return func() {
			s.must(s.state.SetDemand("a", table))
			s.cycle()
		}
	}},
	{"sources that leave a row out, then fall silent", 250, func(t *testing.T, n int) func() {
		s := newGrowing(t, 1, n)
		fewer := make([]*cluster.DemandTable, n)
		for i := range n {
			rows := make([]oracle.Demand, 8)
			for k := range rows {
				rows[k] = job("/L0", i*8+k, 1)
			}
			s.must(s.state.SetDemand(fmt.Sprintf("s%d", i), s.tables.demand(rows)))
			fewer[i] = s.tables.demand(rows[1:])
		}
		s.cycle()
		return func() {
			for i, table := range fewer {
				source := fmt.Sprintf("s%d", i)
				s.state.HeldBy(source)
				s.must(s.state.SetDemand(source, table))
			}
			s.cycle()
			for i := range fewer {
				s.state.Silence(fmt.Sprintf("s%d", i))
			}
			s.cycle()
		}
	}},
	{"requirements", 500, func(t *testing.T, n int) func() {
		s := newGrowing(t, 2, 2000)
		rows := make([]oracle.Demand, n)
		for i := range rows {
			rows[i] = job("/L0", i, 1)
			rows[i].Requirement = fmt.Sprintf("select(mem + %d > ncpus)", i)
		}
		table := s.tables.demand(rows)
		return func() {
			s.must(s.state.SetDemand("a", table))
			s.cycle()
		}
	}},
	{"bad rows, each of another requirement", 4000, func(t *testing.T, n int) func() {
		s := newGrowing(t, 1, 1)
		rows := make([]oracle.Demand, n)
		for i := range rows {
			rows[i] = job("/L0", i, 1)
			rows[i].Requirement = fmt.Sprintf("select(nothing%d)", i)
		}
		table := s.tables.demand(rows)
		return func() {
			if s.state.SetDemand("a", table) == nil {
				t.Fatal("accepted")
			}
		}
	}},
}

// TestLinear holds what inputs and cycles do linear in what there may be many of: four times as many take about four
// times as long.
func TestLinear(t *testing.T) {
	for _, g := range growths {
		t.Run(g.name, func(t *testing.T) {
			few, many, ratio := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64), 0.
			// on a busy machine the least of many tries counts
			for try := 0; try < 3 || try < 30 && ratio >= ratioMax; try++ {
				few, many = min(few, timeOf(t, g.n, g.of)), min(many, timeOf(t, 4*g.n, g.of))
				ratio = float64(many) / float64(few)
			}
			if t.Logf("four times as many take %.1f times as long", ratio); ratio >= ratioMax {
				t.Errorf("four times as many take %.1f times as long, %d are allowed", ratio, ratioMax)
			}
		})
	}
}

// timeOf is the time that something takes for a number, after it was prepared.
func timeOf(t *testing.T, n int, of func(t *testing.T, n int) func()) time.Duration {
	do := of(t, n)
	begin := time.Now()
	do()
	return max(time.Since(begin), time.Microsecond)
}

// BenchmarkGrowth is the same at the sizes of a large site: ns/op of each by the number there are.
func BenchmarkGrowth(b *testing.B) {
	for _, g := range growths {
		for _, times := range []int{1, 4, 16} {
			b.Run(fmt.Sprintf("%s/%d", g.name, times*g.n), func(b *testing.B) {
				for range b.N {
					b.StopTimer()
					do := g.of(&testing.T{}, times*g.n)
					b.StartTimer()
					do()
				}
			})
		}
	}
}
