package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// churn is how many units fair reclaim stops (MD-17), in a cluster whose demand is twice what fits.
type churn struct {
	Name      string  `json:"name"`
	Granted   int64   `json:"granted"`       // in the first three cycles of a cold cluster
	TakenBack int64   `json:"taken_back"`    // reclaims for a share, less those cancelled
	PerMille  float64 `json:"per_1000"`      // units taken back of 1,000 granted
	Settled   int     `json:"settled_after"` // cycles until the cluster was at rest
	Changes   int     `json:"changes"`       // of one unit each, each after rest
	Mean      float64 `json:"stopped_mean"`  // units of others that are stopped for one
	Median    int64   `json:"stopped_median"`
	Worst     int64   `json:"stopped_worst"`
	Back      int64   `json:"come_back"` // units granted again to the sub-allocation that lost them
	Cycles    int     `json:"cycles_worst"`
}

// churns are the clusters that churn is measured on.
var churns = []suite{
	{"grid", 10_000, 200, 0, 6, datasets.Grid},
	{"hetero", 10_000, 200, 0, 6, datasets.Hetero},
	{"gpu with owners", 10_000, 200, 0, 6, func(o datasets.Options) (*datasets.Dataset, error) {
		o.Owners = true
		return datasets.GPU(o)
	}},
}

const (
	churnChanges = 20
	churnCycles  = 500 // at most until rest
	churnProbe   = 40  // units for each host that are more than fit
)

// measureChurn measures the churn of each cluster of churns.
func measureChurn(seed uint64) (list []*churn, err error) {
	for _, s := range churns {
		o := datasets.Options{Hosts: s.Hosts, Consumers: s.Consumers, Units: int64(s.Hosts) * churnProbe,
			Shapes: s.Shapes, Seed: seed}
		c := &churn{Name: s.Name, Changes: churnChanges}
		fits, err := c.play(s, o, seed, false)
		if err != nil {
			return nil, err
		}
		o.Units = 2 * fits
		if _, err := c.play(s, o, seed, true); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		list = append(list, c)
	}
	return list, nil
}

// play makes a cluster and gives how many units its first cycle grants. With counts it goes on until the cluster is at
// rest, then makes the changes, and counts reclaims into c.
func (c *churn) play(s suite, o datasets.Options, seed uint64, counts bool) (granted int64, err error) {
	data, err := s.make(o)
	if err != nil {
		return 0, err
	}
	p, err := plan.Parse("plan.yaml", data.Plan)
	if err != nil {
		return 0, err
	}
	state, err := cluster.New(p)
	if err != nil {
		return 0, err
	}
	if err := state.SetHosts(data.Hosts, true); err != nil {
		return 0, err
	}
	if err := state.SetDemand("bench", data.Demand); err != nil {
		return 0, err
	}
	site := &churning{state: state, stopped: map[cluster.SubID]int64{}}
	if site.run(); !counts {
		return site.out.Summary.UnitsGranted, nil
	}
	for n := 1; ; n++ {
		if n <= 3 {
			c.Granted, c.TakenBack = c.Granted+site.out.Summary.UnitsGranted, site.taken
		}
		if site.out.Summary.Stable() {
			c.Settled = n
			break
		}
		if n == churnCycles {
			return 0, fmt.Errorf("no rest within %d cycles", n)
		}
		site.run()
	}
	c.PerMille = 1000 * float64(c.TakenBack) / float64(c.Granted)
	return 0, c.change(site, data, seed)
}

// change has one random row after the other want a unit more, and counts the units stopped for each.
func (c *churn) change(site *churning, data *datasets.Dataset, seed uint64) error {
	r, units := rand.New(rand.NewPCG(seed, 17)), data.Demand.Units
	var list []int64
	for range c.Changes {
		clear(site.stopped)
		site.taken, site.back = 0, 0
		units[r.IntN(len(units))]++
		if err := site.state.SetDemand("bench", data.Demand); err != nil {
			return err
		}
		n := 0
		for site.run(); !site.out.Summary.Stable(); site.run() {
			if n++; n == churnCycles {
				return fmt.Errorf("no rest within %d cycles of a change", n)
			}
		}
		list, c.Back, c.Cycles = append(list, site.taken), c.Back+site.back, max(c.Cycles, n)
		c.Mean += float64(site.taken) / float64(c.Changes)
	}
	slices.Sort(list)
	c.Median, c.Worst = list[len(list)/2], list[len(list)-1]
	return nil
}

// churning is a cluster whose reclaims are counted.
type churning struct {
	state       *cluster.State
	runner      cycle.Runner
	out         decision.Cycle
	taken, back int64
	stopped     map[cluster.SubID]int64 // units taken for a share that did not come back
}

// run decides a cycle, and counts the units that it stops and those that it grants again to whom they were taken from.
// O(rows of grants and reclaims × sub-allocations).
func (c *churning) run() {
	c.runner.Run(c.state, c.state.NowUS+c.state.Policy.IntervalUS, &c.out)
	sub := func(k *decision.Key, i int) cluster.SubID {
		for id, plan := range c.state.Sub.Plan {
			if plan == k.Plan.Code[i] && int32(c.state.Sub.Consumer[id]) == k.Consumer.Code[i] &&
				c.state.Alloc.Name[c.state.Sub.Alloc[id]] == k.Allocation.Code[i] &&
				c.state.Sub.Name[id] == k.Sub.Code[i] {
				return cluster.SubID(id)
			}
		}
		return cluster.NoID
	}
	t, g := &c.out.Reclaims, &c.out.Grants
	if len(t.Units) > 0 || len(c.stopped) > 0 && len(g.Units) < 1000 {
		for i, units := range g.Units {
			if id := sub(&g.Key, i); c.stopped[id] > 0 {
				back := min(units, c.stopped[id])
				c.stopped[id] -= back
				c.back += back
			}
		}
	}
	for i, units := range t.Units {
		if t.Reason.Code[i] != decision.ReclaimFairShare {
			continue
		}
		if t.Action.Code[i] != decision.ActionIssued {
			units = -units
		}
		c.taken += units
		c.stopped[sub(&t.Key, i)] += units
	}
}

// showChurn prints the churn of clusters as a table.
func showChurn(list []*churn) {
	fmt.Println("units of others that fair reclaim stops; twice as much is wanted as fits")
	fmt.Printf("\n%-16s %9s %8s %6s %7s   %5s %6s %6s %5s %6s\n", "cluster", "granted", "stopped", "‰", "at rest",
		"mean", "median", "worst", "back", "cycles")
	for _, c := range list {
		fmt.Printf("%-16s %9d %8d %6.2f %7d   %5.2f %6d %6d %5d %6d\n", c.Name, c.Granted, c.TakenBack, c.PerMille,
			c.Settled, c.Mean, c.Median, c.Worst, c.Back, c.Cycles)
	}
	fmt.Printf("\ngranted, stopped: in the first three cycles; at rest: after so many. "+
		"Then %d changes of one unit each,\n", churnChanges)
	fmt.Println("each after rest: mean, median and worst are what one of them stops; " +
		"back is what came back to who had it.")
}
