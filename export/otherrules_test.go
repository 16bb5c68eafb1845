package export_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/scenario"
	"github.com/stintd/stint/export"
	"github.com/stintd/stint/export/verify"
)

// twoDays is a scenario whose first two cycles are forged to be of rules version 1. Its third begins a day.
const twoDays = `name: two days
plan:
  stint: 1
  dimensions: [ncpus]
  resource_groups: [{name: G, hosts: [h1, h2]}]
  consumers: [{path: /A}, {path: /A/a}, {path: /B}]
  md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A}, {path: /A/a}, {path: /B}]}]
hosts: [{host: h1, ncpus: 8}, {host: h2, ncpus: 8}]
steps:
  - {at: 2026-01-05T08:00:00Z, demand: [{consumer: /A/a, allocation: a, units: 12, ncpus: 1}]}
  - demand:
      - {consumer: /A/a, allocation: a, units: 9, ncpus: 1}
      - {consumer: /B, allocation: b, units: 9, ncpus: 1}
  - {at: 2026-01-06T08:00:00Z, cycles: 2}
`

// ofVersion1 makes a cycle one of rules version 1.
func ofVersion1(c *decision.Table) {
	*c.Column("rules_version") = decision.Column{Name: "rules_version", Type: decision.Text, Code: []int32{0},
		Dict: decision.Words{"1"}}
}

// TestOtherRules has another version of the rules decide the first cycles of a log. Verify checks them for what no
// version changes, says what it left out, and checks the promises of the cycles after them.
func TestOtherRules(t *testing.T) {
	for _, c := range []struct {
		name, table, rule, what string
		cycle                   int64
		change                  func(t *decision.Table)
	}{
		{name: "nothing else"},
		{name: "a grant of a unit more", cycle: 2, table: "grants", rule: "log", what: "units_granted",
			change: func(t *decision.Table) { t.Column("units").Int[0]++ }},
		{name: "a release of more than is held", cycle: 2, table: "releases", rule: "INV-9", what: "more units",
			change: func(t *decision.Table) { t.Column("units").Int[0] += 100 }},
		{name: "a host with less than it has", cycle: 1, table: "hosts", rule: "INV-1", what: "capacity of ncpus",
			change: func(t *decision.Table) { t.Column("capacity").Int[0]-- }},
		{name: "a branch that holds more than its leaves", cycle: 2, table: "consumers", rule: "log",
			what: "held of its children", change: func(t *decision.Table) { t.Column("held").Int[0]++ }},
		{name: "a quota that no rule gives", cycle: 2, table: "amounts",
			change: func(t *decision.Table) { t.Column("static_quota").Int[0]++ }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := recorded(t, twoDays)
			forger := export.NewForger(dir)
			for _, cycle := range []int64{1, 2} {
				r, err := export.OpenLog(dir)
				if err != nil {
					t.Fatal(err)
				}
				tables, err := forger.Tables(r, cycle)
				if err != nil {
					t.Fatal(err)
				}
				ofVersion1(tables["cycles"])
				changed := "cycles"
				if cycle == c.cycle {
					changed = c.table
					c.change(tables[c.table])
				}
				if err := forger.Forge(r, cycle, changed, tables, true); err != nil {
					t.Fatal(err)
				}
			}
			r, err := export.OpenLog(dir)
			if err != nil {
				t.Fatal(err)
			}
			report, err := verify.Log(r, verify.Options{})
			if err != nil {
				t.Fatal(err)
			}
			found := c.rule == "" && report.OK()
			for _, f := range report.Faults {
				found = found || f.Cycle <= 2 && f.Rule == c.rule && strings.Contains(f.What, c.what)
			}
			if !found {
				t.Errorf("no fault of %q that mentions %q among %v", c.rule, c.what, report.Faults)
			}
			if want := "cycles 1 to 2 follow the rules: rules version 1"; !strings.Contains(
				strings.Join(report.Untold, "\n"), want) {
				t.Errorf("no line with %q in %q", want, report.Untold)
			}
			if n := report.Checks["MD-14"]; n == 0 || n > 20 { // of the cycles 3 and 4
				t.Errorf("%d quotas were checked: %v", n, report.Checks)
			}
		})
	}
}

// recorded writes the log of a scenario.
func recorded(t *testing.T, text string) (dir string) {
	t.Helper()
	scenarios, err := scenario.Parse("scenario.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "log")
	w, err := export.Open(dir, export.Options{Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = scenarios[0].Record(&recorder{log: w}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}
