package export

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/decision"
)

var day = time.Date(2026, 1, 5, 23, 59, 0, 0, time.UTC).UnixMicro()

// coded is a text column; "-" is null.
func coded(texts ...string) decision.Coded {
	c := decision.Coded{Code: []int32{}}
	words := decision.Words{"not used"}
	for _, s := range texts {
		if s == "-" {
			c.Add(decision.Null)
			continue
		}
		if !slices.Contains(words, s) {
			words = append(words, s)
		}
		c.Add(int32(slices.Index(words, s)))
	}
	c.Dict = words
	return c
}

// fill makes a cycle a minute after the one before, across midnight. held goes into the state tables.
func fill(cycle, held int64) *decision.Cycle {
	c := &decision.Cycle{}
	c.Summary = decision.Summary{Cycle: cycle, NowUS: day + cycle*60e6, Revision: 3, Window: "night", Hosts: 2,
		UnitsHeld: held}
	g := &c.Grants
	g.Plan, g.Consumer, g.Allocation = coded("grid", "grid"), coded("/Ä", "/B \"x\",\n"), coded("a", "a")
	g.Sub, g.Source, g.Host = coded("", "-"), coded("s", "s"), coded("h1", "h2")
	g.Units = []int64{held, -1 << 62}
	g.Origin, g.Pool, g.Lender = coded("owned", "public_pool"), coded("-", "/"), coded("-", "-")
	g.Device = coded("-", "0+1")
	n := &c.Consumers
	n.Plan, n.Consumer, n.Policy = coded("grid", "slots"), coded("/Ä", "/Ä"), coded("md", "hybrid")
	n.Rank, n.Demand, n.Held, n.Short = []int64{0, 1}, []int64{9, 9}, []int64{held, 0}, []int64{0, 9}
	for i := range n.Slot {
		n.Slot[i] = []int64{0, int64(i)}
	}
	n.UnitSecondsLost, n.SlotNull = []float64{12.5, 0}, []bool{true, false}
	n.Budget, n.BudgetUsed, n.BudgetNull = []int64{40, 0}, []float64{2.25, 0}, []bool{false, true}
	n.BudgetDimension = decision.Coded{Code: []int32{0, decision.Null}, Dict: decision.Words{"ncpus"}}
	a := &c.Amounts
	a.Plan, a.Consumer, a.Dimension = coded("grid"), coded("/Ä"), coded("ncpus")
	for _, v := range []*[]int64{&a.Configured, &a.Owned, &a.Reserved, &a.Held, &a.Lent, &a.StaticQuota, &a.Limit} {
		*v = []int64{held}
	}
	s := &c.Shares
	s.Plan, s.Consumer, s.Pool = coded("grid"), coded("/Ä"), coded("/")
	s.Ratio, s.Priority, s.UnitsHeld, s.UnitsWanted = []int64{1}, []int64{-1}, []int64{2}, []int64{3}
	s.Usage, s.UsageDemand, s.UsageQuota = []float64{1.0 / 3}, []float64{1}, []float64{0}
	s.DecayedUsage, s.EffectiveRatio, s.HistoryNull = []float64{0.25}, []float64{0.71}, []bool{false}
	c.Standing = stands(cycle, held)
	return c
}

// stands is what stands after a cycle, whole.
func stands(cycle, held int64) *decision.Standing {
	s := &decision.Standing{Whole: true}
	b := &s.SubAllocations
	b.Plan, b.Consumer, b.Allocation = coded("grid"), coded("/Ä"), coded("a")
	b.Sub, b.Source, b.Requirement = coded(""), coded("s"), coded("-")
	b.MinUnits, b.Together = []int64{2}, coded("rack")
	b.MaxPerHost, b.MaxPerHostNull, b.FirstSeen, b.FirstSeenNull = []int64{0}, []bool{true}, []int64{1}, []bool{false}
	b.Wanted, b.WantedNull, b.Held = []int64{cycle}, []bool{false}, []int64{held}
	b.Size = decision.NewFigures([]string{"ncpus"}, false)
	b.Size.Add(false, []int64{2})
	s.Attributes = decision.Attributes{Host: coded("h1", "h1"), Attribute: coded("model", "group"),
		Value: coded("A", "All")}
	return s
}

// keyframe fills the keyframe tables.
func keyframe(c *decision.Cycle, units int64) *decision.Cycle {
	c.Keyframe = true
	h := &c.Holdings
	for _, col := range []*decision.Coded{&h.Plan, &h.Consumer, &h.Allocation, &h.Sub, &h.Source, &h.Host, &h.Origin,
		&h.Pool, &h.Lender, &h.Device} {
		*col = coded("x")
	}
	h.Units, h.Granted = []int64{units}, []int64{c.Summary.Cycle}
	return c
}

// savedState is a state to save: its text.
type savedState string

func (s savedState) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, string(s))
	return int64(n), err
}

// rowsOf renders a table, types and columns included.
func rowsOf(t *decision.Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d\n", t.Name, t.Rows)
	for i := range t.Columns {
		c := &t.Columns[i]
		fmt.Fprintf(&b, "%s %d %v:", c.Name, c.Type, c.Optional)
		for row := range t.Rows {
			if c.IsNull(row) {
				b.WriteString(" null")
			} else {
				fmt.Fprintf(&b, " %q", value(c, row))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func write(t *testing.T, dir string, o Options, cycles ...*decision.Cycle) {
	t.Helper()
	w := must(Open(dir, o))(t)
	for _, c := range cycles {
		in := must(w.Input("demand", "s", "json", []byte(`[{"units":1}]`)))(t)
		in.Rows = 1
		if err := w.Cycle(c, []Input{in}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// allTables are views of all tables of a cycle that the log has.
func allTables(c *decision.Cycle) []decision.Table {
	tables := append(logged(c.Tables(), nil), c.Summary.Schema().Table())
	if c.Keyframe {
		tables = append(tables, c.Holdings.Schema().Table(), c.Hosts.Schema().Table(), c.Owners.Schema().Table())
	}
	return tables
}

// TestRoundTrip writes four cycles and reads every table of each back.
func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "log")
	cycles := []*decision.Cycle{keyframe(fill(1, 5), 7), fill(2, 5), fill(3, 6), fill(4, 6)}
	cycles[3].Grants = decision.Grants{}
	cycles[3].Shares = decision.Shares{}
	write(t, dir, Options{}, cycles...)
	r := must(OpenLog(dir))(t)
	if !slices.Equal(r.Cycles(), []int64{1, 2, 3, 4}) {
		t.Fatalf("cycles %v", r.Cycles())
	}
	for _, c := range cycles {
		cycle := c.Summary.Cycle
		for _, want := range allTables(c) {
			got := must(r.Table(want.Name, cycle))(t)
			if g, w := rowsOf(got), rowsOf(&want); g != w {
				t.Errorf("cycle %d:\n%sexpected\n%s", cycle, g, w)
			}
		}
		digest := must(r.Digest(cycle))(t)
		if digest != c.Summary.Digest || digest != decision.Digest(c.Tables()) {
			t.Errorf("cycle %d: digest %s from the log, %s in it", cycle, digest, c.Summary.Digest)
		}
		in := must(r.Inputs(cycle))(t)
		if len(in) != 1 || in[0].Bytes != 13 || in[0].Rows != 1 || in[0].Source != "s" || in[0].Format != "json" {
			t.Fatalf("cycle %d: inputs %+v", cycle, in)
		}
		if content := must(r.InputContent(in[0].Kind, in[0].Digest))(t); string(content) != `[{"units":1}]` {
			t.Errorf("content %q", content)
		}
	}
	var holders [][3]int64
	for _, c := range cycles {
		s := c.Summary
		holders = append(holders, [3]int64{s.ConsumersCycle, s.SharesCycle, s.ShortfallsCycle})
	}
	if want := [][3]int64{{1, 1, 1}, {1, 1, 1}, {3, 1, 1}, {3, 4, 1}}; !reflect.DeepEqual(holders, want) {
		t.Errorf("state tables are held by %v, expected %v", holders, want)
	}
	if holder := must(r.Holder("holdings", 4))(t); holder != 1 {
		t.Errorf("keyframe of cycle %d", holder)
	}
	if got := must(r.Table("holdings", 4))(t); got.Rows != 1 || got.Column("units").Int[0] != 7 {
		t.Errorf("keyframe: %s", rowsOf(got))
	}
	if n := len(must(filepath.Glob(filepath.Join(dir, "*", "date=2026-01-0[56]",
		"*")))(t)); n != 4+3+2+2+2+1+4+3+4+4*3 {
		// cycles, grants, consumers, amounts, shares, shortfalls, inputs, keyframes, what stands; without rows
		// reclaims, releases, ownership, plans
		t.Errorf("%d files", n)
	}
}

// TestRows reads ranges of cycles.
func TestRows(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, Options{}, fill(1, 5), fill(2, 5), fill(3, 6), keyframe(fill(5, 6), 1))
	r := must(OpenLog(dir))(t)
	for _, c := range []struct {
		table       string
		first, last int64
		want        []int64 // the column cycle
	}{
		{"grants", 1, 5, []int64{1, 1, 2, 2, 3, 3, 5, 5}}, {"grants", 2, 3, []int64{2, 2, 3, 3}},
		{"consumers", 2, 3, []int64{1, 1, 3, 3}}, {"consumers", 2, 2, []int64{1, 1}},
		{"consumers", 5, 5, []int64{3, 3}},
		{"cycles", 1, 5, []int64{1, 2, 3, 5}}, {"plans", 1, 5, nil}, {"holdings", 1, 5, []int64{5}},
	} {
		got := must(r.Rows(c.table, c.first, c.last))(t)
		if got.Columns[0].Name != "cycle" || !slices.Equal(got.Columns[0].Int, c.want) {
			t.Errorf("%s of %d to %d: cycles %v, expected %v", c.table, c.first, c.last, got.Columns[0].Int, c.want)
		}
	}
	for _, c := range []struct {
		table string
		cycle int64
		want  string
	}{
		{"grants", 4, "no cycle 4: there are 1 to 5"},
		{"holding", 1, `no table "holding"; there are amounts, attributes, consumers, cycles`},
		{"holdings", 3, "no keyframe of holdings up to cycle 3"},
	} {
		if _, err := r.Table(c.table, c.cycle); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %d: %v", c.table, c.cycle, err)
		}
	}
}

// TestManyRowGroups crosses the borders of batches, pages and row groups, with a column of
// nulls that begins late.
func TestManyRowGroups(t *testing.T) {
	c := sample(2*rowGroupRows + 77)
	c.Grants.Lender.Code[rowGroupRows+5] = 3
	c.Summary = decision.Summary{Cycle: 1}
	dir := t.TempDir()
	write(t, dir, Options{}, c)
	r := must(OpenLog(dir))(t)
	if digest := must(r.Digest(1))(t); digest != c.Summary.Digest {
		t.Errorf("digest %s, expected %s", digest, c.Summary.Digest)
	}
}

var errDisk = errors.New("disk full")

// TestWholeOrNot lets the disk fail at every step of a cycle, for a moment or for good. A
// reader sees the cycle before and nothing of this one; then the cycle, or after a crash
// Append, goes through.
func TestWholeOrNot(t *testing.T) {
	base := t.TempDir()
	write(t, base, Options{}, fill(1, 5))
	steps := 0
	w := reopen(t, base)(t)
	w.disk.step = func(string, string) error { steps++; return nil }
	if err := w.Cycle(nextDay(), nil); err != nil || steps < 40 {
		t.Fatalf("%d steps, %v", steps, err)
	}
	for fail := 1; fail <= steps; fail++ {
		t.Run(fmt.Sprintf("moment/%d", fail), func(t *testing.T) { t.Parallel(); failAt(t, base, fail, false) })
		t.Run(fmt.Sprintf("crash/%d", fail), func(t *testing.T) { t.Parallel(); failAt(t, base, fail, true) })
	}
}

// nextDay is cycle 2 on another day than cycle 1, so that it needs new folders.
func nextDay() *decision.Cycle {
	c := keyframe(fill(2, 6), 1)
	c.State = savedState("state 2")
	c.Summary.NowUS += 86400e6
	return c
}

// reopen opens a copy of a log's first cycle for appending.
func reopen(t *testing.T, base string) func(*testing.T) *Writer {
	dir := t.TempDir()
	for _, path := range must(filepath.Glob(filepath.Join(base, "*", "*", "*00001.parquet")))(t) {
		to := filepath.Join(dir, strings.TrimPrefix(path, base))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Link(path, to)); err != nil {
			t.Fatal(err)
		}
	}
	return must(Open(dir, Options{Append: true}))
}

func failAt(t *testing.T, base string, fail int, crash bool) {
	w := reopen(t, base)(t)
	w.disk.lazy = true
	n, failed := 0, ""
	w.disk.step = func(op, path string) error {
		if n++; n == fail || crash && n > fail {
			failed += op + strings.TrimPrefix(path, w.dir) + "; "
			return errDisk
		}
		return nil
	}
	err := w.Cycle(nextDay(), nil)
	w.disk.step = nil
	if !errors.Is(err, errDisk) {
		t.Fatalf("failed at %s: error %v", failed, err)
	}
	want := []int64{1}
	if strings.HasPrefix(failed, "syncdir/cycles/date=") {
		want = append(want, 2) // it is there, though perhaps not on the disk
	}
	checkReads(t, w.dir, want)
	if w.broken == nil {
		if files := leftovers(t, w.dir, 2); files != nil {
			t.Errorf("failed at %s: left %v", failed, files)
		}
		if err := w.Cycle(nextDay(), nil); err != nil {
			t.Errorf("again: %v", err)
		}
		want = []int64{1, 2}
		checkReads(t, w.dir, want)
	} else if err := w.Cycle(fill(3, 6), nil); err == nil || !strings.Contains(err.Error(), "log "+w.dir) {
		t.Errorf("failed at %s: goes on: %v", failed, err)
	}
	if !crash && w.broken != nil && len(want) == 1 {
		t.Errorf("failed at %s: cannot be tried again: %v", failed, w.broken)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !crash {
		return
	}
	w = must(Open(w.dir, Options{Append: true}))(t)
	w.disk.lazy = true
	if files := leftovers(t, w.dir, w.Last()+1); files != nil {
		t.Errorf("failed at %s: Append left %v", failed, files)
	}
	if w.Last() != want[len(want)-1] {
		t.Errorf("Append after %d, expected %v", w.Last(), want)
	}
	if err := w.Cycle(fill(9, 6), nil); err != nil {
		t.Error(err)
	}
	checkReads(t, w.dir, append(want, 9))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// leftovers are temporary files and those of cycles from first on.
func leftovers(t *testing.T, dir string, first int64) (files []string) {
	for _, path := range must(filepath.Glob(filepath.Join(dir, "*", "*", "*")))(t) {
		m, s := fileName.FindStringSubmatch(filepath.Base(path)), stateName.FindStringSubmatch(filepath.Base(path))
		if from := fmt.Sprintf("%012d", first); strings.HasSuffix(path, tmpSuffix) || m != nil && m[1] >= from ||
			s != nil && s[1] >= from {
			files = append(files, path)
		}
	}
	return files
}

// checkReads reads what a log says and what it should say.
func checkReads(t *testing.T, dir string, cycles []int64) {
	t.Helper()
	r := must(OpenLog(dir))(t)
	if !slices.Equal(r.Cycles(), cycles) {
		t.Fatalf("cycles %v, expected %v", r.Cycles(), cycles)
	}
	for _, cycle := range r.Cycles() {
		digest := must(r.Digest(cycle))(t)
		row := must(r.Table("cycles", cycle))(t)
		if has := textAt(row.Column("decisions_digest"), 0); has != digest {
			t.Errorf("cycle %d: digest %s, logged %s", cycle, digest, has)
		}
		if cycle == 2 {
			if state := must(r.State(2))(t); string(state) != "state 2" || !slices.Equal(r.States(), []int64{2}) {
				t.Errorf("states %v, of cycle 2 %q", r.States(), state)
			}
		}
	}
	for _, table := range []string{"grants", "consumers"} {
		rows := must(r.Rows(table, cycles[0], cycles[len(cycles)-1]))(t)
		if rows.Rows == 0 {
			t.Errorf("no %s", table)
		}
		for _, c := range rows.Columns[0].Int {
			if !slices.Contains(cycles, c) {
				t.Errorf("%s of cycle %d", table, c)
			}
		}
	}
}

// TestAppend continues a log as if it had not been closed.
func TestAppend(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, Options{Append: true}, fill(1, 5))
	c := fill(2, 5)
	write(t, dir, Options{Append: true}, c)
	if c.Summary.ConsumersCycle != 1 || c.Summary.SharesCycle != 1 || c.Summary.ShortfallsCycle != 1 {
		t.Errorf("state tables that did not change were written again: %+v", c.Summary)
	}
	w := must(Open(dir, Options{Append: true}))(t)
	for _, cycle := range []int64{0, 1, 2, cycleMax + 1} {
		if err := w.Cycle(fill(cycle, 5), nil); err == nil || !strings.Contains(err.Error(), "cannot follow cycle 2") {
			t.Errorf("cycle %d: %v", cycle, err)
		}
	}
	if err := w.Cycle(fill(3, 5), []Input{{Kind: "hosts", Digest: "00"}}); err == nil ||
		!strings.Contains(err.Error(), "an input that was not kept") {
		t.Error(err)
	}
	if _, err := w.Input("../x", "", "", nil); err == nil {
		t.Error("an input of kind ../x")
	}
	if _, err := Open(dir, Options{Append: true}); err == nil ||
		!strings.Contains(err.Error(), "another writer has it") {
		t.Errorf("a second writer: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Cycle(fill(3, 5), nil); err == nil {
		t.Error("a closed writer writes")
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a log that is not empty: %v", err)
	}
	stranger := t.TempDir()
	if err := os.WriteFile(filepath.Join(stranger, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(stranger, Options{}); err == nil {
		t.Error("a stranger's folder")
	}
	if _, err := os.Stat(filepath.Join(stranger, lockName)); err == nil {
		t.Error("a lock in a stranger's folder")
	}
	if _, err := OpenLog(stranger); err == nil || !strings.Contains(err.Error(), "no decision log") {
		t.Errorf("a stranger's folder read: %v", err)
	}
}

// TestSchema finds the same columns in every file of a table, with nulls or without.
func TestSchema(t *testing.T) {
	with, without := fill(1, 1), fill(2, 2)
	without.Consumers.SlotNull = nil
	for _, c := range []*decision.Cycle{with, without, {}} {
		tables := c.Tables()
		for i := range tables {
			base := with.Tables()[i]
			if got, want := schemaOf(&tables[i]).String(), schemaOf(&base).String(); got != want {
				t.Errorf("%s, expected %s", got, want)
			}
		}
	}
}

// TestInputLarge keeps an input larger than the decoder's window.
func TestInputLarge(t *testing.T) {
	dir := t.TempDir()
	w := must(Open(dir, Options{}))(t)
	content := make([]byte, inputWindowBytes+12345)
	for i := range content {
		content[i] = byte(i * i >> 7)
	}
	in := must(w.Input("hosts", "", "parquet", content))(t)
	again := must(w.Input("hosts", "", "parquet", content))(t)
	if in != again {
		t.Errorf("%v, then %v", in, again)
	}
	if err := w.Cycle(fill(1, 1), []Input{in}); err != nil {
		t.Fatal(err)
	}
	r := must(OpenLog(dir))(t)
	if got := must(r.InputContent("hosts", in.Digest))(t); !slices.Equal(got, content) {
		t.Error("another content")
	}
	for _, name := range [][2]string{{"..", in.Digest}, {"hosts", "../" + in.Digest},
		{"hosts", strings.Repeat("0", 64)}} {
		if _, err := r.InputContent(name[0], name[1]); err == nil {
			t.Errorf("an input %v", name)
		}
	}
}
