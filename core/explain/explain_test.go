package explain

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// policyText has a plan of each kind, and slots under each policy.
const policyText = `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: G, select: "select(zone == 1)", slots: "(ncpus*1)"}, {name: M, select: "select(zone == 2)"}]
consumers: [{path: /A}, {path: "/A/x:y", reclaim_grace: 10m}, {path: /A/deep}, {path: /B}, {path: /H}]
slot_plans:
  - resource_group: G
    configured_slots: 10
    consumers:
      - {path: /A, policy: ownership, owns: 4, share: {max: 6}}
      - {path: "/A/x:y", owns: 2, borrow: {limit: 3}}
      - {path: /B, policy: ownership, owns: 2, lend: {limit: 2}}
      - {path: /H, policy: hybrid, owns: 4, limit: 5}
md_plans:
  - name: m
    resource_groups: [{name: M}]
    consumers: [{path: /A, share: {limit: {ncpus: 4}}}, {path: "/A/x:y", own: [{group: M, hosts: 1}]}, {path: /B, share: {priority: 1}}]
`

// made is facts with empty tables.
func made(t *testing.T) (*Facts, *decision.Cycle) {
	t.Helper()
	text := strings.Replace(policyText, `[{path: /A, share: {limit`,
		`[{path: /A, own: [{group: M, hosts: 1}], share: {limit`, 1)
	p, err := plan.Parse("policy", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c := &decision.Cycle{}
	words := func() decision.Words { return decision.Words{} }
	d := &decision.Dicts{Plan: words(), Source: words(), Consumer: words(), Label: words(), Host: words(),
		Dimension: words(), Detail: words()}
	c.ResetEvents(d)
	c.ResetStates(d)
	c.ResetKeyframe(d)
	return &Facts{Cycle: 1, Policy: p}, c
}

// tables puts the tables of a cycle into facts.
func (f *Facts) tables(c *decision.Cycle) {
	for to, name := range map[**decision.Table]string{
		&f.Consumers: "consumers", &f.Amounts: "amounts", &f.Shares: "shares", &f.Shortfalls: "shortfalls",
		&f.Grants: "grants", &f.Reclaims: "reclaims", &f.Releases: "releases", &f.Holdings: "holdings",
		&f.Returned: "releases",
	} {
		*to = c.View(name)
	}
	f.Past = []*decision.Table{f.Reclaims}
}

var ruleName = regexp.MustCompile(`^(SLOT|MD|CYC|REQ|BUD|PLAN|INV|D)-[1-9][0-9]?$`)

func checkRules(t *testing.T, what string, rules []string) {
	t.Helper()
	if len(rules) == 0 || slices.ContainsFunc(rules, func(r string) bool { return !ruleName.MatchString(r) }) {
		t.Errorf("%s: rules %v", what, rules)
	}
}

// TestReasons explains a shortfall of every reason, in plans of both kinds and under each slot policy.
func TestReasons(t *testing.T) {
	for _, c := range []struct{ plan, consumer string }{{"m", "/A/x:y"}, {"G", "/A/x:y"}, {"G", "/H"}} {
		for code, reason := range decision.Reasons {
			f, cycle := made(t)
			s := &cycle.Shortfalls
			for _, k := range []struct {
				to   *decision.Coded
				word string
			}{
				{&s.Plan, c.plan}, {&s.Consumer, c.consumer}, {&s.Allocation, "a"}, {&s.Sub, ""}, {&s.Reason, reason},
				{&s.Dimension, "ncpus"},
				{&s.Blocker, "/B"}, {&s.Detail, "a unit takes 3 ncpus"},
			} {
				*k.to = decision.Coded{Code: []int32{0}, Dict: decision.Words{k.word}}
			}
			s.UnitsShort, s.Until, s.UntilNull = []int64{7}, []int64{0}, []bool{true}
			f.tables(cycle)
			e, err := Explain(f, Target{c.consumer, new("a")})
			if err != nil {
				t.Fatal(err)
			}
			got := e.Plans[0].Shortfalls
			if len(got) != 1 || got[0].Units != 7 || len(got[0].Text) < 20 || got[0].Text == reason {
				t.Errorf("%s %s: %+v", c.plan, reason, got)
				continue
			}
			checkRules(t, reason, got[0].Rules)
			for _, b := range got[0].Because {
				checkRules(t, reason+": "+b.Text, b.Rules)
			}
			if reasons[code].because != nil && reasons[code].text == nil {
				t.Errorf("%s has no sentence", reason)
			}
		}
	}
}

// TestWords checks that there are words for all that a table can name: reasons of reclaims, causes, origins.
func TestWords(t *testing.T) {
	for _, reason := range decision.ReclaimReasons {
		w, ok := reclaimed[reason]
		if !ok {
			t.Errorf("no words for the reason %s of a reclaim", reason)
		}
		checkRules(t, reason, w.slots)
		checkRules(t, reason, w.md)
	}
	for _, cause := range decision.Causes {
		if _, ok := caused[cause]; !ok {
			t.Errorf("no words for the cause %s", cause)
		}
		checkRules(t, cause, caused[cause].rules)
	}
	for _, origin := range decision.Origins {
		for _, lender := range []string{"", "/L"} {
			text, rules := label{origin, "/P", lender}.sentence("unit", 2, origin == "owned")
			if strings.Contains(text, "no origin") ||
				lender != "" && strings.HasSuffix(origin, "c_pool") && !strings.Contains(text, "lent by /L") {
				t.Errorf("%s of %q: %s", origin, lender, text)
			}
			checkRules(t, origin, rules)
		}
	}
}

// TestGoing follows reclaims over cycles: what is left of them is what was neither cancelled nor came back.
func TestGoing(t *testing.T) {
	f, c := made(t)
	r := &c.Reclaims
	words := func(words ...string) decision.Coded {
		coded := decision.Coded{Dict: decision.Words(words)}
		for i := range words {
			coded.Code = append(coded.Code, int32(i))
		}
		return coded
	}
	r.Plan, r.Consumer = words("G", "G", "G"), words("/B", "/B", "/B")
	r.Allocation, r.Sub = words("b", "b", "b"), words("", "", "")
	r.Reclaim, r.Action = []int64{5, 6, 5}, words("issued", "issued", "cancelled")
	r.Host, r.Units = words("h1", "h2", "h1"), []int64{4, 2, 1}
	r.Reason = words("recall", "fair_share", "recall")
	r.Issued, r.Deadline = []int64{0, 0, 0}, []int64{60e6, 90e6, 60e6}
	r.ForConsumer, r.ForAllocation, r.ForSub = words("/A/x:y", "/H", "/A/x:y"), words("a", "h", "a"), words("", "", "")
	r.Device = none(3)
	l := &c.Releases
	l.Plan, l.Consumer, l.Allocation, l.Sub, l.Host = words("G"), words("/B"), words("b"), words(""), words("h2")
	l.Units, l.Cause, l.Reclaim = []int64{2}, words("client"), []int64{6}
	l.Origin, l.Lender = words("owned"), decision.Coded{Code: []int32{decision.Null}}
	h := &c.Holdings
	h.Plan, h.Consumer, h.Allocation, h.Sub, h.Host = words("G"), words("/B"), words("b"), words(""), words("h1")
	h.Units, h.Origin = []int64{4}, words("borrowed")
	h.Pool, h.Lender = decision.Coded{Code: []int32{decision.Null}}, words("/A/x:y")
	h.Granted = []int64{1}
	l.Device, h.Device = none(1), none(1)
	f.tables(c)
	f.NowUS = 30e6
	e, err := Explain(f, Target{Consumer: "/B", Allocation: new("b")})
	if err != nil {
		t.Fatal(err)
	}
	want := "3 units of /B:b on h1 for /A/x:y:a, due 1970-01-01T00:01:00Z (in 30s): the owner wants it back"
	if p := &e.Plans[0]; len(p.Leaving) != 1 || p.Leaving[0].Text != want || p.Leaving[0].Units != 3 ||
		p.Leaving[0].Overdue {
		t.Errorf("%+v", p.Leaving)
	}
	f.NowUS = 61e6
	e, err = Explain(f, Target{Consumer: "/A"}) // not in the made tables, but what is promised to it is
	if err == nil {
		for _, p := range e.Plans {
			for _, r := range p.Coming {
				if !r.Overdue || !strings.Contains(r.Text, "overdue since") {
					t.Errorf("%+v", r)
				}
			}
		}
	}
}

// none is a text column without values.
func none(rows int) decision.Coded {
	return decision.Coded{Code: slices.Repeat([]int32{decision.Null}, rows)}
}

// TestFind reads names, with colons in them too, and suggests others for those that nobody has.
func TestFind(t *testing.T) {
	f, c := made(t)
	h := &c.Holdings
	one := func(word string) decision.Coded {
		return decision.Coded{Code: []int32{0}, Dict: decision.Words{word}}
	}
	h.Plan, h.Consumer, h.Allocation = one("G"), one("/A/x:y"), one("night:ly")
	h.Sub, h.Host, h.Origin = one(""), one("h1"), one("owned")
	h.Pool, h.Lender = decision.Coded{Code: []int32{decision.Null}}, decision.Coded{Code: []int32{decision.Null}}
	h.Units, h.Granted, h.Device = []int64{1}, []int64{1}, none(1)
	f.tables(c)
	for name, want := range map[string]Target{
		"/A": {Consumer: "/A"}, "/A/x:y": {Consumer: "/A/x:y"}, "/A/x:y:night:ly": {"/A/x:y", new("night:ly")},
		"/A:night:ly": {"/A", new("night:ly")},
	} {
		got, err := f.Find(name)
		if err != nil || got.Consumer != want.Consumer || (got.Allocation == nil) != (want.Allocation == nil) ||
			got.Allocation != nil && *got.Allocation != *want.Allocation {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"/A/dep":          "no consumer /A/dep; there is /A/deep",
		"deep":            "no consumer deep; there is /A/deep",
		"/A/deap:nightly": "no consumer /A/deap; there is /A/deep",
		"/Nobody/at/all":  "no consumer /Nobody/at/all",
		"/A/x:y:nightly":  `no allocation "nightly" of /A/x:y wants or holds anything; there is night:ly`,
		"/A:zzzzzz":       `no allocation "zzzzzz" of /A wants or holds anything; there are night:ly`,
		"/B:b":            `no allocation "b" of /B wants or holds anything`,
	} {
		if _, err := f.Find(name); err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.Find("/"); err == nil {
		t.Error("the root was found")
	}
}

// TestLine breaks sentences at the width, rules and all.
func TestLine(t *testing.T) {
	w := &writer{Style: Style{Width: 24, Mark: func(s string) string { return "<" + s + ">" }}.withDefaults()}
	w.line(2, "a sentence of some length, and more", []string{"MD-1", "MD-2"})
	want := "  - a sentence of some\n    length, and more\n    <[MD-1,> <MD-2]>\n"
	if w.b.String() != want {
		t.Errorf("%q", w.b.String())
	}
	for us, want := range map[int64]string{0: "0s", 90e6: "1m30s", 600e6: "10m", 3600e6: "1h", 5400e6: "1h30m",
		500: "500µs"} {
		if got := plan.Lasting(us); got != want {
			t.Errorf("%d: %s, expected %s", us, got, want)
		}
	}
}
