package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

func newCheck() *cobra.Command {
	var hosts string
	c := &cobra.Command{
		Use:   "check P [--hosts H]",
		Short: "Validates a policy file",
		Long: `Validates a policy file: all faults, then warnings, then what each consumer is guaranteed: of a slot
plan what it owns, keeps, lends and may borrow, in each time window. With --hosts the resource groups
are tried on the hosts too; then slot plans show how many slots there are and what of them is owned,
multidimensional plans what of the hosts each consumer owns, and all plans the static share quota of
each consumer: what it gets of pools when everybody asks for everything. Settings that this version does not carry out yet are warned of here, and refused by run.

Exit codes: 0 no faults, 2 faults.`,
		Example: `  stint check plan.yaml
  stint check plan.yaml --hosts hosts.csv`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return check(c.OutOrStdout(), c.ErrOrStderr(), args[0], hosts)
		},
	}
	c.Flags().StringVar(&hosts, "hosts", "", "table of hosts")
	return c
}

func check(stdout, stderr io.Writer, file, hosts string) error {
	g, err := readInput(kindPlan, file)
	if err != nil {
		return err
	}
	p, err := plan.Parse(file, g.content)
	if err != nil {
		return err
	}
	warn(stderr, policyWarnings(p))
	leaves := int64(0)
	for n := range p.Len() {
		if p.Leaf(plan.Node(n)) {
			leaves++
		}
	}
	fmt.Fprintf(stdout, "%s: no faults. %s, %s of them leaves\n", file, count(int64(p.Len()-1), "consumer"), grouped(leaves))
	for i := range p.MDPlans {
		fmt.Fprintf(stdout, "  plan %s: %s over %s\n", p.MDPlans[i].Name, count(members(p.MDPlans[i].Member), "consumer"),
			count(int64(len(p.MDPlans[i].Groups)), "resource group"))
	}
	for i := range p.SlotPlans {
		fmt.Fprintf(stdout, "  slot plan %s: %s\n", p.Groups[p.SlotPlans[i].Group].Name, count(members(p.SlotPlans[i].Member), "consumer"))
	}
	if hosts == "" {
		return guarantees(stdout, p, nil)
	}
	b, err := tryHosts(stderr, p, hosts)
	if err != nil {
		return err
	}
	b.cycle(0)
	var unmet []string
	for _, w := range b.state.Unmet() {
		unmet = append(unmet, w.String())
	}
	warn(stderr, unmet)
	return guarantees(stdout, p, b)
}

// tryHosts tries a policy on hosts.
func tryHosts(stderr io.Writer, p *plan.Policy, hosts string) (b *batch, err error) {
	b = &batch{}
	if b.state, err = cluster.New(p); err != nil {
		return nil, err
	}
	g, err := readInput(kindHosts, hosts)
	if err != nil {
		return nil, err
	}
	if err := b.apply(g); err != nil {
		return nil, err
	}
	suspect, err := b.warnings()
	warn(stderr, suspect)
	return b, err
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
