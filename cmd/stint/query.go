package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/export"
)

const queryLong = `Prints a table of a decision log, or of a running service (one cycle at a time). State tables (consumers,
amounts, shares, shortfalls) are shown as of the cycle, and so is what stands (loans, sub_allocations,
attributes), with --cycle all as it changed; keyframes (holdings, hosts, owners) as of the last one up to
it, other tables as what happened in it. consumers has the columns of amounts too, one per dimension:
held_ncpus, static_quota_ncpus. audit has the calls that a service answered, of the last day, with --cycle
those that began while that cycle was the last.

The log of a cluster is read where it lies, with --log s3://bucket/prefix: AWS_ENDPOINT_URL says at which
store, credentials come from where those of serve do.

Columns without any value are left out, and the rest is made to fit the terminal (or what COLUMNS says;
a pipe has any width); --all shows all. --output json, ndjson and csv always have every column.

--bound tells, in place of a table, how much of what was wanted any placement could hold at most, and
which dimensions are scarce: see stint bench --help.`

func newQuery() *cobra.Command {
	var from place
	var cycle, output string
	var where []string
	var all, bound bool
	c := &cobra.Command{
		Use:   "query --log LOG|--server URL TABLE|--bound",
		Short: "Prints a table of a decision log or of a service",
		Long:  queryLong,
		Example: `  stint query --log demo/log consumers
  stint query --log demo/log grants --cycle all --where consumer=/Markets/Credit/Pricing --output csv
  stint query --log demo/log shortfalls --where reason=fragmented
  stint query --log demo/log sub_allocations --where consumer=/Markets/Credit/Pricing
  stint query --log demo/log cycles --cycle all --output json
  stint query --log service/log audit --cycle all --where 'call=PUT /v1/plan'
  stint query --log s3://allocator/prod cycles --cycle all
  stint query --log demo/log --bound
  stint query --server http://grid:7468 --token-file token shortfalls`,
		Args: func(c *cobra.Command, args []string) error {
			if bound && len(args) > 0 {
				return fmt.Errorf("--bound: takes no table, as %q", args[0])
			}
			if bound {
				return nil
			}
			return takes("a table, such as grants")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if bound {
				return queryBound(c, &from, cycle, output)
			}
			if err := checkOutput(output); err != nil {
				return err
			}
			o := export.PrintOptions{All: all, Width: lineOf(c.OutOrStdout())}
			for _, s := range where {
				w, err := export.ParseWhere(s)
				if err != nil {
					return fmt.Errorf("--where: %w", err)
				}
				o.Where = append(o.Where, w)
			}
			if err := from.check(); err != nil {
				return err
			}
			t, err := from.table(c.Context(), args[0], cycle)
			if err != nil {
				return err
			}
			return export.Print(c.OutOrStdout(), t, output, o)
		},
	}
	f := c.Flags()
	from.flags(f)
	f.StringVar(&cycle, "cycle", "last", "a cycle's number, last or all")
	f.StringArrayVar(&where, "where", nil, "column=value; given several times, rows must match all")
	f.BoolVar(&all, "all", false, "all columns, those without a value too, however wide")
	f.BoolVar(&bound, "bound", false, "how much any placement could hold at most, in place of a table")
	f.StringVar(&output, "output", "table", strings.Join(export.Formats, ", "))
	return c
}

// queryBound prints the bounds of a log's cycle.
func queryBound(c *cobra.Command, from *place, cycle, output string) error {
	if output != "table" && output != "json" {
		return fmt.Errorf("--output %q: with --bound must be table or json", output)
	}
	for _, name := range []string{"where", "all"} {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--%s: is of tables, which --bound is none of", name)
		}
	}
	if err := from.check(); err != nil {
		return err
	}
	bounds, err := boundOf(from, cycle, c.ErrOrStderr())
	if err != nil {
		return err
	}
	if output == "json" {
		return encode(c.OutOrStdout(), bounds)
	}
	return printBounds(c.OutOrStdout(), bounds)
}

func checkOutput(format string) error {
	if !slices.Contains(export.Formats, format) {
		return fmt.Errorf("--output %q: must be one of %s", format, strings.Join(export.Formats, ", "))
	}
	return nil
}

// queryTable reads a table of one cycle or of all; consumers comes with its amounts.
func queryTable(log, name, cycle string) (*decision.Table, error) {
	if name == auditName { // which a log has before its first cycle too
		return queryAudit(log, cycle)
	}
	r, err := openLog(log)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(r.Tables(), name) {
		names := append(r.Tables(), auditName)
		slices.Sort(names)
		return nil, fmt.Errorf("no table %q; %sthere are %s", name, plan.Meant(name, names), strings.Join(names, ", "))
	}
	cycles := r.Cycles()
	if len(cycles) == 0 {
		return nil, fmt.Errorf("log %s has no cycle yet", log)
	}
	last := cycles[len(cycles)-1]
	read := func(name string) (*decision.Table, error) { return r.Table(name, last) }
	switch n, err := strconv.ParseInt(cycle, 10, 64); {
	case cycle == "all":
		read = func(name string) (*decision.Table, error) { return r.Rows(name, cycles[0], last) }
	case cycle == "last":
	case err != nil || n < 1:
		return nil, fmt.Errorf("--cycle %q: must be a number from 1, last or all", cycle)
	default:
		read = func(name string) (*decision.Table, error) { return r.Table(name, n) }
	}
	t, err := read(name)
	if err != nil || name != "consumers" {
		return t, err
	}
	amounts, err := read("amounts")
	if err != nil {
		return nil, err
	}
	wide := decision.Wide(t, amounts)
	return &wide, nil
}

// auditName is the table of a log that is of no cycle.
const auditName = "audit"

// queryAudit reads the table audit: of the last day, of all, or of the calls that began while a cycle was the last.
func queryAudit(log, cycle string) (*decision.Table, error) {
	if strings.HasPrefix(log, "s3://") {
		return nil, fmt.Errorf("log %s: the table %s of a process of a cluster lies in its own folder: --log DATA/log",
			log, auditName)
	}
	days, err := export.Audit(log)
	if err != nil {
		return nil, err
	}
	if len(days) == 0 {
		if _, err := export.OpenLog(log); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("log %s has no table %s: no service wrote it, or log.audit was false", log, auditName)
	}
	switch n, err := strconv.ParseInt(cycle, 10, 64); {
	case cycle == "all":
		return export.AuditRows(log, "", 0, math.MaxInt64)
	case cycle == "last":
		return export.AuditRows(log, days[len(days)-1].Day, 0, math.MaxInt64)
	case err != nil || n < 0:
		return nil, fmt.Errorf("--cycle %q: must be a number from 0, last or all", cycle)
	default:
		return export.AuditRows(log, "", n, n)
	}
}
