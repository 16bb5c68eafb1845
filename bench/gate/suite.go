package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
	"github.com/stintd/stint/ingest/table"
)

// figure is one time that the gate holds, by name.
type figure string

// suite is work that gives one or several figures a run, in microseconds of processor time.
type suite struct {
	figures []figure
	run     func() ([]float64, error) // by figure
}

// size is a generated cluster. All are so small that a measured time is a millisecond or two: others who want the
// processor leave some of such times alone, of longer ones none.
type size struct {
	make func(datasets.Options) (*datasets.Dataset, error)
	of   datasets.Options
}

var (
	grid   = size{datasets.Grid, datasets.Options{Hosts: 300, Consumers: 20, Units: 6_000, Shapes: 12, Seed: 1}}
	slots  = size{datasets.Slots, datasets.Options{Hosts: 1_000, Consumers: 100, Units: 10_000, Shapes: 1, Seed: 1}}
	owners = size{datasets.Owners, datasets.Options{Hosts: 600, Consumers: 40, Units: 2_000, Shapes: 4, Seed: 1}}
	rows   = size{datasets.Grid, datasets.Options{Hosts: 10, Consumers: 200, Units: 100_000, Shapes: 12, Seed: 1}}
)

// stage is the place of a stage in decision.Stages.
func stage(name string) int { return slices.Index(decision.Stages[:], name) }

// suites are all that the gate measures. dir is for files.
func suites(dir string) ([]suite, error) {
	var all []suite
	for _, load := range []func() (suite, error){
		gridCycles,
		func() (suite, error) { return coldCycle(slots, "slots cycle", "") },
		func() (suite, error) { return coldCycle(owners, "owners own", "own") },
		func() (suite, error) { return ingest(dir, "csv") },
		func() (suite, error) { return ingest(dir, "ndjson") },
		func() (suite, error) { return ingest(dir, "parquet") },
	} {
		s, err := load()
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// cycles are the cycles of one state.
type cycles struct {
	data   *datasets.Dataset
	policy *plan.Policy
	state  *cluster.State
	runner cycle.Runner
	out    decision.Cycle
}

func (s size) open() (*cycles, error) {
	d, err := s.make(s.of)
	if err != nil {
		return nil, err
	}
	p, err := plan.Parse("plan.yaml", d.Plan)
	return &cycles{data: d, policy: p}, err
}

// begin makes the state one that knows hosts and demand, and nothing else.
func (c *cycles) begin() (err error) {
	if c.state, err = cluster.New(c.policy); err == nil {
		err = c.state.SetHosts(c.data.Hosts, true)
	}
	if err == nil {
		err = c.state.SetDemand("gate", c.data.Demand)
	}
	c.runner = cycle.Runner{Clock: cpuUS}
	return err
}

// next runs a cycle and gives the times of its stages.
func (c *cycles) next() [len(decision.Stages)]int64 {
	c.runner.Run(c.state, c.state.NowUS+c.policy.IntervalUS, &c.out)
	return c.out.Summary.StageUS
}

// settleMax is more cycles than any cluster of the gate takes to come to rest.
const settleMax = 200

func (c *cycles) settle() error {
	for range settleMax {
		if c.next(); c.out.Summary.Stable() {
			return nil
		}
	}
	return fmt.Errorf("the cluster is not at rest after %d cycles", settleMax)
}

// gridCycles measures, on one cluster, the stages grant and explain of a cold cycle; at rest, a warm cycle with
// another row in a hundred; and the stage reclaim of a cycle in which every fourth consumer wants again what others
// have meanwhile.
func gridCycles() (suite, error) {
	c, err := grid.open()
	if err != nil {
		return suite{}, err
	}
	asked := slices.Clone(c.data.Demand.Units)
	want := func(units func(row int) int64) error {
		for i := range asked {
			c.data.Demand.Units[i] = units(i)
		}
		return c.state.SetDemand("gate", c.data.Demand)
	}
	run := func() ([]float64, error) {
		copy(c.data.Demand.Units, asked)
		if err := c.begin(); err != nil {
			return nil, err
		}
		first := c.next()
		if err := c.settle(); err != nil {
			return nil, err
		}
		start := cpuUS()
		err := want(func(row int) int64 {
			if row%100 == 0 {
				return asked[row]/2 + 1
			}
			return asked[row]
		})
		c.next()
		warm := cpuUS() - start
		if err == nil {
			err = want(func(row int) int64 { return asked[row] * int64(min(1, c.data.Demand.Consumer.Code[row]%4)) })
		}
		if err == nil {
			err = c.settle()
		}
		if err == nil {
			err = want(func(row int) int64 { return asked[row] })
		}
		moved := c.next()
		if err == nil && c.out.Summary.UnitsReclaimed == 0 {
			err = errors.New("nothing was reclaimed, which is to be measured")
		}
		return []float64{
			float64(first[stage("grant")]), float64(first[stage("explain")]), float64(moved[stage("reclaim")]),
			float64(warm),
		}, err
	}
	return suite{[]figure{"grid grant", "grid explain", "grid reclaim", "grid warm"}, run}, nil
}

// coldCycle measures a stage of a cold cycle, or all of it and what comes before it.
func coldCycle(s size, name figure, of string) (suite, error) {
	c, err := s.open()
	if err != nil {
		return suite{}, err
	}
	return suite{[]figure{name}, func() ([]float64, error) {
		start := cpuUS()
		if err := c.begin(); err != nil {
			return nil, err
		}
		took := c.next()
		if of != "" {
			return []float64{float64(took[stage(of)])}, nil
		}
		return []float64{float64(cpuUS() - start)}, nil
	}}, nil
}

// ingest measures decoding a demand table of some 4,000 rows.
func ingest(dir, format string) (suite, error) {
	c, err := rows.open()
	if err != nil {
		return suite{}, err
	}
	dir = filepath.Join(dir, format)
	if err := c.data.Write(dir, format); err != nil {
		return suite{}, err
	}
	name := filepath.Join(dir, "demand."+format)
	text, err := os.ReadFile(name)
	if err != nil {
		return suite{}, err
	}
	read := func(r io.Reader) (*cluster.DemandTable, error) {
		return table.ReadDemand(r, table.Options{Name: name, Dimensions: c.policy.Dimensions})
	}
	return suite{[]figure{figure("ingest " + format)}, func() ([]float64, error) {
		start := cpuUS()
		got, err := read(bytes.NewReader(text))
		took := cpuUS() - start
		if err == nil && got.Rows != c.data.Demand.Rows {
			err = fmt.Errorf("%s: %d rows, wrote %d", name, got.Rows, c.data.Demand.Rows)
		}
		return []float64{float64(took)}, err
	}}, nil
}
