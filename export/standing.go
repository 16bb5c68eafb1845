package export

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stintd/stint/core/decision"
)

// standing is a table of what stands after a cycle: the rows since it was written whole, of which the last ones count.
func (r *Reader) standing(name string, cycle int64) (*decision.Table, error) {
	h, err := r.head(cycle)
	if err != nil {
		return nil, err
	}
	if h.standing == 0 {
		return nil, fmt.Errorf("log %s: cycle %d: %s: %w", r.dir, cycle, name, ErrNotWritten)
	}
	t, err := r.rows(name, h.standing, cycle)
	if err != nil {
		return nil, err
	}
	return decision.Latest(t), nil
}

// ErrNotWritten is in the chain of what Table gives for what stands in cycles of earlier schemas.
var ErrNotWritten = errors.New("it was written by an earlier version of stint, which has no such table")

// Stands tells whether the log has the tables of what stands after a cycle, and since which one their rows count.
func (r *Reader) Stands(cycle int64) (since int64, ok bool) {
	h, err := again(r, func() (head, error) { return r.head(cycle) })
	return h.standing, err == nil && h.standing > 0
}

// Changed are the rows that a cycle itself wrote of a table of what stands, without the column cycle.
func (r *Reader) Changed(name string, cycle int64) (*decision.Table, error) {
	if err := r.known(name, cycle); err != nil {
		return nil, err
	}
	t, err := again(r, func() (*decision.Table, error) { return r.rows(name, cycle, cycle) })
	if err != nil {
		return nil, err
	}
	t.Columns = t.Columns[1:]
	return t, nil
}

// unite makes the columns of a table of what stands those of a file too: another policy has other dimensions. It gives
// the places of the table's columns in the file, -1 for those that it lacks. in are those of the columns given, alike.
func (b *builder) unite(columns []decision.Column, in []int) (from []int) {
	t := &b.table
	if sameColumns(t.Columns, columns) {
		return in
	}
	schema, _ := decision.SchemaOf(b.name)
	fixed := len(schema.Table().Columns) + 1 // and cycle
	for i := range t.Columns {
		from = append(from, slices.IndexFunc(columns, func(c decision.Column) bool {
			return c.Name == t.Columns[i].Name
		}))
	}
	rows := len(t.Columns[0].Int)
	for i, c := range columns[fixed:] {
		if t.Column(c.Name) == nil {
			c.Int, c.Null = make([]int64, rows), slices.Repeat([]bool{true}, rows)
			t.Columns, b.intern, from = append(t.Columns, c), append(b.intern, nil), append(from, fixed+i)
		}
	}
	for i, at := range from {
		if at >= 0 {
			from[i] = in[at]
		}
	}
	return from
}
