package export

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/decision"
)

// calls are some rows of the table audit.
func calls(n int, cycle, us int64) *decision.Audit {
	a := &decision.Audit{}
	one := func(word string) decision.Coded {
		return decision.Coded{Code: slices.Repeat([]int32{0}, n), Dict: decision.Words{word}}
	}
	a.Cycle, a.Minute = slices.Repeat([]int64{cycle}, n), slices.Repeat([]int64{us}, n)
	a.Caller, a.By, a.Address, a.Call = one("ops"), one("token"), one("10.0.0.1"), one("GET /v1/cycles")
	a.Branch = one("/")
	a.Source = decision.Coded{Code: slices.Repeat([]int32{decision.Null}, n), Dict: decision.Words{}}
	a.Status, a.Calls = slices.Repeat([]int64{200}, n), slices.Repeat([]int64{1}, n)
	a.Rows, a.Revision = make([]int64, n), make([]int64, n)
	a.First, a.Last = a.Minute, a.Minute
	return a
}

func auditFiles(t *testing.T, dir string) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, auditTable, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		names = append(names, filepath.Base(filepath.Dir(p))[len("date="):]+"/"+filepath.Base(p))
	}
	return names
}

// TestAuditFiles has batches become longer files, days be dropped, and every row be read once whatever stands there.
func TestAuditFiles(t *testing.T) {
	dir := t.TempDir()
	w, err := OpenAudit(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := func(day, minute int) int64 {
		return time.Date(2026, 1, day, 10, minute, 0, 0, time.UTC).UnixMicro()
	}
	rows := func(want int) {
		t.Helper()
		if table, err := AuditRows(dir, "", 0, cycleMax); err != nil || table.Rows != want {
			t.Errorf("%v rows, expected %d: %v", table, want, err)
		}
	}
	rows(0)
	for i := range 3 {
		if err := w.Write(calls(2, 7, at(1, i)), at(1, i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range auditLooseMax {
		if err := w.Write(calls(1, 8, at(2, i)), at(2, i)); err != nil {
			t.Fatal(err)
		}
	}
	rows(6 + auditLooseMax)
	single := filepath.Join(dir, auditTable, "date=2026-01-01", batchesName(2, 2))
	text, err := os.ReadFile(single)
	if err != nil {
		t.Fatal(err)
	}
	if !w.Crowded() || w.Tidy(at(2, 59), 0) != nil || w.Crowded() {
		t.Error("many files are not told of")
	}
	if got := auditFiles(t, dir); !slices.Equal(got,
		[]string{"2026-01-01/" + batchesName(1, 3), "2026-01-02/" + batchesName(4, 63)}) {
		t.Error(got)
	}
	// A crash between a longer file and the removal of what it replaces, and one in the midst of a file.
	if err := errors.Join(os.WriteFile(single, text, 0o600),
		os.WriteFile(single+tmpSuffix, text[:9], 0o600)); err != nil {
		t.Fatal(err)
	}
	rows(6 + auditLooseMax)
	if w, err = OpenAudit(dir); err != nil || w.next != 64 {
		t.Fatal(w, err)
	}
	if err := w.Write(calls(1, 9, at(3, 0)), at(3, 0)); err != nil {
		t.Fatal(err)
	}
	if err := w.Tidy(at(3, 1), 1); err != nil {
		t.Fatal(err)
	}
	if got := auditFiles(t, dir); !slices.Equal(got,
		[]string{"2026-01-02/" + batchesName(4, 63), "2026-01-03/" + batchesName(64, 64)}) {
		t.Error(got)
	}
	for c, want := range map[[2]int64]int{{8, 8}: auditLooseMax, {9, 9}: 1, {8, 9}: 1 + auditLooseMax, {1, 7}: 0} {
		if table, err := AuditRows(dir, "", c[0], c[1]); err != nil || table.Rows != want {
			t.Error(c, table, err)
		}
	}
	if table, err := AuditRows(dir, "2026-01-03", 0, cycleMax); err != nil || table.Rows != 1 {
		t.Error(table, err)
	}
	if view, err := os.ReadFile(filepath.Join(dir, auditViewName)); err != nil ||
		!strings.Contains(string(view), "VIEW audit") {
		t.Error(string(view), err)
	}
	// A log has nothing against the table, and a damaged file is found.
	broken := filepath.Join(dir, auditTable, "date=2026-01-03", batchesName(64, 64))
	if text, err = os.ReadFile(broken); err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(broken, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := AuditRows(dir, "", 0, cycleMax); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
}

// TestAuditGap has a batch that is gone stay gone to be seen: its neighbours do not become one file.
func TestAuditGap(t *testing.T) {
	dir := t.TempDir()
	w, err := OpenAudit(dir)
	if err != nil {
		t.Fatal(err)
	}
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	for range 3 {
		if err := w.Write(calls(1, 1, day), day); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, auditTable, "date=2026-01-01", batchesName(2, 2))); err != nil {
		t.Fatal(err)
	}
	if err := w.Tidy(day+2*dayUS, 0); err != nil {
		t.Fatal(err)
	}
	if got := auditFiles(t, dir); len(got) != 2 {
		t.Error(got)
	}
}
