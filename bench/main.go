// Command bench measures cold cycles on generated clusters and prints medians
// with the machine they were measured on. A cold cycle starts from an empty
// state: its time runs from input columns in hand (hosts and demand tables) to
// decision columns done, all seven stages, no files.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/stintd/stint/bench/measure"
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/heap"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// suite is one size of cluster.
type suite struct {
	Name      string
	Hosts     int
	Consumers int
	Units     int64
	Shapes    int
	make      func(datasets.Options) (*datasets.Dataset, error)
}

// suites are measured in turn, one run of each after the other, so that a machine
// that slows down slows all of them.
var suites = []suite{
	{"small", 5_000, 20, 50_000, 6, datasets.Grid},
	{"ten times the cluster", 50_000, 20, 500_000, 6, datasets.Grid},
	{"ten times the hosts", 50_000, 20, 50_000, 6, datasets.Grid},
	{"slots, 100 consumers", 100_000, 100, 1_000_000, 1, datasets.Slots},
	{"slots, 1,000 consumers", 100_000, 1_000, 1_000_000, 1, datasets.Slots},
	{"slots, 10,000 consumers", 100_000, 10_000, 1_000_000, 1, datasets.Slots},
	{ownersSuite, 100_000, 10_000, 100_000, 4, datasets.Owners},
	{lendingSuite, 100_000, 10_000, 1_000_000, 200, datasets.Lenders},
	{lendingSuite + ", a tenth of the hosts", 10_000, 10_000, 1_000_000, 200, datasets.Lenders},
	{lendingSuite + ", a tenth of the consumers", 100_000, 1_000, 1_000_000, 200, datasets.Lenders},
	{lendingSuite + ", a tenth of the units", 100_000, 10_000, 100_000, 200, datasets.Lenders},
}

// result is the measurements of a suite.
type result struct {
	suite
	UnitsPlaced        int64     `json:"units_placed"`
	Rows               int       `json:"grant_rows"`
	ColdMS             quantile  `json:"cold_ms"`
	CycleMS            quantile  `json:"cycle_ms"` // of it: the seven stages, without applying the tables
	WarmMS             quantile  `json:"warm_ms"`  // a snapshot with one row of a hundred changed, and its cycle
	UnchangedMS        quantile  `json:"unchanged_ms"`
	UnitNS             float64   `json:"ns_per_unit"`
	DecisionsPerSecond float64   `json:"decisions_per_second"`
	Allocs             uint64    `json:"allocs_per_cycle"`
	AllocBytes         uint64    `json:"alloc_bytes_per_cycle"`
	StageUS            [7]int64  `json:"stage_us"`
	Owners             *owners   `json:"owners,omitempty"`
	Storm              *storm    `json:"storm,omitempty"`
	Changes            []*change `json:"changes,omitempty"`

	data          *datasets.Dataset
	policy        *plan.Policy
	cold, stages  []float64
	warm, still   []float64
	stage         [7][]int64
	allocs, bytes []uint64
}

// quantile is a measured time over runs.
type quantile struct {
	P50 float64 `json:"p50"`
	Min float64 `json:"min"`
	Max float64 `json:"max"`
	N   int     `json:"n"`
}

func main() {
	runs := flag.Int("runs", 10, "runs of each suite, after one that is not counted")
	seed := flag.Uint64("seed", 1, "seed of the generated clusters")
	output := flag.String("output", "table", "table or json")
	only := flag.String("only", "", "the suites whose names match a regular expression; ratios to others are left out")
	disturb := flag.Bool("churn", false, "count what fair reclaim stops instead of measuring times")
	onPage := flag.String("page", "", "with -churn: put the section into this page, such as docs/results.md")
	profile := flag.String("cpuprofile", "", "file for a CPU profile")
	flag.Parse()
	heap.Floor() // as the command does
	if *runs < 1 || *output != "table" && *output != "json" || *onPage != "" && !*disturb {
		fmt.Fprintln(os.Stderr, "bench: -runs must be at least 1, -output table or json, -page with -churn alone")
		os.Exit(2)
	}
	if err := choose(*only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(2)
		}
		defer pprof.StopCPUProfile()
	}
	if *disturb {
		if err := tellChurn(*seed, *output, *onPage); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	results, err := measureAll(*runs, *seed)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if *output == "json" {
		err = json.NewEncoder(os.Stdout).Encode(map[string]any{"machine": measure.Here().String(), "seed": *seed,
			"suites": results})
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	show(results, *runs, *seed)
}

// choose leaves the suites whose names match an expression.
func choose(expression string) error {
	match, err := regexp.Compile(expression)
	if err != nil {
		return err
	}
	suites = slices.DeleteFunc(suites, func(s suite) bool { return !match.MatchString(s.Name) })
	if len(suites) == 0 {
		return fmt.Errorf("no suite is called %q", expression)
	}
	return nil
}

// measureAll runs every suite runs + 1 times in turn.
func measureAll(runs int, seed uint64) ([]*result, error) {
	var results []*result
	for _, s := range suites {
		data, err := s.make(datasets.Options{Hosts: s.Hosts, Consumers: s.Consumers, Units: s.Units, Shapes: s.Shapes,
			Seed: seed})
		if err != nil {
			return nil, err
		}
		p, err := plan.Parse("plan.yaml", data.Plan)
		if err != nil {
			return nil, err
		}
		results = append(results, &result{suite: s, data: data, policy: p})
	}
	for run := range runs + 1 {
		for _, r := range results {
			if err := r.once(run > 0); err != nil {
				return nil, err
			}
		}
	}
	for _, r := range results {
		r.summarise()
	}
	return results, nil
}

// once measures one cold cycle. The collector frees the memory of the last one when it comes, as in a service: a
// collection by force, while little is in use, has the runtime give memory back for which the cycle then waits page by
// page.
func (r *result) once(counted bool) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	s, err := cluster.New(r.policy)
	if err != nil {
		return err
	}
	if err := s.SetHosts(r.data.Hosts, true); err != nil {
		return err
	}
	if err := s.SetDemand("bench", r.data.Demand); err != nil {
		return err
	}
	applied := time.Now()
	runner := cycle.Runner{Clock: func() int64 { return time.Now().UnixMicro() }}
	var out decision.Cycle
	runner.Run(s, 0, &out)
	end := time.Now()
	runtime.ReadMemStats(&after)
	if !counted {
		return s.Verify()
	}
	r.UnitsPlaced, r.Rows = out.Summary.UnitsGranted, len(out.Grants.Units)
	for i, us := range out.Summary.StageUS {
		r.stage[i] = append(r.stage[i], us)
	}
	if r.Name == ownersSuite {
		if err := r.lose(s, &runner, &out); err != nil {
			return err
		}
	}
	if err := r.again(s, &runner, &out); err != nil {
		return err
	}
	if r.Name == lendingSuite {
		if err := r.blow(); err != nil {
			return err
		}
	}
	r.cold = append(r.cold, end.Sub(start).Seconds()*1e3)
	r.stages = append(r.stages, end.Sub(applied).Seconds()*1e3)
	r.allocs = append(r.allocs, after.Mallocs-before.Mallocs)
	r.bytes = append(r.bytes, after.TotalAlloc-before.TotalAlloc)
	return nil
}

// again measures a cycle after a snapshot in which one row of a hundred wants something else, and a cycle without a
// change. The demand is put back. Decisions overwrite the columns of the last ones, as in a service.
func (r *result) again(s *cluster.State, runner *cycle.Runner, out *decision.Cycle) error {
	units := slices.Clone(r.data.Demand.Units)
	for i := 0; i < len(units); i += 100 {
		r.data.Demand.Units[i] = units[i]/2 + 1
	}
	start := time.Now()
	err := s.SetDemand("bench", r.data.Demand)
	runner.Run(s, 60e6, out)
	r.warm = append(r.warm, time.Since(start).Seconds()*1e3)
	defer copy(r.data.Demand.Units, units)
	if strings.HasPrefix(r.Name, lendingSuite) && len(r.still) > 0 {
		return err // the fixed point is a hundred cycles away and more
	}
	if err := settle(s, runner, out); err != nil {
		return fmt.Errorf("%s: %w", r.Name, err)
	}
	start = time.Now()
	runner.Run(s, s.NowUS+60e6, out)
	r.still = append(r.still, time.Since(start).Seconds()*1e3)
	if r.Name == lendingSuite {
		return r.stir(s, runner, out)
	}
	return err
}

// settle runs cycles until nothing changes any more.
func settle(s *cluster.State, runner *cycle.Runner, out *decision.Cycle) error {
	for range 1000 {
		if runner.Run(s, s.NowUS+60e6, out); out.Summary.Stable() {
			return nil
		}
	}
	return errors.New("no fixed point after a thousand cycles")
}

func (r *result) summarise() {
	r.ColdMS, r.CycleMS = quantiles(r.cold), quantiles(r.stages)
	r.WarmMS, r.UnchangedMS = quantiles(r.warm), quantiles(r.still)
	r.UnitNS = r.ColdMS.P50 * 1e6 / float64(r.Units)
	r.DecisionsPerSecond = float64(r.Units) / r.ColdMS.P50 * 1e3
	r.Allocs, r.AllocBytes = median(r.allocs), median(r.bytes)
	for i := range r.stage {
		r.StageUS[i] = median(r.stage[i])
	}
	if r.Owners != nil {
		r.Owners.summarise(r.stage[stageOwn])
	}
	if r.Storm != nil {
		r.Storm.MS = quantiles(r.Storm.ms)
	}
	for _, of := range r.Changes {
		of.MS = quantiles(of.ms)
	}
}

func quantiles(v []float64) quantile {
	return quantile{median(v), slices.Min(v), slices.Max(v), len(v)}
}

func median[T int64 | uint64 | float64](v []T) T {
	v = slices.Clone(v)
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// show prints the results as a table.
func show(results []*result, runs int, seed uint64) {
	fmt.Println(measure.Here().String())
	fmt.Printf("medians of %d, seed %d; decided = wanted units, granted or refused with a reason;\n"+
		"warm = a whole snapshot of which 1 %% of the rows changed, and its cycle\n\n", runs, seed)
	t := table.NewWriter()
	t.SetOutputMirror(os.Stdout)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"cluster", "hosts", "wanted", "granted", "cold ms", "min … max", "of it stages", "ns/unit",
		"decided/s", "allocs", "MiB", "warm ms", "unchanged ms"})
	columns := make([]table.ColumnConfig, 12)
	for i := range columns {
		columns[i] = table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	t.SetColumnConfigs(columns)
	for _, r := range results {
		t.AppendRow(table.Row{
			r.Name, r.Hosts, r.Units, r.UnitsPlaced, fmt.Sprintf("%.1f", r.ColdMS.P50),
			fmt.Sprintf("%.1f … %.1f", r.ColdMS.Min, r.ColdMS.Max), fmt.Sprintf("%.1f", r.CycleMS.P50),
			fmt.Sprintf("%.0f", r.UnitNS), fmt.Sprintf("%.2f M", r.DecisionsPerSecond/1e6),
			r.Allocs, fmt.Sprintf("%.1f", float64(r.AllocBytes)/(1<<20)),
			fmt.Sprintf("%.2f", r.WarmMS.P50), fmt.Sprintf("%.4f", r.UnchangedMS.P50),
		})
	}
	t.Render()
	fmt.Println()
	for _, r := range results {
		fmt.Printf("%-34s", r.Name)
		for i, stage := range decision.Stages {
			fmt.Printf("  %s %.2f ms", stage, float64(r.StageUS[i])/1e3)
		}
		fmt.Println()
	}
	for _, r := range results {
		if r.Owners != nil {
			r.Owners.show()
		}
	}
	showLending(results)
	by := named(results)
	if small, large := by["small"], by["ten times the cluster"]; small != nil && large != nil {
		fmt.Printf("\ntime per unit, %d hosts against %d: × %.2f (all from the same runs, in turn)\n", large.Hosts,
			small.Hosts, large.UnitNS/small.UnitNS)
	}
	few, many := by["slots, 100 consumers"], by["slots, 10,000 consumers"]
	if few == nil || many == nil {
		return
	}
	if large := by["ten times the cluster"]; large != nil {
		fmt.Printf("time per slot, %s, against a unit of %s: × %.2f\n", many.Name, large.Name, many.UnitNS/large.UnitNS)
	}
	fmt.Printf("log-log slope of the slot cycle's time against consumers, %d to %d: %.2f\n", few.Consumers,
		many.Consumers,
		math.Log(many.ColdMS.P50/few.ColdMS.P50)/math.Log(float64(many.Consumers)/float64(few.Consumers)))
}

// named gives results by their suites' names.
func named(results []*result) map[string]*result {
	by := map[string]*result{}
	for _, r := range results {
		by[r.Name] = r
	}
	return by
}
