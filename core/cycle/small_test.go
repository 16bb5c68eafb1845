package cycle_test

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// TestTooSmall plays random cases in which sizes of which the hosts would hold more than a few units are too small
// (D-52): the engine decides what the oracle decides, and says so.
func TestTooSmall(t *testing.T) {
	n := 30
	if testing.Short() {
		n *= 5 // fewer have not all kinds of what is counted
	}
	setCases(t, n, 20)
	set(t, "rapid.shrinktime", "5s")
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			small, granted := 0, int64(0)
			k.small = 3
			check(t, k, func(p *player) {
				for _, r := range p.seen {
					for _, row := range r.Shortfalls {
						if row.Reason == "too_small" {
							small++
						}
					}
				}
				granted += p.out.Summary.UnitsHeld
			})
			if t.Logf("%d shortfalls for too small units, %d units held at the end", small, granted); small == 0 ||
				granted == 0 {
				t.Error("too few of a kind")
			}
		})
	}
}

// TestHugeNumbers asks for 2^53 units of 1 where hosts have 2^39 (bytes of memory) or 2^40 (slots): the row is refused,
// and where it was accepted before (in a journal of an older version) a cycle costs no more than without it, and others
// get what they ask for, exactly.
func TestHugeNumbers(t *testing.T) {
	for _, c := range []struct {
		name, plan, dim string
		size, want      int64 // of the other one's units, and how many it gets
		units           int64
	}{
		{"memory", "md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A}, {path: /B}]}]", "mem",
			1 << 30, 10, 10},
		{"memory in full", "md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A}, {path: /B}]}]",
			"mem", 1 << 30, 5120, 1 << 40},
		{"slots", "slot_plans: [{resource_group: G, consumers: [{path: /A, policy: share_ratio}, {path: /B, policy: " +
			"share_ratio}]}]",
			"slots", 1 << 30, 10, 10},
		{"hybrid slots", "slot_plans: [{resource_group: G, consumers: [{path: /A, policy: hybrid, owns: 1}, {path: " +
			"/B, policy: hybrid, owns: 1}]}]",
			"slots", 1 << 30, 10, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plan.Parse("plan.yaml",
				[]byte("stint: 1\ndimensions: [ncpus, mem, slots]\nresource_groups: [{name: G, select: "+
					"\"select(ncpus > 0)\"}]\n"+
					"consumers: [{path: /A}, {path: /B}]\n"+c.plan))
			if err != nil {
				t.Fatal(err)
			}
			s, err := cluster.New(p)
			if err != nil {
				t.Fatal(err)
			}
			w, hosts := tables{p, 0}, []oracle.Host(nil)
			for i := range 10 {
				hosts = append(hosts, oracle.Host{Name: hostName(i), State: "ok",
					Size: map[string]int64{"ncpus": 64, "mem": 1 << 39, "slots": 1 << 40}})
			}
			if err := s.SetHosts(w.hosts(hosts), true); err != nil {
				t.Fatal(err)
			}
			ask := func(consumer string, units, size int64) *cluster.DemandTable {
				return w.demand([]oracle.Demand{{Consumer: consumer, Allocation: "a", Units: units,
					Size: map[string]int64{c.dim: size}, MaxPerHost: plan.Unlimited}})
			}
			err = s.SetDemand("a", ask("/A", 1<<53, 1))
			if err == nil || !strings.Contains(err.Error(),
				"row 1, column "+c.dim+", value \"1\": a unit is too small: the 10 hosts of plan") {
				t.Fatalf("refused with: %v", err)
			}
			s.Accepted = true
			if err := s.SetDemand("a", ask("/A", 1<<53, 1)); err != nil {
				t.Fatal(err)
			}
			if err := s.SetDemand("b", ask("/B", c.units, c.size)); err != nil {
				t.Fatal(err)
			}
			var runner cycle.Runner
			var out decision.Cycle
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begin := time.Now()
			runner.Run(s, 60e6, &out)
			took := time.Since(begin)
			// a unit takes 8 bytes, and more under the race detector
			if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 128<<20 || took > 5*time.Second {
				t.Errorf("a cycle of %v, %d bytes", took, after.TotalAlloc-before.TotalAlloc)
			}
			if got := out.Summary.UnitsGranted; got != c.want {
				t.Errorf("%d units granted, not %d", got, c.want)
			}
			reasons := map[string]int64{}
			for i, units := range out.Shortfalls.UnitsShort {
				reasons[out.Shortfalls.Reason.At(i)] += units
			}
			if reasons["too_small"] != 1<<53 {
				t.Errorf("shortfalls: %v", reasons)
			}
		})
	}
}

// TestMostUnits has hosts full of as many units as there may be, and another consumer that is to have half of them:
// what a cycle costs stays within bounds, and after some cycles each has its half.
func TestMostUnits(t *testing.T) {
	const each = 1<<21 + 1<<12
	for _, c := range []struct {
		name, plan, dim string
		off             int64 // units that each may be from its half
		soak            bool
	}{
		{"memory", "md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A}, {path: /B}]}]", "mem",
			each/100 + 1, false},
		{"memory without a band", "md_plans: [{name: p, fair_band: 0, resource_groups: [{name: G}], " +
			"consumers: [{path: /A}, {path: /B}]}]", "mem", 1, true},
		{"slots", "slot_plans: [{resource_group: G, " +
			"consumers: [{path: /A, policy: share_ratio}, {path: /B, policy: share_ratio}]}]", "slots", 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.soak && os.Getenv("STINT_SOAK") == "" {
				t.Skip("STINT_SOAK is not set: make soak plays this case, which takes as long as the others together")
			}
			p, err := plan.Parse("plan.yaml", []byte("stint: 1\ndimensions: [ncpus, mem, slots]\n"+
				"resource_groups: [{name: G, select: \"select(ncpus > 0)\"}]\n"+
				"consumers: [{path: /A}, {path: /B}]\n"+c.plan))
			if err != nil {
				t.Fatal(err)
			}
			s, err := cluster.New(p)
			if err != nil {
				t.Fatal(err)
			}
			w, size := tables{p, 0}, map[string]int64{"ncpus": 64, "mem": each, "slots": each}
			if err := s.SetHosts(w.hosts([]oracle.Host{{Name: "h0", State: "ok", Size: size},
				{Name: "h1", State: "ok", Size: size}}), true); err != nil {
				t.Fatal(err)
			}
			ask := func(source, consumer string) {
				err := s.SetDemand(source,
					w.demand([]oracle.Demand{{Consumer: consumer, Allocation: "a", Units: 1 << 53,
						Size: map[string]int64{c.dim: 1}, MaxPerHost: plan.Unlimited}}))
				if err != nil {
					t.Fatal(err)
				}
			}
			var runner cycle.Runner
			var out decision.Cycle
			run := func() {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				begin := time.Now()
				runner.Run(s, s.NowUS+60e6, &out)
				took := time.Since(begin)
				if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 512<<20 || took > 20*time.Second {
					t.Errorf("a cycle of %v, %d bytes", took, after.TotalAlloc-before.TotalAlloc)
				}
			}
			ask("a", "/A")
			if run(); out.Summary.UnitsGranted != 2*each {
				t.Fatalf("%d units granted, not %d", out.Summary.UnitsGranted, 2*each)
			}
			ask("b", "/B")
			cycles, most := 0, int64(0)
			for ; cycles == 0 || !out.Summary.Stable(); cycles++ {
				if run(); cycles > 50 {
					t.Fatal("no fixed point")
				}
				most = max(most, out.Summary.UnitsReclaimed)
			}
			if most != s.Plans[0].PromisesMost() || cycles < 5 {
				t.Errorf("%d units taken back in a cycle, at most %d may; %d cycles", most, s.Plans[0].PromisesMost(),
					cycles)
			}
			for sub, held := range s.Sub.Held {
				if s.Sub.Alloc[sub] != cluster.NoID && (held < each-c.off || held > each+c.off) {
					t.Errorf("sub-allocation %d holds %d units of %d", sub, held, 2*each)
				}
			}
			if err := s.Verify(); err != nil {
				t.Error(err)
			}
		})
	}
}
