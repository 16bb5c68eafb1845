package export

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/decision"
)

// oldLog is a copy of a log of the first schema.
func oldLog(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "schema1", "log"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// column is the values of a column as text.
func column(t *testing.T, r *Reader, table string, cycle int64, name string) string {
	t.Helper()
	rows := must(r.Table(table, cycle))(t)
	c := rows.Column(name)
	if c == nil {
		t.Fatalf("%s has no column %s", table, name)
	}
	var all []string
	for row := range rows.Rows {
		all = append(all, cell(c, row))
	}
	return strings.Join(all, " ")
}

// holdOld reads what the first schema had otherwise, and the digests that it wrote.
func holdOld(t *testing.T, what string, r *Reader) {
	t.Helper()
	for _, cycle := range []int64{1, 2, 3} {
		for _, c := range []struct{ table, column, want string }{
			{"consumers", "slot_limit", "6 - - -"}, {"consumers", "parent", "- /A /A -"},
			{"consumers", "depth", "1 2 2 1"}, {"consumers", "leaf", "0 1 1 1"},
			{"cycles", "time_window", ""}, {"amounts", "share_limit", ""},
		} {
			got := column(t, r, c.table, cycle, c.column)
			if got != c.want {
				t.Errorf("%s: cycle %d: %s.%s is %q, expected %q", what, cycle, c.table, c.column, got, c.want)
			}
		}
		if got, want := must(r.Digest(cycle))(t), column(t, r, "cycles", cycle, "decisions_digest"); got != want {
			t.Errorf("%s: cycle %d: digest %s, logged %s", what, cycle, got, want)
		}
		for _, in := range must(r.Inputs(cycle))(t) {
			if in.Author != "" {
				t.Errorf("%s: %+v", what, in)
			}
			must(r.InputContent(in.Kind, in.Digest))(t)
		}
	}
	if states := fmt.Sprint(r.States()); states != "[1 2]" {
		t.Errorf("%s: states of %s", what, states)
	}
	if state := must(r.State(2))(t); len(state) == 0 {
		t.Errorf("%s: an empty state", what)
	}
}

// TestFirstSchema reads a log of the first schema, goes on with it, and compacts it: old columns have their new names,
// digests are those that were written, inputs and states are found.
func TestFirstSchema(t *testing.T) {
	dir := oldLog(t)
	holdOld(t, "as it was written", must(OpenLog(dir))(t))
	w := must(Open(dir, Options{Append: true, Lazy: true}))(t)
	for n := int64(4); n <= 6; n++ {
		c := keyframe(fill(n, n), n)
		c.Summary.NowUS = w.nowUS + 12*3600e6
		in := must(w.Input("demand", "s", "json", []byte(fmt.Sprint(n))))(t)
		in.Author = "ann"
		if err := w.Cycle(c, []Input{in}); err != nil {
			t.Fatal(err)
		}
	}
	holdOld(t, "gone on with", must(OpenLog(dir))(t))
	for _, table := range must(OpenLog(dir))(t).Tables() {
		if files := must(filepath.Glob(filepath.Join(dir, table, "*", "*4.parquet")))(t); len(files) != 1 {
			t.Errorf("the first new cycle has no file of %s: one table of the log may have none", table)
		}
	}
	must(w.Compact(CompactOptions{Today: true}))(t)
	r := must(OpenLog(dir))(t)
	if got := column(t, r, "inputs", 5, "author"); got != "ann" {
		t.Errorf("author %s", got)
	}
	if _, err := os.Stat(filepath.Join(dir, viewsName)); err != nil {
		t.Error(err)
	}
	holdOld(t, "compacted", r)
	rows := must(r.Rows("consumers", 1, 6))(t)
	if c := rows.Column("leaf"); c == nil || rows.Rows != 4+4+3*2 {
		t.Errorf("rows of both schemas: %s", rowsOf(rows))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestAuthor tells who gave a policy in the table plans, which no digest depends on.
func TestAuthor(t *testing.T) {
	dir := t.TempDir()
	w := must(Open(dir, Options{Lazy: true}))(t)
	c := fill(1, 1)
	c.Plans.Revision, c.Plans.Author, c.Plans.Message, c.Plans.Digest = []int64{1}, coded(""), coded(""), coded("x")
	c.Plans.Author.Code[0], c.Plans.Message.Code[0] = -1, -1
	in := must(w.Input("plan", "", "yaml", []byte("p")))(t)
	in.Author = "ann"
	if err := w.Cycle(c, []Input{in}); err != nil {
		t.Fatal(err)
	}
	r := must(OpenLog(dir))(t)
	if got := column(t, r, "plans", 1, "author"); got != "ann" {
		t.Errorf("author %s", got)
	}
	if got := must(r.Digest(1))(t); got != c.Summary.Digest {
		t.Errorf("digest %s, decided %s", got, c.Summary.Digest)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSilentSchema reads a log of the second schema, goes on with it, and compacts it: no message is known of its
// policy, one that comes has its message, and digests are those that were written.
func TestSilentSchema(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "schema2", "log"))); err != nil {
		t.Fatal(err)
	}
	hold := func(what string, want string) {
		t.Helper()
		r := must(OpenLog(dir))(t)
		for _, n := range r.Cycles() {
			if got, want := must(r.Digest(n))(t), column(t, r, "cycles", n, "decisions_digest"); got != want {
				t.Errorf("%s: cycle %d: digest %s, logged %s", what, n, got, want)
			}
		}
		last := r.Cycles()[len(r.Cycles())-1]
		rows := must(r.Rows("plans", 1, last))(t)
		var got []string
		for row := range rows.Rows {
			got = append(got, cell(rows.Column("author"), row)+": "+cell(rows.Column("message"), row))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, expected %q", what, got, want)
		}
	}
	hold("as it was written", "everybody: -")
	w := must(Open(dir, Options{Append: true, Lazy: true}))(t)
	for n := int64(3); n <= 4; n++ {
		c := keyframe(fill(n, n), n)
		c.Summary.NowUS = w.nowUS + 12*3600e6
		c.Plans.Revision, c.Plans.Author, c.Plans.Message, c.Plans.Digest = []int64{n}, coded(""), coded(""), coded("x")
		c.Plans.Author.Code[0], c.Plans.Message.Code[0] = -1, -1
		c.Summary.Digest = c.DigestAfter(nil)
		in := must(w.Input("plan", "", "yaml", []byte(fmt.Sprint(n))))(t)
		in.Author, in.Message = "ann", fmt.Sprintf("why %d", n)
		if err := w.Cycle(c, []Input{in}); err != nil {
			t.Fatal(err)
		}
	}
	hold("gone on with", "everybody: -, ann: why 3, ann: why 4")
	must(w.Compact(CompactOptions{Today: true}))(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	hold("compacted", "everybody: -, ann: why 3, ann: why 4")
}

// TestBusySchema reads a log of the fourth schema, goes on with it, and compacts it: work lost is not known of its
// cycles, and is of those that come.
func TestBusySchema(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "schema4", "log"))); err != nil {
		t.Fatal(err)
	}
	hold := func(what string, want ...string) {
		t.Helper()
		r := must(OpenLog(dir))(t)
		last := r.Cycles()[len(r.Cycles())-1]
		for i, table := range []string{"cycles", "releases", "consumers"} {
			rows := must(r.Rows(table, 1, last))(t)
			var got []string
			for row := range rows.Rows {
				got = append(got, cell(rows.Column("unit_seconds_lost"), row))
			}
			if strings.Join(got, " ") != want[i] {
				t.Errorf("%s: %s: %q, expected %q", what, table, got, want[i])
			}
		}
		for _, n := range r.Cycles() {
			if got, want := must(r.Digest(n))(t), column(t, r, "cycles", n, "decisions_digest"); got != want {
				t.Errorf("%s: cycle %d: digest %s, logged %s", what, n, got, want)
			}
		}
	}
	hold("as it was written", "- - - - -", "-", "- - - - - - - - -") // three consumers, written three times
	w := must(Open(dir, Options{Append: true, Lazy: true}))(t)
	for n := int64(6); n <= 7; n++ {
		c := keyframe(fill(n, 1), n)
		c.Summary.NowUS, c.Summary.UnitMSLost = w.nowUS+60e6, n*1000+5
		c.Consumers.UnitSecondsLost[1] = float64(n) // nothing else of consumers differs from cycle to cycle
		c.Summary.Digest = ""
		if err := w.Cycle(c, nil); err != nil {
			t.Fatal(err)
		}
	}
	hold("gone on with", "- - - - - 6.005 7.005", "-", "- - - - - - - - - 12.5 6 12.5 7")
	must(w.Compact(CompactOptions{Today: true}))(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	hold("compacted", "- - - - - 6.005 7.005", "-", "- - - - - - - - - 12.5 6 12.5 7")
}

// TestSingleSchema reads a log of the fifth schema, goes on with it, and compacts it: its sub-allocations are no gangs.
func TestSingleSchema(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "schema5", "log"))); err != nil {
		t.Fatal(err)
	}
	hold := func(what, want string) {
		t.Helper()
		r := must(OpenLog(dir))(t)
		var got []string
		for _, n := range r.Cycles() {
			rows := must(r.Changed("sub_allocations", n))(t)
			for row := range rows.Rows {
				got = append(got, cell(rows.Column("allocation"), row)+cell(rows.Column("min_units"), row))
			}
			if got, want := must(r.Digest(n))(t), column(t, r, "cycles", n, "decisions_digest"); got != want {
				t.Errorf("%s: cycle %d: digest %s, logged %s", what, n, got, want)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %q, expected %q", what, text, want)
		}
	}
	hold("as it was written", "a1 b1 a1 b1 c1")
	w := must(Open(dir, Options{Append: true, Lazy: true}))(t)
	c := keyframe(fill(4, 1), 4)
	c.Summary.NowUS, c.Summary.Digest = w.nowUS+60e6, ""
	if err := w.Cycle(c, nil); err != nil {
		t.Fatal(err)
	}
	hold("gone on with", "a1 b1 a1 b1 c1 a2")
	must(w.Compact(CompactOptions{Today: true}))(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	hold("compacted", "a1 b1 a1 b1 c1 a2")
}

// TestGangSchema reads a log of the sixth schema, goes on with it, and compacts it: its gangs are anywhere.
func TestGangSchema(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "schema6", "log"))); err != nil {
		t.Fatal(err)
	}
	hold := func(what, want string) {
		t.Helper()
		r := must(OpenLog(dir))(t)
		var got []string
		for _, n := range r.Cycles() {
			rows := must(r.Changed("sub_allocations", n))(t)
			for row := range rows.Rows {
				got = append(got, cell(rows.Column("min_units"), row)+cell(rows.Column("together"), row))
			}
			if got, want := must(r.Digest(n))(t), column(t, r, "cycles", n, "decisions_digest"); got != want {
				t.Errorf("%s: cycle %d: digest %s, logged %s", what, n, got, want)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %q, expected %q", what, text, want)
		}
	}
	hold("as it was written", "2- 2-")
	w := must(Open(dir, Options{Append: true, Lazy: true}))(t)
	c := keyframe(fill(3, 1), 3)
	c.Summary.NowUS, c.Summary.Digest = w.nowUS+60e6, ""
	if err := w.Cycle(c, nil); err != nil {
		t.Fatal(err)
	}
	hold("gone on with", "2- 2- 2rack")
	must(w.Compact(CompactOptions{Today: true}))(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	hold("compacted", "2- 2- 2rack")
}

// TestRefusesColumns gives every column of every table of the log another type or name in turn, and leaves it out: the
// reader names table and column. A file of a newer schema is refused too.
func TestRefusesColumns(t *testing.T) {
	read := func(table *decision.Table, version string) error {
		data := encoded(t, func(w io.Writer) error { return encode(w, table, 1, []meta{{metaSchema, version}}) })
		path := filepath.Join(t.TempDir(), "f.parquet")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := read(folder{}, path, "")
		if err != nil {
			return err
		}
		b := builder{name: table.Name}
		return b.add(f, span{first: 1, last: 1, path: path}, 1, 1)
	}
	for _, shape := range shapes() {
		if err := read(&shape, SchemaVersion); err != nil {
			t.Errorf("%s: %v", shape.Name, err)
		}
		for i, c := range shape.Columns {
			for what, change := range map[string]func(bad *decision.Table){
				"another type": func(bad *decision.Table) {
					bad.Columns[i].Type = map[bool]decision.Type{true: decision.Float, false: decision.Text}[c.Type ==
						decision.Text]
				},
				"another name": func(bad *decision.Table) { bad.Columns[i].Name += "s" },
				"none":         func(bad *decision.Table) { bad.Columns = slices.Delete(bad.Columns, i, i+1) },
			} {
				bad := shape
				bad.Columns = slices.Clone(shape.Columns)
				change(&bad)
				want := "table " + shape.Name + ", column "
				if err := read(&bad, SchemaVersion); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s.%s, %s: error %v", shape.Name, c.Name, what, err)
				}
			}
		}
	}
	newer := shapes()[0]
	if err := read(&newer, "99"); err == nil || !strings.Contains(err.Error(), `its schema is version "99"`) {
		t.Error("a newer schema:", err)
	}
}
