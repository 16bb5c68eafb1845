package table

import (
	"cmp"
	"slices"
	"sync"

	"github.com/stintd/stint/core/cluster"
)

// csvTexts fills the columns that are no counts, which is more than half of the work: at once when the input ends in
// the first window, else in a second goroutine, while the decoder goes on with the next rows. Each of the two has
// columns and faults of its own, so what comes out does not depend on how far the other is.
type csvTexts struct {
	builder
	columns []*column     // all of them, by field
	fields  []int         // those that are filled here
	atOnce  bool          // there is no second goroutine
	rows    *csvRows      // what that was not given yet
	full    chan *csvRows // to it; nil: it was not started
	empty   chan *csvRows // and back
}

// csvRows are rows whose texts are still to be taken.
type csvRows struct {
	first int      // index of the first row
	rows  [][]byte // as the decoder has them, borrowed; nil: one of the wrong length
	ends  []int32  // those of the other rows, one after the other
	// Memory that the decoder goes on with when it leaves what the rows lie in to them; from then on, that.
	window, unquoted []byte
	spent            error // why there is no memory for their texts
}

// csvAhead is how many csvRows the second goroutine may have.
const csvAhead = 2

var csvRowsPool = sync.Pool{New: func() any {
	r := new(struct { // in one piece, enough for a window of usual rows
		csvRows
		rows     [1 << 12][]byte
		ends     [1 << 15]int32
		unquoted [1 << 10]byte
	})
	r.csvRows = csvRows{rows: r.rows[:0], ends: r.ends[:0], unquoted: r.unquoted[:0]}
	return &r.csvRows
}}

func newCSVTexts(columns []*column, o *Options, limits Limits, atOnce bool) *csvTexts {
	t := &csvTexts{
		builder: builder{options: o, limits: limits}, columns: columns, atOnce: atOnce,
		rows: csvRowsPool.Get().(*csvRows),
	}
	for i, c := range columns {
		if c.kind != kindCount {
			t.fields = append(t.fields, i)
			t.builder.columns = append(t.builder.columns, c)
		}
	}
	return t
}

// add takes the row of an index, nil for one of the wrong length. What a row lies in must stay as it is.
func (t *csvTexts) add(index int, row []byte, ends []int32) error {
	if t.atOnce {
		t.row(index, row, ends)
		return nil
	}
	if len(t.rows.rows) == cap(t.rows.rows) || len(t.rows.ends)+len(ends) > cap(t.rows.ends) {
		if err := t.send(); err != nil {
			return err
		}
	}
	r := t.rows
	if len(r.rows) == 0 {
		r.first = index
	}
	r.rows, r.ends = append(r.rows, row), append(r.ends, ends...)
	return nil
}

// send gives the rows to the second goroutine, and waits where that is too far behind. It takes
// them in order: memory that comes back with some of them is no longer needed by any before.
func (t *csvTexts) send() error {
	if t.full == nil {
		t.full, t.empty = make(chan *csvRows, csvAhead), make(chan *csvRows, csvAhead)
		for range csvAhead {
			t.empty <- csvRowsPool.Get().(*csvRows)
		}
		go func() {
			for r := range t.full {
				if t.take(r); r.spent == nil {
					r.spent = t.pay(0)
				}
				t.empty <- r
			}
			close(t.empty)
		}()
	}
	t.full <- t.rows
	t.rows = <-t.empty
	return t.rows.spent
}

// take fills the columns from rows, which are then none.
func (t *csvTexts) take(r *csvRows) {
	ends := r.ends
	for i, row := range r.rows {
		t.row(r.first+i, row, ends)
		if row != nil {
			ends = ends[len(t.columns):]
		}
	}
	r.rows, r.ends = r.rows[:0], r.ends[:0]
}

// row fills the columns from the row of an index.
func (t *csvTexts) row(index int, row []byte, ends []int32) {
	if row == nil {
		return
	}
	for _, f := range t.fields {
		if c, v := t.columns[f], csvField(row, ends, f); c.kind == kindText { // the common kind, without a detour
			t.text(c, index, v)
		} else {
			t.cell(c, index, v)
		}
	}
}

// finish waits for the second goroutine to end, takes what it was not given, and adds the faults to those of the
// counts.
func (t *csvTexts) finish(counts *cluster.Faults) (err error) {
	if t.full != nil {
		close(t.full)
		for r := range t.empty {
			err = cmp.Or(err, r.spent)
			r.spent = nil
			csvRowsPool.Put(r)
		}
	}
	t.take(t.rows)
	err = cmp.Or(err, t.rows.spent)
	t.rows.spent = nil
	csvRowsPool.Put(t.rows)
	if t.faults.Count > 0 {
		*counts = t.inOrder(counts, &t.faults)
	}
	return err
}

// inOrder is the faults of both as they stand in the input: by row, then by field.
func (t *csvTexts) inOrder(a, b *cluster.Faults) cluster.Faults {
	field := func(name string) int {
		return slices.IndexFunc(t.columns, func(c *column) bool { return c.name == name })
	}
	rows := slices.Concat(a.Rows, b.Rows)
	slices.SortFunc(rows, func(x, y cluster.RowFault) int {
		return cmp.Or(x.Row-y.Row, field(x.Column)-field(y.Column))
	})
	both := cluster.Faults{Table: a.Table}
	for _, f := range rows {
		both.Add(f.Row, f.Column, f.Value, f.Reason)
	}
	both.Count = a.Count + b.Count // those past the first hundred were not listed
	return both
}
