package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/datasets"
	"github.com/stintd/stint/ingest/foreign"
)

func newImportSWF() *cobra.Command {
	var jobs, out, format string
	var o foreign.SWFOptions
	var so datasets.ScenarioOptions
	c := &cobra.Command{
		Use:   "swf --jobs F --out DIR",
		Short: "A workload log in the Standard Workload Format, as a scenario",
		Long: `Makes plan.yaml, hosts.FORMAT, demand.FORMAT and scenario.yaml in DIR from a workload log in the
Standard Workload Format (Parallel Workloads Archive). A job becomes an allocation of as many units of
one processor as it asked for. It comes with the first one-minute cycle after its submission, and each
unit ends when it has run as long as the job did. Hosts are as many as the log's header says.

What a log tells beyond that (memory, estimates of run time, dependencies) and jobs that never ran are
not carried over: ` + foreign.ReportFile + ` in DIR lists them by line, with the reason.`,
		Example: `  stint import swf --jobs lublin_256.swf --out lublin
  stint import swf --jobs site.swf --by queue --nodes 128 --node-procs 8 --length 168h --out week
  stint simulate --scenario week/scenario.yaml --out week/log`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for name, n := range map[string]int64{"nodes": o.Nodes, "node-procs": o.NodeProcs} {
				if c.Flags().Changed(name) && (n < 1 || n > 10_000_000) {
					return fmt.Errorf("--%s %d: must be from 1 to 10000000", name, n)
				}
			}
			f, err := os.Open(jobs)
			if err != nil {
				return err
			}
			defer f.Close()
			r, err := foreign.SWF(jobs, f, o)
			if err != nil {
				return err
			}
			return writeForeign(c, r, out, format, so)
		},
	}
	f := c.Flags()
	f.StringVar(&jobs, "jobs", "", "the workload log")
	f.StringVar(&o.By, "by", "", "user, group, queue or partition: what a consumer is made of (default: one consumer has all jobs)")
	f.Int64Var(&o.Nodes, "nodes", 0, "hosts (default: MaxNodes of the log)")
	f.Int64Var(&o.NodeProcs, "node-procs", 0, "processors of a host (default: MaxProcs ÷ MaxNodes of the log, or 1)")
	scenarioFlags(c, &so)
	required(c, "jobs")
	outFlags(c, &out, &format)
	return c
}

// scenarioFlags adds the flags that cut a scenario out of a log.
func scenarioFlags(c *cobra.Command, o *datasets.ScenarioOptions) {
	c.Flags().DurationVar(&o.Start, "start", 0, "where in the log the scenario starts")
	c.Flags().DurationVar(&o.Length, "length", 0, "how much of the log it plays (0: all)")
	c.Flags().Int64Var(&o.Speed, "speed", 1, "seconds of the log in one of the scenario")
}

// reportLinesMax is how much of a report is shown; the file has all.
const reportLinesMax = 8

// writeForeign writes what an import made, shows what it could not carry over, and how to go on.
func writeForeign(c *cobra.Command, r *foreign.Result, out, format string, o datasets.ScenarioOptions) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if err := r.Write(out, format, o); err != nil {
		return err
	}
	w := c.OutOrStdout()
	d := r.Dataset
	line := "plan.yaml"
	if d.Hosts != nil {
		line += ", " + count(int64(d.Hosts.Rows), "host")
	}
	if d.Demand != nil {
		line += fmt.Sprintf(", %s in %s of demand", count(sum(d.Demand.Units), "unit"), count(int64(d.Demand.Rows), "row"))
	}
	_, err := fmt.Fprintf(w, "%s: %s\n", out, line)
	if n := r.Report.Len(); n > 0 {
		_, wrote := fmt.Fprintf(w, "\nnot carried over, %s (all of them in %s):\n", count(int64(n), "kind"), filepath.Join(out, foreign.ReportFile))
		err = errors.Join(err, wrote, writeHead(w, r))
	}
	next := fmt.Sprintf("stint check %s", filepath.Join(out, "plan.yaml"))
	if r.Lives != nil {
		next = fmt.Sprintf("stint simulate --scenario %s --out %s", filepath.Join(out, "scenario.yaml"), filepath.Join(out, "log"))
	}
	_, wrote := fmt.Fprintf(w, "\nnext: %s\n", next)
	return errors.Join(err, wrote)
}

// writeHead writes the first lines of a report.
func writeHead(w io.Writer, r *foreign.Result) error {
	var all strings.Builder
	err := r.Report.Write(&all)
	n := 0
	for line := range strings.Lines(all.String()) {
		if n++; n > reportLinesMax {
			break
		}
		_, wrote := fmt.Fprintf(w, "  %s", line)
		err = errors.Join(err, wrote)
	}
	return err
}
