package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/export"
)

// cyclesMax bounds --cycles, and --until-stable too.
const cyclesMax = 10_000

// nowMaxUS is the last instant whose year RFC 3339 can write.
var nowMaxUS = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() - 1

// runOptions are the flags of run.
type runOptions struct {
	plan, hosts, demand, running string
	cycles                       int
	untilStable                  bool
	at                           string
	out                          string
	append, force                bool
	unknown                      string
	output                       string
}

func newRun() *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run --plan P --hosts H --demand D --out LOG",
		Short: "Runs cycles on files and writes the decision log",
		Long: `Runs cycles on files, writes the decision log and prints a summary. All input is checked
before anything is written: on bad input LOG is not even made.

Tables are CSV, NDJSON, JSON, Arrow IPC or Parquet, plain or packed with gzip or zstd; the ending
of the name tells, else the content. The cycles are an interval (of the policy file) apart, the
first at --at. The same files and the same --at give the same log but for the measured times.

With --append the state is rebuilt by replaying LOG, whose files and decisions are checked on the
way, and the cycles follow its last one, none earlier than that. What is given then replaces what
the log had; what is not given stays as it was.`,
		Example: `  stint run --plan plan.yaml --hosts hosts.csv --demand demand.parquet --out log
  stint run --plan plan.yaml --hosts hosts.csv --demand demand.csv --at 2026-01-05T08:00:00Z --until-stable --out log
  stint run --append --demand later.csv --out log
  stint run --plan plan.yaml --hosts hosts.csv --demand demand.csv --out log --output json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return run(&o, c) },
	}
	f := c.Flags()
	f.StringVar(&o.plan, "plan", "", "policy file")
	f.StringVar(&o.hosts, "hosts", "", "table of hosts")
	f.StringVar(&o.demand, "demand", "", "table of demand (of the source `default`)")
	f.StringVar(&o.running, "running", "", "table of units that run at the start")
	f.IntVar(&o.cycles, "cycles", 1, "how many cycles")
	f.BoolVar(&o.untilStable, "until-stable", false, "runs until a cycle changes nothing")
	f.StringVar(&o.at, "at", "", "now of the first cycle, such as 2026-01-05T08:00:00Z (the clock's now)")
	f.StringVar(&o.out, "out", "", "folder of the log: empty, or made")
	f.BoolVar(&o.append, "append", false, "continues the log")
	f.BoolVar(&o.force, "force", false, "with --append: a plan may leave out consumers that hold something; that is "+
		"reclaimed with their grace")
	f.StringVar(&o.unknown, "unknown", "refuse", "demand of consumers that the policy does not have: refuse the "+
		"table, or report it as a shortfall")
	f.StringVar(&o.output, "output", "table", strings.Join(export.Formats,
		", ")+": the summary, or the rows of the table cycles")
	c.MarkFlagsMutuallyExclusive("cycles", "until-stable")
	required(c, "out")
	return c
}

// validate checks the flags against each other and gives the first cycle's now.
func (o *runOptions) validate() (nowUS int64, err error) {
	if err := checkOutput(o.output); err != nil {
		return 0, err
	}
	if o.unknown != "refuse" && o.unknown != "report" {
		return 0, fmt.Errorf("--unknown %q: must be refuse or report", o.unknown)
	}
	if o.cycles < 1 || o.cycles > cyclesMax {
		return 0, fmt.Errorf("--cycles %d: must be from 1 to %d", o.cycles, cyclesMax)
	}
	var missing []string
	for _, f := range []struct{ name, value string }{{"plan", o.plan}, {"hosts", o.hosts}, {"demand", o.demand}} {
		if f.value == "" {
			missing = append(missing, "--"+f.name)
		}
	}
	if len(missing) > 0 && !o.append {
		return 0, fmt.Errorf("run needs %s", strings.Join(missing, ", "))
	}
	if o.running != "" && o.append {
		return 0, errors.New("--running is for a new log; with --append the log says what runs")
	}
	if err := onlyFolder("--out", o.out); err != nil {
		return 0, err
	}
	return parseInstant(o.at)
}

// parseInstant reads --at in µs since 1970; without it, it is now.
func parseInstant(text string) (us int64, err error) {
	if text == "" {
		return time.Now().UnixMicro(), nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Year() < 1970 {
		return 0, fmt.Errorf("--at %q: must be an instant such as 2026-01-05T08:00:00Z", text)
	}
	return at.UnixMicro(), nil
}

// inputs reads the files given.
func (o *runOptions) inputs() ([]*given, error) {
	var all []*given
	for _, f := range []struct{ kind, path string }{{kindPlan, o.plan}, {kindHosts, o.hosts}, {kindDemand, o.demand},
		{kindRunning, o.running}} {
		if f.path == "" {
			continue
		}
		g, err := readInput(f.kind, f.path)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

func run(o *runOptions, c *cobra.Command) error {
	nowUS, err := o.validate()
	if err != nil {
		return err
	}
	b := newReplay()
	inputs, err := o.inputs()
	if err != nil {
		return err
	}
	if o.append {
		if err := b.replay(o.out, c.ErrOrStderr()); err != nil {
			return err
		}
		if b.state == nil {
			return fmt.Errorf("log %s has no cycle to continue from", o.out)
		}
	}
	b.reportUnknown, b.force, b.accepted = o.unknown == "report", o.force, false // what comes now is new
	for _, g := range inputs {
		if err := b.follows(g); err != nil {
			return err
		}
		if err := b.apply(g); err != nil {
			return err
		}
	}
	if o.plan != "" {
		warn(c.ErrOrStderr(), policyWarnings(b.state.Policy))
	}
	suspect, err := b.warnings()
	if warn(c.ErrOrStderr(), suspect); err != nil && (o.plan != "" || o.hosts != "") {
		return err
	}
	if interval := b.state.Policy.IntervalUS; int64(o.cycles-1) > (nowMaxUS-nowUS)/interval {
		return fmt.Errorf("--cycles %d: %s apart, the last of them would be after the year 9999", o.cycles,
			time.Duration(interval)*time.Microsecond)
	}
	first := b.state.Cycle + 1
	b.tookUS, b.granted, b.released = 0, 0, 0
	if err := b.write(o, inputs, nowUS, c.ErrOrStderr()); err != nil {
		return err
	}
	if o.output != "table" {
		r, err := export.OpenLog(o.out)
		if err != nil {
			return err
		}
		t, err := r.Rows("cycles", first, b.state.Cycle)
		if err != nil {
			return err
		}
		return export.Print(c.OutOrStdout(), t, o.output, export.PrintOptions{})
	}
	return newSummary(b, c.OutOrStdout(), o.out, b.state.Cycle-first+1).print()
}

// follows tells why a policy file must not come after the log's.
func (b *batch) follows(g *given) error {
	if g.kind != kindPlan || b.state == nil {
		return nil
	}
	p, err := plan.Parse(g.name, g.content)
	if err != nil {
		return err
	}
	return p.Follows(b.state.Policy, b.force)
}

// write runs the cycles and publishes each before the next one begins.
func (b *batch) write(o *runOptions, inputs []*given, nowUS int64, stderr io.Writer) (err error) {
	w, err := export.Open(o.out, export.Options{Append: o.append})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	var logged []export.Input
	for _, g := range inputs {
		in, err := w.Input(g.kind, g.source, g.format, g.content)
		if err != nil {
			return err
		}
		in.Rows = g.rows
		logged = append(logged, in)
		g.content = nil
	}
	status := progress(stderr)
	defer status("")
	for n := 1; ; n++ {
		before := b.state.NowUS
		b.cycle(nowUS)
		b.out.Standing = b.stands.Record(b.state, b.out.Summary.StateDue(before))
		last := n == o.cycles && !o.untilStable || o.untilStable && b.stable()
		if last && !b.out.Keyframe { // so that what is held at the end can be told without the cycles before
			b.runner.Keyframe(&b.out)
		}
		if err := w.Cycle(&b.out, logged); err != nil {
			return err
		}
		if last {
			return nil
		}
		logged = nil
		nowUS = b.state.NowUS + b.state.Policy.IntervalUS
		if n == cyclesMax || nowUS > nowMaxUS {
			return fmt.Errorf("not stable after %d cycles", n)
		}
		status(fmt.Sprintf("cycle %d: %d units held, %d short", b.out.Summary.Cycle, b.out.Summary.UnitsHeld,
			b.out.Summary.UnitsShort))
	}
}

// progress gives a function that shows a line in place, at most ten times a second, and takes it away when it
// is empty. In a pipe it shows nothing.
func progress(w io.Writer) func(string) {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) {
		return func(string) {}
	}
	var last time.Time
	return func(line string) {
		if line == "" && last.IsZero() || line != "" && time.Since(last) < 100*time.Millisecond {
			return
		}
		last = time.Now()
		fmt.Fprintf(f, "\r\x1b[K%s", line)
	}
}
