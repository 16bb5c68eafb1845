package plan

import "fmt"

// members are the entries of a plan's consumers by Node: of the plan, and of the window at hand.
type members struct {
	plan, window []*entry
}

// find gives the setting that holds for a consumer, the window's before the plan's.
func (m *members) find(n Node, key string) (v value, ok bool) {
	for _, e := range [...]*entry{m.window[n], m.plan[n]} {
		if e != nil {
			if v, ok = e.fields.get(key); ok {
				return v, true
			}
		}
	}
	return value{}, false
}

// at is where to report what is wrong with a setting of a consumer: at the key, else at its entry.
func (m *members) at(n Node, key string) value {
	if v, ok := m.find(n, key); ok {
		return v
	}
	if m.window[n] != nil {
		return m.window[n].pathAt
	}
	if m.plan[n] != nil {
		return m.plan[n].pathAt
	}
	return value{}
}

// place sorts entries into an array by Node. A consumer that is not listed at the top is a fault.
func (r *reader) place(p *Policy, list []entry) []*entry {
	out := make([]*entry, p.Len())
	for i := range list {
		if n, ok := p.Find(list[i].path); ok {
			out[n] = &list[i]
		} else {
			r.fault(list[i].pathAt, "the list of consumers has no such consumer")
		}
	}
	return out
}

// join tells which consumers take part in a plan: those it or one of its windows
// names, and the root. A parent that is left out is a fault.
func (r *reader) join(p *Policy, planAt value, plan []*entry, windows [][]*entry) []bool {
	member := make([]bool, p.Len())
	count := 0
	for _, list := range append([][]*entry{plan}, windows...) {
		for n, e := range list {
			if e != nil && !member[n] {
				member[n] = true
				count++
			}
		}
	}
	member[Root] = true
	if count == 0 {
		r.fault(planAt, "the plan names no consumer")
	}
	for _, list := range append([][]*entry{plan}, windows...) {
		for n, e := range list {
			if e != nil && !member[p.Parent[n]] {
				r.fault(e.pathAt, "the plan does not name its parent %s", p.Path[p.Parent[n]])
			}
		}
	}
	return member
}

// check says what is wrong with the merged settings of one window of a plan.
type check struct {
	*reader
	p      *Policy
	m      *members
	window string // "" when the plan has no windows
}

// say reports a fault of a consumer's setting, naming the window when there are several.
func (c *check) say(n Node, key, format string, args ...any) {
	c.sayAt(c.m.at(n, key), format, args...)
}

func (c *check) sayAt(v value, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if c.window != "" {
		text = "in window " + c.window + " " + text
	}
	c.fault(v, "%s", text)
}

// gangWaitDefaultUS is how long room is held for a gang where the plan does not say (REQ-3).
const gangWaitDefaultUS = 600_000_000

// pace reads the settings of reclaim that both kinds of plans have (CYC-4, CYC-8, PLAN-2, REQ-3).
func (r *reader) pace(f fields, budget *int64, confirmed *bool, overdue, lead, gangWait *int64) {
	if v, ok := f.get("reclaim_budget"); ok {
		if n, ok := r.integer(v, 1, numberMax); ok {
			*budget = n
		}
	}
	if v, ok := f.get("release"); ok {
		i, _ := r.word(v, "assumed", "confirmed")
		*confirmed = i == 1
	}
	if v, ok := f.get("overdue_after"); ok {
		if us, ok := r.duration(v); ok {
			*overdue = us
		}
		if !*confirmed {
			r.fault(v, "goes with release: confirmed only")
		}
	}
	if v, ok := f.get("lead"); ok {
		*lead, _ = r.duration(v)
		if _, windows := f.get("windows"); !windows {
			r.fault(v, "goes with windows only")
		}
	}
	*gangWait = gangWaitDefaultUS
	if v, ok := f.get("gang_wait"); ok {
		if us, ok := r.duration(v); ok && us == 0 {
			r.fault(v, "must be longer than 0, as room for a gang is held so long")
		} else if ok {
			*gangWait = us
		}
	}
}
