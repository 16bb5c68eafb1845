package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/stintd/stint/datasets"
	"github.com/stintd/stint/ingest/compare"
	"github.com/stintd/stint/ingest/foreign"
)

func newImportSWF() *cobra.Command {
	var jobs string
	var o foreign.SWFOptions
	var out outForeign
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
			return out.write(c, r)
		},
	}
	f := c.Flags()
	f.StringVar(&jobs, "jobs", "", "the workload log")
	f.StringVar(&o.By, "by", "", "user, group, queue or partition: what a consumer is made of (default: one consumer "+
		"has all jobs)")
	f.Int64Var(&o.Nodes, "nodes", 0, "hosts (default: MaxNodes of the log)")
	f.Int64Var(&o.NodeProcs, "node-procs", 0, "processors of a host (default: MaxProcs ÷ MaxNodes of the log, or 1)")
	scenarioFlags(c, &out.scenario)
	required(c, "jobs")
	out.flags(c)
	return c
}

// scenarioFlags adds the flags that cut a scenario out of a log.
func scenarioFlags(c *cobra.Command, o *datasets.ScenarioOptions) {
	c.Flags().DurationVar(&o.Start, "start", 0, "where in the log the scenario starts")
	c.Flags().DurationVar(&o.Length, "length", 0, "how much of the log it plays (0: all)")
	c.Flags().Int64Var(&o.Speed, "speed", 1, "seconds of the log in one of the scenario")
}

// reportNotesMax is how much of a report is shown; the file has all.
const reportNotesMax = 8

// outForeign is where and how a command of another system's files writes.
type outForeign struct {
	dir, format, output string
	scenario            datasets.ScenarioOptions
	compared            *compare.Report // nil: nothing was compared
}

// flags adds the flags of such a command.
func (o *outForeign) flags(c *cobra.Command) {
	outFlags(c, &o.dir, &o.format)
	c.Flags().StringVar(&o.output, "output", "table", "table or json: how the report comes on stdout")
}

// imported is the report of an import.
type imported struct {
	Out     string             `json:"out"`
	Hosts   int64              `json:"hosts"`
	Rows    int64              `json:"demand_rows"`
	Units   int64              `json:"demand_units"`
	Carried []foreign.Carried  `json:"carried_over"`
	Lost    []foreign.Note     `json:"not_carried_over"`
	Renamed []foreign.Renaming `json:"renamed,omitempty"`
	Next    []string           `json:"next"`
	Compare *compare.Report    `json:"comparison,omitempty"`

	kinds    int    // of things that are not carried over
	compared string // the comparison, for people
}

// write writes the files of an import, and shows settings that are not carried over and the next commands.
func (o *outForeign) write(c *cobra.Command, r *foreign.Result) error {
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("--output %q: must be table or json", o.output)
	}
	if err := o.scenario.Validate(); err != nil {
		return err
	}
	if err := r.Write(o.dir, o.format, o.scenario); err != nil {
		return err
	}
	d := r.Dataset
	done := imported{Out: o.dir, Carried: slices.Concat([]foreign.Carried{}, r.Report.Carried()),
		Lost: slices.Concat([]foreign.Note{}, r.Report.Notes()), Renamed: r.Report.Renamed, Compare: o.compared,
		kinds: r.Report.Len()}
	in := func(name string) string { return filepath.Join(o.dir, name) }
	check := "stint check " + in("plan.yaml")
	if d.Hosts != nil {
		done.Hosts = int64(d.Hosts.Rows)
		check += " --hosts " + in("hosts."+o.format)
	}
	if d.Demand != nil {
		done.Rows, done.Units = int64(d.Demand.Rows), sum(d.Demand.Units)
	}
	done.Next = []string{check}
	switch {
	case r.Lives != nil || r.History != nil:
		done.Next = append(done.Next, fmt.Sprintf("stint simulate --scenario %s --out %s", in("scenario.yaml"),
			in("log")))
	case d.Hosts != nil && d.Demand != nil:
		done.Next = append(done.Next, fmt.Sprintf("stint run --plan %s --hosts %s --demand %s --out %s",
			in("plan.yaml"), in("hosts."+o.format), in("demand."+o.format), in("log")))
	}
	if o.compared != nil {
		done.compared = comparedText(o.compared, in(compare.File))
		var table bytes.Buffer
		if err := o.compared.Write(&table); err != nil {
			return err
		}
		if err := writeNew(o.dir, map[string][]byte{compare.File: table.Bytes()}); err != nil {
			return err
		}
	}
	if o.output == "json" {
		return encode(c.OutOrStdout(), done)
	}
	_, err := io.WriteString(c.OutOrStdout(), done.text(min(100, widthOf(c.OutOrStdout()))))
	return err
}

// text is the report for people, in lines of so many columns; commands stand on one line each.
func (i *imported) text(width int) string {
	var b strings.Builder
	parts := []string{i.Out + ": plan.yaml"}
	if i.Hosts > 0 {
		parts = append(parts, count(i.Hosts, "host"))
	}
	if i.Rows > 0 {
		parts = append(parts, fmt.Sprintf("%s in %s of demand", count(i.Units, "unit"), count(i.Rows, "row")))
	}
	fmt.Fprintln(&b, strings.Join(parts, ", "))
	if len(i.Carried) > 0 {
		var list []string
		for _, c := range i.Carried {
			list = append(list, plural(c.Count, c.What))
		}
		fmt.Fprintf(&b, "carried over: %s\n", indentedText(strings.Join(list, ", "), 14, width))
	}
	if i.kinds == 0 {
		fmt.Fprintln(&b, "all is carried over")
	} else {
		fmt.Fprintf(&b, "\nnot carried over, %s (all of them in %s):\n", count(int64(i.kinds), "kind"),
			filepath.Join(i.Out, foreign.ReportFile))
	}
	shown := 0
	for range reportNotesMax {
		if shown == len(i.Lost) {
			break
		}
		title, n := onScreen(i.Lost[shown:])
		fmt.Fprintf(&b, "  %s\n      %s\n", indentedText(title, 6, width), indentedText(i.Lost[shown].Reason, 6, width))
		shown += n
	}
	if more := i.kinds - shown; more > 0 {
		fmt.Fprintf(&b, "  and %s more\n", count(int64(more), "kind"))
	}
	i.renamings(&b, width)
	b.WriteString(i.compared)
	fmt.Fprintf(&b, "\nnext: %s\n", strings.Join(i.Next, "\n      "))
	return b.String()
}

// renamings lists the names that differ from those in the files, the first ones of many.
func (i *imported) renamings(b *strings.Builder, width int) {
	if len(i.Renamed) == 0 {
		return
	}
	var list []string
	for _, r := range i.Renamed[:min(len(i.Renamed), reportNotesMax)] {
		list = append(list, r.What+" is "+r.Name)
	}
	if more := len(i.Renamed) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %s more in %s", grouped(int64(more)), foreign.ReportFile))
	}
	fmt.Fprintf(b, "\nrenamed: %s\n", indentedText(strings.Join(list, ", "), 9, width))
}

// indentedText wraps a text so that it fits into lines of so many columns, of which all but the first are indented.
func indentedText(s string, indent, width int) string {
	var lines []string
	for line := range strings.SplitSeq(text.WrapSoft(s, max(20, width-indent)), "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", indent))
}

// onScreen are the places and titles of the first note and of those after it that have the same file and reason, and
// how many these are; the folder of their file is in the report alone.
func onScreen(notes []foreign.Note) (title string, n int) {
	first := notes[0]
	for _, note := range notes {
		if note.File != first.File || note.Reason != first.Reason {
			break
		}
		if n++; n == 1 {
			note.File = filepath.Base(note.File)
			title = note.Place() + ": " + note.Title()
		} else if note.Line > 0 {
			title += fmt.Sprintf(", %d: %s", note.Line, note.Title())
		} else {
			title += ", " + note.Title()
		}
	}
	return title, n
}

// plural is a number of things, such as 2 queues or 1 capacity.
func plural(n int, what string) string {
	if stem, ok := strings.CutSuffix(what, "y"); ok && n != 1 {
		return grouped(int64(n)) + " " + stem + "ies"
	}
	return count(int64(n), what)
}
