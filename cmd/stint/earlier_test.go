package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/export"
	"github.com/stintd/stint/export/verify"
)

// logsAt has a decision log of every version of the rules, as NAME.tar.gz. They are written with the folders of
// foldersAt, from the scenario folderScenario.
const logsAt = "../../testdata/logs"

// folderScenario is what a kept log has decided: plans of both kinds, gangs, devices, windows and budgets.
const folderScenario = "../../testdata/folders/input/day.yaml"

// TestEarlierLogs reads the decision logs of earlier versions. Where another version of the rules decided a log, replay
// and verify say so, and find no fault in it.
func TestEarlierLogs(t *testing.T) {
	if name := os.Getenv(folderVariable); name != "" {
		writeLog(t, filepath.Join(logsAt, name+".tar.gz"))
	}
	files, err := filepath.Glob(filepath.Join(logsAt, "*.tar.gz"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".tar.gz"), func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			unpackFolder(t, file, log)
			r, err := export.OpenLog(log)
			if err != nil {
				t.Fatal(err)
			}
			readEarlier(t, r, log)
			by := rulesOf(t, r)
			for _, rules := range []string{decision.RulesVersion, by, "1000"} { // 1000: a stint of years to come
				replayEarlier(t, r, log, by, rules)
				verifyEarlier(t, r, by, rules)
			}
		})
	}
}

// rulesOf is the version of the rules that decided a log's first cycle.
func rulesOf(t *testing.T, r *export.Reader) string {
	t.Helper()
	head, err := r.Table("cycles", r.Cycles()[0])
	if err != nil {
		t.Fatal(err)
	}
	c := head.Column("rules_version")
	return string(c.Dict.Bytes(c.Code[0]))
}

// readEarlier reads every table of a log with query, and explains what is short.
func readEarlier(t *testing.T, r *export.Reader, log string) {
	t.Helper()
	for _, table := range r.Tables() {
		got := command(t, 0, "query", "--log", log, table, "--cycle", "all", "--output", "csv")
		if !strings.Contains(got, "\n") {
			t.Errorf("query %s prints %q", table, got)
		}
	}
	for _, want := range []struct{ args, text string }{
		{"/Research --cycle 12", "budget"}, {"/Train:label --cycle 12", "gang"},
		{"/Desk/Credit --cycle 18", "12 slots"}, {"/Risk/Overnight --cycle 16", "/Risk/Intraday"},
	} {
		args := append([]string{"explain", "--log", log}, strings.Fields(want.args)...)
		if got := command(t, 0, args...); !strings.Contains(got, want.text) {
			t.Errorf("stint %s does not mention %q:\n%s", strings.Join(args, " "), want.text, got)
		}
	}
}

// replayEarlier replays a log as a stint with a version of the rules does.
func replayEarlier(t *testing.T, r *export.Reader, log, by, rules string) {
	t.Helper()
	cycles := r.Cycles()
	p := replaying{r: r, log: log, first: cycles[0], last: cycles[len(cycles)-1], rules: rules}
	var out, errs bytes.Buffer
	if err := p.run(&out, &errs); err != nil && by == rules && rules == decision.RulesVersion {
		t.Errorf("replay: %v\n%s", err, &out)
	} else if err != nil && by != rules {
		t.Errorf("replay calls the log wrong, which rules version %s decided: %v\n%s", by, err, &out)
	}
	named := strings.Contains(out.String(),
		"rules version "+by+" decided them and this stint decides by version "+rules)
	if named == (by == rules) || by != rules && !strings.Contains(out.String(), ": 0 compared, 0 otherwise") {
		t.Errorf("replay of a log of rules version %s by rules version %s prints\n%s", by, rules, &out)
	}
}

// verifyEarlier verifies a log as a stint with a version of the rules does.
func verifyEarlier(t *testing.T, r *export.Reader, by, rules string) {
	t.Helper()
	report, err := verify.Log(r, verify.Options{Decode: decodeTable, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	if by == rules && rules != decision.RulesVersion {
		return // the code of today does not check the promises of then
	}
	if !report.OK() {
		t.Errorf("verify by rules version %s of a log of version %s: %v", rules, by, report.Faults)
	}
	if by == rules {
		return
	}
	told := slices.ContainsFunc(report.Untold, func(line string) bool {
		return strings.Contains(line, "rules version "+by+" decided them, and this stint knows version "+rules)
	})
	if !told {
		t.Errorf("verify does not say what it left out: %q", report.Untold)
	}
	always := []string{"seal", "manifest", "digest", "input", "log", "audit", "CYC-9", "INV-1", "INV-9"}
	for rule, n := range report.Checks {
		if !slices.Contains(always, rule) {
			t.Errorf("%d checks of rule %s, of which another version may decide otherwise", n, rule)
		}
	}
	for rule, least := range map[string]int64{"digest": 20, "INV-1": 50, "INV-9": 30, "log": 300} {
		if report.Checks[rule] < least {
			t.Errorf("%d checks of %s, at least %d are expected: %v", report.Checks[rule], rule, least, report.Checks)
		}
	}
}

// writeLog writes the decision log of the present version.
func writeLog(t *testing.T, file string) {
	log := filepath.Join(t.TempDir(), "log")
	command(t, 0, "simulate", "--scenario", folderScenario, "--out", log)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	packFolder(t, log, file)
}
