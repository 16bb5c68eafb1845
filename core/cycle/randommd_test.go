package cycle_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/oracle"
)

type mdPlan struct {
	name       string
	zones      []int
	placement  string
	overcommit map[string]int // thousandths
	members    []member
	settings   []string
	device     device
	takes      bool   // of a case of devices: without any, it takes back for shares
	confirms   bool   // clients end what is due
	history    string // as a setting: how long what was used counts, "" for not at all

	preference map[int]int     // by zone; what the plan does not say is left out
	deeds      []map[int]*deed // what consumers own: as the plan says, then as its second window does
	// the minute of the first hour at which the second window begins, 0: there are no windows
	cut  int
	lead int // minutes
}

type member struct {
	consumer int
	rank     int // -1: the consumer's
	share
	preference map[int]int // by zone
	lendGrace  string      // as keys of its entry
	budget     string      // as a key of its entry
}

type share struct {
	priority, ratio int
	limit           map[string]int // nil: none
	modest          bool           // takes nothing back
}

var dimensions = []string{"ncpus", "maxmem", "gpus", "disk", "slots", "net", "nvme", "fpgas", "ports"}

// drawMD draws a policy with MD plans alone.
func drawMD(t *rapid.T) site {
	s := site{dims: dimensions[:pick(t, "dimensions", 1, 2, 2, 3, 4, 6, 9)]}
	plans := pick(t, "plans", 1, 1, 2, 3)
	s.drawGroups(t, plans+upTo(t, "groups", 0, 2))
	s.drawConsumers(t, upTo(t, "consumers", 1, 15))
	for i := range plans {
		var zones []int
		for z := range s.groups {
			if z == i || z >= plans && z%plans == i && odds(t, "group", 2) {
				zones = append(zones, z)
			}
		}
		s.plans = append(s.plans, s.drawPlan(t, fmt.Sprintf("p%d", i), zones))
	}
	return s
}

// drawPlan draws an MD plan of some groups.
func (s *site) drawPlan(t *rapid.T, name string, zones []int) mdPlan {
	m := mdPlan{name: name, placement: pick(t, "placement", "best_fit", "stacked", "balanced"),
		overcommit: map[string]int{},
		zones:      rapid.Permutation(zones).Draw(t, "zones")}
	for _, d := range s.dims {
		if odds(t, "overcommit", 4) {
			m.overcommit[d] = pick(t, "milli", 500, 1500, 2000, 1333)
		}
	}
	if odds(t, "plan takes nothing back", 8) {
		m.settings = append(m.settings, "share_reclaim: false")
	}
	m.drawBand(t)
	if odds(t, "budget", 4) {
		m.settings = append(m.settings, fmt.Sprint("reclaim_budget: ", pick(t, "reclaim_budget", 1, 1, 2, 3, 5)))
	}
	if m.confirms = odds(t, "confirms", 6); m.confirms {
		m.settings = append(m.settings, "release: confirmed")
		if odds(t, "overdue", 2) {
			m.settings = append(m.settings, "overdue_after: 90s")
		}
	}
	for k, in := range s.drawMembers(t) {
		if !in {
			continue
		}
		e := member{consumer: k, rank: -1, share: s.drawShare(t)}
		if odds(t, "own rank", 6) {
			e.rank = upTo(t, "plan rank", 0, 3)
		}
		m.members = append(m.members, e)
	}
	s.drawBudgets(t, &m)
	m.drawHistory(t)
	return m
}

// drawHistory has a plan remember what was used, in one case of four.
func (m *mdPlan) drawHistory(t *rapid.T) {
	if m.history = ""; once(t, "history", 4) {
		m.history = fmt.Sprintf("share: {half_life: %s%s}", choose(t, "half_life", "5m", "30m", "6h", "24h", "168h"),
			choose(t, "weight", "", "", ", weight: 0.25", ", weight: 3", ", weight: 10"))
	}
}

// drawBudgets gives some members of a plan budgets, in one case of six.
func (s *site) drawBudgets(t *rapid.T, m *mdPlan) {
	if !once(t, "budgets", 6) {
		return
	}
	for i := range m.members {
		m.members[i].budget = drawBudget(t, s.dims...)
	}
}

// drawBudget draws a budget of units or a dimension as a key of an entry, small enough to be used up, mostly none.
func drawBudget(t *rapid.T, dims ...string) string {
	if !once(t, "budgeted", 3) {
		return ""
	}
	return fmt.Sprintf(", budget: {%s_hours: %d, per: %s}",
		choose(t, "counted", append([]string{"units", "units"}, dims...)...),
		choose(t, "hours", 1, 1, 2, 3), choose(t, "per", "day", "week", "month"))
}

func (s *site) drawShare(t *rapid.T) share {
	switch {
	case s.lend:
		return s.drawModestShare(t)
	case s.devices:
		return s.drawDeviceShare(t)
	case s.tight:
		return s.drawFairShare(t)
	case s.own && !once(t, "restricted", 4):
		return share{priority: choose(t, "priority", 0, 0, 1), ratio: choose(t, "ratio", 1, 1, 2)}
	}
	e := share{priority: pick(t, "priority", 0, 0, 0, 1, 2), ratio: pick(t, "ratio", 1, 1, 1, 2, 3, 7, 0)}
	if odds(t, "limit", 5) {
		e.limit = map[string]int{pick(t, "limited", s.dims...): upTo(t, "most", 0, 12)}
	}
	e.modest = odds(t, "modest", 8)
	return e
}

// text is a share as a key of a consumer's entry.
func (e *share) text() string {
	text := fmt.Sprintf("share: {priority: %d, ratio: %d", e.priority, e.ratio)
	for d, n := range e.limit {
		text += fmt.Sprintf(", limit: {%s: %d}", d, n)
	}
	return text + "}"
}

func (s *site) writeMD(b *strings.Builder) {
	for i, m := range s.plans {
		if i == 0 {
			b.WriteString("md_plans:\n")
		}
		fmt.Fprintf(b, "  - name: %s\n    placement: %s\n    resource_groups: [", m.name, m.placement)
		for i, z := range m.zones {
			fmt.Fprintf(b, "%s{name: g%d", ", "[:2*min(i, 1)], z)
			if n := m.preference[z]; n > 0 {
				fmt.Fprintf(b, ", preference: %d", n)
			}
			b.WriteString("}")
		}
		b.WriteString("]\n")
		for i, d := range slices.Sorted(maps.Keys(m.overcommit)) {
			if i == 0 {
				b.WriteString("    overcommit:\n")
			}
			fmt.Fprintf(b, "      %s: %d.%03d\n", d, m.overcommit[d]/1000, m.overcommit[d]%1000)
		}
		if s.devices {
			b.WriteString(m.device.text(m.takes))
		}
		for _, line := range m.settings {
			b.WriteString("    " + line + "\n")
		}
		if m.history != "" {
			b.WriteString("    " + m.history + "\n")
		}
		b.WriteString("    consumers:\n")
		for _, e := range m.members {
			b.WriteString("      - {path: " + s.consumers[e.consumer].path)
			if e.rank >= 0 {
				fmt.Fprintf(b, ", rank: %d", e.rank)
			}
			b.WriteString(", " + e.text())
			if e.modest {
				b.WriteString(", share_reclaim: false")
			}
			b.WriteString(preferText(e.preference) + e.lendGrace + e.budget)
			if m.deeds != nil {
				b.WriteString(s.ownText(m.deeds[0][e.consumer]))
			}
			b.WriteString("}\n")
		}
		s.writeOwnWindows(b, &m)
	}
}

// mdPlan finds an MD plan by name, nil when it is none.
func (s *site) mdPlan(name string) *mdPlan {
	if i := slices.IndexFunc(s.plans, func(m mdPlan) bool { return m.name == name }); i >= 0 {
		return &s.plans[i]
	}
	return nil
}

// drawShapes gives the unit sizes of a case's MD plans; one in some is too big for most hosts.
func (w *world) drawShapes(t *rapid.T) {
	most := 4
	if w.plain {
		most = 1
	}
	if len(w.plans) == 0 {
		return
	}
	if w.devices {
		w.drawDeviceShapes(t, most)
		return
	}
	if w.tight {
		w.drawFairShapes(t, most)
		return
	}
	if w.waves && once(t, "one shape", 2) {
		most = 1
	}
	for range upTo(t, "shapes", 1, most) {
		size := map[string]int64{}
		for _, d := range w.dims {
			size[d] = int64(pick(t, "unit", 0, 1, 1, 2, 3))
		}
		if w.own && !once(t, "large", 3) {
			for _, d := range w.dims {
				size[d] = int64(choose(t, "small", 0, 1, 1, 2))
			}
			size[choose(t, "at least one", w.dims...)] = int64(choose(t, "one", 1, 2))
			w.shapes = append(w.shapes, size)
			continue
		}
		size[pick(t, "never zero", w.dims...)] += int64(pick(t, "more", 1, 1, 1, 6))
		if w.lend {
			size = w.small(t)
		}
		if w.waves && once(t, "tiny", 2) { // many units on a host, and many sets
			for d := range size {
				size[d] = min(size[d], 1)
			}
		}
		w.shapes = append(w.shapes, size)
	}
	if w.waves && !w.plain && once(t, "a larger shape", 2) { // it takes the room of several others
		size := maps.Clone(w.shapes[0])
		for _, d := range w.dims { // in this order, or a seed would not stand for one case
			size[d] *= choose[int64](t, "times", 2, 3)
		}
		w.shapes = append(w.shapes, size)
	}
}

// drawSize draws the size of a unit.
func (w *world) drawSize(t *rapid.T, plan string) map[string]int64 {
	switch {
	case w.slotPlan(plan) == nil && w.waves && w.wave > 0 && once(t, "large", 2):
		return w.shapes[len(w.shapes)-1]
	case w.slotPlan(plan) == nil:
		return w.mdPlan(plan).device.fitted(pick(t, "shape", w.shapes...))
	case w.even || !slices.Contains(w.dims, "slots"):
		return nil
	}
	return map[string]int64{"slots": int64(choose(t, "slots", 0, 1, 1, 1, 1, 2, 2, 3, 4))}
}

// unit is a row's unit as what a host has for its plan is measured: see capacity.
func (w *world) unit(r oracle.Demand) map[string]int64 {
	if w.slotPlan(r.Plan) == nil {
		return r.Size
	}
	return map[string]int64{"slots": max(1, r.Size["slots"])}
}
