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

// This file makes random cases: a policy, hosts, and steps that change demand, hosts and policy and give units back.
// MD plans are drawn in randommd_test.go, slot plans in randomslot_test.go.

// site is a random policy file before it is written as YAML.
type site struct {
	dims      []string
	groups    []group
	consumers []consumer
	plans     []mdPlan
	slots     []slotPlan
	lively    bool // the slot plans lend much and have small pools
	// many who own little all lend and borrow, mostly after ⑤, and pools mostly leave a little on every host
	barter   bool
	own      bool // consumers own hosts of the MD plans
	lend     bool // and lend them: graces are drawn, and owners come late
	waves    bool // what is lent is taken back for those nearer to it, step by step: see drawWaves
	timezone string
	even     bool  // nothing but shares decides in the slot plans, and units are of one size: INV-5 binds
	tight    bool  // an MD plan whose hosts are few and full
	devices  bool  // its hosts have devices: drawn in randomdevice_test.go
	listed   []int // the order in which the file lists the consumers, nil: as they are
	gangs    bool  // sub-allocations of MD plans may have min_units
	coined   int   // names of consumers that came later, so far
}

// eager is 1 in cases that want much demand on few hosts, else 0.
func (s *site) eager() int {
	if len(s.slots) > 0 || s.tight || s.own {
		return 1
	}
	return 0
}

// group is listed (hosts) or, when it has none, chosen by its zone and the mark `in`. Slots is its slot expression.
type group struct {
	zone  int
	hosts []string
	slots string
}

// has tells whether a host is in the group.
func (g group) has(h oracle.Host) bool {
	if len(g.hosts) > 0 {
		return slices.Contains(g.hosts, h.Name)
	}
	return h.Attr["zone"] == float64(g.zone) && h.Attr["in"] == true
}

type consumer struct {
	path   string
	parent int // row of the parent, -1 for the first level
	depth  int
	leaf   bool
	rank   int
	grace  int    // s
	young  string // min_runtime as a key of its entry, "" for none
	was    string // its path in the policy before, "" when that is the same
	opened bool   // it was a leaf once
}

// step is what happens before one cycle, or several.
type step struct {
	policy   string // the new policy file, "" when the old one stays
	forced   bool   // it takes places away in which something is held
	hosts    []oracle.Host
	full     bool
	demand   []snapshot
	running  []oracle.Holding // of the source, first step only
	source   string
	releases []oracle.Holding
	wait     int  // minutes that go by before
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

// The draws above are as rapid makes them, mostly small; those below are even.

// choose draws one of some values.
func choose[T any](t *rapid.T, label string, of ...T) T {
	return of[between(t, label, 0, len(of)-1)]
}

func between(t *rapid.T, label string, least, most int) int {
	return least + rapid.Permutation(numbers[:most-least+1]).Draw(t, label)[0]
}

// once is true once in n times.
func once(t *rapid.T, label string, n int) bool { return between(t, label, 0, n-1) == n-1 }

var numbers = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// drawGroups makes groups; some are listed.
func (s *site) drawGroups(t *rapid.T, groups int) {
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
}

// drawConsumers makes a tree of so many consumers on up to four levels.
func (s *site) drawConsumers(t *rapid.T, most int) {
	for i := range most {
		c := consumer{parent: -1, leaf: true, rank: pick(t, "rank", 0, 0, 1, 2), grace: choose(t, "grace", graces...)}
		p := 0
		if s.lend { // reclaims stay under way for some cycles
			c.grace = choose(t, "long grace", 0, 60, 90, 180, 300, 300)
			if p = between(t, "parent", 0, i) - 1; s.waves && i < len(wavesParent) {
				p = wavesParent[i]
			}
		} else {
			p = upTo(t, "parent", -1, i-1)
		}
		if p >= 0 && s.consumers[p].depth < 3 {
			c.parent, c.depth = p, s.consumers[p].depth+1
			s.consumers[p].leaf = false
			c.path = s.consumers[p].path
		}
		c.path += fmt.Sprintf("/c%d", i)
		s.consumers = append(s.consumers, c)
	}
}

// drawMembers tells which consumers take part in a plan: the first, and no other whose parent does not.
func (s *site) drawMembers(t *rapid.T) []bool {
	in := make([]bool, len(s.consumers))
	for k, c := range s.consumers {
		in[k] = k == 0 || (c.parent < 0 || in[c.parent]) && !odds(t, "out", 6)
	}
	return in
}

// graces are in seconds; a cycle comes every 60.
var graces = []int{0, 0, 60, 90, 180, 180}

// hostsMax is the number of host names there are; a case starts with up to 12 of them, one with slots with fewer.
const hostsMax = 14

// zoneOf spreads hosts over the groups.
func zoneOf(h, groups int) int { return h * 7 % 5 % groups }

func hostName(h int) string { return fmt.Sprintf("h%d", h) }

// yaml is the policy file.
func (s *site) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stint: 1\ntimezone: %s\ndimensions: [%s]\nresource_groups:\n", cmp.Or(s.timezone, "UTC"),
		strings.Join(s.dims, ", "))
	for _, g := range s.groups {
		fmt.Fprintf(&b, "  - {name: g%d", g.zone)
		if len(g.hosts) > 0 {
			fmt.Fprintf(&b, ", hosts: [%s]", strings.Join(g.hosts, ", "))
		} else {
			fmt.Fprintf(&b, ", select: \"select(zone == %d && in)\"", g.zone)
		}
		if g.slots != "" {
			fmt.Fprintf(&b, ", slots: %q", g.slots)
		}
		b.WriteString("}\n")
	}
	b.WriteString("consumers:\n")
	for i := range s.consumers {
		if s.listed != nil {
			i = s.listed[i]
		}
		c, from := s.consumers[i], ""
		if c.was != "" {
			from = ", renamed_from: " + c.was
		}
		fmt.Fprintf(&b, "  - {path: %s, rank: %d, reclaim_grace: %ds%s%s}\n", c.path, c.rank, c.grace, c.young, from)
	}
	s.writeSlots(&b)
	s.writeMD(&b)
	return b.String()
}

// world is what the generator knows while it makes the steps of a case.
type world struct {
	site
	hosts  map[string]oracle.Host // by name, as they are now
	shapes []map[string]int64     // of units of MD plans
	rows   map[string][]oracle.Demand
	late   map[string]bool // leaves that want nothing in the first step, where owners come late
	wave   int             // steps drawn so far
	began  bool            // the first step is drawn
	robbed []string        // owners of what is being taken back from others
	plain  bool            // MD plans have one unit size, no requirements, nothing running: INV-5 binds
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
		{"select(kind == 'x' || ncpus >= 6)", func(h oracle.Host) bool {
			return h.Attr["kind"] == "x" || h.Size["ncpus"] >= 6
		}},
		{"select(blade)", func(h oracle.Host) bool { return h.Attr["type"] == "blade" }},
		{"select(!fast && zone > 0)", func(h oracle.Host) bool {
			return h.Attr["fast"] == false && h.Attr["zone"] != 0.
		}},
	}
	orders   = []string{"order(-ncpus, name)", "order(ncpus)", "order(kind, -zone)"}
	sizesFew = []int64{4, 6, 8}
)

// meets tells whether a host meets a requirement, by what the generator meant.
func meets(text string, h oracle.Host) bool {
	for _, n := range needs {
		if strings.HasPrefix(text, n.text) {
			return n.met(h)
		}
	}
	return true
}

// upTo draws evenly in eager cases: what they are about takes some demand.
func (w *world) upTo(t *rapid.T, label string, least, most int) int {
	if w.eager() > 0 {
		return between(t, label, least, most)
	}
	return upTo(t, label, least, most)
}

// names is how many host names a case may use.
func (w *world) names() int {
	switch {
	case w.tight:
		return 6
	case w.eager() > 0:
		return 9
	}
	return hostsMax
}

// drawHosts gives the first hosts: of two types, or all different.
func (w *world) drawHosts(t *rapid.T) []oracle.Host {
	w.hosts = map[string]oracle.Host{}
	types := make([]map[string]int64, 2)
	for i := range types {
		types[i] = map[string]int64{}
		for _, d := range w.dims {
			types[i][d] = pick(t, "size", sizesFew...)
		}
		if w.devices {
			w.drawDeviceSizes(t, types[i])
		}
	}
	few := odds(t, "few types", 2)
	var rows []oracle.Host
	least := 1
	if len(w.slots) > 0 || w.own {
		least = 3
	}
	for h := range w.upTo(t, "hosts", least, w.names()-2) {
		row := w.drawHost(t, h)
		if few {
			row.Size = maps.Clone(types[upTo(t, "type", 0, 1)])
		}
		rows = append(rows, row)
		w.hosts[row.Name] = row
	}
	return rows
}

// drawHost gives a host as a whole. Now and then it is marked out of its group, or in another zone where that
// cannot put it in two groups.
func (w *world) drawHost(t *rapid.T, h int) oracle.Host {
	zone := zoneOf(h, len(w.groups))
	if odds(t, "another zone", 12) && !slices.ContainsFunc(w.groups, func(g group) bool { return len(g.hosts) > 0 }) {
		zone = upTo(t, "zone", 0, len(w.groups)-1)
	}
	row := oracle.Host{Name: hostName(h),
		State: pick(t, "state", "ok", "ok", "ok", "ok", "ok", "closed", "draining", "unavail"),
		Size:  map[string]int64{}, Attr: map[string]any{"zone": float64(zone), "in": !odds(t, "out", 12),
			"fast": odds(t, "fast", 2), "kind": pick(t, "kind", "x", "y"), "type": []string{"blade", "rack"}[h%2],
			"rack": nil}}
	if rack := upTo(t, "rack", 0, 3); rack > 0 {
		row.Attr["rack"] = fmt.Sprint("r", rack)
	}
	for _, d := range w.dims {
		if row.Size[d] = int64(upTo(t, "size", 0, 9)); w.eager() > 0 {
			row.Size[d] = choose[int64](t, "size", 0, 2, 3, 4, 4, 5, 6, 8)
		}
		if w.waves {
			row.Size[d] = choose[int64](t, "ample size", 4, 6, 8)
		}
	}
	if w.devices {
		w.drawDeviceSizes(t, row.Size)
	}
	if w.lend && row.State != "ok" && !once(t, "not ok", 4) {
		row.State = "ok"
	}
	return row
}

// drawDemand makes a snapshot of a source, mostly by small changes to its last one.
func (w *world) drawDemand(t *rapid.T, source string) []oracle.Demand {
	old := w.rows[source]
	rows := []oracle.Demand{}
	for _, row := range old {
		switch w.upTo(t, "change", 0, 9) {
		case 0, 9: // gone
			continue
		case 1, 2, 3, 6, 7:
			row.Units = w.drawUnits(t, row.Plan)
			row.MinUnits = max(1, min(row.MinUnits, row.Units))
		case 4:
			row.Size = w.drawSize(t, row.Plan)
		case 5, 8:
			w.drawRules(t, &row)
		}
		rows = append(rows, row)
	}
	least := min(1, w.eager()+len(w.robbed))
	for range w.upTo(t, "new rows", least, 5) {
		if row, ok := w.drawRow(t, source); ok && !slices.ContainsFunc(rows,
			func(r oracle.Demand) bool { return key(r) == key(row) }) {
			if rows = append(rows, row); w.waves {
				rows = w.twin(t, rows)
			}
		}
	}
	if w.gangs && !w.plain {
		w.drawGangs(t, rows)
	}
	w.drawTogether(t, rows)
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
	var leaves []string
	add := func(consumer int) {
		if c := w.consumers[consumer]; c.leaf {
			leaves = append(leaves, c.path)
		}
	}
	if i := upTo(t, "plan", 0, len(w.plans)+len(w.slots)-1); i < len(w.slots) {
		row.Plan = w.slots[i].name
		for _, e := range w.slots[i].members {
			add(e.consumer)
		}
	} else {
		row.Plan = w.plans[i-len(w.slots)].name
		for _, e := range w.plans[i-len(w.slots)].members {
			add(e.consumer)
		}
	}
	if len(leaves) == 0 {
		return row, false
	}
	leaves = w.now(t, leaves)
	row.Consumer, row.Units = leaves[w.upTo(t, "leaf", 0, len(leaves)-1)], w.drawUnits(t, row.Plan)
	row.Allocation = fmt.Sprintf("%sa%d", source, upTo(t, "allocation", 0, 2))
	row.Sub = pick(t, "sub", "", "", "x", "y")
	row.Size = w.drawSize(t, row.Plan)
	w.drawRules(t, &row)
	return row, true
}

func (w *world) drawUnits(t *rapid.T, plan string) int64 {
	if w.slotPlan(plan) != nil || w.tight {
		return int64(choose(t, "units", 0, 0, 1, 2, 3, 5, 8, 14))
	}
	if w.lend {
		return int64(choose(t, "units", 1, 2, 3, 5, 8, 14, 20))
	}
	if w.own {
		return int64(choose(t, "units", 0, 1, 2, 3, 5, 8, 14))
	}
	return int64(upTo(t, "units", 0, 30))
}

// drawRules draws what else a row may ask for.
func (w *world) drawRules(t *rapid.T, row *oracle.Demand) {
	row.MaxPerHost, row.Requirement, row.MinUnits = plan.Unlimited, "", 1
	if w.plain || w.even {
		return
	}
	if w.tight && !once(t, "rules", 3) {
		return
	}
	if odds(t, "per host", 5-min(2, 2*len(w.slots))) {
		row.MaxPerHost = int64(upTo(t, "max_per_host", 1, 3))
	}
	if odds(t, "select", 5) && !(w.lend && once(t, "any host", 2)) {
		row.Requirement = needs[upTo(t, "requirement", 0, len(needs)-1)].text
	}
	if w.slotPlan(row.Plan) != nil && row.Units > 1 && once(t, "gang", 3) {
		row.MinUnits = int64(between(t, "min_units", 2, int(min(row.Units, 6))))
	}
	if odds(t, "order", 8) {
		row.Requirement = strings.TrimSpace(row.Requirement + " " + pick(t, "order by", orders...))
	}
}

// drawStep makes the next step, knowing what is held.
func (w *world) drawStep(t *rapid.T, first bool, held []oracle.Units) step {
	s := step{cycles: pick(t, "cycles", 0, 1, 1, 2), late: odds(t, "late", 3)}
	if w.windowed() {
		s.wait = choose(t, "wait", 0, 0, 0, 0, 0, 1, 5, 24*60-8)
	}
	if w.lend {
		s.cycles = choose(t, "few cycles", 0, 0, 0, 1, 1, 2)
		w.rob(held)
	}
	if first {
		w.plain = odds(t, "plain", 4) && !w.own
		s.hosts, s.full = w.drawHosts(t), true
		w.drawShapes(t)
	} else if w.lend && w.drains() && once(t, "drain no longer", 3) {
		s.hosts = w.undrain()
	} else if odds(t, "hosts change", 2) && !(w.lend && once(t, "hosts stay", 2)) &&
		!(w.waves && !once(t, "hosts change all the same", 4)) {
		s.hosts, s.full = w.changeHosts(t)
	}
	before := w.sizes()
	for _, source := range sources[:w.upTo(t, "sources", w.eager(), 3)] {
		if first || w.lend && once(t, "other wants", 2) || w.eager() > 0 && !once(t, "old snapshot", 3) ||
			odds(t, "new snapshot", 2) {
			s.demand = append(s.demand, snapshot{source, slices.Clone(w.drawDemand(t, source))})
		}
	}
	if first && !w.plain && len(s.demand) > 0 && odds(t, "running", 3) {
		s.source, s.running = s.demand[0].source, w.drawRunning(t, s.demand[0].rows)
	}
	w.began, w.wave = true, w.wave+1
	now := w.sizes()
	for range w.upTo(t, "releases", 0, 3) {
		if len(held) == 0 {
			break
		}
		u := pick(t, "held", held...)
		if w.lostOn(u) {
			continue
		}
		if !s.late || cmp.Or(now[u.Key], before[u.Key]) == before[u.Key] {
			s.releases = append(s.releases, w.drawRelease(t, u))
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
			m[key(r)] = fmt.Sprint(w.unit(r))
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
				h.State = pick(t, "state", "ok", "ok", "ok", "closed", "draining", "draining", "unavail")
				w.hosts[name] = h
				rows = append(rows, oracle.Host{Name: name, State: h.State})
			}
		}
		return rows, false
	}
	for h := range w.names() {
		old, known := w.hosts[hostName(h)]
		out := known && old.Attr["in"] == false
		if (known && h > 0 && odds(t, "removed", 5) && full) || // the first blade stays: requirements name it
			(!known && !odds(t, "added", 5)) || (known && !full && !out && !odds(t, "changed", 3)) {
			if full {
				delete(w.hosts, hostName(h))
			}
			continue
		}
		row := old
		switch kind := upTo(t, "kind of change", 0, 5); {
		case !known || kind < 3 && !(out && once(t, "back", 2)):
			row = w.drawHost(t, h)
		case kind > 2 && kind < 5:
			row.State = pick(t, "state", "ok", "ok", "closed", "draining", "unavail")
		default: // out of its group, or back
			row.Attr = maps.Clone(old.Attr)
			row.Attr["in"] = out
		}
		rows = append(rows, row)
		w.hosts[row.Name] = row
	}
	return rows, full
}

// drawRunning makes rows of units that fit the hosts.
func (w *world) drawRunning(t *rapid.T, rows []oracle.Demand) []oracle.Holding {
	free, devices := map[string]map[string]int64{}, map[string][]int64{}
	taken := map[oracle.Units]bool{}
	var list []oracle.Holding
	for range upTo(t, "running rows", 0, 4) {
		if len(rows) == 0 {
			break
		}
		row, name := pick(t, "running row", rows...), pick(t, "on", slices.Sorted(maps.Keys(w.hosts))...)
		if w.planOf(name) != row.Plan || w.hosts[name].State == "unavail" ||
			taken[oracle.Units{Key: key(row), Host: name}] {
			continue
		}
		if free[name] == nil {
			free[name] = w.capacity(row.Plan, w.hosts[name])
			devices[name] = w.devicesOf(row.Plan, w.hosts[name])
		}
		units := int64(upTo(t, "running units", 1, 3))
		for d, n := range w.unit(row) {
			if n > 0 {
				units = min(units, free[name][d]/n)
			}
		}
		if units = w.seatRunning(devices[name], row, units); units == 0 {
			continue
		}
		for d, n := range w.unit(row) {
			free[name][d] -= n * units
		}
		taken[oracle.Units{Key: key(row), Host: name}] = true
		list = append(list, oracle.Holding{Consumer: row.Consumer, Allocation: row.Allocation, Sub: row.Sub, Host: name,
			Units: units})
	}
	return list
}

// planOf is the plan of a host, "" when it is in none or not there.
func (w *world) planOf(host string) string {
	h, ok := w.hosts[host]
	in := func(zone int) bool { return ok && w.groups[zone].has(h) }
	for _, s := range w.slots {
		if in(s.zone) {
			return s.name
		}
	}
	for _, m := range w.plans {
		if slices.ContainsFunc(m.zones, in) {
			return m.name
		}
	}
	return ""
}

// capacity is what a host has for a plan: its vector after overcommit, rounded down, or its slots.
func (w *world) capacity(plan string, h oracle.Host) map[string]int64 {
	if s := w.slotPlan(plan); s != nil {
		return map[string]int64{"slots": slotsOf(w.groups[s.zone].slots, h)}
	}
	m, v := w.mdPlan(plan), map[string]int64{}
	for d, n := range h.Size {
		milli := 1000
		if o, ok := m.overcommit[d]; ok {
			milli = o
		}
		v[d] = n * int64(milli) / 1000
	}
	if d := m.device; d.dim != "" {
		v[d.dim] = d.count(h.Size[d.dim]) * d.per
	}
	return v
}
