package verify

import (
	"slices"
	"strconv"
)

// Another version of the rules decides differently on purpose. Of the cycles that such a version decided, verify checks
// what no version of the rules changes: seals, manifest and digests, inputs, the order of cycles, sums, capacities, and
// that holdings follow from grants and releases. These checks use tables and inputs only, no model of the rules.

// ruleless is what verify knows of cycles that another version of the rules decided.
type ruleless struct {
	runs []stretch
	held map[spot]int64 // by the last keyframe and the grants and releases since; nil: unknown
}

// stretch is a number of cycles in a row that one other version of the rules decided.
type stretch struct {
	version     string
	first, last int64
}

// byOtherRules reports whether another version of the rules decided the cycle. A version that no stint has had is a
// fault of the log.
func (v *verifier) byOtherRules(head *rows) bool {
	version := head.words["rules_version"].text(0)
	newest, err := strconv.Atoi(v.rules)
	n, bad := strconv.Atoi(version)
	known := version == v.rules || err == nil && bad == nil && 1 <= n && n <= newest
	v.is(Fault{Rule: "log", Table: "cycles", What: "the rules' version is not known", Expected: "1 to " + v.rules,
		Got: version}, known)
	if version == v.rules {
		return false
	}
	if k := len(v.other.runs); k > 0 && v.other.runs[k-1].version == version &&
		v.other.runs[k-1].last == v.lastCycle {
		v.other.runs[k-1].last = v.cycle
	} else {
		v.other.runs = append(v.other.runs, stretch{version, v.cycle, v.cycle})
	}
	return true
}

// tellOther reports which cycles were checked in part, and what was left out.
func (v *verifier) tellOther() {
	for _, s := range v.other.runs {
		v.report.cannot("whether cycles %d to %d follow the rules: rules version %s decided them, and this stint "+
			"knows version %s. It checked seals, manifest, digests, inputs, the order of cycles, sums, capacities "+
			"and holdings; it left out all rules, figures and reasons", s.first, s.last, s.version, v.rules)
	}
}

// checkRuleless checks a cycle that another version of the rules decided. What is held in the model is unknown after
// it, so that the next cycle of this version goes on from a keyframe.
func (v *verifier) checkRuleless(head *rows, whole bool) {
	v.lost, v.m.lost, v.stable, v.quiet, v.stood = true, true, false, 0, nil
	list, err := v.log.Inputs(v.cycle)
	if err != nil || !whole || v.m.policy == nil || v.blind {
		v.other.held = nil
		return // a fault of the file, which is in the report
	}
	for _, in := range list { // units that run already come without a grant; a policy may rename consumers
		if slices.Contains([]string{"plan", "running", "running_all"}, in.Kind) {
			v.other.held = nil
		}
	}
	v.ledger()
	v.hostRows()
	v.cycleSums(head)
	v.treeSums()
}

// ledger applies grants and releases to what is held, and compares the result with the keyframe.
func (v *verifier) ledger() {
	held := v.other.held
	for _, event := range []struct {
		table string
		sign  int64
	}{{"releases", -1}, {"grants", 1}} {
		t := v.table[event.table]
		keys, host, units := t.keys(), t.words["host"], t.number["units"]
		for row := range t.n {
			at := spot{keys(row), host.text(row)}
			v.is(at.about("log", event.table, "a row of %d units", units.at(row)), units.at(row) > 0)
			if held != nil {
				held[at] += event.sign * units.at(row)
			}
		}
	}
	for at, n := range held {
		if p := v.m.policy.byName[at.plan]; p == nil || !p.member[at.consumer] {
			delete(held, at) // a policy removed the consumer: no keyframe has what it still holds
			continue
		}
		v.is(at.about("INV-9", "releases", "more units are released than are held"), n >= 0)
	}
	t := v.table["holdings"]
	if t == nil {
		return
	}
	keys, host, units := t.keys(), t.words["host"], t.number["units"]
	frame := map[spot]int64{}
	for row := range t.n {
		frame[spot{keys(row), host.text(row)}] += units.at(row)
	}
	if held != nil {
		for at, n := range held {
			v.equal(at.about("INV-9", "holdings", "held by the grants and releases so far"), n, frame[at])
		}
		for at, n := range frame {
			if _, ok := held[at]; !ok {
				v.equal(at.about("INV-9", "holdings", "held by the grants and releases so far"), 0, n)
			}
		}
	}
	v.other.held = frame
}

// hostRows checks INV-1 in a keyframe: no host of a plan holds more than it has, and it has what its inputs say.
func (v *verifier) hostRows() {
	t := v.table["hosts"]
	if t == nil {
		return
	}
	plan, host, state, dim := t.words["plan"], t.words["host"], t.words["state"], t.words["dimension"]
	capacity, used := t.number["capacity"], t.number["used"]
	for row := range t.n {
		h, p := v.m.hosts[host.text(row)], v.m.policy.byName[plan.text(row)]
		f := Fault{Rule: "INV-1", Table: "hosts", Plan: plan.text(row), Host: host.text(row),
			What: "there is no such host or plan"}
		if !v.is(f, h != nil && p != nil) || h.plan != p.name {
			continue
		}
		d, ok := 0, dim.text(row) == "slots"
		if p.md {
			d, ok = v.m.policy.dimension(dim.text(row))
		}
		f.What = "the dimension " + dim.text(row) + " is not the plan's"
		if !v.is(f, ok) {
			continue
		}
		f.What = "capacity of " + dim.text(row)
		v.equal(f, v.m.worth(h, p)[d], capacity.at(row))
		f.What, f.Expected, f.Got = "state", h.state, state.text(row)
		v.is(f, f.Expected == f.Got)
		f.What = "used " + dim.text(row)
		v.limit(f, capacity.at(row), used.at(row))
	}
}

// cycleSums compares the row of cycles with the tables that it adds up.
func (v *verifier) cycleSums(head *rows) {
	sum := func(t *rows, column string) (n int64) {
		for row := range t.n {
			if t.words["action"].text(row) == "" || t.words["action"].text(row) == "issued" {
				n += t.number[column].at(row)
			}
		}
		return n
	}
	short := sum(v.table["shortfalls"], "units_short")
	held := head.number["units_held"].at(0)
	if v.other.held != nil && v.m.revision == 1 { // a later policy may have removed a consumer that holds units
		held = 0
		for _, n := range v.other.held {
			held += n
		}
	}
	for _, figure := range []struct {
		column string
		want   int64
	}{
		{"units_granted", sum(v.table["grants"], "units")}, {"units_released", sum(v.table["releases"], "units")},
		{"units_reclaimed", sum(v.table["reclaims"], "units")}, {"units_held", held}, {"units_short", short},
		{"units_wanted", held + short}, {"consumers", int64(v.table["consumers"].n)},
	} {
		v.equal(Fault{Rule: "log", Table: "cycles", What: figure.column}, figure.want, head.number[figure.column].at(0))
	}
}

// treeSums checks that demand, held and short of every consumer with children are the sums of its children's.
func (v *verifier) treeSums() {
	t := v.table["consumers"]
	plan, consumer, parent, leaf := t.words["plan"], t.words["consumer"], t.words["parent"], t.number["leaf"]
	for _, column := range []string{"demand", "held", "short"} {
		below := map[[2]string]int64{}
		for row := range t.n {
			if parent.text(row) != "" {
				below[[2]string{plan.text(row), parent.text(row)}] += t.number[column].at(row)
			}
		}
		for row := range t.n {
			if leaf.at(row) == 0 {
				at := [2]string{plan.text(row), consumer.text(row)}
				v.equal(of("log", "consumers", at[0], at[1], column+" of its children"), below[at],
					t.number[column].at(row))
			}
		}
	}
}
