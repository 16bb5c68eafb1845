package cycle_test

import (
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// TestOwnersUpdate loses hosts of a middling cluster and gets them back: the stage own looks at little, and decides what
// a Runner does that has to look at all.
func TestOwnersUpdate(t *testing.T) {
	d, err := datasets.Owners(datasets.Options{Hosts: 3500, Consumers: 600, Units: 2000, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := plan.Parse("plan.yaml", d.Plan)
	if err != nil {
		t.Fatal(err)
	}
	var states [2]*cluster.State
	var outs [2]decision.Cycle
	var kept cycle.Runner
	for i := range states {
		if states[i], err = cluster.New(policy); err == nil {
			err = states[i].SetHosts(d.Hosts, true)
		}
		if err == nil {
			err = states[i].SetDemand("test", d.Demand)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all := int64(0)
	for n := range 24 {
		var fresh cycle.Runner
		now := int64(n) * 60e6
		kept.Run(states[0], now, &outs[0])
		fresh.Run(states[1], now, &outs[1])
		if a, b := everything(&outs[0]), everything(&outs[1]); decision.Digest(a) != decision.Digest(b) {
			t.Fatalf("cycle %d: an update decides otherwise:\n%s", n+1, difference(dump(a), dump(b)))
		}
		if err := states[0].Verify(); err != nil {
			t.Fatalf("cycle %d: %v", n+1, err)
		}
		if n == 0 {
			all = kept.Touched(0)
		} else if one := kept.Touched(0); n > 2 && (one == 0 || one > all/10) {
			t.Errorf("cycle %d: looked at %d rows for a host, a full pass at %d", n+1, one, all)
		}
		row, state := n/2*271, cluster.Unavail
		if n%2 == 1 {
			state = cluster.OK
		}
		host := cluster.TextColumn{Names: d.Hosts.Host.Names, Code: d.Hosts.Host.Code[row : row+1]}
		for _, s := range states {
			lost := &cluster.HostTable{Rows: 1, Host: host, State: []cluster.HostState{state}, Size: make([][]int64, len(policy.Dimensions))}
			if err := s.SetHosts(lost, false); err != nil {
				t.Fatal(err)
			}
		}
	}
}
