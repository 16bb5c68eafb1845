package cycle_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// This file makes random cases: a policy, hosts, and steps that change demand and hosts and give units back.

// site is a random policy file before it is written as YAML.
type site struct {
	dims      []string
	groups    []group
	consumers []consumer
	plans     []mdPlan
}

// group is listed (hosts) or, when it has none, chosen by its zone.
type group struct {
	zone  int
	hosts []string
}

type consumer struct {
	path   string
	parent int // row of the parent, -1 for the first level
	depth  int
	leaf   bool
	rank   int
	grace  int // s
}

type mdPlan struct {
	name       string
	zones      []int
	placement  string
	overcommit map[string]int // thousandths
	members    []member
}

type member struct {
	consumer int
	rank     int // -1: the consumer's
	share
}

type share struct {
	priority, ratio int
	limit           map[string]int // nil: none
}

// step is what happens before one cycle, or several.
type step struct {
	hosts    []oracle.Host
	full     bool
	demand   []snapshot
	running  []oracle.Holding // of the source, first step only
	source   string
	releases []oracle.Holding
	late     bool // releases come after the demand, not before it as in a scenario (D-19)
	cycles   int
}

type snapshot struct {
	source string
	rows   []oracle.Demand
}

// pick draws one of some values.
func pick[T any](t *rapid.T, label string, of ...T) T { return rapid.SampledFrom(of).Draw(t, label) }

func upTo(t *rapid.T, label string, least, most int) int {
	return rapid.IntRange(least, most).Draw(t, label)
}

// odds is true once in n times.
func odds(t *rapid.T, label string, n int) bool {
	return rapid.IntRange(0, n-1).Draw(t, label) == n-1
}

// hostsMax is the number of host names there are; a case starts with up to 12 of them.
const hostsMax = 14

var dimensions = []string{"ncpus", "maxmem", "gpus", "disk", "slots", "net", "nvme", "fpgas", "ports"}

func drawSite(t *rapid.T) site {
	s := site{dims: dimensions[:pick(t, "dimensions", 1, 2, 2, 3, 4, 6, 9)]}
	plans := pick(t, "plans", 1, 1, 2, 3)
	groups := plans + upTo(t, "groups", 0, 2)
	byZone := make([][]string, groups)
	for h := range hostsMax {
		byZone[zoneOf(h, groups)] = append(byZone[zoneOf(h, groups)], hostName(h))
	}
	for z := range groups {
		g := group{zone: z}
		if odds(t, "listed", 3) {
			g.hosts = rapid.Permutation(byZone[z]).Draw(t, "list")
		}
		s.groups = append(s.groups, g)
	}
	for i := range upTo(t, "consumers", 1, 15) {
		c := consumer{parent: -1, leaf: true, rank: pick(t, "rank", 0, 0, 1, 2), grace: pick(t, "grace", 0, 0, 60, 90, 300)}
		if p := upTo(t, "parent", -1, i-1); p >= 0 && s.consumers[p].depth < 3 {
			c.parent, c.depth = p, s.consumers[p].depth+1
			s.consumers[p].leaf = false
			c.path = s.consumers[p].path
		}
		c.path += fmt.Sprintf("/c%d", i)
		s.consumers = append(s.consumers, c)
	}
	for i := range plans {
		s.plans = append(s.plans, s.drawPlan(t, i, plans))
	}
	return s
}

// zoneOf spreads hosts over the groups.
func zoneOf(h, groups int) int { return h * 7 % 5 % groups }

func hostName(h int) string { return fmt.Sprintf("h%d", h) }

func (s site) drawPlan(t *rapid.T, i, plans int) mdPlan {
	m := mdPlan{name: fmt.Sprintf("p%d", i), placement: pick(t, "placement", "best_fit", "stacked", "balanced"),
		overcommit: map[string]int{}}
	for z := range s.groups {
		if z == i || z >= plans && z%plans == i && odds(t, "group", 2) {
			m.zones = append(m.zones, z)
		}
	}
	m.zones = rapid.Permutation(m.zones).Draw(t, "zones")
	for _, d := range s.dims {
		if odds(t, "overcommit", 4) {
			m.overcommit[d] = pick(t, "milli", 500, 1500, 2000, 1333)
		}
	}
	in := make([]bool, len(s.consumers))
	for k, c := range s.consumers {
		in[k] = k == 0 || (c.parent < 0 || in[c.parent]) && !odds(t, "out", 6)
		if !in[k] {
			continue
		}
		e := member{consumer: k, rank: -1, share: s.drawShare(t)}
		if odds(t, "own rank", 6) {
			e.rank = upTo(t, "plan rank", 0, 3)
		}
		m.members = append(m.members, e)
	}
	return m
}

func (s site) drawShare(t *rapid.T) share {
	e := share{priority: pick(t, "priority", 0, 0, 0, 1, 2), ratio: pick(t, "ratio", 1, 1, 1, 2, 3, 7, 0)}
	if odds(t, "limit", 5) {
		e.limit = map[string]int{pick(t, "limited", s.dims...): upTo(t, "most", 0, 12)}
	}
	return e
}

// yaml is the policy file.
func (s site) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stint: 1\ndimensions: [%s]\nresource_groups:\n", strings.Join(s.dims, ", "))
	for _, g := range s.groups {
		if len(g.hosts) > 0 {
			fmt.Fprintf(&b, "  - {name: g%d, hosts: [%s]}\n", g.zone, strings.Join(g.hosts, ", "))
		} else {
			fmt.Fprintf(&b, "  - {name: g%d, select: \"select(zone == %d)\"}\n", g.zone, g.zone)
		}
	}
	b.WriteString("consumers:\n")
	for _, c := range s.consumers {
		fmt.Fprintf(&b, "  - {path: %s, rank: %d, reclaim_grace: %ds}\n", c.path, c.rank, c.grace)
	}
	b.WriteString("md_plans:\n")
	for _, m := range s.plans {
		fmt.Fprintf(&b, "  - name: %s\n    placement: %s\n    resource_groups: [", m.name, m.placement)
		for i, z := range m.zones {
			fmt.Fprintf(&b, "%s{name: g%d}", ", "[:2*min(i, 1)], z)
		}
		b.WriteString("]\n")
		for i, d := range slices.Sorted(maps.Keys(m.overcommit)) {
			if i == 0 {
				b.WriteString("    overcommit:\n")
			}
			fmt.Fprintf(&b, "      %s: %d.%03d\n", d, m.overcommit[d]/1000, m.overcommit[d]%1000)
		}
		b.WriteString("    consumers:\n")
		for _, e := range m.members {
			b.WriteString("      - {path: " + s.consumers[e.consumer].path)
			if e.rank >= 0 {
				fmt.Fprintf(&b, ", rank: %d", e.rank)
			}
			fmt.Fprintf(&b, ", share: {priority: %d, ratio: %d", e.priority, e.ratio)
			for d, n := range e.limit {
				fmt.Fprintf(&b, ", limit: {%s: %d}", d, n)
			}
			b.WriteString("}}\n")
		}
	}
	return b.String()
}

// world is what the generator knows while it makes the steps of a case.
type world struct {
	site
	hosts  map[string]oracle.Host // by name, as they are now
	shapes []map[string]int64
	rows   map[string][]oracle.Demand // by source
	plain  bool                       // one unit size, no requirements, nothing running: INV-5 binds
}

// need is a requirement and what it means.
type need struct {
	text string
	met  func(oracle.Host) bool
}

var (
	sources = []string{"s0", "s1", "s2"}
	needs   = []need{
		{"select(fast)", func(h oracle.Host) bool { return h.Attr["fast"] == true }},
		{"select(zone == 0)", func(h oracle.Host) bool { return h.Attr["zone"] == 0. }},
		{"select(kind == 'x' || ncpus >= 6)", func(h oracle.Host) bool { return h.Attr["kind"] == "x" || h.Size["ncpus"] >= 6 }},
		{"select(blade)", func(h oracle.Host) bool { return h.Attr["type"] == "blade" }},
		{"select(!fast && zone > 0)", func(h oracle.Host) bool { return h.Attr["fast"] == false && h.Attr["zone"] != 0. }},
	}
	orders   = []string{"order(-ncpus, name)", "order(ncpus)", "order(kind, -zone)"}
	sizesFew = []int64{4, 6, 8}
)

// drawHosts gives the first hosts: of two types, or all different.
func (w *world) drawHosts(t *rapid.T) []oracle.Host {
	w.hosts = map[string]oracle.Host{}
	types := make([]map[string]int64, 2)
	for i := range types {
		types[i] = map[string]int64{}
		for _, d := range w.dims {
			types[i][d] = pick(t, "size", sizesFew...)
		}
	}
	few := odds(t, "few types", 2)
	var rows []oracle.Host
	for h := range upTo(t, "hosts", 1, 12) {
		row := w.drawHost(t, h)
		if few {
			row.Size = maps.Clone(types[upTo(t, "type", 0, 1)])
		}
		rows = append(rows, row)
		w.hosts[row.Name] = row
	}
	return rows
}

// drawHost gives a host as a whole; its zone never changes.
func (w *world) drawHost(t *rapid.T, h int) oracle.Host {
	row := oracle.Host{Name: hostName(h), State: pick(t, "state", "ok", "ok", "ok", "ok", "ok", "closed", "draining", "unavail"),
		Size: map[string]int64{}, Attr: map[string]any{"zone": float64(zoneOf(h, len(w.groups))),
			"fast": odds(t, "fast", 2), "kind": pick(t, "kind", "x", "y"), "type": []string{"blade", "rack"}[h%2]}}
	for _, d := range w.dims {
		row.Size[d] = int64(upTo(t, "size", 0, 9))
	}
	return row
}

// drawShapes gives the unit sizes of a case; one in some is too big for most hosts.
func (w *world) drawShapes(t *rapid.T) {
	most := 4
	if w.plain {
		most = 1
	}
	for range upTo(t, "shapes", 1, most) {
		size := map[string]int64{}
		for _, d := range w.dims {
			size[d] = int64(pick(t, "unit", 0, 1, 1, 2, 3))
		}
		size[pick(t, "never zero", w.dims...)] += int64(pick(t, "more", 1, 1, 1, 6))
		w.shapes = append(w.shapes, size)
	}
}

// drawDemand makes a snapshot of a source, mostly by small changes to its last one.
func (w *world) drawDemand(t *rapid.T, source string) []oracle.Demand {
	old := w.rows[source]
	rows := []oracle.Demand{}
	for _, row := range old {
		switch upTo(t, "change", 0, 9) {
		case 0: // gone
			continue
		case 1, 2, 3:
			row.Units = int64(upTo(t, "units", 0, 30))
		case 4:
			row.Size = pick(t, "shape", w.shapes...)
		case 5:
			w.drawRules(t, &row)
		}
		rows = append(rows, row)
	}
	for range upTo(t, "new rows", 0, 5) {
		if row, ok := w.drawRow(t, source); ok && !slices.ContainsFunc(rows, func(r oracle.Demand) bool { return key(r) == key(row) }) {
			rows = append(rows, row)
		}
	}
	if odds(t, "shuffled", 8) && len(rows) > 1 {
		rows = rapid.Permutation(rows).Draw(t, "rows")
	}
	w.rows[source] = rows
	return rows
}

func key(r oracle.Demand) oracle.Key {
	return oracle.Key{Plan: r.Plan, Consumer: r.Consumer, Allocation: r.Allocation, Sub: r.Sub}
}

// drawRow makes a demand row; ok is false where no leaf takes part in the plan that was drawn.
func (w *world) drawRow(t *rapid.T, source string) (row oracle.Demand, ok bool) {
	m := pick(t, "plan", w.plans...)
	var leaves []string
	for _, e := range m.members {
		if c := w.consumers[e.consumer]; c.leaf {
			leaves = append(leaves, c.path)
		}
	}
	if len(leaves) == 0 {
		return row, false
	}
	row = oracle.Demand{Plan: m.name, Consumer: pick(t, "leaf", leaves...), Units: int64(upTo(t, "units", 0, 30)),
		Allocation: fmt.Sprintf("%sa%d", source, upTo(t, "allocation", 0, 2)), Sub: pick(t, "sub", "", "", "x", "y"),
		Size: pick(t, "shape", w.shapes...)}
	w.drawRules(t, &row)
	return row, true
}

// drawRules draws what else a row may ask for.
func (w *world) drawRules(t *rapid.T, row *oracle.Demand) {
	row.MaxPerHost, row.Requirement = plan.Unlimited, ""
	if w.plain {
		return
	}
	if odds(t, "per host", 5) {
		row.MaxPerHost = int64(upTo(t, "max_per_host", 1, 3))
	}
	if odds(t, "select", 5) {
		row.Requirement = needs[upTo(t, "requirement", 0, len(needs)-1)].text
	}
	if odds(t, "order", 8) {
		row.Requirement = strings.TrimSpace(row.Requirement + " " + pick(t, "order by", orders...))
	}
}

// drawStep makes the next step, knowing what is held.
func (w *world) drawStep(t *rapid.T, first bool, held []oracle.Units) step {
	s := step{cycles: pick(t, "cycles", 1, 1, 2), late: odds(t, "late", 3)}
	if first {
		w.plain = odds(t, "plain", 4)
		s.hosts, s.full = w.drawHosts(t), true
		w.drawShapes(t)
	} else if odds(t, "hosts change", 2) {
		s.hosts, s.full = w.changeHosts(t)
	}
	before := w.sizes()
	for _, source := range sources[:upTo(t, "sources", 0, 3)] {
		if first || odds(t, "new snapshot", 2) {
			s.demand = append(s.demand, snapshot{source, slices.Clone(w.drawDemand(t, source))})
		}
	}
	if first && !w.plain && len(s.demand) > 0 && odds(t, "running", 3) {
		s.source, s.running = s.demand[0].source, w.drawRunning(t, s.demand[0].rows)
	}
	now := w.sizes()
	for range upTo(t, "releases", 0, 3) {
		if len(held) == 0 {
			break
		}
		u := pick(t, "held", held...)
		if _, there := w.hosts[u.Host]; there && (!s.late || cmp.Or(now[u.Key], before[u.Key]) == before[u.Key]) {
			s.releases = append(s.releases, oracle.Holding{Consumer: u.Consumer, Allocation: u.Allocation, Sub: u.Sub, Host: u.Host,
				Units: int64(upTo(t, "released", 1, int(u.Units)+1)), Done: odds(t, "done", 2)})
		}
	}
	return s
}

// sizes is the unit size of every row there is, as text. Nothing is given back after its sub-allocation got another
// size: whether that is a client's release or demand_gone is a matter of taste.
func (w *world) sizes() map[oracle.Key]string {
	m := map[oracle.Key]string{}
	for _, rows := range w.rows {
		for _, r := range rows {
			m[key(r)] = fmt.Sprint(r.Size)
		}
	}
	return m
}

// changeHosts gives a table of changes, or a full one that may leave hosts out.
func (w *world) changeHosts(t *rapid.T) (rows []oracle.Host, full bool) {
	full = odds(t, "full", 4)
	if !full && odds(t, "states only", 3) {
		for _, name := range slices.Sorted(maps.Keys(w.hosts)) {
			if h := w.hosts[name]; odds(t, "changed", 2) {
				h.State = pick(t, "state", "ok", "ok", "closed", "draining", "unavail")
				w.hosts[name] = h
				rows = append(rows, oracle.Host{Name: name, State: h.State})
			}
		}
		return rows, false
	}
	for h := range hostsMax {
		old, known := w.hosts[hostName(h)]
		if (known && h > 0 && odds(t, "removed", 5) && full) || // the first blade stays: requirements name it
			(!known && !odds(t, "added", 5)) || (known && !full && !odds(t, "changed", 3)) {
			if full {
				delete(w.hosts, hostName(h))
			}
			continue
		}
		row := old
		if !known || odds(t, "resized", 2) {
			row = w.drawHost(t, h)
		} else if odds(t, "another state", 2) {
			row.State = pick(t, "state", "ok", "closed", "draining", "unavail")
		}
		rows = append(rows, row)
		w.hosts[row.Name] = row
	}
	return rows, full
}

// drawRunning makes rows of units that fit the hosts.
func (w *world) drawRunning(t *rapid.T, rows []oracle.Demand) []oracle.Holding {
	free := map[string]map[string]int64{}
	taken := map[oracle.Units]bool{}
	var list []oracle.Holding
	for range upTo(t, "running rows", 0, 4) {
		if len(rows) == 0 {
			break
		}
		row, name := pick(t, "running row", rows...), pick(t, "on", slices.Sorted(maps.Keys(w.hosts))...)
		m := w.plans[slices.IndexFunc(w.plans, func(m mdPlan) bool { return m.name == row.Plan })]
		h := w.hosts[name]
		if h.State == "unavail" || !slices.Contains(m.zones, int(h.Attr["zone"].(float64))) || taken[oracle.Units{Key: key(row), Host: name}] {
			continue
		}
		if free[name] == nil {
			free[name] = w.capacity(m, h)
		}
		units := int64(upTo(t, "running units", 1, 3))
		for d, n := range row.Size {
			if n > 0 {
				units = min(units, free[name][d]/n)
			}
		}
		if units == 0 {
			continue
		}
		for d, n := range row.Size {
			free[name][d] -= n * units
		}
		taken[oracle.Units{Key: key(row), Host: name}] = true
		list = append(list, oracle.Holding{Consumer: row.Consumer, Allocation: row.Allocation, Sub: row.Sub, Host: name, Units: units})
	}
	return list
}

// capacity is a host's capacity after overcommit, rounded down.
func (w *world) capacity(m mdPlan, h oracle.Host) map[string]int64 {
	v := map[string]int64{}
	for d, n := range h.Size {
		milli := 1000
		if o, ok := m.overcommit[d]; ok {
			milli = o
		}
		v[d] = n * int64(milli) / 1000
	}
	return v
}
