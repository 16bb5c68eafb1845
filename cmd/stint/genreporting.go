package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/datasets"
)

func newGenReporting() *cobra.Command {
	var o datasets.ReportingOptions
	var out string
	c := &cobra.Command{
		Use:   "reporting --out DIR",
		Short: "The reporting table of a cluster of Platform EGO, of a year",
		Long: `Makes three files in DIR that a cluster of Platform EGO leaves: allocation.csv, the reporting table
CONSUMER_RESOURCE_ALLOCATION with a row for each consumer every 15 minutes; ResourceGroups.xml; and
resources.csv, what egosh resource list -ll prints. Consumers own two thirds of all slots, more or less
of them by day and by night, lend, borrow and share; what they ask for follows hours and weekdays.
A year of 300 consumers is 1.4 GB. The same options give the same files.`,
		Example: `  stint gen reporting --days 7 --out week
  stint gen reporting --hosts 50 --consumers 12 --days 2 --seed 3 --out small`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			rows, err := datasets.Reporting(out, o)
			if err != nil {
				return err
			}
			in := func(name string) string { return filepath.Join(out, name) }
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s, %s of the reporting table\n"+
				"next: stint import ego --allocation %s --groups %s --resources %s --out %s\n",
				out, count(int64(o.Hosts), "host"), count(rows, "row"), in(datasets.ReportingTable),
				in(datasets.ReportingGroups), in(datasets.ReportingHosts), in("site"))
			return err
		},
	}
	f := c.Flags()
	f.IntVar(&o.Hosts, "hosts", 5000, "hosts, of 16 slots each")
	f.IntVar(&o.Consumers, "consumers", 300, "consumers, branches included")
	f.IntVar(&o.Days, "days", 365, "days, from Monday, 2025-01-06 on")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of every choice")
	f.StringVar(&out, "out", "", "folder for the files (made when missing)")
	required(c, "out")
	return c
}
