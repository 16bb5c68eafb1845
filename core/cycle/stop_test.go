package cycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// withPolicy is a state with a policy.
func withPolicy(t *testing.T, policy []byte) (*cluster.State, tables) {
	t.Helper()
	p, err := plan.Parse("plan.yaml", policy)
	if err != nil {
		t.Fatal(err)
	}
	s, err := cluster.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return s, tables{p, 0}
}

// exclusively has a full slot plan whose hosts serve one consumer each, and demand for slots of many sizes.
func exclusively(t *testing.T, hosts int) *cluster.State {
	s, w := withPolicy(t, []byte("stint: 1\ndimensions: [slots]\nresource_groups:\n"+
		"  - {name: All, select: \"select(slots > 0)\"}\nconsumers: [{path: /A}, {path: /B}]\nslot_plans:\n"+
		"  - resource_group: All\n    placement: exclusive\n    consumers:\n"+
		"      - {path: /A, policy: share_ratio}\n      - {path: /B, policy: share_ratio}\n"))
	var rows []oracle.Host
	for i := range hosts {
		rows = append(rows, oracle.Host{Name: fmt.Sprintf("h%d", i), State: "ok", Size: map[string]int64{"slots": 10}})
	}
	demand := func(source string, rows []oracle.Demand) {
		if err := s.SetDemand(source, w.demand(rows)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetHosts(w.hosts(rows), true); err != nil {
		t.Fatal(err)
	}
	demand("a", []oracle.Demand{{Consumer: "/A", Allocation: "a", Units: int64(hosts*10 - 1000),
		MaxPerHost: plan.Unlimited, Size: map[string]int64{"slots": 1}}})
	var out decision.Cycle
	cycle.Run(s, 0, &out)
	var more []oracle.Demand
	for i := range 5000 {
		more = append(more, oracle.Demand{Consumer: "/B", Allocation: fmt.Sprintf("b%d", i), Units: 3,
			MaxPerHost: plan.Unlimited, Size: map[string]int64{"slots": int64(1 + i%9)}})
	}
	demand("b", more)
	return s
}

// generated is a state with a generated cluster from which nothing is granted yet.
func generated(t *testing.T, d *datasets.Dataset, err error) *cluster.State {
	if err != nil {
		t.Fatal(err)
	}
	s, _ := withPolicy(t, d.Plan)
	if err := s.SetHosts(d.Hosts, true); err != nil {
		t.Fatal(err)
	}
	{
		table, source := d.Demand, 0
		_ = source
		if err := s.SetDemand("s", table); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestTry gives cycles up that take long, at several times: they end soon after, and the state is not the last word of
// anybody. A cycle that nobody gives up is decided as by Run.
func TestTry(t *testing.T) {
	if testing.Short() {
		t.Skip("decides large cycles")
	}
	grid, err := datasets.Grid(datasets.Options{Hosts: 20_000, Consumers: 2_000, Units: 400_000, Seed: 1})
	many := generated(t, grid, err)
	slots, err := datasets.Slots(datasets.Options{Hosts: 5_000, Consumers: 500, Units: 200_000, Seed: 1})
	shares := generated(t, slots, err)
	for _, c := range []struct {
		name string
		of   *cluster.State
	}{{"exclusive slots", exclusively(t, 4000)}, {"grid", many}, {"slots", shares}} {
		for _, after := range []time.Duration{0, 30 * time.Millisecond, 300 * time.Millisecond} {
			s := c.of.Clone()
			begin := time.Now()
			s.Stop = func() bool { return time.Since(begin) >= after }
			var out decision.Cycle
			done := new(cycle.Runner).Try(s, 0, &out)
			if took := time.Since(begin) - after; took > 2*time.Second {
				t.Errorf("%s: a cycle goes on for %v after it was given up", c.name, took)
			}
			if after == 0 && done || done && c.name == "exclusive slots" {
				t.Errorf("%s: a cycle that is given up after %v was decided", c.name, after)
			}
		}
	}
	small := exclusively(t, 110)
	with := small.Clone()
	with.Stop = func() bool { return false }
	var a, b decision.Cycle
	cycle.Run(small, 0, &a)
	if !new(cycle.Runner).Try(with, 0, &b) || decision.Digest(a.Tables()) != decision.Digest(b.Tables()) {
		t.Error("a cycle that may be given up is decided otherwise")
	}
}
