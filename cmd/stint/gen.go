package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/datasets"
)

func newGen() *cobra.Command {
	gen := &cobra.Command{
		Use:     "gen PROFILE",
		Short:   "Makes a policy file, hosts and demand of any size",
		Example: "  stint gen grid --hosts 5000 --consumers 20 --units 50000 --out demo",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return fmt.Errorf("gen needs a profile: grid") },
	}
	gen.AddCommand(newGenGrid())
	return gen
}

func newGenGrid() *cobra.Command {
	var o datasets.Options
	var out, format string
	c := &cobra.Command{
		Use:   "grid --out DIR",
		Short: "A bank's compute grid: divisions, desks and books, four types of hosts",
		Long: `Makes plan.yaml, hosts.FORMAT and demand.FORMAT in DIR: a bank's compute grid with one
public plan. Consumers stand in three levels, divisions over desks over books; --consumers counts
the books, which are the leaves and the only ones with demand: 20 books stand under three
divisions with three desks each. Demand adds up to exactly --units, in rows of about 25. Hosts are
sized so that it fits to about 100 %, unless there are more hosts than that takes.
The same options give the same files.`,
		Example: `  stint gen grid --out demo
  stint gen grid --hosts 100000 --consumers 10000 --units 1000000 --shapes 200 --seed 7 --out big
  stint gen grid --hosts 50 --units 1000 --format csv --out small`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := datasets.Grid(o)
			if err != nil {
				return err
			}
			if err := d.Write(out, format); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(),
				"%[1]s: %[2]s hosts, %[3]s units in %[4]s rows of demand\nnext: stint run --plan %[1]s/plan.yaml --hosts %[1]s/hosts.%[5]s --demand %[1]s/demand.%[5]s --out %[1]s/log\n",
				out, grouped(int64(d.Hosts.Rows)), grouped(o.Units), grouped(int64(d.Demand.Rows)), format)
			return err
		},
	}
	f := c.Flags()
	f.IntVar(&o.Hosts, "hosts", 1000, "hosts")
	f.IntVar(&o.Consumers, "consumers", 20, "leaves of the consumer tree")
	f.Int64Var(&o.Units, "units", 10_000, "units wanted in all")
	f.IntVar(&o.Shapes, "shapes", 6, "different unit sizes")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of every choice")
	f.StringVar(&out, "out", "", "folder for the files (made when missing)")
	f.StringVar(&format, "format", "parquet", strings.Join(datasets.Formats, ", "))
	required(c, "out")
	return c
}

// required marks flags that a command cannot do without.
func required(c *cobra.Command, names ...string) {
	for _, n := range names {
		if err := c.MarkFlagRequired(n); err != nil {
			panic("BUG: " + err.Error())
		}
	}
}
