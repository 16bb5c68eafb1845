package verify

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stintd/stint/export"
)

// standingTables are the tables of what stands besides decisions. They have rows for what changed since the cycle in
// which they were written whole.
var standingTables = []string{"loans", "sub_allocations", "attributes"}

// stands is what those tables say after a cycle.
type stands struct {
	since int64
	cycle int64
	loans map[loanKey]loanRow
	subs  map[subKey]subRow
	attrs map[string][]string // by host: attribute=value, sorted
}

type loanKey struct{ plan, lender, borrower, pool string }

type loanRow struct {
	units, leaving int64
	due            bool
	amounts        string
}

// subKey names a row of sub_allocations; seen is 0 where the log does not know it.
type subKey struct {
	key
	source string
	seen   int64
}

type subRow struct {
	wanted, held int64
	size, need   string
	perHost      int64
	least        int64
	together     string
}

// standing reads what stands, and holds it against what is held, wanted and known of hosts.
func (v *verifier) standing() {
	since, ok := v.log.Stands(v.cycle)
	if !ok {
		v.report.cannot("loans, sub-allocations and attributes in cycles that an earlier version wrote, which had no " +
			"tables of them")
		v.stood = nil
		return
	}
	now := v.table["cycles"].number["now"].at(0)
	due := (v.cycle-1)%60 == 0 || v.lastCycle > 0 && dayOf(now) != dayOf(v.last)
	v.is(Fault{Rule: "manifest", Table: "cycles", What: "what stands is not written whole, and that is due"},
		!due || since == v.cycle)
	whole, before := since == v.cycle, v.stood
	switch {
	case whole:
		v.stood = &stands{since, v.cycle, map[loanKey]loanRow{}, map[subKey]subRow{}, map[string][]string{}}
	case v.stood == nil || v.stood.cycle != v.cycle-1: // cycles between could not be read
		v.stood = nil
		v.report.cannot("what stands, up to the cycle in which it is written whole")
		return
	default:
		v.stood.cycle = v.cycle
		v.equal(Fault{Rule: "manifest", Table: "cycles", What: "standing_cycle"}, v.stood.since, since)
	}
	changed := map[string]*rows{}
	for _, name := range standingTables {
		t, err := v.log.Changed(name, v.cycle)
		if err != nil {
			v.fault(Fault{Rule: "seal", Table: name, What: err.Error()})
			v.stood = nil
			return
		}
		changed[name] = view(t)
		v.report.Rows += int64(t.Rows)
	}
	v.standingFiles(changed, whole)
	v.readLoans(changed["loans"], whole)
	v.readSubs(changed["sub_allocations"], whole, before)
	v.readAttributes(changed["attributes"], whole)
	if v.lost {
		return
	}
	if events := v.table["grants"].n + v.table["reclaims"].n + v.table["releases"].n; whole || v.inputs > 0 ||
		events > 0 || v.relabelled || v.frame ||
		changed["loans"].n+changed["sub_allocations"].n > 0 {
		v.holdLoans()
		v.holdSubs()
	}
	if whole || v.resized || v.switched || changed["attributes"].n > 0 {
		v.holdAttributes()
	}
}

// standingFiles checks that what stands has a file where it is written whole or has a row, and where all tables have
// one.
func (v *verifier) standingFiles(changed map[string]*rows, whole bool) {
	files, err := v.log.Manifest(v.cycle)
	if err != nil {
		return // the manifest told of it
	}
	there := map[string]export.File{}
	for _, f := range files {
		there[f.Table] = f
	}
	if f := there["cycles"]; f.First != f.Last {
		return
	}
	for _, name := range standingTables {
		is := there[name].Path != ""
		v.is(Fault{Rule: "manifest", Table: name, What: "rows without a file, or a file without rows"},
			is == (whole || changed[name].n > 0) || is && there["plans"].Path != "")
	}
}

// figuresOf writes the figures of a row in all dimensions that have one.
func (v *verifier) figuresOf(t *rows, prefix string, row int) string {
	var text []string
	names := slices.Clone(v.m.policy.dimensions)
	if !slices.Contains(names, "slots") {
		names = append(names, "slots") // slot plans count in them all the same
	}
	for _, name := range names {
		if c, ok := t.number[prefix+name]; ok && !c.missing(row) {
			text = append(text, fmt.Sprintf("%s=%d", name, c.at(row)))
		}
	}
	return strings.Join(text, " ")
}

// figuresIn writes an amount of a plan as figuresOf does.
func (v *verifier) figuresIn(plan string, amount []int64) string {
	if t := v.m.policy.byName[plan]; t != nil && !t.md {
		return fmt.Sprintf("slots=%d", amount[0])
	}
	var text []string
	for d, name := range v.m.policy.dimensions {
		text = append(text, fmt.Sprintf("%s=%d", name, amount[d]))
	}
	return strings.Join(text, " ")
}

// readLoans takes the rows of loans.
func (v *verifier) readLoans(t *rows, whole bool) {
	plan, lender, borrower, pool := t.words["plan"], t.words["lender"], t.words["borrower"], t.words["pool"]
	seen := map[loanKey]bool{}
	for row := range t.n {
		k := loanKey{plan.text(row), lender.text(row), borrower.text(row), pool.text(row)}
		r := loanRow{t.number["units"].at(row), t.number["under_recall"].at(row), !t.number["deadline"].missing(row),
			v.figuresOf(t, "amount_", row)}
		f := k.about("the row stands twice, or is gone and was not there")
		_, was := v.stood.loans[k]
		v.is(f, !seen[k] && (r.units > 0 || !whole && was))
		if seen[k] = true; r.units == 0 {
			delete(v.stood.loans, k)
			continue
		}
		v.stood.loans[k] = r
	}
}

func (k loanKey) about(what string) Fault {
	return Fault{Rule: "log", Table: "loans", Plan: k.plan, Consumer: k.borrower,
		What: what + " (lender " + k.lender + ", pool " + k.pool + ")"}
}

// lending is what is held of a lender, as far as it is known.
type lending struct {
	units, leaving int64
	amount         []int64
	vague          bool // what of it is under reclaim is not known
}

// holdLoans holds loans against what is held. In plans in which it is not known of which pools units are, pools are
// left out.
func (v *verifier) holdLoans() {
	want, got := map[loanKey]*lending{}, map[loanKey]loanRow{}
	for _, p := range v.m.piles {
		for l, n := range p.label {
			if l.lender == "" || n == 0 {
				continue
			}
			k := loanKey{p.plan, l.lender, p.consumer, l.pool}
			if v.hazy[p.plan] {
				k.pool = ""
			}
			if want[k] == nil {
				want[k] = &lending{amount: make([]int64, len(p.size))}
			}
			w := want[k]
			w.units += n
			plus(w.amount, p.size, n)
			if len(p.label) == 1 {
				w.leaving += p.leaving
			} else {
				w.vague = w.vague || p.leaving > 0
			}
		}
	}
	for k, r := range v.stood.loans {
		merged := v.hazy[k.plan]
		if merged {
			k.pool = ""
		}
		was := got[k]
		if !merged {
			v.is(k.about("a deadline without units under recall, or units under recall without one"),
				r.due == (r.leaving > 0))
		}
		got[k] = loanRow{was.units + r.units, was.leaving + r.leaving, r.due, r.amounts}
		if want[k] == nil {
			want[k] = &lending{}
		}
	}
	for k, w := range want {
		r := got[k]
		v.equal(k.about("units"), w.units, r.units)
		if !w.vague && !v.dim() {
			v.equal(k.about("under_recall"), w.leaving, r.leaving)
		}
		if expected := v.figuresIn(k.plan, w.amount); w.units > 0 && !v.hazy[k.plan] &&
			v.m.policy.byName[k.plan] != nil {
			f := k.about("amounts")
			f.Expected, f.Got = expected, r.amounts
			v.is(f, expected == r.amounts)
		}
	}
}

// readSubs takes the rows of sub_allocations; before is what stood before, nil where that is not known.
func (v *verifier) readSubs(t *rows, whole bool, before *stands) {
	keys, source, need, together := t.keys(), t.words["source"], t.words["requirement"], t.words["together"]
	most, first, wanted, held := t.number["max_per_host"], t.number["first_seen"], t.number["wanted"], t.number["held"]
	least := t.number["min_units"]
	seen := map[subKey]bool{}
	for row := range t.n {
		k := subKey{keys(row), source.text(row), first.at(row)}
		_, was := v.stood.subs[k]
		gone := wanted.missing(row)
		v.is(k.about("log", "sub_allocations", "the row stands twice, or is gone and was not there"),
			!seen[k] && (!gone || !whole && was))
		known := was
		if whole && v.cycle > 1 {
			known = before == nil || v.switched
			if !known {
				_, known = before.subs[k]
			}
		}
		v.is(k.about("log", "sub_allocations", "first_seen"), k.seen == v.cycle ||
			k.seen < v.cycle && known && (k.seen > 0 || first.missing(row)))
		if seen[k] = true; gone {
			delete(v.stood.subs, k)
			continue
		}
		r := subRow{wanted.at(row), held.at(row), v.figuresOf(t, "", row), need.text(row), none, least.at(row),
			together.text(row)}
		if !most.missing(row) {
			r.perHost = most.at(row)
		}
		v.stood.subs[k] = r
	}
}

// holdSubs holds sub_allocations against what sources want and what is held.
func (v *verifier) holdSubs() {
	type of struct {
		key
		source string
	}
	want, got := map[of][]*sub{}, map[of][]subKey{}
	for _, s := range v.m.subs {
		k := of{s.key.row(), s.source}
		want[k] = append(want[k], s)
	}
	for k := range v.stood.subs {
		at := of{k.key, k.source}
		got[at] = append(got[at], k)
		if want[at] == nil {
			want[at] = []*sub{}
		}
	}
	for k, subs := range want {
		about := func(what string) Fault { return k.about("log", "sub_allocations", "%s", what) }
		if !v.equal(about("rows of the sub-allocation"), int64(len(subs)), int64(len(got[k]))) || len(subs) != 1 {
			continue
		}
		s, r := subs[0], v.stood.subs[got[k][0]]
		v.equal(about("held"), s.held, r.held)
		if v.adopted {
			continue // what is wanted was taken from the tables
		}
		if s.orphan {
			v.equal(about("wanted, of a consumer that is gone"), s.held, r.wanted)
			continue
		}
		v.equal(about("wanted"), s.units, r.wanted)
		v.equal(about("max_per_host"), s.perHost, r.perHost)
		v.equal(about("min_units"), max(1, s.least), r.least)
		f := about("together")
		f.Expected, f.Got = s.together, r.together
		v.is(f, s.together == r.together)
		f = about("requirement")
		f.Expected, f.Got = s.need, r.need
		v.is(f, s.need == r.need)
		if k.plan != "" {
			f.What, f.Expected, f.Got = "size", v.figuresIn(k.plan, s.size), r.size
			v.is(f, f.Expected == f.Got)
		}
	}
}

// readAttributes takes the rows of attributes: all of a host take the place of those before.
func (v *verifier) readAttributes(t *rows, whole bool) {
	host, attribute, value := t.words["host"], t.words["attribute"], t.words["value"]
	seen := map[string]bool{}
	for row := range t.n {
		h := host.text(row)
		if !seen[h] {
			delete(v.stood.attrs, h)
		}
		seen[h] = true
		if attribute.code[row] < 0 {
			v.is(Fault{Rule: "log", Table: "attributes", Host: h,
				What: "it has nothing, and that stands beside something"}, !whole && len(v.stood.attrs[h]) == 0)
			continue
		}
		v.stood.attrs[h] = append(v.stood.attrs[h], attribute.text(row)+"="+value.text(row))
	}
	for h := range seen {
		slices.Sort(v.stood.attrs[h])
	}
}

// holdAttributes holds attributes against the hosts as inputs made them, and the groups of the policy.
func (v *verifier) holdAttributes() {
	want := map[string][]string{}
	for name, h := range v.m.hosts {
		if h.gone {
			continue
		}
		for attribute, value := range h.attr {
			text := ""
			switch is := value.(type) {
			case nil:
				continue
			case float64:
				text = strconv.FormatFloat(is, 'f', -1, 64)
			case bool:
				text = strconv.FormatBool(is)
			case string:
				text = is
			}
			want[name] = append(want[name], attribute+"="+text)
		}
	}
	for name, g := range v.m.policy.groups {
		listed := map[string]bool{}
		for _, h := range g.hosts {
			listed[h] = true
		}
		for _, h := range v.m.hosts {
			if !h.gone && (listed[h.name] || g.cond != nil && g.cond.truth(h, v.m)) {
				want[h.name] = append(want[h.name], "group="+name)
			}
		}
	}
	for name := range v.stood.attrs {
		if want[name] == nil {
			want[name] = nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		slices.Sort(want[name])
		got := v.stood.attrs[name]
		v.is(Fault{Rule: "log", Table: "attributes", Host: name, What: "attributes and groups",
			Expected: strings.Join(want[name], ", "), Got: strings.Join(got, ", ")},
			slices.Equal(want[name], got))
	}
}
