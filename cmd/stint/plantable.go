package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// consumerRow is a line of a plan's table.
type consumerRow struct {
	path                string
	depth               int
	wanted, held, short int64            // units; in slot plans slots
	own                 int64            // of those held, in MD plans: by those who own the hosts
	slots               map[string]int64 // what it holds as what, and what others hold of it, by slotKinds
	shared              bool             // it has something to compare: the next two
	usage, quota        float64          // of the pool; in slot plans slots
}

// slotKinds are the columns that matter under a policy of slot plans.
var slotKinds = map[string][]string{
	"ownership":   {"held_owned", "held_shared", "held_borrowed", "lent"},
	"share_ratio": {"held_shared"},
	"hybrid":      {"held_owned", "held_borrowed"},
}

// figures are the columns of a plan's table between the name of a row and its bar.
type figures struct {
	slots bool
	bar   string // what it shows; of MD plans usage and quota, or units
	head  []string
	note  string // what the columns mean, where that is not plain
	cells func(s *summary, r *consumerRow) []string
}

var mdFigures = figures{
	bar: "usage ▏ quota", head: []string{"wanted", "held", "short", "usage", "quota"},
	cells: func(s *summary, r *consumerRow) []string {
		usage, quota := "", ""
		if r.shared {
			usage, quota = percent(r.usage), percent(r.quota)
		}
		return []string{grouped(r.wanted), grouped(r.held), s.shortness(r.short), usage, quota}
	},
}

// ownFigures are the figures where consumers own hosts: units held on own hosts, and from pools. Usage of the public
// pool says little there, and is left to the table shares.
var ownFigures = figures{
	bar: "held ▏ wanted", head: []string{"wanted", "held", "on own", "shared", "short"},
	note: "on own: on hosts that it owns, or one below it; shared: from pools above it",
	cells: func(s *summary, r *consumerRow) []string {
		return []string{grouped(r.wanted), grouped(r.held), grouped(r.own), grouped(r.held - r.own),
			s.shortness(r.short)}
	},
}

var slotFigures = figures{
	slots: true, bar: "held ▏ quota",
	head: []string{"wanted", "held", "owned", "shared", "borrowed", "lent", "short", "quota"},
	cells: func(s *summary, r *consumerRow) []string {
		cells := []string{grouped(r.wanted), grouped(r.held)}
		for _, kind := range slotKinds["ownership"] {
			text := ""
			if n, ok := r.slots[kind]; ok {
				text = grouped(n)
			}
			cells = append(cells, text)
		}
		return append(cells, s.shortness(r.short), grouped(int64(r.quota)))
	},
}

// rows are a plan's consumers in tree order.
func (s *summary) rows(planName string, f figures) []consumerRow {
	shareOf := map[string]int{}  // by consumer, of the public pool
	pooled := map[string]int64{} // by consumer: units held from pools above it
	sh := &s.out.Shares
	for row := range sh.Usage {
		if sh.Plan.At(row) != planName {
			continue
		}
		if pooled[sh.Consumer.At(row)] += sh.UnitsHeld[row]; sh.Pool.At(row) == "/" {
			shareOf[sh.Consumer.At(row)] = row
		}
	}
	c := &s.out.Consumers
	t := c.Schema().Table()
	var rows []consumerRow
	for row := range c.Held {
		if c.Plan.At(row) != planName {
			continue
		}
		r := consumerRow{path: c.Consumer.At(row), wanted: c.Demand[row], held: c.Held[row], short: c.Short[row]}
		r.depth, r.own = strings.Count(r.path, "/"), r.held-pooled[r.path]
		switch at, ok := shareOf[r.path]; {
		case f.note != "":
			r.shared, r.usage, r.quota = r.wanted > 0, float64(r.held), float64(r.wanted)
		case ok && !f.slots:
			r.shared, r.usage, r.quota = true, sh.Usage[at], sh.UsageQuota[at]
		}
		if f.slots {
			r.slots = map[string]int64{}
			for _, kind := range slotKinds[c.Policy.At(row)] {
				r.slots[kind] = t.Column(kind).Int[row]
			}
			r.usage, r.quota = float64(r.held), float64(t.Column("quota").Int[row])
			r.shared = r.usage > 0 || r.quota > 0
		}
		rows = append(rows, r)
	}
	return rows
}

// choose keeps so many consumers at most: whole levels of the tree from the top while they fit, and of the next level
// those that are shortest of units. The result is in tree order.
func choose(rows []consumerRow, most int) (shown []consumerRow) {
	if len(rows) <= most {
		return rows
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rows[a].depth, rows[b].depth), cmp.Compare(rows[b].short, rows[a].short),
			cmp.Compare(rows[b].wanted, rows[a].wanted))
	})
	order = order[:most]
	slices.Sort(order)
	for _, i := range order {
		shown = append(shown, rows[i])
	}
	return shown
}

// plan shows the held and wanted units of a plan's consumers, as a tree with bars.
func (s *summary) plan(name string, f figures) {
	all, ok := s.of[name]
	if !ok {
		all = s.rows(name, f)
		s.of[name] = all
	}
	rows := choose(all, s.shown)
	total, scale := consumerRow{slots: map[string]int64{}}, 0.0
	for i := range all {
		r := &all[i]
		if r.depth == 1 {
			total.add(r, f.slots)
		}
		scale = max(scale, r.usage, r.quota)
	}
	title := "plan " + name
	if f.slots {
		title = "slot plan " + name
	}
	g := grid{head: append([]string{title}, f.head...)}
	for i := range rows {
		g.add(append([]string{indented(rows[i].path)}, f.cells(s, &rows[i])...)...)
	}
	g.line()
	g.add(append([]string{"all"}, f.cells(s, &total)...)...)
	if f.slots {
		g.squeeze()
	}
	if bar := min(barMax, s.width-g.width()); bar >= barMin {
		g.words = []int{len(g.head)}
		g.head = append(g.head, f.bar)
		for i := range g.rows {
			switch {
			case g.rows[i] == nil:
			case i < len(rows) && rows[i].shared && scale > 0:
				g.rows[i] = append(g.rows[i], s.bar(rows[i].usage/scale, rows[i].quota/scale, bar))
			default:
				g.rows[i] = append(g.rows[i], "")
			}
		}
	}
	fmt.Fprintf(&s.text, "\n%s\n", g.render())
	if f.note != "" {
		fmt.Fprintln(&s.text, s.faint(f.note))
	}
	if n := len(all) - len(rows); n > 0 {
		fmt.Fprintf(&s.text, "%s\n", s.faint(fmt.Sprintf("and %s: stint query --log %s consumers",
			count(int64(n), "more consumer"), s.log)))
	}
}

// add adds up columns that add up: usages and quotas of slot plans do, usages and quotas of pools do not.
func (r *consumerRow) add(o *consumerRow, slots bool) {
	r.wanted, r.held, r.own, r.short = r.wanted+o.wanted, r.held+o.held, r.own+o.own, r.short+o.short
	for kind, n := range o.slots {
		r.slots[kind] += n
	}
	if slots {
		r.quota += o.quota
	}
}
