package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// What a summary shows at most, and the widths of its bars.
const (
	consumersShown = 40
	reasonsShown   = 6
	barMin, barMax = 10, 28
	wide           = 88 // columns from which on there is room for explanations
)

// reasonTexts says in words what the commoner reasons of a shortfall mean.
var reasonTexts = map[int32]string{
	decision.ReasonNotInPlan:     "their consumer takes part in no plan",
	decision.ReasonNoHostMatches: "no host meets the requirement",
	decision.ReasonShareLimit:    "held back by a share limit, or by a ratio of 0",
	decision.ReasonTooBig:        "larger than any host",
	decision.ReasonMaxPerHost:    "fit only where max_per_host is reached",
	decision.ReasonFragmented:    "room enough in sum, but scattered",
	decision.ReasonLowerPriority: "a higher share priority comes first",
	decision.ReasonOverQuota:     "at or above their share of the pool",
	decision.ReasonPoolExhausted: "the pool is full",
}

// summary prints what a person wants to know of the last cycle at a glance.
type summary struct {
	*batch
	paint
	w      io.Writer
	width  int
	log    string
	cycles int64
	text   strings.Builder
}

func newSummary(b *batch, w io.Writer, log string, cycles int64) *summary {
	if !b.out.Keyframe {
		b.runner.Keyframe(&b.out) // what is free is known by host
	}
	return &summary{batch: b, paint: painter(w), w: w, width: widthOf(w), log: log, cycles: cycles}
}

func (s *summary) print() error {
	s.header()
	for i := range s.state.Policy.MDPlans {
		s.plan(s.state.Policy.MDPlans[i].Name)
	}
	s.reasons()
	s.capacity()
	s.footer()
	_, err := io.WriteString(s.w, s.text.String())
	return err
}

func (s *summary) header() {
	sum := &s.out.Summary
	name := s.state.Policy.Cluster
	if name == "" {
		name = "cluster"
	}
	fmt.Fprintf(&s.text, "%s  cycle %s at %s  ·  %s  ·  %s\n", s.bold(name), grouped(sum.Cycle),
		time.UnixMicro(sum.NowUS).UTC().Format("2006-01-02 15:04:05 UTC"), count(sum.Hosts, "host"), count(sum.Consumers, "consumer"))
	fmt.Fprintf(&s.text, "%s wanted  ·  %s held  ·  %s short", count(sum.UnitsWanted, "unit"), s.good(grouped(sum.UnitsHeld)),
		s.shortness(sum.UnitsShort))
	if sum.UnitsWanted > 0 {
		fmt.Fprintf(&s.text, "  ·  %s met", percent(float64(sum.UnitsHeld)/float64(sum.UnitsWanted)))
	}
	s.text.WriteString("\n")
}

// shortness is a number of units that are short: red, unless there are none.
func (s *summary) shortness(n int64) string {
	if n == 0 {
		return "0"
	}
	return s.bad(grouped(n))
}

// consumerRow is a line of a plan's table.
type consumerRow struct {
	path                string
	depth               int
	wanted, held, short int64
	shared              bool // it has demand or use in the pool
	usage, quota        float64
}

// rows are a plan's consumers in tree order.
func (s *summary) rows(planName string) []consumerRow {
	type key struct{ plan, consumer string }
	shareOf := map[key]int{}
	sh := &s.out.Shares
	for row := range sh.Usage {
		if sh.Pool.At(row) == "/" {
			shareOf[key{sh.Plan.At(row), sh.Consumer.At(row)}] = row
		}
	}
	c := &s.out.Consumers
	var rows []consumerRow
	for row := range c.Held {
		if c.Plan.At(row) != planName {
			continue
		}
		r := consumerRow{path: c.Consumer.At(row), wanted: c.Demand[row], held: c.Held[row], short: c.Short[row]}
		r.depth = strings.Count(r.path, "/")
		var at int
		if at, r.shared = shareOf[key{planName, r.path}]; r.shared {
			r.usage, r.quota = sh.Usage[at], sh.UsageQuota[at]
		}
		rows = append(rows, r)
	}
	return rows
}

// choose keeps whole levels of the tree from the top while they fit, and of the next level those that are
// shortest of units. The result is in tree order.
func choose(rows []consumerRow) (shown []consumerRow) {
	if len(rows) <= consumersShown {
		return rows
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rows[a].depth, rows[b].depth), cmp.Compare(rows[b].short, rows[a].short), cmp.Compare(rows[b].wanted, rows[a].wanted))
	})
	order = order[:consumersShown]
	slices.Sort(order)
	for _, i := range order {
		shown = append(shown, rows[i])
	}
	return shown
}

func (s *summary) plan(name string) {
	all := s.rows(name)
	rows := choose(all)
	var total consumerRow
	scale, widest := 0.0, len("all")
	for _, r := range all {
		if r.depth == 1 {
			total.wanted, total.held, total.short = total.wanted+r.wanted, total.held+r.held, total.short+r.short
		}
		scale = max(scale, r.usage, r.quota)
	}
	for _, r := range rows {
		widest = max(widest, text.StringWidth(indented(r.path, r.depth)))
	}
	bar := min(barMax, s.width-widest-46)
	t := newTable()
	header := table.Row{"plan " + name, "wanted", "held", "short", "usage", "quota"}
	if bar >= barMin {
		header = append(header, "usage ▏ quota")
	}
	t.AppendHeader(header)
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 3, Align: text.AlignRight, AlignHeader: text.AlignRight}, {Number: 4, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 5, Align: text.AlignRight, AlignHeader: text.AlignRight}, {Number: 6, Align: text.AlignRight, AlignHeader: text.AlignRight}})
	for _, r := range rows {
		usage, quota, drawn := "", "", ""
		if r.shared {
			usage, quota = percent(r.usage), percent(r.quota)
			drawn = s.bar(r.usage/scale, r.quota/scale, bar)
		}
		row := table.Row{indented(r.path, r.depth), grouped(r.wanted), grouped(r.held), s.shortness(r.short), usage, quota}
		if bar >= barMin {
			row = append(row, drawn)
		}
		t.AppendRow(row)
	}
	t.AppendSeparator()
	t.AppendRow(table.Row{"all", grouped(total.wanted), grouped(total.held), s.shortness(total.short), "", ""})
	fmt.Fprintf(&s.text, "\n%s\n", s.trim(t.Render()))
	if n := len(all) - len(rows); n > 0 {
		fmt.Fprintf(&s.text, "%s\n", s.faint(fmt.Sprintf("and %s: stint query --log %s consumers", count(int64(n), "more consumer"), s.log)))
	}
}

// indented is the last name of a path, under its parent's.
func indented(path string, depth int) string {
	return strings.Repeat("  ", depth-1) + path[strings.LastIndexByte(path, '/')+1:]
}

// newTable is a table without lines around its cells.
func newTable() table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Box = table.StyleBoxLight
	style.Options = table.OptionsNoBordersAndSeparators
	style.Options.SeparateHeader = true
	style.Options.SeparateRows = false
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	return t
}

// trim takes blanks off the ends of lines.
func (s *summary) trim(rendered string) string {
	lines := strings.Split(rendered, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// eighths are the ends of a bar.
var eighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// bar draws a fraction of width, with a mark where the second fraction ends; a negative one has none.
func (s *summary) bar(fraction, mark float64, width int) string {
	if width < barMin {
		return ""
	}
	parts := int(min(max(fraction, 0), 1)*float64(width)*8 + 0.5)
	cells := make([]string, width)
	for i := range cells {
		switch full := parts / 8; {
		case i < full:
			cells[i] = s.good("█")
		case i == full && parts%8 > 0:
			cells[i] = s.good(eighths[parts%8])
		default:
			cells[i] = " "
		}
	}
	if mark >= 0 {
		if at := min(int(mark*float64(width)), width-1); cells[at] == " " {
			cells[at] = s.faint("▏")
		}
	}
	return strings.Join(cells, "")
}

// reason is the shortfalls of one reason and dimension.
type reason struct {
	code      int32
	dimension string
	units     int64
	rows      int
}

func (s *summary) reasons() {
	f := &s.out.Shortfalls
	type key struct {
		code      int32
		dimension string
	}
	place := map[key]int{}
	var all []reason
	for row, units := range f.UnitsShort {
		k := key{f.Reason.Code[row], f.Dimension.At(row)}
		i, ok := place[k]
		if !ok {
			i = len(all)
			place[k] = i
			all = append(all, reason{code: k.code, dimension: k.dimension})
		}
		all[i].units += units
		all[i].rows++
	}
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b reason) int {
		return cmp.Or(cmp.Compare(b.units, a.units), cmp.Compare(a.code, b.code), cmp.Compare(a.dimension, b.dimension))
	})
	t := newTable()
	t.AppendHeader(table.Row{"why short", "units", "scarce", ""})
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight, AlignHeader: text.AlignRight}})
	for _, r := range all[:min(len(all), reasonsShown)] {
		words := count(int64(r.rows), "sub-allocation")
		if text := reasonTexts[r.code]; text != "" && s.width >= wide {
			words = text + " (" + words + ")"
		}
		t.AppendRow(table.Row{string(decision.Reasons.Bytes(r.code)), grouped(r.units), r.dimension, s.faint(words)})
	}
	fmt.Fprintf(&s.text, "\n%s\n", s.trim(t.Render()))
	if n := len(all) - reasonsShown; n > 0 {
		fmt.Fprintln(&s.text, s.faint("and "+count(int64(n), "more reason")))
	}
}

// capacity shows how much of each dimension is used on the hosts of the plans, overcommit included.
func (s *summary) capacity() {
	h := &s.out.Hosts
	dimensions := s.state.Policy.Dimensions
	used, capacity := make([]int64, len(dimensions)), make([]int64, len(dimensions))
	for row := range h.Used {
		d := slices.Index(dimensions, h.Dimension.At(row))
		used[d], capacity[d] = used[d]+h.Used[row], capacity[d]+h.Capacity[row]
	}
	t := newTable()
	t.AppendHeader(table.Row{"capacity", "used", "of", "", ""})
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 3, Align: text.AlignRight, AlignHeader: text.AlignRight}, {Number: 4, Align: text.AlignRight}})
	for d, name := range dimensions {
		row := table.Row{name, grouped(used[d]), grouped(capacity[d]), "", ""}
		if capacity[d] > 0 {
			fraction := float64(used[d]) / float64(capacity[d])
			row[3], row[4] = percent(fraction), s.bar(fraction, -1, min(barMax, s.width-60))
		}
		t.AppendRow(row)
	}
	fmt.Fprintf(&s.text, "\n%s\n", s.trim(t.Render()))
}

func (s *summary) footer() {
	fmt.Fprintf(&s.text, "\n%s in %s: %s granted, %s released", count(s.cycles, "cycle"), took(s.tookUS), count(s.granted, "unit"), grouped(s.released))
	if n := s.granted + s.released; n > 0 && s.tookUS > 0 {
		fmt.Fprintf(&s.text, ", %s a second", grouped(n*1_000_000/s.tookUS))
	}
	next := "grants"
	if s.out.Summary.UnitsShort > 0 {
		next = "shortfalls"
	}
	fmt.Fprintf(&s.text, "\nlog:  %s\nnext: %s\n", s.log, s.mark("stint query --log "+s.log+" "+next))
}

func took(us int64) string {
	d := time.Duration(us) * time.Microsecond
	switch {
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

func percent(f float64) string { return fmt.Sprintf("%.1f %%", 100*f) }

// count is a number and what it counts, in the plural where that is due.
func count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return grouped(n) + " " + what
}

// guarantees prints what each consumer gets of a plan when everybody asks for everything (MD-15).
func (s *summary) guarantees() error {
	a := &s.out.Amounts
	t := newTable()
	header := table.Row{"static share quota"}
	var align []table.ColumnConfig
	for d, name := range s.state.Policy.Dimensions {
		header = append(header, name)
		align = append(align, table.ColumnConfig{Number: d + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(align)
	var row table.Row
	for i := range a.Held {
		if slices.Index(s.state.Policy.Dimensions, a.Dimension.At(i)) == 0 {
			if i == 0 || a.Plan.At(i) != a.Plan.At(i-1) {
				header[0] = "static share quota, plan " + a.Plan.At(i)
				if i > 0 {
					t.AppendSeparator()
				}
				t.AppendRow(header)
				t.AppendSeparator()
			}
			path := a.Consumer.At(i)
			row = table.Row{indented(path, strings.Count(path, "/"))}
		}
		row = append(row, grouped(a.StaticQuota[i]))
		if len(row) == len(header) {
			t.AppendRow(row)
		}
	}
	_, err := fmt.Fprintln(s.w, s.trim(t.Render()))
	return err
}

// members is how many consumers of a policy take part in a plan.
func members(m *plan.MDPlan) (n int64) {
	for _, in := range m.Member[1:] {
		if in {
			n++
		}
	}
	return n
}
