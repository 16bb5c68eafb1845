package datasets

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stintd/stint/core/cluster"
)

// ReportingOptions is the size of what Reporting writes. The same options give the same files, on any machine.
type ReportingOptions struct {
	Hosts     int // of 16 slots each
	Consumers int // in two levels; a branch for every 25
	Days      int // from Monday, 2025-01-06 on, a row for each consumer every 15 minutes
	Seed      uint64
}

// The files that Reporting makes.
const (
	ReportingTable  = "allocation.csv"     // the table CONSUMER_RESOURCE_ALLOCATION
	ReportingGroups = "ResourceGroups.xml" // the one resource group of the table
	ReportingHosts  = "resources.csv"      // what `egosh resource list -ll -o` prints
)

const (
	reportingSlots   = 16 // of a host
	reportingFan     = 25 // consumers to a branch, itself included
	reportingStep    = 15 * time.Minute
	reportingDaysMax = 3660
	reportingCluster = "reporting"
	reportingGroup   = "ComputeHosts"
)

// reportingHeader is the columns of the table, in its own order.
const reportingHeader = "CLUSTER_NAME,CONSUMER_NAME,RESOURCE_GROUP,TIME_STAMP,TIME_STAMP_GMT,ALLOCATED_OWN," +
	"ALLOCATED_SHARE,ALLOCATED_BORROW,ALLOCATED_LEND,USED,PLANNED_OWN,LENDING_LIMIT,LEND_TO,BORROW_LIMIT,BORROW_FROM," +
	"SHARE_RATIO,SHARE_LIMIT,SHARE_QUOTA,PLANNED_HOWN,PLANNED_HRESERVE,PLANNED_QUOTA,TOTAL_DEMAND,UNSATISFIED_DEMAND," +
	"INSERT_SEQ\n"

// habit is when a consumer works: the hours of its most work on weekdays, and how much of it there is at other times
// and at weekends.
type habit struct {
	from, to       int
	idle, weekends float64
}

var habits = [...]habit{
	{8, 18, 0.15, 0.05}, // desks
	{20, 6, 0.10, 0.40}, // end of day and overnight
	{0, 24, 1, 0.90},    // steady
	{6, 22, 0.30, 0.30}, // research
}

// reportingLeaf is a leaf with what it has in the plan and how it works.
type reportingLeaf struct {
	branch, habit      int
	day, night         int64 // owned by day, 08:00 to 20:00 on weekdays, and at other times
	lends, borrows     int64 // limits
	ratio              int64
	peak, noise        float64
	demand             int64
	own, share, borrow int64 // what it is given
	lent               int64
}

// reporting is a table while it is made.
type reporting struct {
	o        ReportingOptions
	r        *rand.Rand
	w        *bufio.Writer
	branches []string
	names    []string // of leaves
	leaf     []reportingLeaf
	slots    int64
	seq      int64
	line     []byte
}

// Reporting writes what a cluster of Platform EGO leaves of a year in its reporting database: the table
// CONSUMER_RESOURCE_ALLOCATION as CSV, whose plan differs by day and night, with the resource group and the list of
// hosts that go with it. What consumers are given follows the plan: owned slots first, then their part of the share
// pool, then loans in the order of the plan. It overwrites nothing. rows is how many rows the table has. O(rows).
func Reporting(dir string, o ReportingOptions) (rows int64, err error) {
	if err := o.validate(); err != nil {
		return 0, err
	}
	for _, name := range []string{ReportingTable, ReportingGroups, ReportingHosts} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return 0, fmt.Errorf("%s: is already there", filepath.Join(dir, name))
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	g := &reporting{o: o, r: rand.New(rand.NewPCG(o.Seed, 0x45_47_4f)), slots: int64(o.Hosts) * reportingSlots}
	g.consumers()
	for _, file := range []struct {
		name  string
		write func(w *bufio.Writer)
	}{{ReportingGroups, g.groups}, {ReportingHosts, g.hosts}, {ReportingTable, g.table}} {
		if err := writeText(filepath.Join(dir, file.name), file.write); err != nil {
			return 0, err
		}
	}
	return g.seq, nil
}

func (o ReportingOptions) validate() error {
	faults := cluster.Faults{Table: "reporting"}
	for _, c := range []struct {
		name      string
		v, lo, hi int
	}{{"hosts", o.Hosts, 1, 1_000_000}, {"consumers", o.Consumers, 2, 10_000}, {"days", o.Days, 1, reportingDaysMax}} {
		if c.v < c.lo || c.v > c.hi {
			faults.Add(0, c.name, strconv.Itoa(c.v), fmt.Sprintf("must be from %d to %d", c.lo, c.hi))
		}
	}
	return faults.Err()
}

// writeText makes a new file.
func writeText(path string, write func(w *bufio.Writer)) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	write(w)
	return errors.Join(w.Flush(), f.Close()) // the writer keeps the first error
}

// consumers draws the tree and what each leaf has in the plan: by day and by night two thirds of all slots are owned.
func (g *reporting) consumers() {
	for left := g.o.Consumers; left > 0; {
		n := min(left, reportingFan)
		if left-n == 1 { // a branch needs a leaf
			n--
		}
		left -= n
		b := len(g.branches)
		g.branches = append(g.branches, "/"+name(divisionNames, b))
		for i := range n - 1 {
			g.names = append(g.names, g.branches[b]+"/"+name(deskNames, i))
			g.leaf = append(g.leaf, reportingLeaf{branch: b, habit: g.r.IntN(len(habits)), ratio: 1 + g.r.Int64N(4),
				noise: 1})
		}
	}
	each := g.slots * 2 / 3 / int64(len(g.leaf))
	for i := range g.leaf {
		l := &g.leaf[i]
		l.peak = float64(each) * (0.4 + 2.8*g.r.Float64())
		l.day, l.night = each, each
		if h := habits[l.habit]; h.idle < 1 && each > 1 {
			shift := each * int64(20+g.r.IntN(30)) / 100
			if h.from > h.to {
				shift = -shift
			}
			l.day, l.night = each+shift, each-shift
		}
		l.lends, l.borrows = (l.day+l.night)/4, each*int64(g.r.IntN(4))
	}
	for _, night := range []bool{false, true} { // no more is owned than there is
		var owned int64
		for i := range g.leaf {
			owned += g.leaf[i].owns(night)
		}
		for i := range g.leaf {
			if l := &g.leaf[i]; owned > g.slots {
				l.day, l.night = l.day*g.slots/owned, l.night*g.slots/owned
			}
		}
	}
	for i := range g.leaf {
		l := &g.leaf[i]
		l.lends = min(l.lends, l.day, l.night)
	}
}

func (l *reportingLeaf) owns(night bool) int64 {
	if night {
		return l.night
	}
	return l.day
}

// table writes a row for each consumer and 15 minutes.
func (g *reporting) table(w *bufio.Writer) {
	g.w = w
	io.WriteString(w, reportingHeader)
	at := time.Date(2025, 1, 6, 0, 0, 0, 0, time.UTC)
	for range g.o.Days * int(24*time.Hour/reportingStep) {
		weekday := at.Weekday() != time.Saturday && at.Weekday() != time.Sunday
		night := !weekday || at.Hour() < 8 || at.Hour() >= 20
		g.work(at, weekday)
		g.give(night)
		g.rows(at, night)
		at = at.Add(reportingStep)
	}
}

// work draws what each leaf wants: its habit, times a noise that changes slowly, rounded.
func (g *reporting) work(at time.Time, weekday bool) {
	hour := float64(at.Hour()) + float64(at.Minute())/60
	for i := range g.leaf {
		l := &g.leaf[i]
		h := habits[l.habit]
		level := h.idle
		if h.from < h.to && hour >= float64(h.from) && hour < float64(h.to) ||
			h.from > h.to && (hour >= float64(h.from) || hour < float64(h.to)) {
			level = 1
		}
		if !weekday {
			level *= h.weekends
		}
		if g.r.IntN(8) == 0 { // jobs begin and end
			l.noise = max(0, min(2, 0.7*l.noise+0.3+0.15*g.r.NormFloat64()))
		}
		l.demand = int64(math.Round(l.peak * level * l.noise))
	}
}

// give hands out slots: owned ones, the share pool by ratio, loans in the order of the plan.
func (g *reporting) give(night bool) {
	pool := g.slots
	var ratios int64
	for i := range g.leaf {
		l := &g.leaf[i]
		l.own, l.share, l.borrow, l.lent = min(l.demand, l.owns(night)), 0, 0, 0
		pool -= l.owns(night)
		if l.demand > l.own {
			ratios += l.ratio
		}
	}
	for pool > 0 && ratios > 0 {
		var given, next int64
		for i := range g.leaf {
			l := &g.leaf[i]
			short := l.demand - l.own - l.share
			if short == 0 {
				continue
			}
			n := min(short, max(1, pool*l.ratio/ratios), pool-given)
			l.share, given = l.share+n, given+n
			if n < short {
				next += l.ratio
			}
		}
		pool, ratios = pool-given, next
	}
	from := 0
	for i := range g.leaf {
		l := &g.leaf[i]
		for want := min(l.demand-l.own-l.share, l.borrows); want > 0 && from < len(g.leaf); {
			lender := &g.leaf[from]
			n := min(want, min(lender.lends, lender.owns(night)-lender.own)-lender.lent)
			if n <= 0 {
				from++
				continue
			}
			l.borrow, lender.lent, want = l.borrow+n, lender.lent+n, want-n
		}
	}
}

// rows writes the rows of an instant: every branch, which has the sums, before its leaves.
func (g *reporting) rows(at time.Time, night bool) {
	local, gmt := at.Format("2006-01-02 15:04:05.0"), at.UnixMilli()
	next := 0
	for b, branch := range g.branches {
		first := next
		var sum reportingLeaf
		for ; next < len(g.leaf) && g.leaf[next].branch == b; next++ {
			l := &g.leaf[next]
			sum.own, sum.share = sum.own+l.own, sum.share+l.share
			sum.borrow, sum.lent = sum.borrow+l.borrow, sum.lent+l.lent
			sum.demand, sum.day = sum.demand+l.demand, sum.day+l.day
			sum.night, sum.ratio = sum.night+l.night, sum.ratio+l.ratio
		}
		g.row(branch, local, gmt, &sum, night, false)
		for i := first; i < next; i++ {
			g.row(g.names[i], local, gmt, &g.leaf[i], night, true)
		}
	}
}

func (g *reporting) row(path, local string, gmt int64, l *reportingLeaf, night, leaf bool) {
	g.seq++
	b := g.line[:0]
	text := func(s string) { b = append(append(b, s...), ',') }
	number := func(n int64) { b = append(strconv.AppendInt(b, n, 10), ',') }
	held := l.own + l.share + l.borrow
	text(reportingCluster)
	text(path)
	text(reportingGroup)
	text(local)
	for _, n := range [...]int64{gmt, l.own, l.share, l.borrow, l.lent, held, l.owns(night)} {
		number(n)
	}
	if leaf {
		from := "all"
		if l.borrows == 0 {
			from = ""
		}
		number(l.lends)
		text("all")
		number(l.borrows)
		text(from)
	} else {
		text(",,,")
	}
	number(l.ratio)
	text(",") // no limit, and no quota of shares
	text(",") // not hybrid
	for _, n := range [...]int64{l.owns(night), l.demand, l.demand - held} {
		number(n)
	}
	b = append(strconv.AppendInt(b, g.seq, 10), '\n')
	g.w.Write(b)
	g.line = b
}

// groups writes the resource group.
func (g *reporting) groups(w *bufio.Writer) {
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?>
<ResourceGroupConfiguration xmlns="http://www.platform.com/ego/2005/05/schema">
  <Version>1.0</Version>
  <ResourceGroup ResourceGroupName=%q availableSlots="%d">
    <Description>All hosts</Description>
    <ResourcePlugins><Plugin Name="computer"/></ResourcePlugins>
    <ResourceRequirement>select(ncpus > 0)</ResourceRequirement>
  </ResourceGroup>
</ResourceGroupConfiguration>
`, reportingGroup, reportingSlots)
}

// hosts writes the list of hosts.
func (g *reporting) hosts(w *bufio.Writer) {
	io.WriteString(w, `"NAME","status","mem","swp","tmp","ut","it","pg","r1m","r15s","r15m","ls","ncpus","maxmem"`+"\n")
	for i := range g.o.Hosts {
		fmt.Fprintf(w, `"ego%06d","ok","%dG","8G","100G","%d%%","0","0.0","1.0","1.0","1.0","0","%d","64G"`+"\n", i+1,
			16+i%40, i%100, reportingSlots)
	}
}
