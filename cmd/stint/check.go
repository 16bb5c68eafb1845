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
		Long: `Validates a policy file: all faults, then warnings. With --hosts the resource groups are tried on
the hosts too, and the static share quota of each consumer is shown: what it gets when everybody
asks for everything. Settings that this version does not carry out yet are warned of here, and
refused by run.

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
	unsupported := p.Unsupported()
	for _, f := range unsupported {
		warn(stderr, []string{f.String()})
	}
	leaves := int64(0)
	for n := range p.Len() {
		if p.Leaf(plan.Node(n)) {
			leaves++
		}
	}
	fmt.Fprintf(stdout, "%s: no faults. %s, %s of them leaves\n", file, count(int64(p.Len()-1), "consumer"), grouped(leaves))
	for i := range p.MDPlans {
		fmt.Fprintf(stdout, "  plan %s: %s over %s\n", p.MDPlans[i].Name, count(members(&p.MDPlans[i]), "consumer"),
			count(int64(len(p.MDPlans[i].Groups)), "resource group"))
	}
	for i := range p.SlotPlans {
		fmt.Fprintf(stdout, "  slot plan %s\n", p.Groups[p.SlotPlans[i].Group].Name)
	}
	if hosts == "" {
		return nil
	}
	return checkHosts(stdout, stderr, p, hosts, len(unsupported) == 0)
}

// checkHosts tries a policy on hosts. What consumers are guaranteed is known only where the engine carries
// out all that the policy says.
func checkHosts(stdout, stderr io.Writer, p *plan.Policy, hosts string, guarantees bool) error {
	b := &batch{}
	var err error
	if b.state, err = cluster.New(p); err != nil {
		return err
	}
	g, err := readInput(kindHosts, hosts)
	if err != nil {
		return err
	}
	if err := b.apply(g); err != nil {
		return err
	}
	warn(stderr, b.warnings())
	if !guarantees {
		return nil
	}
	b.cycle(0)
	if len(b.out.Amounts.Held) == 0 {
		return nil
	}
	fmt.Fprintln(stdout)
	return newSummary(b, stdout, "", 0).guarantees()
}

func policyWarnings(p *plan.Policy) (lines []string) {
	for _, w := range p.Warnings() {
		lines = append(lines, w.String())
	}
	return lines
}
