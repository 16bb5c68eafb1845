package foreign

import (
	"maps"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// hostsMax bounds the hosts that an import makes.
const hostsMax = 1_000_000

// hostRow is a host while an importer makes it.
type hostRow struct {
	name   string
	closed bool
	size   map[string]int64  // by dimension
	text   map[string]string // attributes
	flag   []string          // attributes that are true
	line   int
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
			a.Text.Code[i], a.Valid[i] = a.Text.Names.InternString(r.text[key]), true
		}
		for _, key := range r.flag {
			a := t.column(key, plan.Boolean)
			a.Bool[i], a.Valid[i] = true, true
		}
		if r.closed && h.State == nil {
			h.State = make([]cluster.HostState, len(rows))
		}
		if r.closed {
			h.State[i] = cluster.Closed
		}
	}
	return h
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

// everything is the demand in which every leaf of each plan asks for all there is, total by plan and dimension, in units of one of
// the scarcest dimension and of its part of the others.
func (p *policy) everything(total [][]int64) *cluster.DemandTable {
	t := &cluster.DemandTable{Consumer: column(), Allocation: column(), Sub: column(), Plan: column(), Requirement: column()}
	t.Size = make([][]int64, len(p.dims))
	plans := map[string]int{}
	for i := range p.plans {
		for _, e := range p.plans[i].entries {
			plans[e.path]++
		}
	}
	for i := range p.plans {
		m := &p.plans[i]
		for k, e := range m.entries {
			if k+1 < len(m.entries) && below(m.entries[k+1].path, e.path) {
				continue // a branch
			}
			units := int64(0)
			for d, n := range total[i] {
				if n > 0 && (e.asks == nil || e.asks[d]) && (units == 0 || n < units) {
					units = n
				}
			}
			if units == 0 {
				continue // no host
			}
			t.Rows++
			t.Consumer.Code = append(t.Consumer.Code, t.Consumer.Names.InternString(e.path))
			t.Allocation.Code = append(t.Allocation.Code, t.Allocation.Names.InternString("everything"))
			t.Units = append(t.Units, units)
			for d := range p.dims {
				size := int64(0)
				if e.asks == nil || e.asks[d] {
					size = total[i][d] / units
				}
				t.Size[d] = append(t.Size[d], size)
			}
			t.Plan.Code = append(t.Plan.Code, t.Plan.Names.InternString(m.name))
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(plans)), func(n int) bool { return n > 1 }) {
		t.Plan.Code = nil // nobody is in several
	}
	return t
}

// below tells whether a path lies below another.
func below(path, up string) bool {
	return len(path) > len(up) && path[len(up)] == '/' && path[:len(up)] == up
}
