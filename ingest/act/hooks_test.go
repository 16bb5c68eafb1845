package act

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCommands has programs that do not do what they should: each is an error that names the program and what it did.
func TestCommands(t *testing.T) {
	left := filepath.Join(t.TempDir(), "left")
	for _, c := range []struct{ name, script, says string }{
		{"good", `cat >/dev/null; echo '{"demand": [], "running": []}'`, ""},
		{"garbage", `echo all is well`, "the answer is no JSON object"},
		{"nothing", `true`, "the answer is no JSON object"},
		{"two objects", `echo '{"demand": [], "running": []} {}'`, "text follows the JSON object"},
		{"an empty object", `echo '{}'`, "lacks demand or running"},
		{"a wrong type", `echo '{"demand": [], "running": "none"}'`, "cannot unmarshal string"},
		{"an exit code", `echo '{"demand": [], "running": []}'; echo no such partition >&2; exit 3`,
			"exit status 3: no such partition"},
		{"no end", `sleep 60`, "no answer within 300ms; it was killed"},
		{"a child without end", `(sleep 2; echo late >` + left + `) & wait`, "no answer within 300ms; it was killed"},
		{"too much", `yes | head -c 70000000`, "more than 67108864 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			timeout := 300 * time.Millisecond
			if c.says == "" || c.name == "too much" {
				timeout = 20 * time.Second
			}
			hooks := &Commands{ListCommand: Command{Args: []string{"sh", "-c", c.script}, Timeout: timeout}}
			_, err := hooks.List(t.Context())
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v; must have %q", err, c.says)
			}
		})
	}
	time.Sleep(2 * time.Second)
	if _, err := os.Stat(left); err == nil {
		t.Error("a child of a program that was killed goes on")
	}
}

// TestListingRefused has lists that lack what units are known by.
func TestListingRefused(t *testing.T) {
	for _, c := range []struct{ answer, says string }{
		{`{"demand": [{"consumer": "/A", "allocation": "a"}], "running": []}`, "demand row 1: consumer, allocation or units"},
		{`{"demand": [{"consumer": "/A", "units": 1}], "running": []}`, "demand row 1"},
		{`{"demand": [], "running": [{"id": "u1", "allocation": "a"}]}`, "running row 1: id, consumer or allocation"},
	} {
		l := &Listing{}
		if err := decode([]byte(c.answer), l); err != nil {
			t.Fatal(err)
		}
		if err := l.check(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.answer, err)
		}
	}
}

// TestLedger has a ledger come back as it was, also after a last record that was cut short; damage is refused.
func TestLedger(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ledger")
	open := func() (*ledger, string) {
		t.Helper()
		l, cut, err := openLedger(dir)
		if err != nil {
			t.Fatal(err)
		}
		return l, cut
	}
	l, _ := open()
	due := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	for _, r := range []*record{
		{Units: []*entry{{Unit: Unit{ID: "u1", Host: "h1"}, State: granted}}, Cycle: 7, Version: "v7"},
		{Units: []*entry{{Unit: Unit{ID: "u2", Host: "h2"}, State: started, Deadline: &due}}, Skew: time.Minute},
		{Gone: []string{"u1"}},
	} {
		if err := l.write(r); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := openLedger(dir); err == nil || !strings.Contains(err.Error(), "another process has it") {
		t.Errorf("a second actor on one ledger: %v", err)
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	check := func(l *ledger) {
		t.Helper()
		e := l.units["u2"]
		if len(l.units) != 1 || e == nil || e.State != started || !e.tried || !e.Deadline.Equal(due) || l.cycle != 7 ||
			l.version != "v7" || l.skew != time.Minute {
			t.Errorf("%+v", l)
		}
	}
	l, _ = open()
	check(l)
	if err := l.write(&record{Gone: []string{"u2"}}); err != nil {
		t.Fatal(err)
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "records-*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	last := files[len(files)-1]
	text, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(last, text[:len(text)-3], 0o600); err != nil { // a crash in the middle of a write
		t.Fatal(err)
	}
	l, cut := open()
	check(l)
	if cut == "" {
		t.Error("nothing tells of the record that was cut off")
	}
	for range 3 {
		if err := l.write(&record{Cycle: 8, Version: "v8"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(last); err != nil {
		t.Fatal(err)
	}
	text[len(text)-150] ^= 1 // of a record that others follow
	if err := os.WriteFile(last, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openLedger(dir); err == nil ||
		!strings.Contains(err.Error(), "restore the folder, or move it away") {
		t.Errorf("damage: %v", err)
	}
}

// TestCompact has a ledger that forgets what is over, so that its folder does not grow for ever.
func TestCompact(t *testing.T) {
	dir := t.TempDir()
	l, _, err := openLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 200_000)
	for range 200 { // 40 MB
		r := &record{Units: []*entry{{Unit: Unit{ID: "u1", Allocation: long}, State: granted}}}
		if err := l.write(r); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.j.Bytes(); n > 5*ledgerSegment {
		t.Errorf("%d bytes of records are kept", n)
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
}
