package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/datasets"
)

func newGen() *cobra.Command {
	gen := &cobra.Command{
		Use:   "gen PROFILE",
		Short: "Makes a policy file, hosts and demand of any size",
		Example: `  stint gen grid --hosts 5000 --consumers 20 --units 50000 --out demo
  stint gen gpu --hosts 200 --units 4000 --out gpu`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("gen needs a profile: grid, gpu, hetero, reporting")
		},
	}
	gen.AddCommand(newGenGrid(), newGenGPU(), newGenHetero(), newGenReporting())
	return gen
}

func newGenGrid() *cobra.Command {
	c, _ := newProfile(datasets.Grid)
	c.Use = "grid --out DIR"
	c.Short = "A bank's compute grid: divisions, desks and books, four types of hosts"
	c.Long = `Makes plan.yaml, hosts.FORMAT and demand.FORMAT in DIR: a bank's compute grid with one
public plan. Consumers stand in three levels, divisions over desks over books; --consumers counts
the books, which are the leaves and the only ones with demand: 20 books stand under three
divisions with three desks each. Demand adds up to exactly --units, in rows of about 25. Hosts are
sized so that it fits to about 100 %, unless there are more hosts than that takes.
The same options give the same files.`
	c.Example = `  stint gen grid --out demo
  stint gen grid --hosts 100000 --consumers 10000 --units 1000000 --shapes 200 --seed 7 --out big
  stint gen grid --hosts 50 --units 1000 --format csv --out small`
	return c
}

func newGenGPU() *cobra.Command {
	c, o := newProfile(datasets.GPU)
	c.Use = "gpu --out DIR"
	c.Short = "A cluster of hosts with GPUs of several models, and hosts without"
	c.Long = `Makes plan.yaml, hosts.FORMAT and demand.FORMAT in DIR: consumers and demand as gen grid has them,
on hosts with A100, H100, L40 or T4 GPUs (the attribute model) and hosts without. Of the rows that want
GPUs two in five name the models they accept, such as select(A100 || H100); one row in eight has
max_per_host. GPUs are what is scarce. The same options give the same files.

With --owners divisions own four fifths of the GPU hosts, and their desks own all of what their division
owns (rules under own in plan.yaml); without it all hosts are in the public pool.`
	c.Example = `  stint gen gpu --out gpu
  stint gen gpu --hosts 2000 --consumers 100 --units 40000 --format ndjson --out gpu
  stint gen gpu --owners --out owned`
	c.Flags().BoolVar(&o.Owners, "owners", false, "divisions and desks own parts of the GPU hosts")
	return c
}

func newGenHetero() *cobra.Command {
	c, _ := newProfile(datasets.Hetero)
	c.Use = "hetero --out DIR"
	c.Short = "A grid of which every host has another size"
	c.Long = `Makes plan.yaml, hosts.FORMAT and demand.FORMAT in DIR: consumers and demand as gen grid has them, on
hosts no two of which have the same size in the four dimensions, in one public plan. The same options
give the same files.`
	c.Example = `  stint gen hetero --out hetero
  stint gen hetero --hosts 50000 --consumers 1000 --units 500000 --shapes 50 --out big`
	return c
}

// newProfile makes the command of a profile, with the flags that all profiles have. The flags set the options.
func newProfile(generate func(datasets.Options) (*datasets.Dataset, error)) (*cobra.Command, *datasets.Options) {
	o := &datasets.Options{}
	var out, format string
	c := &cobra.Command{
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := generate(*o)
			if err != nil {
				return err
			}
			return writeDataset(c, d, out, format, fmt.Sprintf("%s hosts, %s units in %s rows of demand",
				grouped(int64(d.Hosts.Rows)), grouped(o.Units), grouped(int64(d.Demand.Rows))))
		},
	}
	f := c.Flags()
	f.IntVar(&o.Hosts, "hosts", 1000, "hosts")
	f.IntVar(&o.Consumers, "consumers", 20, "leaves of the consumer tree")
	f.Int64Var(&o.Units, "units", 10_000, "units wanted in all")
	f.IntVar(&o.Shapes, "shapes", 6, "different unit sizes")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of every choice")
	outFlags(c, &out, &format)
	return c, o
}

// outFlags adds the flags of a command that writes a dataset.
func outFlags(c *cobra.Command, out, format *string) {
	c.Flags().StringVar(out, "out", "", "folder for the files (made when missing)")
	c.Flags().StringVar(format, "format", "parquet", strings.Join(datasets.Formats, ", "))
	required(c, "out")
}

// writeDataset writes a dataset, and prints its size and the next command.
func writeDataset(c *cobra.Command, d *datasets.Dataset, out, format, what string) error {
	if err := d.Write(out, format); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.OutOrStdout(),
		"%[1]s: %[2]s\nnext: stint run --plan %[1]s/plan.yaml --hosts %[1]s/hosts.%[3]s --demand %[1]s/demand.%[3]s "+
			"--out %[1]s/log\n",
		out, what, format)
	return err
}

// required marks flags that a command cannot do without.
func required(c *cobra.Command, names ...string) {
	for _, n := range names {
		if err := c.MarkFlagRequired(n); err != nil {
			panic("BUG: " + err.Error())
		}
	}
}
