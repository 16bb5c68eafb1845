package foreign

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// hostsMax bounds the hosts that an import makes.
const hostsMax = 1_000_000

// hostRow is a host while an importer makes it.
type hostRow struct {
	name   string
	closed bool
	gone   bool              // unavail
	size   map[string]int64  // by dimension
	text   map[string]string // attributes
	flag   []string          // attributes that are true

	// What Slurm says of a node; names of attributes are made of it when all dimensions are known.
	feature, partition []string
	kinds              map[string]string // of generic resources: type by resource
	line               int
}

// hostTable makes a table of hosts with a column for each dimension, and for each attribute that some host has.
func hostTable(dims []string, rows []hostRow) *cluster.HostTable {
	h := &cluster.HostTable{Rows: len(rows), Host: column(), Size: make([][]int64, len(dims))}
	for d := range dims {
		h.Size[d] = make([]int64, len(rows))
	}
	t := attributes{table: h, at: map[string]int{}}
	for i, r := range rows {
		h.Host.Code = append(h.Host.Code, h.Host.Names.InternString(r.name))
		for d, name := range dims {
			h.Size[d][i] = r.size[name]
		}
		for _, key := range slices.Sorted(maps.Keys(r.text)) {
			a := t.column(key, plan.Text)
			a.Text.Code[i], a.Valid[i] = a.Text.Names.InternString(strings.Map(visible, r.text[key])), true
		}
		for _, key := range r.flag {
			a := t.column(key, plan.Boolean)
			a.Bool[i], a.Valid[i] = true, true
		}
		if (r.closed || r.gone) && h.State == nil {
			h.State = make([]cluster.HostState, len(rows))
		}
		switch {
		case r.gone:
			h.State[i] = cluster.Unavail
		case r.closed:
			h.State[i] = cluster.Closed
		}
	}
	return h
}

// visible drops control characters, which no table may have.
func visible(r rune) rune {
	if unicode.IsControl(r) {
		return -1
	}
	return r
}

// attributeText returns the value of an attribute that a requirement compares as a text. A table whose values are all
// numbers, true or false has no texts: such a value gets the name of the attribute in front.
func attributeText(attribute, value string) string {
	_, err := strconv.ParseFloat(value, 64)
	if err == nil || value == "true" || value == "false" {
		return attribute + " " + value
	}
	return value
}

// attributes finds the attributes of a table of hosts by name.
type attributes struct {
	table *cluster.HostTable
	at    map[string]int
}

func (t *attributes) column(name string, kind plan.Kind) *cluster.AttrColumn {
	if i, ok := t.at[name]; ok {
		return &t.table.Attr[i]
	}
	rows := t.table.Rows
	a := cluster.AttrColumn{Name: name, Kind: kind, Valid: make([]bool, rows)}
	if kind == plan.Text {
		a.Text = column()
		a.Text.Code = slices.Repeat([]int32{cluster.Null}, rows)
	} else {
		a.Bool = make([]bool, rows)
	}
	t.at[name] = len(t.table.Attr)
	t.table.Attr = append(t.table.Attr, a)
	return &t.table.Attr[t.at[name]]
}

// demandRow is a row of demand while an importer makes it.
type demandRow struct {
	consumer, allocation, sub, plan string
	units                           int64
	size                            []int64 // by dimension
	least                           int64   // min_units; below 2: no gang
	together                        string  // "": units lie anywhere
}

// demandTable makes a table of demand; min_units, together, sub and plan have columns where some row has any.
func demandTable(dims []string, rows []demandRow) *cluster.DemandTable {
	t := &cluster.DemandTable{Rows: len(rows), Consumer: column(), Allocation: column(), Sub: column(), Plan: column(),
		Requirement: column()}
	t.Size = make([][]int64, len(dims))
	add := func(c *cluster.TextColumn, name string) { c.Code = append(c.Code, c.Names.InternString(name)) }
	for _, r := range rows {
		add(&t.Consumer, r.consumer)
		add(&t.Allocation, r.allocation)
		t.Units = append(t.Units, r.units)
		for d := range dims {
			t.Size[d] = append(t.Size[d], r.size[d])
		}
	}
	if slices.ContainsFunc(rows, func(r demandRow) bool { return r.least > 1 }) {
		for _, r := range rows {
			t.MinUnits = append(t.MinUnits, max(1, r.least))
		}
	}
	if slices.ContainsFunc(rows, func(r demandRow) bool { return r.together != "" }) {
		t.Together = column()
		for _, r := range rows {
			add(&t.Together, r.together)
		}
	}
	if slices.ContainsFunc(rows, func(r demandRow) bool { return r.sub != "" }) {
		for _, r := range rows {
			add(&t.Sub, r.sub)
		}
	}
	if slices.ContainsFunc(rows, func(r demandRow) bool { return r.plan != "" }) {
		for _, r := range rows {
			add(&t.Plan, r.plan)
		}
	}
	return t
}

// everything is the demand in which every leaf of each plan asks for all that the plan's hosts have: of the dimensions
// that every host has, in units of one of the scarcest and as much of the others as every host has for one of it. Where
// hosts have no dimension in common that a leaf may ask for, it asks for each by itself.
func (p *policy) everything(hosts func(plan string) []hostRow) *cluster.DemandTable {
	var rows []demandRow
	plans, branch := map[string]int{}, map[string]bool{} // a branch of one plan may have no children in another
	for _, c := range p.consumers {
		branch[c[:strings.LastIndexByte(c, '/')]] = true
	}
	for i := range p.plans {
		m := &p.plans[i]
		all := hosts(m.name)
		for _, e := range m.entries {
			if branch[e.path] {
				continue
			}
			plans[e.path]++
			for _, r := range p.asksFor(e, all) {
				r.consumer, r.allocation, r.plan = e.path, "everything", m.name
				rows = append(rows, r)
			}
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(plans)), func(n int) bool { return n > 1 }) {
		for i := range rows {
			rows[i].plan = "" // nobody is in several
		}
	}
	return demandTable(p.dims, rows)
}

// asksFor are the rows in which a leaf asks for all that hosts have.
func (p *policy) asksFor(e *entry, hosts []hostRow) (rows []demandRow) {
	total, common := make([]int64, len(p.dims)), filled(len(p.dims), math.MaxInt64)
	least := filled(len(p.dims), math.MaxInt64) // of the hosts that have any
	for _, h := range hosts {
		for d, name := range p.dims {
			if h.closed || h.gone || e.asks != nil && !e.asks[d] {
				continue
			}
			total[d] += h.size[name]
			common[d] = min(common[d], h.size[name])
			if h.size[name] > 0 {
				least[d] = min(least[d], h.size[name])
			}
		}
	}
	base := -1
	for d, n := range total {
		if n > 0 && common[d] > 0 && (base < 0 || n < total[base]) {
			base = d
		}
	}
	if base < 0 {
		for d, n := range total {
			if size := make([]int64, len(p.dims)); n > 0 {
				size[d] = unitOf(n, least[d])
				rows = append(rows, demandRow{sub: p.dims[d], units: n / size[d], size: size})
			}
		}
		return rows
	}
	size := make([]int64, len(p.dims))
	size[base] = unitOf(total[base], common[base])
	for d, name := range p.dims {
		if d == base || total[d] == 0 || common[d] == 0 {
			continue
		}
		size[d] = total[d]
		for _, h := range hosts {
			if !h.closed && !h.gone {
				size[d] = min(size[d], h.size[name]/(h.size[p.dims[base]]/size[base]))
			}
		}
	}
	return []demandRow{{units: total[base] / size[base], size: size}}
}

// unitsMade is how many units of a made row are enough to show how a cluster is divided. stint refuses sizes of which a
// plan's hosts would hold millions.
const unitsMade = 1_000_000

// unitOf returns the size of the units in which all of an amount is asked for: 1, or more where that would be too many
// units, but no more than the smallest host has.
func unitOf(total, smallest int64) int64 {
	return max(1, min(total/unitsMade, smallest))
}

// below tells whether a path lies below another.
func below(path, up string) bool {
	return len(path) > len(up) && path[len(up)] == '/' && path[:len(up)] == up
}
