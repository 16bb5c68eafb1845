package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/ingest/compare"
	"github.com/stintd/stint/ingest/foreign"
)

func newImportEGO() *cobra.Command {
	var allocation, groups, mdPlan, trees, resources, zone string
	var noCompare bool
	var out outForeign
	c := &cobra.Command{
		Use:   "ego [--allocation F] [--mdplan F] [--trees F] [--groups F --resources F] --out DIR",
		Short: "Platform EGO of IBM Spectrum Symphony: its resource plans, and its reporting table",
		Long: `Makes plan.yaml, hosts.FORMAT and demand.FORMAT in DIR from the files of a cluster of Platform EGO.

The reporting table CONSUMER_RESOURCE_ALLOCATION (--allocation, CSV) has a whole slot plan with its time
windows, and what was asked and given. From it come the plan as it was last; demand.FORMAT, what was
asked when most was; scenario.yaml, a day of it (--start, --length); and ` + compare.File + `: what stint
would have given in all the time, by consumer, beside what was given.

MDPlan.xml (--mdplan) becomes a multidimensional plan. Of ConsumerTrees.xml (--trees) come the order of
consumers, the placement, and ratios. ResourceGroups.xml (--groups) and the hosts go together:
  egosh resource list -ll -o "NAME,status,ncpus,maxmem" > resources.csv
Without them each group of the table is one host with the most slots that were in use.

What is not carried over is listed by file and line, with the reason, in ` + foreign.ReportFile + `.`,
		Example: `  stint import ego --allocation allocation.csv --groups ResourceGroups.xml --resources resources.csv --out site
  stint import ego --allocation allocation.csv --timezone Europe/London --no-compare --out plain
  stint import ego --mdplan MDPlan.xml --trees ConsumerTrees.xml --groups ResourceGroups.xml --resources resources.csv --out md
  stint simulate --scenario site/scenario.yaml --out site/log`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			files, closeAll, err := openAll(allocation, groups, mdPlan, trees, resources)
			if err != nil {
				return err
			}
			defer closeAll()
			var f foreign.EGOFiles
			for i, into := range []**foreign.File{&f.Allocation, &f.Groups, &f.MDPlan, &f.Trees, &f.Resources} {
				if files[i].R != nil {
					*into = &files[i]
				}
			}
			if zone != "" {
				if f.Zone, err = time.LoadLocation(zone); err != nil {
					return fmt.Errorf("--timezone %q: is no time zone such as Europe/London", zone)
				}
			}
			r, err := foreign.EGO(f)
			if err != nil {
				return err
			}
			if r.History == nil || noCompare {
				return out.write(c, r)
			}
			return importCompared(c, &out, r)
		},
	}
	f := c.Flags()
	f.StringVar(&allocation, "allocation", "", "the reporting table CONSUMER_RESOURCE_ALLOCATION, CSV")
	f.StringVar(&mdPlan, "mdplan", "", "MDPlan.xml")
	f.StringVar(&trees, "trees", "", "ConsumerTrees.xml")
	f.StringVar(&groups, "groups", "", "ResourceGroups.xml")
	f.StringVar(&resources, "resources", "", "hosts: what egosh resource list -ll prints")
	f.StringVar(&zone, "timezone", "", "of the plan's hours, such as Europe/London (default: as the table's two "+
		"times differ)")
	f.DurationVar(&out.scenario.Start, "start", 0, "where in the table the scenario starts")
	f.DurationVar(&out.scenario.Length, "length", 24*time.Hour, "how much of the table it plays (0: all)")
	f.BoolVar(&noCompare, "no-compare", false, "does not play what was asked")
	out.flags(c)
	return c
}

// importCompared writes an import and what stint would have given beside what was.
func importCompared(c *cobra.Command, out *outForeign, r *foreign.Result) error {
	path := filepath.Join(out.dir, compare.File)
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: is already there", path)
	}
	status := progress(c.ErrOrStderr())
	report, err := compare.Play(r.Play, r.History, func(done, all int) {
		status(fmt.Sprintf("comparing: %s of %s", grouped(int64(done)), count(int64(all), "time")))
	})
	status("")
	if err != nil {
		return err
	}
	out.compared = report
	return out.write(c, r)
}

// comparedRowsMax is how many consumers are shown; the file has all.
const comparedRowsMax = 12

// comparedText is a comparison for people: the answer, then the branches, then the leaves of which most would change.
func comparedText(r *compare.Report, path string) string {
	var b strings.Builder
	all := &r.All
	date := func(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02 15:04") }
	part := func(given int64) string { return fmt.Sprintf("%.2f %%", 100*float64(given)/float64(max(1, all.Asked))) }
	unit := "slot-hours"
	if hoursIn(r) > 1 {
		unit = "1,000 slot-hours"
	}
	fmt.Fprintf(&b, "\nof what was asked %s were given; stint would have given %s\n", part(all.Was.Total()),
		part(all.Would.Total()))
	fmt.Fprintf(&b, "asked, in %s: %s from %s to %s UTC\n", unit, slotHours(r, all.Asked), date(r.FromUS), date(r.ToUS))
	fmt.Fprintf(&b, "less than owned and asked for: %s then  ·  %s with stint\n\n", count(all.WasBelow, "time"),
		count(all.WouldBelow, "time"))
	var branches, leaves []*compare.Row
	for i := range r.Rows {
		switch o := &r.Rows[i]; {
		case o.Asked == 0:
		case strings.Count(o.Consumer, "/") == 1:
			branches = append(branches, o)
		case o.Leaf:
			leaves = append(leaves, o)
		}
	}
	slices.SortStableFunc(leaves, func(a, b *compare.Row) int { return int(moved(b) - moved(a)) })
	leaves = slices.DeleteFunc(leaves, func(o *compare.Row) bool { return moved(o) == 0 })
	b.WriteString(comparedTable(r, "by branch", branches))
	if len(leaves) > 0 {
		b.WriteString("\n" + comparedTable(r, "most changed leaves", leaves))
	}
	kinds := grid{head: []string{unit + ", all", "owned", "shared", "borrowed", "lent"}}
	kinds.add("was given", slotHours(r, all.Was.Owned), slotHours(r, all.Was.Shared), slotHours(r, all.Was.Borrowed),
		slotHours(r, all.WasLent))
	kinds.add("stint", slotHours(r, all.Would.Owned), slotHours(r, all.Would.Shared), slotHours(r, all.Would.Borrowed),
		slotHours(r, all.WouldLent))
	fmt.Fprintf(&b, "\n%s\n\n", kinds.render())
	fmt.Fprintf(&b, "%s compared in %s; %s taken back by stint\nall consumers: %s\n", count(int64(r.Instants), "time"),
		count(r.Cycles, "cycle"), count(r.Reclaimed, "slot"), path)
	return b.String()
}

// moved is how many slots a consumer would have had more or less, added up over instants.
func moved(o *compare.Row) int64 {
	return max(o.Would.Total()-o.Was.Total(), o.Was.Total()-o.Would.Total())
}

// slotHours is slots added up over instants, in slot-hours, or in thousands of them where there are many in all.
func slotHours(r *compare.Report, n int64) string {
	return grouped(int64(r.Hours(n)/hoursIn(r) + 0.5))
}

func hoursIn(r *compare.Report) float64 {
	if r.Hours(r.All.Asked) >= 10_000_000 {
		return 1000
	}
	return 1
}

func comparedTable(r *compare.Report, title string, rows []*compare.Row) string {
	g := grid{head: []string{title, "asked", "was", "stint", "±", "more at", "less at"}}
	several := slices.ContainsFunc(rows, func(o *compare.Row) bool { return o.Plan != rows[0].Plan })
	for i, o := range rows {
		if i == comparedRowsMax {
			g.add("and "+count(int64(len(rows)-i), "other"), "", "", "", "", "", "")
			break
		}
		name := strings.TrimPrefix(o.Consumer, "/")
		if several {
			name += " (" + o.Plan + ")"
		}
		sign, d := "", o.Would.Total()-o.Was.Total()
		if d != 0 {
			sign = string("+-"[(1-d/max(d, -d))/2]) + slotHours(r, max(d, -d))
		}
		g.add(shortened(name, 24), slotHours(r, o.Asked), slotHours(r, o.Was.Total()), slotHours(r, o.Would.Total()),
			sign, grouped(o.MoreAt), grouped(o.LessAt))
	}
	return g.render() + "\n"
}

// shortened is a text of at most so many characters: its beginning is left out.
func shortened(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return "…" + string(runes[len(runes)-most+1:])
	}
	return s
}
