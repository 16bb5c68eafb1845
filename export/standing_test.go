package export

import (
	"errors"
	"strings"
	"testing"

	"github.com/stintd/stint/core/decision"
)

// lending is rows of loans: units by lender, in dimensions.
func lending(whole bool, dimensions []string, rows ...any) *decision.Standing {
	s := &decision.Standing{Whole: whole}
	l := &s.Loans
	var lenders, same []string
	l.Amounts = decision.NewFigures(dimensions, false)
	for i := 0; i < len(rows); i += 2 {
		units := int64(rows[i+1].(int))
		lenders, same = append(lenders, rows[i].(string)), append(same, "x")
		l.Units, l.UnderRecall = append(l.Units, units), append(l.UnderRecall, 0)
		l.Deadline, l.DeadlineNull = append(l.Deadline, 0), append(l.DeadlineNull, true)
		amounts := make([]int64, len(dimensions))
		for d := range amounts {
			amounts[d] = units * int64(d+1)
		}
		l.Amounts.Add(false, amounts)
	}
	l.Plan, l.Lender, l.Borrower, l.Pool = coded(same...), coded(lenders...), coded(same...), coded(same...)
	return s
}

// TestStanding writes what changed of what stands, and reads what stands in each cycle: from files of single cycles, of
// several, and of logs that are gone on with.
func TestStanding(t *testing.T) {
	dir := t.TempDir()
	two, three := []string{"ncpus", "mem"}, []string{"ncpus", "mem", "gpus"}
	cycles := []*decision.Standing{
		1: lending(true, two, "/A", 3, "/B", 5),
		2: lending(false, two, "/A", 4),
		3: lending(false, two),
		4: lending(false, two, "/B", 0, "/C", 1),
		5: lending(true, three, "/A", 4, "/C", 1), // another policy
		6: lending(false, three, "/C", 2),
		7: nil, // somebody who knew nothing of it
		8: lending(true, two, "/C", 2),
	}
	want := []string{
		1: "/A 3 3 6, /B 5 5 10", 2: "/B 5 5 10, /A 4 4 8", 3: "/B 5 5 10, /A 4 4 8", 4: "/A 4 4 8, /C 1 1 2",
		5: "/A 4 4 8 12, /C 1 1 2 3", 6: "/A 4 4 8 12, /C 2 2 4 6", 8: "/C 2 2 4",
	}
	put := func(from, to int) {
		w := must(Open(dir, Options{Append: from > 1, Lazy: true}))(t)
		for n := from; n <= to; n++ {
			c := keyframe(fill(int64(n), int64(n)), 1)
			if c.Standing = cycles[n]; n > 1 {
				c.Keyframe = false
			}
			c.Summary.NowUS = day + int64(n)*1e6
			if err := w.Cycle(c, nil); err != nil {
				t.Fatal(err)
			}
		}
		must(w.Compact(CompactOptions{Today: to == 8}))(t)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	hold := func(what string, last int) {
		t.Helper()
		r := must(OpenLog(dir))(t)
		for cycle := 1; cycle <= last; cycle++ {
			rows, err := r.Table("loans", int64(cycle))
			if want[cycle] == "" {
				if !errors.Is(err, ErrNotWritten) {
					t.Errorf("%s: cycle %d: %v", what, cycle, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for row := range rows.Rows {
				line := cell(rows.Column("lender"), row)
				for i := range rows.Columns {
					if c := &rows.Columns[i]; c.Type == decision.Int && c.Name != "under_recall" && !c.IsNull(row) {
						line += " " + cell(c, row)
					}
				}
				got = append(got, line)
			}
			if text := strings.Join(got, ", "); text != want[cycle] {
				t.Errorf("%s: cycle %d: %q, expected %q", what, cycle, text, want[cycle])
			}
		}
		if got := must(r.Rows("loans", 1, int64(last)))(t); got.Column("amount_gpus") == nil && last >= 5 {
			t.Errorf("%s: rows of two policies lack a dimension: %s", what, rowsOf(got))
		}
	}
	put(1, 4)
	hold("begun", 4)
	put(5, 7)
	hold("gone on with", 7)
	put(8, 8)
	hold("compacted", 8)
	if since, ok := must(OpenLog(dir))(t).Stands(6); since != 5 || !ok {
		t.Error(since, ok)
	}
}
