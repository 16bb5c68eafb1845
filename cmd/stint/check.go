package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

func newCheck() *cobra.Command {
	var o checkOptions
	var output string
	c := &cobra.Command{
		Use:   "check P [--hosts H] [--was P0]",
		Short: "Validates a policy file",
		Long: `Validates a policy file: all faults, then warnings, then what each consumer is guaranteed. Of a slot plan
that is what it owns, keeps, lends and may borrow, in each time window. With --hosts the resource groups
are tried on the hosts too; then the cycle is played in which everybody asks for everything (of each
dimension by itself), and the column or table "guaranteed" has what each consumer holds then, in each window,
with the sum and what there is. Multidimensional plans also show what of the hosts each consumer owns.

With --was it is checked too whether the file may follow the one that is in force: one that takes a
system service away may not, forced or not.

With --output json faults, warnings and guarantees come as one object on stdout: of guarantees a row for each
plan, window and consumer, with a column guaranteed_<dimension>; without --hosts slot plans alone have rows, of what
is owned.

Exit codes: 0 no faults, 2 faults.`,
		Example: `  stint check plan.yaml
  stint check plan.yaml --hosts hosts.csv
  stint check plan.yaml --hosts hosts.csv --output json
  stint check new.yaml --was plan.yaml`,
		Args: takes("a policy file"),
		RunE: func(c *cobra.Command, args []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("--output %q: must be table or json", output)
			}
			k := checked{File: args[0], Faults: []fault{}, Warnings: []string{}, Guarantees: []map[string]any{}}
			err := k.check(&o, widthOf(c.OutOrStdout()))
			if output == "json" {
				return errors.Join(encode(c.OutOrStdout(), k), err)
			}
			warn(c.ErrOrStderr(), k.Warnings)
			if err != nil {
				return err
			}
			_, err = io.WriteString(c.OutOrStdout(), k.text)
			return err
		},
	}
	c.Flags().StringVar(&o.hosts, "hosts", "", "table of hosts")
	c.Flags().StringVar(&o.was, "was", "", "the policy file in force, which the one checked is to follow")
	c.Flags().BoolVar(&o.force, "force", false, "with --was: as it would be put with force")
	c.Flags().StringVar(&output, "output", "table", "table or json")
	return c
}

// checkOptions are the files that a policy file is checked against.
type checkOptions struct {
	hosts, was string
	force      bool
}

// checked is the result of checking a policy file.
type checked struct {
	File       string           `json:"file"`
	OK         bool             `json:"ok"`
	Consumers  int64            `json:"consumers"`
	Leaves     int64            `json:"leaves"`
	Faults     []fault          `json:"faults"`
	Warnings   []string         `json:"warnings"`
	Guarantees []map[string]any `json:"guarantees"`

	text string // what people read of a file without faults
}

// fault is one thing that is wrong, with its place where that is known.
type fault struct {
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Path   string `json:"path,omitempty"`
	Value  string `json:"value,omitempty"`
	Reason string `json:"reason"`
}

// wrong notes an error as faults, and gives it back.
func (k *checked) wrong(err error) error {
	var faults plan.Faults
	if !errors.As(err, &faults) {
		k.Faults = append(k.Faults, fault{Reason: err.Error()})
		return err
	}
	for _, f := range faults {
		k.Faults = append(k.Faults, fault{f.Line, f.Column, f.Path, f.Value, f.Reason})
	}
	return err
}

// check checks a file, on a table of hosts and against the file in force where these are given, and tells guarantees in
// lines of so many columns.
func (k *checked) check(o *checkOptions, width int) error {
	if o.force && o.was == "" {
		return k.wrong(errors.New("--force is for --was"))
	}
	g, err := readInput(kindPlan, k.File)
	if err != nil {
		return k.wrong(err)
	}
	return k.content(o, g.content, width)
}

// content is check of a file that was read.
func (k *checked) content(o *checkOptions, file []byte, width int) error {
	p, err := plan.Parse(k.File, file)
	if err != nil {
		return k.wrong(err)
	}
	if o.was != "" {
		was, err := parsePlan(o.was)
		if err == nil {
			err = p.Follows(was, o.force)
		}
		if err != nil {
			return k.wrong(err)
		}
	}
	k.Warnings = append(k.Warnings, policyWarnings(p)...)
	for n := range p.Len() {
		if p.Leaf(plan.Node(n)) {
			k.Leaves++
		}
	}
	k.Consumers = int64(p.Len() - 1)
	var b *batch
	if o.hosts != "" {
		var suspect []string
		b, suspect, err = tryHosts(p, o.hosts)
		if k.Warnings = append(k.Warnings, suspect...); err != nil {
			return k.wrong(err)
		}
		b.cycle(0)
		for _, w := range b.state.Unmet() {
			k.Warnings = append(k.Warnings, w.String())
		}
	}
	k.OK = true
	text, rows := guarantees(p, b, width)
	k.text = k.heading(p) + text
	for _, r := range rows {
		row := map[string]any{"plan": r.plan, "consumer": r.consumer}
		if r.window != "" {
			row["window"] = r.window
		}
		for d, n := range r.of {
			row["guaranteed_"+d] = n
		}
		k.Guarantees = append(k.Guarantees, row)
	}
	return nil
}

// heading says of how many consumers and plans the policy is.
func (k *checked) heading(p *plan.Policy) string {
	text := fmt.Sprintf("%s: no faults. %s, %s\n", k.File, count(k.Consumers, "consumer"), leavesText(k.Leaves))
	for i := range p.MDPlans {
		text += fmt.Sprintf("  plan %s: %s over %s\n", p.MDPlans[i].Name,
			count(members(p.MDPlans[i].Member), "consumer"), count(int64(len(p.MDPlans[i].Groups)), "resource group"))
	}
	for i := range p.SlotPlans {
		text += fmt.Sprintf("  slot plan %s: %s\n", p.Groups[p.SlotPlans[i].Group].Name,
			count(members(p.SlotPlans[i].Member), "consumer"))
	}
	return text
}

func leavesText(n int64) string {
	if n == 1 {
		return "1 of them a leaf"
	}
	return grouped(n) + " of them leaves"
}

// tryHosts tries a policy on hosts, and tells suspect settings of these.
func tryHosts(p *plan.Policy, hosts string) (b *batch, suspect []string, err error) {
	b = &batch{}
	if b.state, err = cluster.New(p); err != nil {
		return nil, nil, err
	}
	g, err := readInput(kindHosts, hosts)
	if err != nil {
		return nil, nil, err
	}
	if err := b.apply(g); err != nil {
		return nil, nil, err
	}
	suspect, err = b.warnings()
	return b, suspect, err
}

// members is how many consumers take part in a plan.
func members(member []bool) (n int64) {
	for _, in := range member[1:] {
		if in {
			n++
		}
	}
	return n
}

func policyWarnings(p *plan.Policy) (lines []string) {
	for _, w := range p.Warnings() {
		lines = append(lines, w.String())
	}
	return lines
}
