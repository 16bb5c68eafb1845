package verify

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// setHosts applies a hosts table.
func (m *model) setHosts(g *grid, full bool) {
	kinds := m.kinds(g)
	if full {
		for _, h := range m.hosts {
			h.gone, h.state = true, "unavail"
		}
		m.order = m.order[:0]
	}
	for row := range g.rows {
		name := g.text(row, "host")
		h := m.hosts[name]
		if h == nil || h.gone && full {
			h = &host{name: name, state: "ok", size: make([]int64, len(m.policy.dimensions)), attr: map[string]any{}}
			m.hosts[name] = h
			m.order = append(m.order, name)
		} else if h.gone { // what changes do not give keeps its value
			h.gone = false
			m.order = append(m.order, name)
		}
		m.setHost(h, g, row, kinds)
	}
	m.lay()
}

// setHost applies a row. A cell that a JSON row leaves out keeps its value; an empty one is a value (D-27).
func (m *model) setHost(h *host, g *grid, row int, kinds map[string]string) {
	for i, name := range g.names {
		if name == "host" {
			continue
		}
		var cell any
		if i < len(g.rows[row]) {
			cell = g.rows[row][i]
		}
		left := cell == nil && g.typed && g.keyed()
		d, dimension := m.policy.dimension(name)
		switch {
		case left:
		case name == "state":
			if h.state = textOf(cell); h.state == "" {
				h.state = "ok"
			}
		case dimension:
			h.size[d], _ = g.whole(row, name)
		default:
			m.attrs[name] = true
			delete(h.attr, name)
			if v := attrOf(cell, kinds[name]); v != nil {
				h.attr[name] = v
				_, m.numeric[name] = v.(float64)
			}
		}
	}
}

// keyed tells whether rows are objects, of which keys may be left out.
func (g *grid) keyed() bool { return g.objects }

// kinds are the kinds of a CSV table's attributes: numbers when all values are, booleans likewise, else texts.
func (m *model) kinds(g *grid) map[string]string {
	kinds := map[string]string{}
	for i, name := range g.names {
		number, boolean := true, true
		for _, row := range g.rows {
			if i >= len(row) || row[i] == nil {
				continue
			}
			s, ok := row[i].(string)
			if !ok {
				number, boolean = false, false
				break
			}
			if _, err := strconv.ParseFloat(s, 64); err != nil {
				number = false
			}
			boolean = boolean && (s == "true" || s == "false")
		}
		switch {
		case g.typed:
		case boolean:
			kinds[name] = "boolean"
		case number:
			kinds[name] = "number"
		}
	}
	return kinds
}

func attrOf(cell any, kind string) any {
	switch v := cell.(type) {
	case nil, null:
		return nil
	case int64:
		return float64(v)
	case string:
		switch kind {
		case "boolean":
			return v == "true"
		case "number":
			f, _ := strconv.ParseFloat(v, 64)
			return f
		}
		return v
	default:
		return v
	}
}

// lay finds each host's plan and what it is worth there.
func (m *model) lay() {
	in, listed := map[string]string{}, map[string]bool{}
	for _, t := range m.policy.plans {
		for _, name := range t.groups {
			g := m.policy.groups[name]
			for _, h := range g.hosts {
				in[h], listed[h] = t.name, true
			}
			if g.cond == nil {
				continue
			}
			for _, h := range m.hosts {
				if !h.gone && g.cond.truth(h, m) {
					in[h.name] = t.name
				}
			}
		}
	}
	for _, h := range m.hosts {
		h.plan, h.cap = in[h.name], nil
		if h.gone && !listed[h.name] { // a group that lists a host has it as unavail
			h.plan = ""
		}
		if t := m.policy.byName[h.plan]; t != nil {
			h.cap = m.worth(h, t)
		}
	}
	m.leave()
}

// leave makes what is held on hosts that left an MD plan count as public.
func (m *model) leave() {
	for at, p := range m.piles {
		t, h := m.policy.byName[at.plan], m.hosts[at.host]
		if t == nil || !t.md || h == nil || h.plan == t.name {
			continue
		}
		if !slices.ContainsFunc(t.groups,
			func(g string) bool { return slices.Contains(m.policy.groups[g].hosts, h.name) }) {
			if public := (map[label]int64{{origin: "public_pool", pool: "/"}: p.units}); !maps.Equal(public, p.label) {
				p.was, p.left = p.label, m.cycle
				m.relabel(p, public)
			}
		}
	}
}

// worth is what a plan counts a host for.
func (m *model) worth(h *host, t *plan) []int64 {
	if h.state == "unavail" {
		if t.md {
			return make([]int64, len(m.policy.dimensions))
		}
		return []int64{0}
	}
	if t.md {
		size := make([]int64, len(m.policy.dimensions))
		for d, name := range m.policy.dimensions {
			milli, ok := t.overcommit[name]
			if !ok {
				milli = 1000
			}
			size[d] = overcommitted(h.size[d], milli)
		}
		if d, ok := m.onDevices(t); ok {
			size[d] = m.devices(t, h) * t.per
		}
		return size
	}
	g := m.policy.groups[t.name]
	if g.slots == nil {
		if d, ok := m.policy.dimension("slots"); ok {
			return []int64{h.size[d]}
		}
		return []int64{0}
	}
	v, ok := g.slots.number(h, m)
	if !ok {
		return []int64{0}
	}
	return []int64{int64(math.Floor(min(max(v, 0), 1<<53)))}
}

// overcommitted is ⌊amount × milli ÷ 1000⌋, at most 2⁵⁸ (D-22).
func overcommitted(amount, milli int64) int64 {
	if milli == 1000 {
		return amount
	}
	hi, lo := bits.Mul64(uint64(amount), uint64(milli))
	if hi >= 1000 {
		return 1 << 58
	}
	q, _ := bits.Div64(hi, lo, 1000)
	return int64(min(q, 1<<58))
}
