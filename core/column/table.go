package column

import "fmt"

// Type is the type of a column's values.
type Type uint8

// The types of columns.
const (
	Int   Type = iota // Column.Int
	Float             // Column.Float
	Text              // Column.Code into Column.Dict; Null is no value
	Time              // Column.Int: UTC microseconds
	List              // Column.Lists: several texts a row
)

// String is the name of the type, as errors and docs/log.md have it.
func (t Type) String() string {
	return [...]string{"whole", "real", "text", "instant", "list of text"}[t]
}

// Null is the code of a text column where a row has no value.
const Null int32 = -1

// Dict is the dictionary of a text column. core/cluster's Names is one; Words is another.
type Dict interface {
	Len() int
	Bytes(code int32) []byte // borrowed
}

// Words is a dictionary of fixed words.
type Words []string

// Len is the number of words.
func (w Words) Len() int { return len(w) }

// Bytes gives a word.
func (w Words) Bytes(code int32) []byte { return []byte(w[code]) }

// Column is one column of a Table. Exactly the slice of its Type is set, and it has one entry per row. Slices are
// borrowed from the table that they were taken from.
type Column struct {
	Name     string
	Type     Type
	Int      []int64
	Float    []float64
	Code     []int32
	Dict     Dict
	Lists    [][]string
	Null     []bool // by row, of Int, Float and Time columns: true where there is no value; nil: none
	Optional bool   // of Int, Float and Time columns: whether Null may be set in any cycle
}

// Rows is how many rows the column has.
func (c *Column) Rows() int {
	switch c.Type {
	case Float:
		return len(c.Float)
	case Text:
		return len(c.Code)
	case List:
		return len(c.Lists)
	}
	return len(c.Int)
}

// Text is the text of a row, "" where there is none.
func (c *Column) Text(row int) string { return string(c.Bytes(row)) }

// Bytes is the text of a row, borrowed, nil where there is none.
func (c *Column) Bytes(row int) []byte {
	if c.Code[row] == Null {
		return nil
	}
	return c.Dict.Bytes(c.Code[row])
}

// with is the column with every slice that it has replaced by what the functions make of it.
func (c Column) with(ints func([]int64) []int64, floats func([]float64) []float64, codes func([]int32) []int32,
	lists func([][]string) [][]string, nulls func([]bool) []bool,
) Column {
	c.Int, c.Float, c.Code, c.Lists, c.Null = ints(c.Int), floats(c.Float), codes(c.Code), lists(c.Lists), nulls(c.Null)
	return c
}

// Table is a table as writers, printers and tests read it. The column `cycle` stands first in every file of the log,
// but not in the tables of one cycle.
type Table struct {
	Name    string
	Rows    int
	Columns []Column
}

// Slice is the rows from … end-1 as a table, which shares their memory.
func (t *Table) Slice(from, end int) *Table {
	part := &Table{Name: t.Name, Rows: end - from, Columns: make([]Column, len(t.Columns))}
	for i, c := range t.Columns {
		part.Columns[i] = c.with(cut[int64](from, end), cut[float64](from, end), cut[int32](from, end),
			cut[[]string](from, end), cut[bool](from, end))
	}
	return part
}

// cut gives the rows from … end-1 of a slice that may not be there.
func cut[T any](from, end int) func([]T) []T {
	return func(s []T) []T {
		if len(s) == 0 {
			return s
		}
		return s[from:end:end]
	}
}

// Pick copies rows of the table; texts keep their dictionaries.
func (t *Table) Pick(rows []int) *Table {
	out := &Table{Name: t.Name, Rows: len(rows), Columns: make([]Column, len(t.Columns))}
	for i, c := range t.Columns {
		out.Columns[i] = c.with(picked[int64](rows), picked[float64](rows), picked[int32](rows),
			picked[[]string](rows), picked[bool](rows))
	}
	return out
}

func picked[T any](rows []int) func([]T) []T {
	return func(from []T) []T {
		if from == nil {
			return nil
		}
		to := make([]T, len(rows))
		for i, row := range rows {
			to[i] = from[row]
		}
		return to
	}
}

// Column finds a column by name, nil when the table has none of that name.
func (t *Table) Column(name string) *Column {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i]
		}
	}
	return nil
}

// Check tells whether every column has an entry for every row, and codes within its dictionary. The error names the
// table, the column and the row.
func (t *Table) Check() error {
	for i := range t.Columns {
		c := &t.Columns[i]
		if n := c.Rows(); n != t.Rows {
			return fmt.Errorf("table %s, column %s: %d values for %d rows", t.Name, c.Name, n, t.Rows)
		}
		if c.Null != nil && len(c.Null) != t.Rows {
			return fmt.Errorf("table %s, column %s: %d nulls for %d rows", t.Name, c.Name, len(c.Null), t.Rows)
		}
		if c.Type != Text {
			continue
		}
		if row := misplaced(c.Code, c.Dict); row >= 0 {
			return fmt.Errorf("table %s, column %s, row %d: code %d of a dictionary of %d",
				t.Name, c.Name, row, c.Code[row], words(c.Dict))
		}
	}
	return nil
}

// words is how many words a dictionary has; none where it is missing.
func words(d Dict) int {
	if d == nil {
		return 0
	}
	return d.Len()
}

// misplaced is the first row whose code is not in the dictionary, -1 if there is none.
func misplaced(codes []int32, d Dict) int {
	n := int32(words(d))
	for row, code := range codes {
		if code < Null || code >= n {
			return row
		}
	}
	return -1
}

// Coded is a text column while it is being filled.
type Coded struct {
	Code []int32
	Dict Dict
}

// Add appends a row.
func (c *Coded) Add(code int32) { c.Code = append(c.Code, code) }

// At is the text of a row, "" where there is none.
func (c *Coded) At(row int) string {
	if c.Code[row] == Null {
		return ""
	}
	return string(c.Dict.Bytes(c.Code[row]))
}

// Rename gives the column other codes, by the old ones, and another dictionary. The old codes stay as they are.
func (c *Coded) Rename(of []int32, dict Dict) {
	codes := make([]int32, len(c.Code))
	for row, code := range c.Code {
		codes[row] = Null
		if code != Null {
			codes[row] = of[code]
		}
	}
	c.Code, c.Dict = codes, dict
}

// Without is a text column's codes where no row has a value.
func Without(rows int) []int32 {
	codes := make([]int32, rows)
	for i := range codes {
		codes[i] = Null
	}
	return codes
}
