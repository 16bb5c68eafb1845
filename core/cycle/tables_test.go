package cycle_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// scenario renders a case as a scenario file (SPEC 9.1). What such a file cannot say stands in comments.
func (p *player) scenario() string {
	var b strings.Builder
	b.WriteString("name: a random case\nplan:\n")
	for s := range strings.Lines(p.first) {
		b.WriteString("  " + s)
	}
	list := func(indent, name, comment string, rows []map[string]any) {
		fmt.Fprintf(&b, "%s%s:%s\n", indent, name, comment)
		if len(rows) == 0 {
			fmt.Fprintf(&b, "%s  []\n", indent)
		}
		for _, row := range rows {
			text, err := json.Marshal(row)
			if err != nil {
				panic(err)
			}
			fmt.Fprintf(&b, "%s  - %s\n", indent, text)
		}
	}
	for i, s := range p.steps {
		if i == 0 {
			list("", "hosts", "", hostRows(s.hosts))
			if len(s.running) > 0 {
				b.WriteString("running:\n")
				list("  ", s.source, "", holdingRows(s.running, false))
			}
			b.WriteString("steps:\n")
		}
		fmt.Fprintf(&b, "  - cycles: %d\n", s.cycles+1)
		if s.wait > 0 {
			fmt.Fprintf(&b, "    # %d minutes later\n", s.wait)
		}
		if s.policy != "" {
			b.WriteString("    plan:\n")
			for s := range strings.Lines(s.policy) {
				b.WriteString("      " + s)
			}
		}
		if s.forced {
			b.WriteString("    force: true\n")
		}
		if i > 0 && len(s.hosts) > 0 {
			comment := ""
			if s.full {
				comment = " # a full table: hosts that it does not name are gone"
			}
			list("    ", "hosts", comment, hostRows(s.hosts))
		}
		if len(s.demand) > 0 {
			b.WriteString("    demand:\n")
		}
		for _, d := range s.demand {
			list("      ", d.source, "", demandRows(d.rows))
		}
		if len(s.releases) > 0 {
			comment := ""
			if s.late {
				comment = " # after the demand"
			}
			list("    ", "releases", comment, holdingRows(s.releases, true))
		}
	}
	return b.String()
}

func hostRows(rows []oracle.Host) (list []map[string]any) {
	for _, h := range rows {
		row := map[string]any{"host": h.Name, "state": h.State}
		for d, n := range h.Size {
			row[d] = n
		}
		maps.Copy(row, h.Attr)
		list = append(list, row)
	}
	return list
}

func demandRows(rows []oracle.Demand) (list []map[string]any) {
	for _, r := range rows {
		row := map[string]any{"plan": r.Plan, "consumer": r.Consumer, "allocation": r.Allocation, "sub": r.Sub,
			"units": r.Units}
		for d, n := range r.Size {
			row[d] = n
		}
		if r.Requirement != "" {
			row["requirement"] = r.Requirement
		}
		if r.MaxPerHost != plan.Unlimited {
			row["max_per_host"] = r.MaxPerHost
		}
		if r.MinUnits > 1 {
			row["min_units"] = r.MinUnits
		}
		if r.Together != "" {
			row["together"] = r.Together
		}
		list = append(list, row)
	}
	return list
}

func holdingRows(rows []oracle.Holding, done bool) (list []map[string]any) {
	for _, h := range rows {
		row := map[string]any{"consumer": h.Consumer, "allocation": h.Allocation, "sub": h.Sub, "host": h.Host,
			"units": h.Units}
		if done {
			row["done"] = h.Done
			if h.Device != "" {
				row["device"] = h.Device
			}
		}
		list = append(list, row)
	}
	return list
}

// tables turns rows into the input tables of core/cluster. So many junk words stand first in every dictionary.
type tables struct {
	p    *plan.Policy
	junk int
}

// text makes a text column; "" is Null.
func (w tables) text(words ...string) cluster.TextColumn {
	c := cluster.TextColumn{Names: &cluster.Names{}}
	for i := range w.junk {
		c.Names.InternString(fmt.Sprintf("junk%d", i))
	}
	for _, s := range words {
		code := cluster.Null
		if s != "" {
			code = c.Names.InternString(s)
		}
		c.Code = append(c.Code, code)
	}
	return c
}

// column collects one value of every row.
func column[R, V any](rows []R, of func(R) V) []V {
	list := make([]V, len(rows))
	for i, r := range rows {
		list[i] = of(r)
	}
	return list
}

// sizes makes a column per dimension that any row names.
func sizes[R any](w tables, rows []R, of func(R) map[string]int64) [][]int64 {
	list := make([][]int64, len(w.p.Dimensions))
	for d, name := range w.p.Dimensions {
		if slices.ContainsFunc(rows, func(r R) bool { _, ok := of(r)[name]; return ok }) {
			list[d] = column(rows, func(r R) int64 { return of(r)[name] })
		}
	}
	return list
}

func (w tables) hosts(rows []oracle.Host) *cluster.HostTable {
	t := &cluster.HostTable{Rows: len(rows),
		Host: w.text(column(rows, func(h oracle.Host) string { return h.Name })...),
		State: column(rows, func(h oracle.Host) cluster.HostState {
			return cluster.HostState(slices.Index(cluster.HostStates[:], h.State))
		}),
		Size: sizes(w, rows, func(h oracle.Host) map[string]int64 { return h.Size })}
	if rows[0].Attr == nil { // a table of states only
		return t
	}
	valid := slices.Repeat([]bool{true}, len(rows))
	for _, name := range slices.Sorted(maps.Keys(rows[0].Attr)) {
		c := cluster.AttrColumn{Name: name, Valid: valid}
		if name == "rack" { // some have none
			c.Kind = plan.Text
			c.Text = w.text(column(rows, func(h oracle.Host) string { return fmt.Sprint(h.Attr[name]) })...)
			c.Valid = column(rows, func(h oracle.Host) bool { return h.Attr[name] != nil })
			t.Attr = append(t.Attr, c)
			continue
		}
		switch rows[0].Attr[name].(type) {
		case float64:
			c.Kind, c.Number = plan.Number, column(rows, func(h oracle.Host) float64 { return h.Attr[name].(float64) })
		case bool:
			c.Kind, c.Bool = plan.Boolean, column(rows, func(h oracle.Host) bool { return h.Attr[name].(bool) })
		case string:
			c.Kind = plan.Text
			c.Text = w.text(column(rows, func(h oracle.Host) string { return h.Attr[name].(string) })...)
		}
		t.Attr = append(t.Attr, c)
	}
	return t
}

func (w tables) demand(rows []oracle.Demand) *cluster.DemandTable {
	return &cluster.DemandTable{Rows: len(rows),
		Consumer:    w.text(column(rows, func(r oracle.Demand) string { return r.Consumer })...),
		Allocation:  w.text(column(rows, func(r oracle.Demand) string { return r.Allocation })...),
		Sub:         w.text(column(rows, func(r oracle.Demand) string { return r.Sub })...),
		Plan:        w.text(column(rows, func(r oracle.Demand) string { return r.Plan })...),
		Requirement: w.text(column(rows, func(r oracle.Demand) string { return r.Requirement })...),
		Together:    w.text(column(rows, func(r oracle.Demand) string { return r.Together })...),
		Units:       column(rows, func(r oracle.Demand) int64 { return r.Units }),
		Size:        sizes(w, rows, func(r oracle.Demand) map[string]int64 { return r.Size }),
		MaxPerHost:  column(rows, func(r oracle.Demand) int64 { return r.MaxPerHost }),
		MinUnits:    column(rows, func(r oracle.Demand) int64 { return max(1, r.MinUnits) })}
}

func (w tables) holdings(rows []oracle.Holding) *cluster.HoldingTable {
	return &cluster.HoldingTable{Rows: len(rows),
		Consumer:   w.text(column(rows, func(h oracle.Holding) string { return h.Consumer })...),
		Allocation: w.text(column(rows, func(h oracle.Holding) string { return h.Allocation })...),
		Sub:        w.text(column(rows, func(h oracle.Holding) string { return h.Sub })...),
		Host:       w.text(column(rows, func(h oracle.Holding) string { return h.Host })...),
		Units:      column(rows, func(h oracle.Holding) int64 { return h.Units }),
		Done:       column(rows, func(h oracle.Holding) bool { return h.Done }),
		Device:     w.text(column(rows, func(h oracle.Holding) string { return h.Device })...)}
}
