package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/bench/measure"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
	"github.com/stintd/stint/ingest/table"
)

// profiles are the generated clusters that can be measured, in the order of the help.
var profiles = []struct {
	name     string
	generate func(datasets.Options) (*datasets.Dataset, error)
}{
	{"grid", datasets.Grid}, {"gpu", datasets.GPU}, {"hetero", datasets.Hetero}, {"slots", datasets.Slots},
	{"owners", datasets.Owners}, {"lenders", datasets.Lenders},
}

// benchCyclesMax bounds the values of a figure.
const benchCyclesMax = 10_000

// benchOptions are the flags of bench.
type benchOptions struct {
	profile             string
	size                datasets.Options
	plan, hosts, demand string // of one's own
	change              string
	cycles              int
	bound               bool
	output              string
}

func newBench() *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use:   "bench [--profile P --hosts N | --plan F --hosts F --demand F]",
		Short: "Measures cycles of a cluster on this machine",
		Long: `Measures three kinds of cycles of a cluster, each from input columns in hand to decision columns
done, all seven stages, without files:

  cold       a state that knows nothing: all hosts, all demand
  warm       at rest, a snapshot in which --change of the rows want what others of these wanted
  unchanged  at rest, nothing new

The floor is a plain loop that reads as many bytes as the cold cycle's input has, and writes as many as
its decisions have. A time ÷ the floor says how much more than moving bytes a cycle does.

A share error is how far a consumer's usage of a pool is from its quota there, at rest.
The same flags give the same figures, save times and memory.

--bound adds how much of what is wanted any placement could hold at most, whatever the policy. Units
count what their size takes of the mean host, in the dimension of which it takes most. Scarcity is the
part of the bound that a dimension's capacity is worth: where it is 0, more of it would place nothing.
Not held is where the rest is: free capacity that is worth something; units that are wanted and were
worth more than they cost; the others stand where units that count more could. A small rest may be
the bound's: it counts hosts as if units could be cut.`,
		Example: `  stint bench --profile grid --hosts 5000 --consumers 20 --units 50000
  stint bench --profile lenders --hosts 100000 --consumers 10000 --units 1000000 --shapes 200 --cycles 6
  stint bench --profile hetero --hosts 1000 --units 20000 --cycles 1 --bound
  stint bench --plan plan.yaml --hosts hosts.csv --demand demand.csv --change 5% --output json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runBench(c, &o) },
	}
	f := c.Flags()
	f.StringVar(&o.profile, "profile", "grid", "the generated cluster: "+profileNames())
	f.StringVar(&o.hosts, "hosts", "5000", "how many hosts it has; with --plan a file")
	f.IntVar(&o.size.Consumers, "consumers", 20, "leaves of its consumer tree")
	f.Int64Var(&o.size.Units, "units", 50_000, "units wanted in all")
	f.IntVar(&o.size.Shapes, "shapes", 6, "different unit sizes")
	f.Uint64Var(&o.size.Seed, "seed", 1, "seed of the cluster, and of which rows change")
	f.StringVar(&o.plan, "plan", "", "a policy file of one's own, in place of a profile")
	f.StringVar(&o.demand, "demand", "", "the demand that goes with that")
	f.StringVar(&o.change, "change", "1%", "the part of the demand's rows that a warm cycle finds changed")
	f.IntVar(&o.cycles, "cycles", 10, "values of each figure, after one that does not count")
	f.BoolVar(&o.bound, "bound", false, "also how much any placement could hold at most")
	f.StringVar(&o.output, "output", "table", "table or json")
	return c
}

func profileNames() string {
	var names []string
	for _, p := range profiles {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// benchReport is the report of bench as JSON.
type benchReport struct {
	Machine   measure.Machine `json:"machine"`
	Profile   string          `json:"profile,omitempty"`
	Plan      string          `json:"plan,omitempty"`
	Units     int64           `json:"units,omitempty"`
	Leaves    int             `json:"leaves,omitempty"`
	Shapes    int             `json:"shapes,omitempty"`
	Seed      uint64          `json:"seed"`
	ChangeOf  float64         `json:"change"`
	CyclesRun int             `json:"cycles"`
	*measure.Result
}

func runBench(c *cobra.Command, o *benchOptions) error {
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("--output %q: must be table or json", o.output)
	}
	if o.cycles < 1 || o.cycles > benchCyclesMax {
		return fmt.Errorf("--cycles %d: must be from 1 to %d", o.cycles, benchCyclesMax)
	}
	change, err := parsePart(o.change)
	if err != nil {
		return fmt.Errorf("--change %q: %w", o.change, err)
	}
	report := benchReport{Machine: measure.Here(), Seed: o.size.Seed, ChangeOf: change, CyclesRun: o.cycles}
	m, err := o.load(c, &report)
	if err != nil {
		return err
	}
	m.Change, m.Cycles, m.Seed, m.Bound = change, o.cycles, o.size.Seed, o.bound
	status := progress(c.ErrOrStderr())
	m.Progress = func(done, all int) { status(bar("bench", done, all)) }
	report.Result, err = measure.Run(m)
	status("")
	if err != nil {
		return err
	}
	if o.output == "json" {
		e := json.NewEncoder(c.OutOrStdout())
		e.SetIndent("", "  ")
		return e.Encode(report)
	}
	return printBench(c.OutOrStdout(), &report)
}

// parsePart reads a part of a whole: 1% or 0.01.
func parsePart(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	part, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		part /= 100
	}
	if err != nil || !(part > 0 && part <= 1) {
		return 0, errors.New("must be a part of the rows above 0 and at most all, such as 1% or 0.01")
	}
	return part, nil
}

// load makes the cluster of the profile, or reads that of the files.
func (o *benchOptions) load(c *cobra.Command, report *benchReport) (m measure.Options, err error) {
	if !c.Flags().Changed("plan") && !c.Flags().Changed("demand") {
		for _, p := range profiles {
			if p.name == o.profile {
				return o.generate(p.generate, report)
			}
		}
		return m, fmt.Errorf("--profile %q: must be one of %s", o.profile, profileNames())
	}
	for _, name := range []string{"profile", "consumers", "units", "shapes"} {
		if c.Flags().Changed(name) {
			return m, fmt.Errorf("--%s is of generated clusters; files of one's own are --plan, --hosts and --demand",
				name)
		}
	}
	if o.plan == "" || o.demand == "" || !c.Flags().Changed("hosts") {
		return m, errors.New("files of one's own are three: --plan, --hosts and --demand")
	}
	report.Plan = o.plan
	return loadFiles(o.plan, o.hosts, o.demand)
}

func (o *benchOptions) generate(make func(datasets.Options) (*datasets.Dataset, error),
	report *benchReport) (m measure.Options, err error) {
	if o.size.Hosts, err = strconv.Atoi(o.hosts); err != nil {
		return m, fmt.Errorf("--hosts %q: must be a number; a file of hosts goes with --plan and --demand", o.hosts)
	}
	d, err := make(o.size)
	if err != nil {
		return m, err
	}
	report.Profile, report.Units, report.Leaves, report.Shapes = o.profile, o.size.Units, o.size.Consumers,
		o.size.Shapes
	m.Hosts, m.Demand = d.Hosts, d.Demand
	m.Policy, err = plan.Parse("plan.yaml", d.Plan)
	return m, err
}

// loadFiles reads a policy, and the tables of hosts and demand by its dimensions.
func loadFiles(policy, hosts, demand string) (m measure.Options, err error) {
	g, err := readInput(kindPlan, policy)
	if err != nil {
		return m, err
	}
	if m.Policy, err = plan.Parse(g.name, g.content); err != nil {
		return m, err
	}
	read := func(path string, decode func(io.Reader, table.Options) error) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return decode(f, table.Options{Name: path, Dimensions: m.Policy.Dimensions})
	}
	err = read(hosts, func(r io.Reader, o table.Options) (err error) {
		m.Hosts, err = table.ReadHosts(r, o)
		return err
	})
	if err != nil {
		return m, err
	}
	err = read(demand, func(r io.Reader, o table.Options) (err error) {
		m.Demand, err = table.ReadDemand(r, o)
		return err
	})
	return m, err
}

// printBench prints the answer first, the times of cycles; then their decisions, then the times of their stages.
func printBench(w io.Writer, r *benchReport) error {
	name := "plan " + r.Plan
	if r.Profile != "" {
		name = fmt.Sprintf("profile %s, seed %d", r.Profile, r.Seed)
	}
	fmt.Fprintf(w, "%s  ·  %s  ·  %s  ·  %s in %s\n\n", name, count(int64(r.Hosts), "host"),
		count(int64(r.Consumers), "consumer"), count(r.UnitsWanted, "unit"), count(int64(r.Rows), "row"))
	g := grid{head: []string{"cycle", "p50 ms", "p99", "max", "n", "× floor"}}
	for _, row := range []struct {
		name string
		q    measure.Quantiles
	}{
		{"cold", r.ColdMS}, {fmt.Sprintf("warm, %s changed", count(int64(r.Changed), "row")), r.WarmMS},
		{"unchanged", r.UnchangedMS},
		{fmt.Sprintf("floor, %s MB", grouped((r.FloorBytes+500_000)/1_000_000)), r.FloorMS},
	} {
		ratio := ""
		if r.FloorMS.P50 > 0 {
			ratio = fmt.Sprintf("%.1f", row.q.P50/r.FloorMS.P50)
		}
		g.add(row.name, fmt.Sprintf("%.3f", row.q.P50), fmt.Sprintf("%.3f", row.q.P99), fmt.Sprintf("%.3f", row.q.Max),
			strconv.Itoa(row.q.N), ratio)
	}
	fmt.Fprintln(w, g.render())
	fmt.Fprintf(w, "\n%s units decided a second  ·  %s of %s placed (%s)\n", grouped(int64(r.DecisionsPerSecond)),
		grouped(r.UnitsPlaced), grouped(r.UnitsWanted), percent(float64(r.UnitsPlaced)/float64(max(1, r.UnitsWanted))))
	fmt.Fprintf(w, "at rest after %s, %s reclaimed (%s unit-seconds lost), share error at most %s\n",
		count(int64(r.SettledAfter), "cycle"),
		count(r.UnitsReclaimed, "unit"), grouped(int64(r.UnitSecondsLost)), fmt.Sprintf("%.3f %%", 100*r.MaxShareError))
	fmt.Fprintf(w, "peak memory %s MB, %s allocations a warm cycle\n\n", grouped(r.PeakRSSBytes/1_000_000),
		grouped(int64(r.AllocsPerWarmCycle)))
	u := grid{head: []string{"dimension", "used", "of", ""}}
	for _, d := range r.Utilisation {
		u.add(d.Dimension, grouped(d.Used), grouped(d.Capacity), percent(d.Part))
	}
	fmt.Fprintln(w, u.render())
	if len(r.Bounds) > 0 {
		fmt.Fprintln(w)
		if err := printBounds(w, r.Bounds); err != nil {
			return err
		}
	}
	s := grid{head: []string{"stage, ms"}}
	cold, warm := []string{"cold"}, []string{"warm"}
	for _, stage := range decision.Stages {
		s.head = append(s.head, stage)
		cold = append(cold, fmt.Sprintf("%.2f", float64(r.ColdStageUS[stage])/1e3))
		warm = append(warm, fmt.Sprintf("%.2f", float64(r.WarmStageUS[stage])/1e3))
	}
	s.add(cold...)
	s.add(warm...)
	_, err := fmt.Fprintf(w, "\n%s\n\n%s\nload %s, commit %.12s\n", s.render(), r.Machine, r.Machine.Load1,
		r.Machine.Commit)
	return err
}
