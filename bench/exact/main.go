// Command exact compares what a cold cycle holds, and the bound of package bound, with what an exact solver finds:
// how much of what is missing to the bound is the bound's own, and how much is stint's. Small clusters are solved to
// the optimum; of large ones the terms of the bound tell where the rest is.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/stintd/stint/bench/bound"
	"github.com/stintd/stint/bench/measure"
	"github.com/stintd/stint/bench/page"
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// profile is a kind of cluster with the sizes of `make bound`.
type profile struct {
	name     string
	make     func(datasets.Options) (*datasets.Dataset, error)
	large    datasets.Options
	perHost  int64 // units
	smallest int   // consumers of a small one
}

var profiles = []profile{
	{"grid", datasets.Grid, datasets.Options{Hosts: 5000, Consumers: 20, Units: 50_000, Seed: 1}, 10, 4},
	{"hetero", datasets.Hetero, datasets.Options{Hosts: 5000, Consumers: 20, Units: 50_000, Seed: 1}, 10, 4},
	{"gpu", datasets.GPU, datasets.Options{Hosts: 5000, Consumers: 20, Units: 100_000, Seed: 1}, 20, 4},
	{"lenders", datasets.Lenders, datasets.Options{Hosts: 5000, Consumers: 500, Units: 50_000, Shapes: 50, Seed: 1},
		10, 8},
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("exact: ")
	hosts := flag.Int("hosts", 40, "hosts of a small cluster")
	cases := flag.Int("cases", 5, "small clusters of each kind")
	seconds := flag.Int("seconds", 10, "the solver's time for a small cluster")
	openb := flag.String("openb", "",
		"folder of openb's node list and default pod list: also once and 66 times that cluster")
	onPage := flag.String("page", "", "also put the result into its section of this page")
	flag.Parse()
	s, err := run(*hosts, *cases, *seconds, *openb)
	if err != nil {
		log.Fatal(err)
	}
	s.Command = page.Command("go run ./bench/exact", os.Args[1:])
	s.Machine = "The same figures on any machine, where the solver (GLPK) has time enough."
	if err := s.Print(os.Stdout); err != nil {
		log.Fatal(err)
	}
	if *onPage != "" {
		if err := page.Put(*onPage, "bound", s.Markdown()); err != nil {
			log.Fatal(err)
		}
	}
}

// run compares small clusters, then large ones.
func run(hosts, cases, seconds int, openb string) (*page.Section, error) {
	if hosts < 4 || hosts > 100 || cases < 1 || cases > 1000 || seconds < 1 || seconds > 600 {
		return nil, fmt.Errorf("-hosts %d, -cases %d, -seconds %d: must be from 4 to 100, 1 to 1000 and 1 to 600",
			hosts, cases, seconds)
	}
	small := page.Table{Head: []string{"small", "solved", "held ÷ bound", "optimum ÷ bound", "held ÷ optimum"}}
	large := page.Table{Head: []string{"large", "held ÷ bound", "idle", "unmet", "elsewhere"}}
	for _, p := range profiles {
		row, err := p.small(hosts, cases, seconds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		small.Add(row...)
		d, err := p.make(p.large)
		if err == nil {
			row, err = atSize(p.name, d)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		large.Add(row...)
	}
	if openb != "" {
		for _, times := range []int{1, 66} {
			d, err := readOpenB(openb, times)
			if err != nil {
				return nil, err
			}
			row, err := atSize(fmt.Sprintf("openb × %d", times), d)
			if err != nil {
				return nil, err
			}
			large.Add(row...)
		}
	}
	return &page.Section{
		Title: "Held, the bound, and the optimum",
		About: fmt.Sprintf("*Small* is %d clusters of %d hosts and four sizes of each kind, on which an exact solver "+
			"finds the most that any placement could hold: means of those that it solved in %d s. *Large* is the "+
			"clusters of `make bound`, of 5,000 hosts and more, and where the rest to the bound is, in parts of the "+
			"bound. openb is Alibaba's trace, once (1,523 hosts) and 66 times. Everything is counted in mean hosts, "+
			"after a cold cycle.", cases, hosts, seconds),
		Tables: []page.Table{small, large},
		After: "The bound lets units be cut: 1 − optimum ÷ bound is what no placement can have. 1 − held ÷ optimum " +
			"is stint's: it places unit after unit in the order of shares and priorities, and neither moves work " +
			"nor looks ahead. The optimum knows neither shares nor ownership, which lenders have, so that it may " +
			"be above what the policy allows. *Idle* is capacity that is scarce and free, by dimension; *unmet* is " +
			"units that are worth their price and are not placed; *elsewhere* is units that stand where they cost " +
			"more than they count.",
	}, nil
}

// held plays a cold cycle and gives the problem of its only plan.
func held(d *datasets.Dataset) (*bound.Problem, error) {
	policy, err := plan.Parse("plan.yaml", d.Plan)
	if err != nil {
		return nil, err
	}
	s, err := cluster.New(policy)
	if err == nil {
		err = s.SetHosts(d.Hosts, true)
	}
	if err == nil {
		err = s.SetDemand("exact", d.Demand)
	}
	if err != nil {
		return nil, err
	}
	var runner cycle.Runner
	var out decision.Cycle
	runner.Run(s, 0, &out)
	return measure.Problem(s, &s.Plans[0]), nil
}

// boundSteps are as many as `stint bench --bound` takes at most.
const boundSteps = 600

// small compares small clusters with their optimum. Error: the bound, the optimum and what is held are not in this
// order.
func (p *profile) small(hosts, cases, seconds int) ([]string, error) {
	var heldBound, bestBound, heldBest float64
	solved := 0
	for seed := range cases {
		d, err := p.make(datasets.Options{Hosts: hosts, Consumers: p.smallest, Units: int64(hosts) * p.perHost,
			Shapes: 4, Seed: uint64(seed + 1)})
		if err != nil {
			return nil, err
		}
		problem, err := held(d)
		if err != nil {
			return nil, err
		}
		b, err := bound.Solve(problem, boundSteps)
		if err != nil {
			return nil, err
		}
		best, err := solve(problem, seconds)
		if errors.Is(err, errPatterns) || errors.Is(err, errTime) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := ordered(b, best); err != nil {
			return nil, fmt.Errorf("seed %d: %w", seed+1, err)
		}
		solved++
		heldBound, bestBound, heldBest = heldBound+b.Ratio, bestBound+best/b.Bound, heldBest+b.Granted/best
	}
	mean := func(sum float64) string {
		if solved == 0 {
			return "–"
		}
		return percent(sum / float64(solved))
	}
	return []string{p.name, fmt.Sprintf("%d of %d", solved, cases), mean(heldBound), mean(bestBound),
		mean(heldBest)}, nil
}

// slack is what sums of floats and the solver's tolerance may be off by.
const slack = 1e-6

// ordered tells whether bound ≥ optimum ≥ held.
func ordered(b *bound.Result, best float64) error {
	if best > b.Bound*(1+slack) {
		return fmt.Errorf("the bound is %g, and the optimum %g", b.Bound, best)
	}
	if b.Granted > best*(1+slack) {
		return fmt.Errorf("%g is held, and the optimum is %g", b.Granted, best)
	}
	return nil
}

// atSize tells where the rest of a large cluster's bound is.
func atSize(name string, d *datasets.Dataset) ([]string, error) {
	problem, err := held(d)
	if err != nil {
		return nil, err
	}
	b, err := bound.Solve(problem, boundSteps)
	if err != nil {
		return nil, err
	}
	var idle []string
	for i, v := range b.Idle {
		if v/b.Bound >= 0.0005 {
			idle = append(idle, d.Dimensions[i]+" "+percent(v/b.Bound))
		}
	}
	if idle == nil {
		idle = []string{"–"}
	}
	return []string{name, percent(b.Ratio), strings.Join(idle, ", "), percent(b.Unmet / b.Bound),
		percent(b.Elsewhere / b.Bound)}, nil
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }
