// Package decision holds what a cycle decided, as columns: one struct per table
// of the decision log (SPEC chapter 8), each with a view as a Table that writers,
// printers and tests share.
package decision

// Type is the type of a column's values.
type Type uint8

// The types of decision columns.
const (
	Int   Type = iota // Column.Int
	Float             // Column.Float
	Text              // Column.Code into Column.Dict; Null is no value
	Time              // Column.Int: UTC microseconds
	List              // Column.Lists: several texts a row
)

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

// Column is one column of a Table. Exactly the slice of its Type is set, and it
// has one entry per row. Slices are borrowed from the cycle that made them and
// hold until that state's next cycle begins.
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

// Table is a view of a decision table: what writers, printers and tests read.
// The column `cycle` stands first in every file of the log, but not here: it is
// the same for all rows of a cycle.
type Table struct {
	Name    string
	Rows    int
	Columns []Column
}

// Slice is the rows from … end-1 as a table, which shares their memory.
func (t *Table) Slice(from, end int) *Table {
	part := &Table{Name: t.Name, Rows: end - from, Columns: make([]Column, len(t.Columns))}
	for i, c := range t.Columns {
		c.Int, c.Float, c.Code = cut(c.Int, from, end), cut(c.Float, from, end), cut(c.Code, from, end)
		c.Lists, c.Null = cut(c.Lists, from, end), cut(c.Null, from, end)
		part.Columns[i] = c
	}
	return part
}

// cut is s[from:end] of a slice that may not be there.
func cut[T any](s []T, from, end int) []T {
	if len(s) == 0 {
		return s
	}
	return s[from:end:end]
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

// reset empties a column, keeping its memory and taking a dictionary.
func (c *Coded) reset(d Dict) { c.Code, c.Dict = c.Code[:0], d }

func text(name string, c Coded) Column {
	return Column{Name: name, Type: Text, Code: c.Code, Dict: c.Dict}
}

func ints(name string, v []int64) Column { return Column{Name: name, Type: Int, Int: v} }

func floats(name string, v []float64) Column { return Column{Name: name, Type: Float, Float: v} }

// lostColumn is the column of work that reclaims stopped before its end, in cycles, releases and consumers.
const lostColumn = "unit_seconds_lost"

// lost is that column. It may be null: logs of before do not tell.
func lost(v []float64) Column {
	return Column{Name: lostColumn, Type: Float, Float: v, Optional: true}
}

// budgetColumns are the columns of budgets, in consumers.
var budgetColumns = []string{"budget", "budget_dimension", "budget_used"}

// historyColumns are the columns of plans with a half-life, in shares.
var historyColumns = []string{"decayed_usage", "effective_ratio"}

// Seconds are the seconds of a column of unit-seconds.
func Seconds(ms int64) float64 { return float64(ms) / 1e3 }

func instants(name string, v []int64) Column { return Column{Name: name, Type: Time, Int: v} }
