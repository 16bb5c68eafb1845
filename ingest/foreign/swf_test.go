package foreign

import (
	"strings"
	"testing"
)

const workload = `; Version: 2.2
; Computer: a small machine
; MaxNodes: 3
; MaxProcs: 8
; this is prose

1  10 5  100  4 -1 -1  4 200 -1 1 7 1 -1 2 -1 -1 -1
2  20 0   60  2 -1 -1 -1 -1 64 1 8 1 -1 2 -1 -1 -1
3  30 0   -1 -1 -1 -1  1 -1 -1 0 8 1 -1 2 -1 -1 -1
4  40 1 30.5 -1 -1 -1 -1 -1 -1 1 8 1 -1 2 -1 -1 -1
5  50 1   30  1 -1 -1  1 -1 -1 1 -1 1 -1 2 -1 1 9
`

func TestSWF(t *testing.T) {
	r, err := SWF("w.swf", strings.NewReader(workload), SWFOptions{By: "user"})
	if err != nil {
		t.Fatal(err)
	}
	d := r.Dataset.Demand
	type job struct {
		consumer, allocation string
		units, from, runs    int64
	}
	want := []job{{"/user-7", "job-1", 4, 10, 100}, {"/user-8", "job-2", 2, 20, 60},
		{"/user-unknown", "job-5", 1, 50, 30}}
	if d.Rows != len(want) {
		t.Fatalf("%d rows, want %d", d.Rows, len(want))
	}
	for i, w := range want {
		got := job{d.Consumer.Names.String(d.Consumer.Code[i]), d.Allocation.Names.String(d.Allocation.Code[i]),
			d.Units[i], r.Lives.From[i], r.Lives.Runs[i]}
		if got != w {
			t.Errorf("row %d: %+v, want %+v", i, got, w)
		}
	}
	h := r.Dataset.Hosts
	if h.Rows != 3 || h.Size[0][0] != 3 || h.Size[0][1] != 3 || h.Size[0][2] != 2 {
		t.Errorf("hosts %d %v, want 3 with 3, 3 and 2", h.Rows, h.Size)
	}
	var text strings.Builder
	if err := r.Report.Write(&text); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"w.swf:7: requested time: ", "w.swf:8: requested memory: ", "w.swf:9: a job: it never ran",
		"w.swf:10: a job: the log does not tell how many processors", "w.swf:11: preceding job: ",
	} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("no line %q in the report:\n%s", line, text.String())
		}
	}
	if n := strings.Count(text.String(), "\n"); n != 5 {
		t.Errorf("%d lines in the report, want 5:\n%s", n, text.String())
	}
}

func TestSWFRefused(t *testing.T) {
	good := "1 10 5 100 4 -1 -1 4 200 -1 1 7 1 -1 2 -1 -1 -1\n"
	for _, c := range []struct{ name, text, want string }{
		{"too few fields", "; MaxNodes: 2\n1 10 5\n", `row 2, column line, value "1 10 5": has 3 fields, a job has 18`},
		{"not a number", "; MaxNodes: 2\n" + strings.Replace(good, "100", "1e", 1),
			`row 2, column field 4, value "1e": must be a number from -1 to 2^53`},
		{"nan", "; MaxNodes: 2\n" + strings.Replace(good, "100", "NaN", 1), `column field 4, value "NaN"`},
		{"too large", "; MaxNodes: 2\n" + strings.Replace(good, "100", "1e300", 1), `column field 4`},
		{"twice", "; MaxNodes: 2\n" + good + good, `job 1 is there twice`},
		{"when", "; MaxNodes: 2\n" + strings.Replace(good, "1 10", "1 -1", 1), `without the time of its submission`},
		{"no nodes", good, `its header has no MaxNodes`},
		{"wild header", "; MaxNodes: many\n" + good, `column MaxNodes, value "many": must be a whole number from 1 to`},
		{"empty", "; MaxNodes: 2\n", `no job in it that ran`},
		{"long line", "; MaxNodes: 2\n" + strings.Repeat("1 ", 40_000) + "\n", `line 2: is longer than`},
	} {
		_, err := SWF("w.swf", strings.NewReader(c.text), SWFOptions{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := SWF("w.swf", strings.NewReader(good), SWFOptions{By: "mood"}); err == nil {
		t.Error("by mood: no error")
	}
}

func TestReportCounts(t *testing.T) {
	var r Report
	for line := range 3 {
		r.Add("f", line+1, "a thing", "no counterpart")
	}
	r.Add("f", 9, "a thing", "another reason")
	if n := r.Notes(); r.Len() != 2 || n[0].Count != 3 || n[0].Line != 1 || n[1].Line != 9 {
		t.Errorf("%+v", r.Notes())
	}
	for i := range 2 * notesMax {
		r.Add("f", i, strings.Repeat("x", i%7)+string(rune('a'+i%26))+strings.Repeat("y", i/26), "kinds without end")
	}
	if len(r.Notes()) != notesMax || r.Len() <= notesMax {
		t.Errorf("%d notes are kept of %d", len(r.Notes()), r.Len())
	}
}

func FuzzSWF(f *testing.F) {
	f.Add(workload)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := SWF("w.swf", strings.NewReader(text), SWFOptions{Nodes: 4, By: "group"})
		mustBeTheirs(t, err)
		if err == nil && (r.Dataset.Demand.Rows == 0 || len(r.Lives.From) != r.Dataset.Demand.Rows) {
			t.Fatalf("%d rows with %d lives", r.Dataset.Demand.Rows, len(r.Lives.From))
		}
	})
}
