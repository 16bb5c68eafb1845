package verify

import (
	"fmt"
	"maps"
	"slices"
)

// of is a fault of a consumer's figure in a table.
func of(rule, table, plan, consumer, what string) Fault {
	return Fault{Rule: rule, Table: table, Plan: plan, Consumer: consumer, What: what}
}

// capacities checks INV-1 of the hosts on which something happened, or of all when there is a keyframe.
func (v *verifier) capacities() {
	names := map[string]bool{}
	for at := range v.begun {
		names[at.host] = true
	}
	if v.resized || v.frame {
		for name := range v.m.hosts {
			names[name] = true
		}
	}
	for name := range names {
		h := v.m.hosts[name]
		if h == nil || h.plan == "" {
			continue
		}
		t := v.m.policy.byName[h.plan]
		used := v.m.used(name, h.plan, len(h.cap))
		for d := range h.cap {
			v.is(Fault{Rule: "INV-1", Table: "grants", Plan: h.plan, Host: name,
				What:     "more " + v.m.dimension(t, d) + " is held than the host has",
				Expected: grouped(h.cap[d]), Got: grouped(used[d])}, used[d] <= h.cap[d])
		}
		v.deviceCapacities(t, h)
	}
	v.hostFrame()
}

// dimension is the name of a plan's dimension.
func (m *model) dimension(t *plan, d int) string {
	if !t.md {
		return "slots"
	}
	return m.policy.dimensions[d]
}

// hostFrame holds the keyframe hosts against the hosts of the inputs and what is held on them.
func (v *verifier) hostFrame() {
	t := v.table["hosts"]
	if t == nil {
		return
	}
	plan, host, state, dim := t.words["plan"], t.words["host"], t.words["state"], t.words["dimension"]
	capacity, used := t.number["capacity"], t.number["used"]
	seen := map[[3]string]bool{}
	for row := range t.n {
		id := [3]string{plan.text(row), host.text(row), dim.text(row)}
		f := Fault{Rule: "INV-1", Table: "hosts", Plan: id[0], Host: id[1]}
		f.What = "the dimension " + id[2] + " stands twice"
		v.is(f, !seen[id])
		seen[id] = true
		h, p := v.m.hosts[id[1]], v.m.policy.byName[id[0]]
		f.What = "there is no such host or plan"
		if !v.is(f, h != nil && p != nil) {
			continue
		}
		d, ok := 0, id[2] == "slots"
		if p.md {
			d, ok = v.m.policy.dimension(id[2])
		}
		f.What = "the dimension " + id[2] + " is not the plan's"
		if !v.is(f, ok) {
			continue
		}
		inside := h.plan == p.name
		want := v.m.worth(h, p)
		if !inside && (h.gone || h.plan != "") {
			want = make([]int64, len(want)) // it left the plan, and what runs there is lost
		}
		f.What = "capacity of " + id[2]
		v.equal(f, want[d], capacity.at(row))
		f.What = "used " + id[2]
		v.equal(f, v.m.used(h.name, p.name, len(want))[d], used.at(row))
		f.What, f.Expected, f.Got = "state", h.state, state.text(row)
		if h.gone {
			f.Expected = "unavail"
		}
		v.is(f, f.Expected == f.Got)
	}
	for _, h := range v.m.hosts {
		p := v.m.policy.byName[h.plan]
		if p == nil {
			continue
		}
		for d := range h.cap {
			v.is(Fault{Rule: "INV-1", Table: "hosts", Plan: h.plan, Host: h.name,
				What: "no row of " + v.m.dimension(p, d)},
				seen[[3]string{h.plan, h.name, v.m.dimension(p, d)}])
		}
	}
}

// wanted holds INV-9: wanted = held + short, of every sub-allocation.
func (v *verifier) wanted() {
	t := v.table["shortfalls"]
	keys, units := t.keys(), t.number["units_short"]
	short := map[key]int64{}
	for row := range t.n {
		k := keys(row)
		short[k] += units.at(row)
		if v.fresh("shortfalls") {
			v.is(k.about("log", "shortfalls", "a row of %d units", units.at(row)), units.at(row) > 0)
			v.is(k.about("INV-9", "shortfalls", "nobody knows this sub-allocation"), v.m.subs[k] != nil)
		}
	}
	for k, s := range v.m.subs {
		if s.orphan {
			v.equal(k.about("INV-9", "shortfalls", "short, of a consumer that is gone"), 0, short[k])
			continue
		}
		want := max(0, s.units-s.held)
		v.equal(k.about("INV-9", "shortfalls", "short of what is wanted (%d) beyond what is held (%d)", s.units,
			s.held), want, short[k])
		v.is(k.about("INV-9", "grants", "%d units are held, %d wanted", s.held, s.units), s.held <= s.units)
	}
}

// sums are what the leaves of a plan want and hold, with all above them.
type sums struct{ demand, held, short int64 }

// tally adds up demand and shortfalls over a plan's tree; in slot plans in slots.
func (v *verifier) tally() map[string]map[string]sums {
	all := map[string]map[string]sums{}
	for _, t := range v.m.policy.plans {
		all[t.name] = map[string]sums{}
	}
	for k, s := range v.m.subs {
		t := v.m.policy.byName[k.plan]
		if t == nil || s.orphan {
			continue
		}
		each := int64(1)
		if !t.md {
			each = s.size[0]
		}
		for path := k.consumer; path != "/" && path != ""; path = parentOf(path) {
			a := all[t.name][path]
			a.demand += each * s.units
			a.held += each * s.held
			a.short += each * max(0, s.units-s.held)
			all[t.name][path] = a
		}
	}
	return all
}

// consumers holds the table consumers against what is wanted and held.
func (v *verifier) consumers() {
	t := v.table["consumers"]
	plan, consumer, kind, rank := t.words["plan"], t.words["consumer"], t.words["policy"], t.number["rank"]
	all := v.tally()
	seen := map[[2]string]int{}
	for row := range t.n {
		p, path := v.m.policy.byName[plan.text(row)], consumer.text(row)
		f := of("log", "consumers", plan.text(row), path, "there is no such plan, or the consumer takes no part in it")
		if !v.is(f, p != nil && p.member[path]) {
			continue
		}
		id := [2]string{p.name, path}
		_, twice := seen[id]
		f.What = "a row stands twice"
		v.is(f, !twice)
		seen[id] = row
		e := p.at(v.now, v.m.policy.zone).entry[path]
		f.What, f.Expected, f.Got = "policy", e.kind, kind.text(row)
		v.is(f, f.Expected == f.Got)
		v.equal(of("log", "consumers", p.name, path, "rank"), e.rank, rank.at(row))
		s := all[p.name][path]
		v.equal(of("INV-9", "consumers", p.name, path, "demand"), s.demand, t.number["demand"].at(row))
		v.equal(of("INV-9", "consumers", p.name, path, "held"), s.held, t.number["held"].at(row))
		v.equal(of("INV-9", "consumers", p.name, path, "short"), s.short, t.number["short"].at(row))
		if p.md {
			v.noSlots(t, row, p.name, path)
		}
	}
	for _, p := range v.m.policy.plans {
		for _, path := range v.m.policy.paths {
			if _, ok := seen[[2]string{p.name, path}]; p.member[path] {
				v.is(of("log", "consumers", p.name, path, "no row"), ok)
			}
		}
		if !p.md {
			v.slotPlan(p, t, seen)
		}
	}
	v.lostInAll(t)
}

// slotNames are the columns that only slot plans fill.
var slotNames = []string{"owned_configured", "owned", "reserved", "slot_limit", "static_quota", "quota", "held_owned",
	"held_shared",
	"held_borrowed", "lent", "free"}

func (v *verifier) noSlots(t *rows, row int, plan, path string) {
	for _, name := range slotNames {
		v.is(of("log", "consumers", plan, path, name+" of an MD plan"), t.number[name].missing(row))
	}
}

// shortfallRow is the part of a shortfall that its reason rests on.
type shortfallRow struct {
	key
	units                      int64
	reason, dimension, blocker string
	until                      int64
	waits                      bool
	detail                     string
}

// shortfallRows are the rows of the table shortfalls.
func (v *verifier) shortfallRows() (list []shortfallRow) {
	t := v.table["shortfalls"]
	keys, units, reason := t.keys(), t.number["units_short"], t.words["reason"]
	dimension, blocker, until, detail := t.words["dimension"], t.words["blocker"], t.number["until"], t.words["detail"]
	for row := range t.n {
		list = append(list, shortfallRow{keys(row), units.at(row), reason.text(row), dimension.text(row),
			blocker.text(row), until.at(row), !until.missing(row), detail.text(row)})
	}
	return list
}

// shorts is the rows of those for whom the promises hold: not of units that are too small (D-52), nor of gangs that
// wait, as a unit of these may have room that is not enough (REQ-3), nor of those that must be together, which may not
// use all hosts.
func (v *verifier) shorts() []shortfallRow {
	return slices.DeleteFunc(v.shortfallRows(), func(f shortfallRow) bool {
		return f.reason == "too_small" || v.gangWaits(f.key) || v.m.subs[f.key].mustBeTogether() != ""
	})
}

// summary holds the row of cycles against the other tables.
func (v *verifier) summary(head *rows) {
	n := func(name string) int64 { return head.number[name].at(0) }
	sum := func(table, column string, ok func(t *rows, row int) bool) (total int64) {
		t := v.table[table]
		for row := range t.n {
			if ok == nil || ok(t, row) {
				total += t.number[column].at(row)
			}
		}
		return total
	}
	f := func(what string) Fault { return Fault{Rule: "log", Table: "cycles", What: what} }
	held := int64(0)
	for _, p := range v.m.piles {
		held += p.units
	}
	short := sum("shortfalls", "units_short", nil)
	v.equal(f("units_granted"), sum("grants", "units", nil), n("units_granted"))
	v.equal(f("units_released"), sum("releases", "units", nil), n("units_released"))
	v.equal(f("units_reclaimed"), sum("reclaims", "units",
		func(t *rows, row int) bool { return t.words["action"].text(row) == "issued" }), n("units_reclaimed"))
	v.equal(f("units_held"), held, n("units_held"))
	v.equal(f("units_short"), short, n("units_short"))
	v.equal(f("units_wanted"), held+short, n("units_wanted"))
	v.equal(f("consumers"), int64(v.table["consumers"].n), n("consumers"))
	v.equal(f("revision"), v.m.revision, n("revision"))
	hosts := int64(0)
	for _, h := range v.m.hosts {
		if h.plan != "" {
			hosts++
		}
	}
	v.equal(f("hosts"), hosts, n("hosts"))
	g := f("time_window")
	g.Expected, g.Got = v.m.policy.windowsAt(v.now), head.words["time_window"].text(0)
	v.is(g, g.Expected == g.Got)
	v.lostInCycle(head)
	v.plans()
	v.rest(n)
}

// plans checks the table of revisions.
func (v *verifier) plans() {
	t := v.table["plans"]
	v.is(Fault{Rule: "log", Table: "plans", What: "a new policy has one row, others none",
		Expected: fmt.Sprint(v.policyCycle == v.cycle),
		Got:      fmt.Sprint(t.n)}, t.n <= 1 && (t.n == 1) == (v.policyCycle == v.cycle))
	if t.n != 1 {
		return
	}
	v.equal(Fault{Rule: "log", Table: "plans", What: "revision"}, v.m.revision, t.number["revision"].at(0))
	want := ""
	if list, err := v.log.Inputs(v.cycle); err == nil {
		for _, in := range list {
			if in.Kind == "plan" {
				want = in.Digest
			}
		}
	}
	f := Fault{Rule: "log", Table: "plans", What: "digest is not that of the policy that came with the cycle",
		Expected: want, Got: t.words["digest"].text(0)}
	v.is(f, f.Expected == f.Got)
}

// sortedKeys are the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// rest checks the count of sub-allocations: those that a source names, those that still hold something, and those
// that are forgotten with this cycle.
func (v *verifier) rest(n func(string) int64) {
	v.equal(Fault{Rule: "log", Table: "cycles", What: "sub_allocations"}, int64(len(v.m.subs))+v.m.replaced,
		n("sub_allocations"))
	v.m.replaced = 0
	for k, s := range v.m.subs {
		if s.held == 0 && (!s.named || s.orphan) {
			delete(v.m.subs, k)
		}
	}
}
