package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/explain"
	"github.com/stintd/stint/core/plan"
)

type diffOptions struct {
	was, is, hosts, demand, at, output string
	settle                             int
}

func newDiff() *cobra.Command {
	var o diffOptions
	c := &cobra.Command{
		Use:   "diff P1 P2 [--hosts H [--demand D]]",
		Short: "Tells what changes between two policy files",
		Long: `Tells what differs between two policy files, in the words of the file: consumers, plans and windows that came
and went, and each key that has another value, in which window.

With --hosts it tells what changes of what each consumer is guaranteed, which is what it holds when everybody
asks for everything. With --demand too, cycles are played under both policies until nothing changes any
more: who gains, who loses, why.

Exit codes: 0 fine, whether they differ or not, 2 bad usage or input.`,
		Example: `  stint diff plan.yaml new.yaml
  stint diff plan.yaml new.yaml --hosts hosts.csv
  stint diff plan.yaml new.yaml --hosts hosts.csv --demand demand.csv --at 2026-01-05T09:00:00Z
  stint diff plan.yaml new.yaml --output json`,
		Args: takes("two policy files", "a second policy file"),
		RunE: func(c *cobra.Command, args []string) error {
			o.was, o.is = args[0], args[1]
			return diff(&o, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.hosts, "hosts", "", "table of hosts")
	f.StringVar(&o.demand, "demand", "", "table of demand")
	f.StringVar(&o.at, "at", "", "time of the first cycle, RFC 3339 (default: now)")
	f.IntVar(&o.settle, "settle", 100, "with --demand, how many cycles to look ahead at most; 0: none")
	f.StringVar(&o.output, "output", "table", "table or json")
	return c
}

// difference is the difference of two policy files.
type difference struct {
	Was        string              `json:"was"`
	Is         string              `json:"is"`
	Changes    []plan.Change       `json:"changes"`
	Guarantees []guaranteeChange   `json:"guarantees,omitempty"`
	Demand     *explain.Comparison `json:"demand,omitempty"`
}

// guaranteeChange is another amount that a consumer is guaranteed.
type guaranteeChange struct {
	Plan      string `json:"plan"`
	Window    string `json:"window,omitempty"`
	Consumer  string `json:"consumer"`
	Dimension string `json:"dimension"`
	Was       int64  `json:"was"`
	Is        int64  `json:"is"`
}

func diff(o *diffOptions, stdout, stderr io.Writer) error {
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("--output %q: must be table or json", o.output)
	}
	if o.settle < 0 || o.settle > settleMax {
		return fmt.Errorf("--settle %d: must be from 0 to %d", o.settle, settleMax)
	}
	if o.hosts == "" && o.demand != "" {
		return fmt.Errorf("--demand needs --hosts")
	}
	was, err := parsePlan(o.was)
	if err != nil {
		return err
	}
	is, err := parsePlan(o.is)
	if err != nil {
		return err
	}
	d := difference{Was: o.was, Is: o.is}
	d.Changes, _ = plan.Difference(was, is, math.MaxInt)
	if d.Changes == nil {
		d.Changes = []plan.Change{}
	}
	if o.hosts != "" {
		if err := d.play(o, was, is, stderr); err != nil {
			return err
		}
	}
	if o.output == "json" {
		return encode(stdout, d)
	}
	_, err = io.WriteString(stdout, d.render(widthOf(stdout)))
	if err != nil || d.Demand == nil {
		return err
	}
	fmt.Fprintln(stdout)
	return d.Demand.Write(stdout, o.is, styleOf(stdout))
}

func parsePlan(name string) (*plan.Policy, error) {
	g, err := readInput(kindPlan, name)
	if err != nil {
		return nil, err
	}
	return plan.Parse(g.name, g.content)
}

// play plays cycles under both policies.
func (d *difference) play(o *diffOptions, was, is *plan.Policy, stderr io.Writer) error {
	nowUS, err := parseInstant(o.at)
	if err != nil {
		return err
	}
	before, _, err := tryHosts(was, o.hosts)
	if err != nil {
		return err
	}
	after, suspect, err := tryHosts(is, o.hosts)
	if err != nil {
		return err
	}
	warn(stderr, suspect)
	_, old := guarantees(was, before, 80)
	_, now := guarantees(is, after, 80)
	d.Guarantees = guaranteeChanges(old, now)
	if o.demand == "" {
		return nil
	}
	var ahead [2]explain.Ahead
	for i, p := range []*plan.Policy{was, is} {
		b, _, err := tryHosts(p, o.hosts)
		if err != nil {
			return err
		}
		g, err := readInput(kindDemand, o.demand)
		if err != nil {
			return err
		}
		g.source = "default"
		if err := b.apply(g); err != nil {
			return fmt.Errorf("under %s: %w", p.File, err)
		}
		ahead[i] = b.ahead(nowUS, o.settle)
	}
	d.Demand = explain.Compare(ahead[0], ahead[1])
	return nil
}

// guaranteeChanges lists the guarantees that are larger or smaller: consumers of the later policy in its order, then
// consumers without a guarantee in it.
func guaranteeChanges(old, now []guarantee) (list []guaranteeChange) {
	type key struct{ plan, window, consumer, dimension string }
	amounts := func(rows []guarantee) (keys []key, of map[key]int64) {
		of = map[key]int64{}
		for _, g := range rows {
			for _, dimension := range slices.Sorted(maps.Keys(g.of)) {
				k := key{g.plan, g.window, g.consumer, dimension}
				keys, of[k] = append(keys, k), g.of[dimension]
			}
		}
		return keys, of
	}
	oldKeys, was := amounts(old)
	keys, is := amounts(now)
	for _, k := range oldKeys {
		if _, ok := is[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.SortStableFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.plan, b.plan), cmp.Compare(a.window, b.window),
			cmp.Compare(a.dimension, b.dimension))
	})
	for _, k := range keys {
		if was[k] != is[k] {
			list = append(list, guaranteeChange{k.plan, k.window, k.consumer, k.dimension, was[k], is[k]})
		}
	}
	return list
}

// render is the difference for people, in lines of at most width.
func (d *difference) render(width int) string {
	var b strings.Builder
	what := "no difference"
	switch n := len(d.Changes); {
	case n == 1:
		what = "1 difference"
	case n > 1:
		what = grouped(int64(n)) + " differences"
	}
	fmt.Fprintf(&b, "%s → %s: %s\n", d.Was, d.Is, what)
	for _, c := range d.Changes {
		line := text.WrapSoft(c.String(), max(20, width-4))
		for i, part := range strings.Split(line, "\n") {
			b.WriteString([]string{"  ", "    "}[min(i, 1)] + strings.TrimRight(part, " ") + "\n")
		}
	}
	if d.Guarantees == nil {
		return b.String()
	}
	g := grid{head: []string{"guaranteed", "before", "after", ""}}
	where := ""
	for _, c := range d.Guarantees {
		at := "plan " + c.Plan
		if c.Window != "" {
			at += ", window " + c.Window
		}
		if at += ", " + c.Dimension; at != where {
			where = at
			g.add(at, "", "", "")
		}
		g.add("  "+c.Consumer, grouped(c.Was), grouped(c.Is), signed(c.Is-c.Was))
	}
	b.WriteString("\n" + g.render() + "\n")
	return b.String()
}

// signed is a number with its sign.
func signed(n int64) string {
	if n > 0 {
		return "+" + grouped(n)
	}
	return grouped(n)
}
