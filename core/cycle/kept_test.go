package cycle_test

import (
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// TestKept plays cycles on a cluster whose parcels fill many words of a bitset, of which the random cases fill one:
// demand rises and falls, hosts close, open and are lost, whole and a few at a time. A Runner that knows nothing
// decides the same each time. One of 700 consumers has a branch of which half is in the first half of the tree and half
// in the second, which are looked at at once.
func TestKept(t *testing.T) {
	reasons := map[string]int{}
	keep(t, 300, reasons)
	keep(t, 700, reasons)
	t.Log("shortfalls by reason:", reasons)
	for _, reason := range []string{"fragmented", "grace_filter", "lower_priority", "ownership_unmet", "pool_exhausted",
		"waiting_for_reclaim"} {
		if reasons[reason] == 0 {
			t.Errorf("nothing was short for the reason %s", reason)
		}
	}
}

// keep is TestKept with so many consumers, and counts why they were short.
func keep(t *testing.T, consumers int, reasons map[string]int) {
	t.Helper()
	s, d := lenders(t, datasets.Options{Hosts: 1500, Consumers: consumers, Units: 15_000, Shapes: 100, Seed: 7})
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	d.Hosts.State = make([]cluster.HostState, d.Hosts.Rows)
	d.Demand.MaxPerHost = make([]int64, d.Demand.Rows)
	for row := range d.Demand.MaxPerHost {
		if d.Demand.MaxPerHost[row] = plan.Unlimited; row%13 == 0 {
			d.Demand.MaxPerHost[row] = 2
		}
	}
	var runner cycle.Runner
	var out, anew decision.Cycle
	for i := range 24 {
		for row := i % 7; row < len(d.Demand.Units); row += 7 + i {
			if d.Demand.Units[row] = d.Demand.Units[row]*2 + 1; i%3 == 0 {
				d.Demand.Units[row] /= 5
			}
		}
		must(s.SetDemand("x", d.Demand))
		if i%4 == 3 {
			for row := i; row < d.Hosts.Rows; row += 11 * i {
				d.Hosts.State[row] = []cluster.HostState{cluster.Closed, cluster.Unavail, cluster.OK}[(row+i)%3]
			}
			must(s.SetHosts(d.Hosts, i == 19))
		}
		twin := s.Clone()
		fresh := cycle.Runner{Eager: true}
		fresh.Run(twin, s.NowUS+60e6, &anew)
		runner.Run(s, s.NowUS+60e6, &out)
		for k := range out.Shortfalls.UnitsShort {
			reasons[out.Shortfalls.Reason.At(k)]++
		}
		for k, table := range out.Tables() {
			other := anew.Tables()[k]
			if decision.Digest([]decision.Table{table}) != decision.Digest([]decision.Table{other}) {
				t.Fatalf("cycle %d: table %s is another than one who knows nothing has", i, table.Name)
			}
		}
	}
}
