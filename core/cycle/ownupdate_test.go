package cycle_test

import (
	"slices"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// TestOwnersUpdate loses hosts of a middling cluster and gets them back: the stage own looks at little, and decides
// what a Runner does that has to look at all. What is reserved of what is owned stands in the same order, or all would
// be laid out anew.
func TestOwnersUpdate(t *testing.T) {
	o := datasets.Options{Hosts: 3500, Consumers: 600, Units: 2000, Shapes: 4, Seed: 1}
	t.Run("owners", func(t *testing.T) { loseHosts(t, datasets.Owners, o, false) })
	t.Run("lenders", func(t *testing.T) { loseHosts(t, datasets.Lenders, o, true) })
}

// loseHosts is TestOwnersUpdate on one kind of cluster, in which somebody reserves something or nobody does.
func loseHosts(
	t *testing.T, build func(datasets.Options) (*datasets.Dataset, error), o datasets.Options, reserving bool,
) {
	d, err := build(o)
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
		is, was := &states[0].Plans[0].Deeds, &states[1].Plans[0].Deeds
		if !slices.Equal(is.Keeper, was.Keeper) || !slices.Equal(is.KeptOn, was.KeptOn) ||
			reserving != (len(is.Keeper) > 0) {
			t.Errorf("cycle %d: %d rows of what is reserved do not stand as the %d after a full pass", n+1,
				len(is.Keeper), len(was.Keeper))
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
			lost := &cluster.HostTable{Rows: 1, Host: host, State: []cluster.HostState{state},
				Size: make([][]int64, len(policy.Dimensions))}
			if err := s.SetHosts(lost, false); err != nil {
				t.Fatal(err)
			}
		}
	}
}
