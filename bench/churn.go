package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"

	"github.com/stintd/stint/bench/measure"
	"github.com/stintd/stint/bench/page"
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// churn is how many units are stopped for others (MD-17), in a cluster whose demand is twice what fits.
type churn struct {
	Name      string  `json:"name"`
	Granted   int64   `json:"granted"`       // in the first three cycles of a cold cluster
	TakenBack int64   `json:"taken_back"`    // reclaims for a share, less those cancelled
	PerMille  float64 `json:"per_1000"`      // units taken back of 1,000 granted
	Settled   int     `json:"settled_after"` // cycles until the cluster was at rest
	Unit      stops   `json:"one_unit"`      // of changes of one unit each, each after rest
	Rows      stops   `json:"ten_rows"`      // of changes of ten rows by one to three units, each after rest
	Notices   notices `json:"notices"`       // with graces, under such changes every five cycles
}

// stops is how many units of others fair reclaim stops after a change of the demand.
type stops struct {
	Mean    float64 `json:"mean"` // of a change
	PerUnit float64 `json:"per_unit"`
	Median  int64   `json:"median"`
	Worst   int64   `json:"worst"`
	Stopped int64   `json:"stopped"`
	Back    int64   `json:"come_back"` // units granted again to the sub-allocation that lost them
	Cycles  int     `json:"cycles_worst"`
}

// notices are the units put under reclaim with a deadline to come, and those of them whose reclaim was cancelled before
// it.
type notices struct {
	Issued    int64 `json:"issued"`
	Cancelled int64 `json:"cancelled"`
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
	churnRows    = 10 // of a change of several rows
	churnEvery   = 5  // cycles between two changes while notices are counted
	churnGrace   = ", reclaim_grace: 600s"
	churnCycles  = 500 // at most until rest
	churnProbe   = 40  // units for each host that are more than fit
)

// measureChurn measures the churn of each cluster of churns.
func measureChurn(seed uint64) (list []*churn, err error) {
	for _, s := range churns {
		o := datasets.Options{Hosts: s.Hosts, Consumers: s.Consumers, Units: int64(s.Hosts) * churnProbe,
			Shapes: s.Shapes, Seed: seed}
		c := &churn{Name: s.Name}
		site, err := newChurning(s, o, seed, "")
		if err != nil {
			return nil, err
		}
		o.Units = 2 * site.run()
		for _, measure := range []func(suite, datasets.Options, uint64) error{c.settle, c.notice} {
			if err := measure(s, o, seed); err != nil {
				return nil, fmt.Errorf("%s: %w", s.Name, err)
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// settle has a cold cluster come to rest, then makes changes, and counts reclaims for a share.
func (c *churn) settle(s suite, o datasets.Options, seed uint64) error {
	site, err := newChurning(s, o, seed, "")
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		granted := site.run()
		if n <= 3 {
			c.Granted, c.TakenBack = c.Granted+granted, site.taken
		}
		if c.Settled = n; site.out.Summary.Stable() {
			break
		}
		if n == churnCycles {
			return fmt.Errorf("no rest within %d cycles", n)
		}
	}
	c.PerMille = 1000 * float64(c.TakenBack) / float64(c.Granted)
	if err := c.Unit.measure(site, func() int64 { return site.more(1) }); err != nil {
		return err
	}
	return c.Rows.measure(site, site.rows)
}

// notice counts the notices of a cluster in which work may go on for ten cycles: changes come before it is at rest.
func (c *churn) notice(s suite, o datasets.Options, seed uint64) error {
	site, err := newChurning(s, o, seed, churnGrace)
	if err != nil {
		return err
	}
	if _, err := site.rest(); err != nil {
		return err
	}
	site.notices = notices{}
	for range churnChanges {
		site.rows()
		if err := site.state.SetDemand("bench", site.data.Demand); err != nil {
			return err
		}
		for range churnEvery {
			site.run()
		}
	}
	_, err = site.rest()
	c.Notices = site.notices
	return err
}

// measure makes changes, each of which says how many units it changes, and counts the units stopped for each.
func (p *stops) measure(site *churning, change func() int64) error {
	var list []int64
	var changed int64
	for range churnChanges {
		clear(site.stopped)
		site.taken, site.back = 0, 0
		changed += change()
		if err := site.state.SetDemand("bench", site.data.Demand); err != nil {
			return err
		}
		n, err := site.rest()
		if err != nil {
			return err
		}
		list, p.Back, p.Cycles = append(list, site.taken), p.Back+site.back, max(p.Cycles, n)
		p.Stopped += site.taken
	}
	slices.Sort(list)
	p.Mean, p.PerUnit = float64(p.Stopped)/churnChanges, float64(p.Stopped)/float64(changed)
	p.Median, p.Worst = list[len(list)/2], list[len(list)-1]
	return nil
}

// churning is a cluster whose reclaims are counted.
type churning struct {
	data        *datasets.Dataset
	random      *rand.Rand
	state       *cluster.State
	runner      cycle.Runner
	out         decision.Cycle
	taken, back int64
	stopped     map[cluster.SubID]int64 // units taken for a share that did not come back
	notices     notices
}

// topConsumers are the policy's consumers of the first level, whose grace those below have too.
var topConsumers = regexp.MustCompile(`(?m)^(  - \{path: "/[^/"]+"[^}]*)\}`)

// newChurning makes a cluster with hosts and demand before its first cycle. What is added goes to all consumers of the
// first level.
func newChurning(s suite, o datasets.Options, seed uint64, added string) (*churning, error) {
	data, err := s.make(o)
	if err != nil {
		return nil, err
	}
	p, err := plan.Parse("plan.yaml", topConsumers.ReplaceAll(data.Plan, []byte("${1}"+added+"}")))
	if err != nil {
		return nil, err
	}
	state, err := cluster.New(p)
	if err != nil {
		return nil, err
	}
	if err := state.SetHosts(data.Hosts, true); err != nil {
		return nil, err
	}
	if err := state.SetDemand("bench", data.Demand); err != nil {
		return nil, err
	}
	return &churning{data: data, random: rand.New(rand.NewPCG(seed, 17)), state: state,
		stopped: map[cluster.SubID]int64{}}, nil
}

// more has a random row of the demand want more units, or less where it wants so many, and gives by how many it
// changed.
func (c *churning) more(units int64) int64 {
	list := c.data.Demand.Units
	row := c.random.IntN(len(list))
	if list[row]+units < 0 {
		units = -units
	}
	list[row] += units
	return max(units, -units)
}

// rows has ten rows want one to three units more or less.
func (c *churning) rows() (changed int64) {
	for range churnRows {
		changed += c.more([]int64{-3, -2, -1, 1, 2, 3}[c.random.IntN(6)])
	}
	return changed
}

// rest runs cycles until one changes nothing (CYC-2), and gives how many came before it.
func (c *churning) rest() (int, error) {
	for n := range churnCycles {
		c.run()
		if c.out.Summary.Stable() {
			return n, nil
		}
	}
	return 0, fmt.Errorf("no rest within %d cycles of a change", churnCycles)
}

// run decides a cycle, counts the units that it stops and those that it grants again to the sub-allocation that lost
// them, and gives how many units it grants. O(rows of grants and reclaims × sub-allocations).
func (c *churning) run() int64 {
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
		issued := t.Action.Code[i] == decision.ActionIssued
		switch later := t.Deadline[i] > c.state.NowUS; {
		case later && issued:
			c.notices.Issued += units
		case later:
			c.notices.Cancelled += units
		}
		if t.Reason.Code[i] != decision.ReclaimFairShare {
			continue
		}
		if !issued {
			units = -units
		}
		c.taken += units
		c.stopped[sub(&t.Key, i)] += units
	}
	return c.out.Summary.UnitsGranted
}

// tellChurn measures churn, and prints it or puts it into a page.
func tellChurn(seed uint64, output, file string) error {
	list, err := measureChurn(seed)
	if err != nil {
		return err
	}
	if output == "json" {
		return json.NewEncoder(os.Stdout).Encode(map[string]any{
			"machine": measure.Here().String(), "seed": seed, "churn": list,
		})
	}
	section := churnSection(list, page.Command("go run ./bench", os.Args[1:]))
	if file != "" {
		return page.Put(file, "churn", section.Markdown())
	}
	return section.Print(os.Stdout)
}

// churnSection tells the churn of clusters.
func churnSection(list []*churn, command string) *page.Section {
	cold := page.Table{Head: []string{"cold", "granted", "stopped", "‰", "cycles to rest"}}
	notes := page.Table{Head: []string{"notices", "issued", "cancelled", "%"}}
	tables := []page.Table{cold}
	for _, c := range list {
		tables[0].Add(c.Name, strconv.FormatInt(c.Granted, 10), strconv.FormatInt(c.TakenBack, 10),
			fmt.Sprintf("%.2f", c.PerMille), strconv.Itoa(c.Settled))
		notes.Add(c.Name, strconv.FormatInt(c.Notices.Issued, 10), strconv.FormatInt(c.Notices.Cancelled, 10),
			fmt.Sprintf("%.1f", 100*float64(c.Notices.Cancelled)/float64(max(1, c.Notices.Issued))))
	}
	for _, kind := range []struct {
		name string
		of   func(*churn) *stops
	}{
		{"one unit", func(c *churn) *stops { return &c.Unit }},
		{"ten rows", func(c *churn) *stops { return &c.Rows }},
	} {
		t := page.Table{Head: []string{kind.name, "a unit", "mean", "median", "worst", "back", "cycles"}}
		for _, c := range list {
			p := kind.of(c)
			t.Add(c.Name, fmt.Sprintf("%.2f", p.PerUnit), fmt.Sprintf("%.2f", p.Mean), strconv.FormatInt(p.Median, 10),
				strconv.FormatInt(p.Worst, 10), strconv.FormatInt(p.Back, 10), strconv.Itoa(p.Cycles))
		}
		tables = append(tables, t)
	}
	here := measure.Here()
	machine := here.String()
	if here.Commit != "unknown" {
		machine += fmt.Sprintf(", commit %.12s", here.Commit)
	}
	return &page.Section{
		Title: "What a change stops",
		About: fmt.Sprintf("Units of others that are stopped for a share (MD-17) in clusters of %d hosts and %d "+
			"consumers, of which twice as much is wanted as fits.", churns[0].Hosts, churns[0].Consumers),
		Tables: append(tables, notes),
		After: fmt.Sprintf("*Cold*: in the first three cycles, and how many cycles come before rest. *One unit* and "+
			"*ten rows*: %d changes, each after rest, of one unit more in a random row, and of ten random rows by one "+
			"to three units more or less; *a unit* is what is stopped for each unit that changed, *mean*, *median* "+
			"and *worst* what is stopped for a change, *back* what was given back to who had it, of all changes, "+
			"*cycles* the most that come before rest. *Notices*: units that are given ten cycles to end, while ten "+
			"rows change every %d cycles, and of them those that may go on after all.", churnChanges, churnEvery),
		Command: command,
		Machine: machine,
	}
}
