package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/explain"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/scenario"
	"github.com/stintd/stint/export"
)

var rewrite = flag.Bool("rewrite", false, "write what comes out into testdata/explain and testdata/whatif")

// leaver is a recorder that notes how many units are under reclaim after each cycle, which no table tells.
type leaver struct {
	recorder
	leaving map[int64]int64
}

// Cycle publishes a cycle.
func (l *leaver) Cycle(out *decision.Cycle, keyframe func(state bool), last bool) error {
	l.leaving[out.Summary.Cycle] = out.Summary.UnitsLeaving
	return l.recorder.Cycle(out, keyframe, last)
}

// cases are the scenarios of the project.
func cases(t *testing.T) (all []*scenario.Scenario) {
	t.Helper()
	files, err := filepath.Glob("../../testdata/cases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		scenarios, err := scenario.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, scenarios...)
	}
	return all
}

// golden holds what commands print against the files of a folder. A file begins
// with the command's words; then come sections
//
//	== scenario: arguments
//	what is printed
//
// With -rewrite what is printed is written into them.
func golden(t *testing.T, dir string, command ...string) {
	t.Helper()
	goldenOf(t, dir, cases(t), func(out string) string { return out }, command...)
}

// goldenOf is golden for scenarios, and a part of what commands print.
func goldenOf(t *testing.T, dir string, scenarios []*scenario.Scenario, part func(out string) string,
	command ...string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	byName := map[string]*scenario.Scenario{}
	for _, s := range scenarios {
		byName[s.Name] = s
	}
	logs := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for _, section := range strings.Split("\n"+string(text), "\n== ")[1:] {
			head, want, _ := strings.Cut(section, "\n")
			at := strings.LastIndex(head, ": ")
			name, args := head[:max(0, at)], head[at+1:]
			if byName[name] == nil {
				t.Fatalf("%s: no scenario %q", file, name)
			}
			if logs[name] == "" {
				var ok bool
				if logs[name], ok = record(t, byName[name]); !ok {
					t.Fatalf("%s: %s is refused", file, name)
				}
			}
			line := slices.Concat(command, []string{"--log", logs[name]}, strings.Fields(args))
			for i := range line {
				line[i] = strings.ReplaceAll(line[i], "DIR", dir)
			}
			var stdout, stderr bytes.Buffer
			execute(line, &stdout, &stderr)
			got := strings.TrimRight(part(stdout.String())+stderr.String(), "\n")
			if strings.TrimRight(want, "\n") != got && !*rewrite {
				t.Errorf("%s: %s: got\n%s\nexpected\n%s", file, head, got, want)
			}
			fmt.Fprintf(&out, "== %s\n%s\n\n", head, got)
		}
		if *rewrite {
			if err := os.WriteFile(file, []byte(strings.TrimRight(out.String(), "\n")+"\n"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestExplain holds explanations of the project's scenarios against testdata/explain.
func TestExplain(t *testing.T) { golden(t, "testdata/explain", "explain") }

// TestOnCall puts questions of somebody on call to explain: what it says first answers each, and fits a terminal of 80
// columns.
func TestOnCall(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	scenarios, err := scenario.Load("testdata/oncall/questions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scenarios {
		result, err := s.Play()
		if err != nil {
			t.Fatal(err)
		}
		for _, miss := range result.Misses {
			t.Errorf("%s: %+v", s.Name, miss)
		}
	}
	first := func(out string) string {
		answer, _, _ := strings.Cut(out, "\n\n")
		return answer
	}
	goldenOf(t, "testdata/oncall", scenarios, first, "explain")
}

// explainer explains every consumer after the first and last cycles of logs: there are words for all, and what an
// explanation adds up from events is what the cycle knew: what is held, short, and under reclaim.
type explainer struct{ seen map[string]int }

func (x *explainer) explain(t *testing.T, s *scenario.Scenario, dir string, leaving map[int64]int64) {
	t.Helper()
	r, err := export.OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range r.Cycles() {
		if last := int64(len(leaving)); n > 6 && n <= last-2 {
			continue // much like those before
		}
		f, err := factsAt(r, dir, n)
		if err != nil {
			t.Fatal(err)
		}
		if plans, err := r.Rows("plans", r.Cycles()[0], n); err != nil ||
			f.Policy.Digest != wordAt(plans.Column("digest"), plans.Rows-1) {
			t.Errorf("%s, cycle %d: not the policy in force: %v", s.Name, n, err)
		}
		var units int64
		for _, path := range consumersOf(f) {
			e, err := explain.Explain(f, explain.Target{Consumer: path})
			if err != nil {
				if !strings.Contains(err.Error(), "takes part in no plan") {
					t.Errorf("%s, cycle %d: %v", s.Name, n, err)
				}
				continue
			}
			top := strings.Count(path, "/") == 1
			// it is told with the branch that it was in, while there is one
			if _, known := f.Policy.Find(path); !known {
				_, branch := f.Policy.Find("/" + strings.Split(path, "/")[1])
				top = !branch
			}
			for i := range e.Plans {
				for _, l := range e.Plans[i].Leaving {
					if top {
						units += l.Units
					}
				}
				checkPart(t, fmt.Sprintf("%s, cycle %d, %s", s.Name, n, path), f, path, &e.Plans[i], x.seen)
			}
		}
		if units != leaving[n] {
			t.Errorf("%s, cycle %d: %d units under reclaim are told, there are %d", s.Name, n, units, leaving[n])
		}
		if last := n == int64(len(leaving)); last {
			checkSame(t, s.Name, r, dir, f)
		}
	}
}

// told holds that every reason had its words.
func (x *explainer) told(t *testing.T) {
	t.Helper()
	for _, reason := range decision.Reasons {
		if x.seen[reason] == 0 {
			t.Errorf("no scenario has the reason %s", reason)
		}
	}
	t.Log(x.seen)
}

// checkSame asks what if the policy of the last cycle were the one that is in force: nothing were otherwise.
func checkSame(t *testing.T, name string, r *export.Reader, dir string, f *explain.Facts) {
	t.Helper()
	windows := func(p *plan.Policy) bool {
		return slices.ContainsFunc(p.MDPlans, func(m plan.MDPlan) bool { return len(m.Windows) > 1 }) ||
			slices.ContainsFunc(p.SlotPlans, func(m plan.SlotPlan) bool { return len(m.Windows) > 1 })
	}
	// it can be done once
	renames := slices.ContainsFunc(f.Policy.RenamedFrom, func(was string) bool { return was != "" })
	// gangs that have asked in vain may ask anew under a new policy (docs/shares.md)
	waits := false
	for row := range f.Shortfalls.Rows {
		waits = waits || wordAt(f.Shortfalls.Column("reason"), row) == "gang"
	}
	if windows(f.Policy) || renames || waits {
		return // a new policy file is no switch of windows
	}
	c, err := compareUnder(r, &whatifOptions{place: place{log: dir}, settle: 50}, f.Cycle, f.Policy, io.Discard)
	switch {
	case err != nil && strings.Contains(err.Error(), "which no resource group of the plan has"):
		// hosts left that it lists: it cannot be put again
	case err != nil:
		t.Errorf("%s: %v", name, err)
	case len(c.Changes) > 0:
		var b strings.Builder
		_ = c.Write(&b, "the same", explain.Style{})
		t.Errorf("%s: under the same policy\n%s", name, &b)
	}
}

func wordAt(c *decision.Column, row int) string { return string(c.Dict.Bytes(c.Code[row])) }

// consumersOf are the consumers that a cycle tells of.
func consumersOf(f *explain.Facts) []string {
	all := map[string]bool{}
	for _, path := range f.Policy.Path[1:] {
		all[path] = true
	}
	for _, t := range []*decision.Table{f.Shortfalls, f.Holdings} {
		c := t.Column("consumer")
		for row := range t.Rows {
			path := string(c.Dict.Bytes(c.Code[row]))
			if n := slices.Index(f.Policy.RenamedFrom, path); n < 0 {
				all[path] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// checkPart holds an explanation against itself.
func checkPart(t *testing.T, at string, f *explain.Facts, path string, p *explain.Part, seen map[string]int) {
	t.Helper()
	var short int64
	for _, s := range p.Shortfalls {
		if short += s.Units; s.Text == "" || s.Text == s.Reason || strings.HasSuffix(s.Text, ": ") ||
			len(s.Rules) == 0 {
			t.Errorf("%s: %+v", at, s)
		}
		seen[s.Reason]++
	}
	if p.Unit == "unit" && short != p.Short || p.Unit == "slot" && (short > 0) != (p.Short > 0) {
		t.Errorf("%s: %d units short are explained, there are %d", at, short, p.Short)
	}
	for _, point := range slices.Concat(p.Points, p.Happened) {
		if point.Text == "" || len(point.Rules) == 0 || strings.Contains(point.Text, "%!") {
			t.Errorf("%s: %+v", at, point)
		}
	}
	if n, ok := f.Policy.Find(path); ok && p.Kind == "md" && f.Policy.Leaf(n) {
		var held int64
		for _, point := range p.Points {
			if point.Figure == "held" {
				held += *point.Value
			}
		}
		if held != p.Held {
			t.Errorf("%s: %d units held are explained, there are %d", at, held, p.Held)
		}
	}
}

// TestWhatif holds comparisons of the project's scenarios against testdata/whatif.
func TestWhatif(t *testing.T) { golden(t, "testdata/whatif", "whatif") }
