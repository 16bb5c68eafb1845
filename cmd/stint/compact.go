package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/export"
)

func newCompact() *cobra.Command {
	var log, keep, output string
	var today bool
	c := &cobra.Command{
		Use:   "compact --log LOG",
		Short: "Puts a log's old cycles into day files, and drops the oldest",
		Long: `Puts the files of every UTC day but the last one together: one file of a table, or a few where a day is large.
Nothing that the log says changes. Inputs of compacted cycles are packed too.
With --keep, days that are older than that before the last cycle's are dropped:
their cycles are gone, and so are inputs that no cycle needs any more. What was in force before the first cycle
that is kept stays, so that verify can go on from there; replay and run --append go on from the first saved state
that is kept. Of a day put together only the first saved state stays.

It may be stopped at any time, and readers may go on reading. A service compacts its log itself (log.compact and
log.keep of its configuration); while it has the log, this command is refused.`,
		Example: `  stint compact --log demo/log
  stint compact --log demo/log --keep 30d
  stint compact --log demo/log --today
  stint compact --log demo/log --output json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("--output %q: must be table or json", output)
			}
			days, err := keepDays(keep)
			if err != nil {
				return err
			}
			return compact(log, days, today, output == "json", c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&log, "log", "", "folder of the log")
	f.StringVar(&keep, "keep", "", "how many days before the last one are kept, such as 30d (all)")
	f.BoolVar(&today, "today", false, "the day of the last cycle too, as far as it has come")
	f.StringVar(&output, "output", "table", "table or json")
	required(c, "log")
	return c
}

// keepDays reads a number of days, such as 30d.
func keepDays(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(strings.TrimSuffix(text, "d"))
	if err != nil || !strings.HasSuffix(text, "d") || n < 1 || n > 100_000 {
		return 0, fmt.Errorf("--keep %q: must be a number of days from 1, such as 30d", text)
	}
	return n, nil
}

func compact(log string, keep int, today, asJSON bool, stdout, stderr io.Writer) (err error) {
	if err := onlyFolder("--log", log); err != nil {
		return err
	}
	if _, err := export.OpenLog(log); err != nil { // Append would make a log
		return err
	}
	w, err := export.Open(log, export.Options{Append: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	status := progress(stderr)
	c, err := w.Compact(export.CompactOptions{KeepDays: keep, Today: today, Progress: func(done, all int) {
		status(fmt.Sprintf("compact: day %d of %d", done, all))
	}})
	status("")
	if err == nil {
		err = export.TidyAudit(log, keep)
	}
	if err != nil {
		return err
	}
	if asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(c)
	}
	_, err = fmt.Fprintf(stdout, "%s: %s of %s put together, %s files into %s\n%s dropped, %s files removed\n", log,
		count(int64(c.Cycles), "cycle"), count(int64(c.Days), "day"), grouped(int64(c.Before)), grouped(int64(c.After)),
		count(int64(c.Dropped), "cycle"), grouped(int64(c.Removed)))
	return err
}
