package scenario

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// small is a scenario up to its steps: one plan, one host of four processors, an interval of a minute.
const small = `name: small
rule: T-1
plan:
  stint: 1
  interval: 60s
  dimensions: [ncpus]
  resource_groups: [{name: G, select: "select(ncpus > 0)"}]
  consumers: [{path: /A}, {path: /B}]
  md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A}, {path: /B}]}]
hosts: [{host: h1, ncpus: 4}]
steps:
`

func play(t *testing.T, text string) *Result {
	t.Helper()
	s, err := Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := s[0].Play()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func report(t *testing.T, r *Result) string {
	t.Helper()
	var b strings.Builder
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// plays are steps that are as expected, and how many cycles they take.
var plays = map[string]struct {
	steps  string
	cycles int
}{
	"a partial row": {`
  - demand: [{consumer: /A, allocation: a, units: 3, ncpus: 1}]
    expect:
      rows: {consumers: [{consumer: /A, held: 3, short: 0, share_limit_ncpus: null}, {consumer: /B, demand: 0}], shares: [{consumer: /A, usage: 0.75, usage_quota: 0.75}]}
      none: {consumers: [{consumer: /A, held: 2}], shortfalls: [{consumer: /A}], reclaims: [{consumer: /A}]}
      sums: [{table: grants, where: {consumer: /A, host: h1, origin: public_pool}, column: units, equals: 3}, {table: ownership, where: {dimension: ncpus}, column: amount, equals: 0}]
`, 1},
	"the clock": {`
  - expect: {rows: {cycles: [{now: 2026-01-05T00:00:00Z}]}}
  - cycles: 2
    expect: {rows: {cycles: [{now: 2026-01-05T01:02:00+01:00}]}}
  - at: 2026-01-05T08:00:00Z
    expect: {rows: {cycles: [{now: "2026-01-05T08:00:00Z"}]}}
  - at: 2026-01-05T07:00:00Z
    expect: {rows: {cycles: [{now: 2026-01-05T08:00:00Z}]}}
`, 5},
	"sums go over all cycles of a step, rows see the last": {`
  - demand: [{consumer: /A, allocation: a, units: 3, ncpus: 1}]
    cycles: 3
    expect:
      rows: {cycles: [{units_granted: 0, units_held: 3}]}
      sums: [{table: grants, column: units, equals: 3}, {table: cycles, column: units_held, equals: 9}, {table: shares, column: usage, equals: 2.25}]
`, 3},
	"demand replaces by source": {`
  - demand: {x: [{consumer: /A, allocation: a, units: 1, ncpus: 1}], y: [{consumer: /B, allocation: b, units: 1, ncpus: 1}]}
    expect: {rows: {grants: [{source: x, consumer: /A}, {source: y, consumer: /B}]}}
  - demand: {x: []}
    expect: {rows: {consumers: [{consumer: /A, held: 0}, {consumer: /B, held: 1}], releases: [{consumer: /A, cause: demand_gone, units: 1}]}}
`, 2},
	"hosts change, keyframes are tables too": {`
  - demand: [{consumer: /A, allocation: a, units: 9, ncpus: 1}]
    expect: {rows: {holdings: [{consumer: /A, host: h1, units: 4, granted: 1}], hosts: [{host: h1, dimension: ncpus, capacity: 4, used: 4}]}}
  - hosts: [{host: h2, ncpus: 2}]
    expect: {rows: {consumers: [{consumer: /A, held: 6}]}}
`, 2},
	"releases and until_stable": {`
  - demand: [{consumer: /A, allocation: a, units: 4, ncpus: 1}]
  - releases: [{consumer: /A, allocation: a, host: h1, units: 1, done: true}]
    until_stable: true
    expect: {rows: {consumers: [{consumer: /A, held: 3, demand: 3}]}, sums: [{table: releases, where: {cause: done}, column: units, equals: 1}]}
`, 3},
	"a runtime ends units at the first cycle at or after it": {`
  - demand: [{consumer: /A, allocation: a, units: 2, ncpus: 1, runtime: 90s}, {consumer: /B, allocation: b, units: 1, ncpus: 1}]
    cycles: 2
    expect: {rows: {consumers: [{consumer: /A, held: 2}]}, none: {releases: [{cause: done}]}}
  - expect: {rows: {consumers: [{consumer: /A, held: 0, demand: 0}, {consumer: /B, held: 1}], releases: [{consumer: /A, cause: done, units: 2}]}}
`, 3},
	"until_stable waits for what will end": {`
  - demand: [{consumer: /A, allocation: a, units: 6, ncpus: 1, runtime: 2m}]
    until_stable: true
    expect: {rows: {consumers: [{consumer: /A, held: 0}]}, sums: [{table: grants, column: units, equals: 6}, {table: releases, where: {cause: done}, column: units, equals: 6}]}
`, 6},
	"a unit that came back early does not end again": {`
  - demand: [{consumer: /A, allocation: a, units: 2, ncpus: 1, runtime: 2m}]
  - demand: [{consumer: /A, allocation: a, units: 1, ncpus: 1, runtime: 2m}]
    until_stable: true
    expect: {sums: [{table: releases, where: {cause: demand_gone}, column: units, equals: 1}, {table: releases, where: {cause: done}, column: units, equals: 1}]}
`, 4},
}

// TestPlay plays them.
func TestPlay(t *testing.T) {
	for name, c := range plays {
		r := play(t, small+c.steps[1:])
		if !r.OK() {
			t.Errorf("%s:\n%s", name, report(t, r))
		}
		if r.Cycles != c.cycles {
			t.Errorf("%s: %d cycles, expected %d", name, r.Cycles, c.cycles)
		}
	}
}

// TestMiss checks what a miss says.
func TestMiss(t *testing.T) {
	for _, c := range []struct{ step, want string }{
		{`
  - demand: [{consumer: /A, allocation: a, units: 3, ncpus: 1}]
    expect: {rows: {consumers: [{consumer: /A, held: 2, short: 0}]}}
`, `
    t.yaml:13: step 1, cycle 1, consumers: no such row among 2 rows
                consumer  held  short
      expected  /A        2     0
      got       /A        3 ≠   0
`},
		{`
  - demand: [{consumer: /A, allocation: a, units: 1, ncpus: 1}]
    expect: {rows: {shares: [{consumer: /A, usage: 0.2499}, {consumer: /A, usage: 0.2498}, {consumer: /A, usage: 0}]}}
`, `
    t.yaml:13: step 1, cycle 1, shares: no such row among 1 row
                consumer  usage
      expected  /A        0.2498
      got       /A        0.25 ≠
    t.yaml:13: step 1, cycle 1, shares: no such row among 1 row
                consumer  usage
      expected  /A        0
      got       /A        0.25 ≠
`},
		{`
  - demand: [{consumer: /A, allocation: a, units: 3, ncpus: 1}]
    cycles: 2
    expect:
      none: {grants: [{consumer: /A}]}
      sums: [{table: grants, where: {consumer: /A}, column: units, equals: 2}]
      rows: {grants: [{consumer: /A}]}
`, `
    t.yaml:15: step 1, cycle 1, grants: 1 row like this must not be
                consumer
      unwanted  /A
      got       /A
    t.yaml:17: step 1, cycle 2, grants: no such row among 0 rows
                consumer
      expected  /A
      got       nothing
    t.yaml:16: step 1, cycle 2, grants: sum of units over 1 row
                consumer  sum of units
      expected  /A        2
      got       /A        3 ≠
`},
		{`
  - demand: [{consumer: /A, allocation: a, units: 1000000, ncpus: 1, runtime: 60s}]
    until_stable: true
`, `
    t.yaml:12: step 1, cycle 10000: not stable after 10000 cycles: the last one granted 4, reclaimed 0 and released 4 units
`},
	} {
		r := play(t, small+c.step[1:])
		if got := report(t, r); got != c.want[1:] {
			t.Errorf("%s\ngot\n%swant\n%s", c.step, got, c.want[1:])
		}
		if r.OK() {
			t.Errorf("%s: OK", c.step)
		}
	}
}

// TestWarning checks that a group which selects nothing is told of beside a miss, and not otherwise.
func TestWarning(t *testing.T) {
	step := "  - demand: [{consumer: /A, allocation: a, units: 1, ncpus: 1}]\n    hosts: [{host: h1, ncpus: 0}]\n   " +
		" expect: "
	const want = "    warning: resource group G: select(ncpus > 0) matches no host\n    t.yaml:14: step 1, "
	if got := report(t, play(t, small+step+"{rows: {consumers: [{consumer: /A, held: 1}]}}\n")); !strings.HasPrefix(got,
		want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := report(t, play(t, small+step+"{rows: {consumers: [{consumer: /A, held: 0}]}}\n")); got != "" {
		t.Error(got)
	}
}

// TestBadFile checks the message of each thing that can be wrong in a file.
func TestBadFile(t *testing.T) {
	row := small + "  - demand: [{consumer: /A, allocation: a, units: 1, ncpus: 1}]\n    expect: "
	for _, c := range []struct{ text, want string }{
		{"", "t.yaml: no scenario in it"},
		{"# nothing\n---\n", "t.yaml: no scenario in it"},
		{"- a\n", "t.yaml:1:1: a scenario must be a mapping (key: value)"},
		{"name: x\n", "t.yaml:1:1: a scenario needs a name and steps"},
		{"name: x\nname: y\n", `t.yaml:2:1: mapping key "name" already defined at [1:1]`},
		{"name: x\nsteps: []\nfoo: 1\n",
			`t.yaml:3:1: a scenario has no key "foo"; it has name, rule, plan, plan_file, hosts, hosts_file, running, running_file, unknown, steps`},
		{"name: [\n", "t.yaml:1:7: sequence end token ']' not found"},
		{"name: \xff\n", "t.yaml:1: not valid UTF-8"},
		{"name: " + strings.Repeat("[", 1000), "t.yaml:1: more than 256 brackets within each other"},
		{strings.Repeat("- ", 2000), "t.yaml:1: indented by more than 1024"},
		{"name: {a: 1}\nsteps: []\n", "t.yaml:1:7: name must be a text or a finite number, is mapping"},
		{"name: x\nsteps: []\n", "t.yaml:1:1: a scenario needs a plan or a plan_file"},
		{"name: x\nsteps: []\nplan: 5\n", "t.yaml:3:7: plan must be a mapping (key: value)"},
		{"name: x\nsteps: []\nplan_file: none.yaml\n", "t.yaml:3:12: open none.yaml: no such file or directory"},
		{strings.Replace(small, "hosts: [{", "host: [{", 1),
			`t.yaml:10:1: a scenario has no key "host"; it has name, rule, plan, plan_file, hosts, hosts_file, running, running_file, unknown, steps`},
		{strings.Replace(small, "hosts: ", "hosts_file: a\nhosts: ", 1) + "  - cycles: 1\n",
			"t.yaml:10:13: hosts and hosts_file exclude each other"},
		{strings.Replace(small, "  stint: 1", "  stint: 2", 1) + "  - cycles: 1\n", `t.yaml:4:10: stint`},
		{strings.Replace(small, "interval: 60s", "intervall: 60s", 1) + "  - cycles: 1\n", `t.yaml:5:3: `},
		{strings.Replace(small, "ncpus: 4", "ncpus: four", 1) + "  - cycles: 1\n",
			`t.yaml:10: hosts, column ncpus, value "four": `},
		{small, "t.yaml:11:8: steps must be a list"},
		{small + "  - cycles: 0\n", `t.yaml:12:13: cycles, value "0": must be a whole number from 1 to 10000`},
		{small + "  - cycles: 10001\n", `t.yaml:12:13: cycles, value "10001": must be a whole number from 1 to 10000`},
		{small + "  - cycles: two\n", `t.yaml:12:13: cycles, value "two": must be a whole number from 1 to 10000`},
		{small + "  - {cycles: 2, until_stable: true}\n", "t.yaml:12:31: cycles and until_stable exclude each other"},
		{small + "  - until_stable: 1\n", "t.yaml:12:19: until_stable must be true or false"},
		{small + "  - at: noon\n", `t.yaml:12:9: at, value "noon": must be an instant such as 2026-01-05T08:00:00Z`},
		{small + "  - wait: 3\n",
			`t.yaml:12:5: a step has no key "wait"; it has at, demand, demand_file, hosts, hosts_file, plan, plan_file, force, releases, releases_file, cycles, until_stable, expect`},
		{small + "  - demand: 3\n", "t.yaml:12:13: demand must be a list"},
		{small + "  - demand: [3]\n", "t.yaml:12:14: demand row must be a mapping (key: value)"},
		{small + "  - demand: [{consumer: [/A]}]\n",
			"t.yaml:12:25: demand: consumer must be a finite number, a text, true or false, is sequence"},
		{small + "  - demand: [{units: .nan}]\n",
			"t.yaml:12:22: demand: units must be a finite number, a text, true or false, is nan"},
		{small + "  - demand: [{units: 010}]\n",
			`t.yaml:12:22: demand: units, value "010": must be in plain decimal digits`},
		{small + "  - demand: [{units: 0x9}]\n",
			`t.yaml:12:22: demand: units, value "0x9": must be in plain decimal digits`},
		{small + "  - cycles: 07\n", `t.yaml:12:13: cycles, value "07": must be a whole number from 1 to 10000`},
		{small + "  - demand: [{consumer: &x /A}]\n",
			"t.yaml:12:25: demand: consumer must be a finite number, a text, true or false, is anchor"},
		{small + "  - demand:\n      - {consumer: /A, allocation: a, units: 1, ncpus: 1}\n      - {consumer: /A, " +
			"allocation: b, units: -1, ncpus: 1}\n", `t.yaml:14: demand, column units, value "-1": `},
		{small + "  - demand: [{consumer: /A, allocation: a, units: 1, ncpu: 1}]\n", `ncpu`},
		{small + "  - demand: [{consumer: /A, allocation: a, units: 1, runtime: 0s}]\n",
			`t.yaml:12:63: runtime, value "0s": must be a duration above 0 such as 90s`},
		{row + "{row: {}}\n", `t.yaml:13:14: expect has no key "row"; it has rows, none, sums`},
		{row + "{rows: {consumer: []}}\n", `t.yaml:13:21: there is no table "consumer"; there are cycles, grants, `},
		{row + "{rows: {consumers: [{hold: 3}]}}\n",
			`t.yaml:13:34: table consumers has no column "hold"; it has plan, consumer, `},
		{row + "{rows: {consumers: [{held_gpus: 3}]}}\n",
			`t.yaml:13:34: table consumers has no column "held_gpus"; it has plan, consumer, `},
		{row + "{rows: {consumers: [{held: many}]}}\n",
			`t.yaml:13:40: column held of consumers, value "many": must be a number or null`},
		{row + "{rows: {consumers: [{held: .nan}]}}\n", `t.yaml:13:40: held must be a text or a finite number, is nan`},
		{row + "{rows: {consumers: [{}]}}\n", "t.yaml:13:33: rows of consumers: a row needs at least one column"},
		{row + "{rows: {cycles: [{now: 7}]}}\n",
			`t.yaml:13:36: column now of cycles, value "7": must be an instant such as 2026-01-05T08:00:00Z or null`},
		{row + "{none: {reclaims: [{for: /A}]}}\n",
			`t.yaml:13:33: table reclaims has no column "for"; it has plan, reclaim, action, `},
		{row + "{sums: [{table: grants, column: units}]}\n", "t.yaml:13:21: a sum needs equals"},
		{row + "{sums: [{table: grants, column: host, equals: 3}]}\n",
			`t.yaml:13:45: column host of grants cannot be summed up to "3"`},
		{row + "{sums: [{table: grants, column: unit, equals: 3}]}\n",
			`t.yaml:13:45: table grants has no column "unit"; it has `},
	} {
		s, err := Parse("t.yaml", []byte(c.text))
		if err == nil && len(c.text) < 2000 && len(s) > 0 {
			_, err = s[0].Play()
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) &&
			!(c.want == "ncpu" && strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q\ngot  %v\nwant %s", strings.TrimPrefix(c.text, small), err, c.want)
		}
	}
}

// TestRefused checks that input which only the engine can refuse says where it stands.
func TestRefused(t *testing.T) {
	s, err := Parse("t.yaml", []byte(small+"  - cycles: 1\n  - demand:\n      - {consumer: /C, allocation: a, units: "+
		"1, ncpus: 1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s[0].Play()
	if err == nil || !strings.HasPrefix(err.Error(), `t.yaml:14: demand, column consumer, value "/C": `) ||
		!strings.HasSuffix(err.Error(), "\nt.yaml:13: small: step 2 was refused") {
		t.Errorf("got %v", err)
	}
}

// TestFiles loads a scenario all of whose inputs are files.
func TestFiles(t *testing.T) {
	s, err := Load(filepath.Join("testdata", "files.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := s[0].Play()
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() {
		t.Error(report(t, r))
	}
	if !s[0].Matches(regexp.MustCompile("^CH-9$")) || !s[0].Matches(regexp.MustCompile("from files")) ||
		s[0].Matches(regexp.MustCompile("MD")) {
		t.Error("selection by rule or name")
	}
}

// TestCases loads and plays all of the project's cases. All hold, none is refused.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("../../testdata/cases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range files {
		scenarios, err := Load(name)
		if err != nil {
			t.Errorf("%v", err)
		}
		for _, s := range scenarios {
			r, err := s.Play()
			if err != nil {
				t.Errorf("%s:%d: %v", s.File, s.Line, err)
				continue
			}
			if !r.OK() {
				t.Errorf("%s:%d: %s\n%s", s.File, s.Line, s.Name, report(t, r))
			}
		}
	}
}

// FuzzParse checks that no text makes the reader panic or hang, and that what loads says where it stands.
func FuzzParse(f *testing.F) {
	f.Add([]byte(small + "  - cycles: 1\n"))
	f.Add([]byte(small + "  - demand: [{consumer: /A, allocation: a, units: 1, ncpus: 1, runtime: 5s}]\n    expect: " +
		"{rows: {consumers: [{held: 1}]}}\n"))
	if text, err := os.ReadFile("../../testdata/cases/md.yaml"); err == nil {
		f.Add(text[:min(len(text), 3000)])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		// Files named by a hostile text are none of this test's business.
		if strings.Contains(string(text), "_file") {
			return
		}
		scenarios, err := Parse("t.yaml", text)
		if err == nil && len(scenarios) == 0 {
			t.Error("neither scenarios nor an error")
		}
		if err != nil && !strings.HasPrefix(err.Error(), "t.yaml") {
			t.Errorf("an error without a place: %v", err)
		}
	})
}
