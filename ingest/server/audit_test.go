package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/export"
)

// audited are the rows of a service's table audit, with some columns, after it ended.
func audited(t *testing.T, s *service, columns ...string) (rows []string) {
	t.Helper()
	s.stop()
	table, err := export.AuditRows(filepath.Join(s.dir, "log"), "", 0, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	for row := range table.Rows {
		var cells []string
		for _, name := range columns {
			c := table.Column(name)
			switch {
			case c == nil:
				t.Fatal("no column", name)
			case c.Type == decision.Text && c.Code[row] == decision.Null:
				cells = append(cells, "-")
			case c.Type == decision.Text:
				cells = append(cells, string(c.Dict.Bytes(c.Code[row])))
			default:
				cells = append(cells, fmt.Sprint(c.Int[row]))
			}
		}
		rows = append(rows, strings.Join(cells, " | "))
	}
	return rows
}

// total adds up rows that differ only in their first number.
func total(rows []string) map[string]int {
	sums := map[string]int{}
	for _, r := range rows {
		n, rest, _ := strings.Cut(r, " | ")
		calls := 0
		fmt.Sscan(n, &calls)
		sums[rest] += calls
	}
	return sums
}

// TestAudit has calls of all kinds be found in the table: who pushed, who put the plan, who read whose branch, and who
// was refused.
func TestAudit(t *testing.T) {
	s := start(t, func(o *ServiceOptions) {
		o.Server.Audit = true
		o.Server.Tokens = []Token{
			{Name: "ops", Role: RoleAdmin, SHA256: HashToken("ops")},
			{Name: "day", Role: RoleReader, SHA256: HashToken("day"), Branch: "/Risk/Day"},
			{Name: "all", Role: RoleReader, SHA256: HashToken("all")},
		}
	})
	as := func(token string, status int, method, path, body string, headers ...string) {
		t.Helper()
		s.token = token
		s.must(status, method, path, body, headers...)
	}
	csv := []string{"Content-Type", "text/csv"}
	as("ops", 200, "PUT", "/v1/plan", policyText)
	as("ops", 200, "PUT", "/v1/hosts", hostsText, csv...)
	as("ops", 200, "PUT", "/v1/demand/feed", "consumer,allocation,units,ncpus\n/Risk/Day,a,1,1\n", csv...)
	as("ops", 200, "POST", "/v1/cycles", "")
	for range 3 {
		as("all", 200, "GET", "/v1/explain/Risk/Day", "")
	}
	as("all", 200, "GET", "/v1/cycles/latest/grants", "")
	as("all", 200, "GET", "/v1/cycles/latest/grants?consumer=/Risk", "")
	as("day", 200, "GET", "/v1/cycles/latest/grants", "")
	as("day", 403, "GET", "/v1/explain/Research", "")
	as("day", 403, "PUT", "/v1/plan", policyText)
	as("who", 401, "GET", "/v1/holdings?source=feed", "")
	as("ops", 200, "GET", "/v1/holdings?source=feed", "")
	as("", 200, "GET", "/healthz", "")
	as("ops", 422, "PUT", "/v1/hosts", "host\n\"", csv...)
	got := total(audited(t, s, "calls", "caller", "by", "call", "source", "branch", "status", "rows", "revision",
		"address"))
	want := map[string]int{
		"ops | token | PUT /v1/plan | - | - | 200 | 0 | 1 | 127.0.0.1":                           1,
		"ops | token | PUT /v1/hosts | - | - | 200 | 2 | 0 | 127.0.0.1":                          1,
		"ops | token | PUT /v1/hosts | - | - | 422 | 0 | 0 | 127.0.0.1":                          1,
		"ops | token | PUT /v1/demand/{source} | feed | - | 200 | 1 | 0 | 127.0.0.1":             1,
		"ops | token | POST /v1/cycles | - | - | 200 | 0 | 0 | 127.0.0.1":                        1,
		"all | token | GET /v1/explain/{path} | - | /Risk/Day | 200 | 0 | 0 | 127.0.0.1":         3,
		"all | token | GET /v1/cycles/{cycle}/{table} | - | / | 200 | 0 | 0 | 127.0.0.1":         1,
		"all | token | GET /v1/cycles/{cycle}/{table} | - | /Risk | 200 | 0 | 0 | 127.0.0.1":     1,
		"day | token | GET /v1/cycles/{cycle}/{table} | - | /Risk/Day | 200 | 0 | 0 | 127.0.0.1": 1,
		"day | token | GET /v1/explain/{path} | - | /Research | 403 | 0 | 0 | 127.0.0.1":         1,
		"day | token | PUT /v1/plan | - | - | 403 | 0 | 0 | 127.0.0.1":                           1,
		"- | nobody | GET /v1/holdings | feed | / | 401 | 0 | 0 | 127.0.0.1":                     1,
		"ops | token | GET /v1/holdings | feed | / | 200 | 0 | 0 | 127.0.0.1":                    1,
	}
	for row, n := range want {
		if got[row] != n {
			t.Errorf("%s: %d calls, expected %d", row, got[row], n)
		}
		delete(got, row)
	}
	for row, n := range got {
		t.Errorf("not expected: %s: %d", row, n)
	}
}

// TestAuditRestart has the table go on after a restart, and nothing be noted where a log is shown alone.
func TestAuditRestart(t *testing.T) {
	s := ready(t, func(o *ServiceOptions) { o.Server.Audit = true })
	s.cycle()
	s.restart()
	s.must(200, "GET", "/v1/cycles", "")
	rows := audited(t, s, "batch", "call", "cycle")
	if !slices.Contains(rows, "1 | PUT /v1/plan | 0") || !slices.Contains(rows, "2 | GET /v1/cycles | 1") {
		t.Error(rows)
	}
}

// TestAuditBounds has callers with more keys than are told apart: their calls are still counted, and others' told.
func TestAuditBounds(t *testing.T) {
	a := newAuditor()
	now := time.Date(2026, 1, 5, 8, 0, 30, 0, time.UTC)
	for i := range 3 * auditCallersMax {
		a.note(auditKey{caller: "greedy", call: "GET /v1/explain/{path}", branch: fmt.Sprint("/", i)}, 1, 0, now)
	}
	a.note(auditKey{caller: "other", call: "GET /v1/explain/{path}", branch: "/Risk"}, 1, 0, now)
	keys, calls := 0, int64(0)
	other := false
	sums := a.take()
	for k, s := range sums {
		keys, calls = keys+1, calls+s.calls
		other = other || k.branch == "/Risk"
		if k.minute != now.Truncate(time.Minute).UnixMicro() {
			t.Error(k)
		}
	}
	if keys != auditCallersMax+2 || calls != 3*auditCallersMax+1 || !other {
		t.Error(keys, calls, other)
	}
	// What cannot be written stays, within bounds, and is added to what comes.
	a.back(sums)
	a.note(auditKey{caller: "other", call: "GET /v1/explain/{path}", branch: "/Risk"}, 1, 0, now)
	for k, s := range a.take() {
		if k.caller == "other" && s.calls != 2 {
			t.Error(k, s)
		}
	}
	for i := range 3 * auditKeysMax {
		a.note(auditKey{caller: fmt.Sprint(i), call: "GET /v1/cycles", branch: "/"}, 1, 0, now)
	}
	if n := len(a.sums); n > 2*auditKeysMax {
		t.Error(n, "keys are kept")
	}
	if got := bounded(strings.Repeat("é", auditTextBytes)); len(got) > auditTextBytes+3 {
		t.Error(len(got))
	}
}

// TestAuditFails has a table that cannot be written be told of, once, and be written when it can.
func TestAuditFails(t *testing.T) {
	a, dir := newAuditor(), t.TempDir()
	a.note(auditKey{caller: "x", call: "GET /v1/cycles", branch: "/"}, 1, 0, time.Now())
	var w *export.AuditWriter
	day := ""
	blocked := filepath.Join(dir, "log")
	if err := os.WriteFile(blocked, []byte("a file in place of the folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.flush(&w, blocked, &day, 0); err == nil {
		t.Fatal("nothing fails")
	}
	w = nil
	if err := a.flush(&w, filepath.Join(dir, "other"), &day, 0); err != nil {
		t.Fatal(err)
	}
	table, err := export.AuditRows(filepath.Join(dir, "other"), "", 0, 1<<40)
	if err != nil || table.Rows != 1 {
		t.Error(table, err)
	}
}
