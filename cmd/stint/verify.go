package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/export"
	"github.com/stintd/stint/export/verify"
)

func newVerify() *cobra.Command {
	var log, output string
	c := &cobra.Command{
		Use:   "verify --log LOG",
		Short: "Checks the promises from a decision log alone",
		Long: `Checks a decision log against itself and the inputs that it keeps, with code of its own: seals, manifest
and digests of its files; that what is held follows from grants and releases and is wanted; capacities,
limits, reserves and reclaims; and the figures of every table. Each fault is told with its cycle, rule,
consumer, host and numbers. Cycles that another version of the rules decided are checked for what no version
changes. docs/verify.md says what is checked, and what a log cannot tell.

Exit codes: 0 nothing found, 1 faults, 2 the log cannot be read.`,
		Example: `  stint verify --log demo/log
  stint verify --log demo/log --output json
  stint verify --log s3://allocator/prod`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("--output %q: must be table or json", output)
			}
			return verifyLog(log, output == "json", c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&log, "log", "", logHelp)
	f.StringVar(&output, "output", "table", "table or json")
	required(c, "log")
	return c
}

func verifyLog(log string, asJSON bool, stdout, stderr io.Writer) error {
	r, err := openLog(log)
	if err != nil {
		return err
	}
	start := time.Now()
	status := progress(stderr)
	report, err := verify.Log(r, verify.Options{Decode: decodeTable,
		Progress: func(done, all int) { status(bar("verify", done, all)) }})
	status("")
	if err != nil {
		return fmt.Errorf("log %s: %w", log, err)
	}
	if asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(report)
	} else {
		err = printReport(stdout, report, time.Since(start))
	}
	if err == nil && !report.OK() {
		return errFound
	}
	return err
}

// printReport prints faults as a table, then the promises that could not be checked, and a line that sums up.
func printReport(w io.Writer, r *verify.Report, took time.Duration) error {
	p := painter(w)
	if len(r.Faults) > 0 {
		t := faultTable(r.Faults)
		if err := export.Print(w, t, "table", export.PrintOptions{RowsMax: 1000}); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	if n := r.Count - int64(len(r.Faults)); n > 0 {
		fmt.Fprintf(w, "… and %s more faults\n", grouped(n))
	}
	for _, line := range r.Untold {
		fmt.Fprintf(w, "%s %s\n", p.faint("not told:"), line)
	}
	checks := int64(0)
	var rules []string
	for _, rule := range slices.Sorted(maps.Keys(r.Checks)) {
		checks += r.Checks[rule]
		rules = append(rules, rule+" "+grouped(r.Checks[rule]))
	}
	fmt.Fprintf(w, "%s %s\n", p.faint("checked: "), strings.Join(rules, " · "))
	word := p.good("ok  ")
	if !r.OK() {
		word = p.bad("FAIL")
	}
	_, err := fmt.Fprintf(w, "%s cycles %d to %d: %s rows, %s checks, %s found (%s)\n", word, r.First, r.Last,
		grouped(r.Rows), grouped(checks), count(r.Count, "fault"), took.Round(time.Millisecond))
	return err
}

// faultTable is faults as a table that Print takes.
func faultTable(faults []verify.Fault) *decision.Table {
	t := &decision.Table{Name: "faults", Rows: len(faults)}
	text := func(name string, of func(f *verify.Fault) string) {
		c := decision.Column{Name: name, Type: decision.Text}
		var words decision.Words
		at := map[string]int32{}
		for i := range faults {
			word := of(&faults[i])
			if _, ok := at[word]; !ok {
				at[word] = int32(len(words))
				words = append(words, word)
			}
			code := at[word]
			if word == "" {
				code = decision.Null
			}
			c.Code = append(c.Code, code)
		}
		c.Dict = words
		t.Columns = append(t.Columns, c)
	}
	text("cycle", func(f *verify.Fault) string { return strconv.FormatInt(f.Cycle, 10) })
	text("rule", func(f *verify.Fault) string { return f.Rule })
	text("table", func(f *verify.Fault) string { return f.Table })
	text("plan", func(f *verify.Fault) string { return f.Plan })
	text("consumer", func(f *verify.Fault) string { return f.Consumer })
	text("allocation", func(f *verify.Fault) string {
		return strings.TrimSuffix(f.Allocation+"/"+f.Sub, "/")
	})
	text("host", func(f *verify.Fault) string { return f.Host })
	text("expected", func(f *verify.Fault) string { return f.Expected })
	text("got", func(f *verify.Fault) string { return f.Got })
	text("what", func(f *verify.Fault) string { return f.What })
	return t
}
