package column

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stintd/stint/core/pack"
)

// Line declares a column of a table, once. Whatever handles tables is a loop over lines: growing, copying, saving and
// renaming, digests, Arrow, Parquet, text, the description of the HTTP service and the documentation.
type Line struct {
	Name string
	Of   Cells   // where its values lie; nil: it is made of other columns where a table is written
	Type Type    // Time, and where Of is nil; else it follows from Of
	Null *[]bool // the rows that have no value; nil: each has one. Lines may share it

	Nullable bool   // rows may have no value: texts, and numbers that Null tells nothing of, in older logs
	Dict     string // the dictionary of its codes, by name; "": that of the column's name
	Words    Words  // or the words that there are

	Since  int    // the version that brought it; 0: the first one
	Absent int64  // what rows of earlier versions have, and of inputs that lack it; where there is Null, no value
	Was    string // its name up to the version Until; digests go by this name in all versions
	Until  int

	Count Count
	Inner bool // tables do not show it
	Doc   string

	Names   string // the table, or dictionary, of which the values are rows; a Nullable one may be NoID
	Derived bool   // it follows from other columns: it is copied, and not saved
	Apart   bool   // it has a length of its own: a list beside the table
	Bare    bool   // it is empty, as no row has a value yet

	Input *Input // of input tables
}

// NoID is the row id that names nothing.
const NoID = -1

// Count says how a column counts in digests.
type Count uint8

// How columns count.
const (
	Counted   Count = iota
	Unnamed         // it counts as having no value: what it says is not decided
	IfSet           // it counts where a row has a value
	Uncounted       // it follows from others, or is measured
	IfChanged       // it is Uncounted, but a state table in which it differs, and has a value, is written anew
)

// Schema is a table: its name and its lines in the order in which readers see them.
type Schema struct {
	Name  string
	Lines []Line
	Live  func(row int) bool // tells of a row whether it is in use; nil: all are
}

// Rows is how many rows the table has: those of its first column.
func (s Schema) Rows() int { return s.Lines[0].Of.Len() }

// Line finds a line by the name of its column, nil if there is none.
func (s Schema) Line(name string) *Line {
	i := slices.IndexFunc(s.Lines, func(l Line) bool { return l.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Lines[i]
}

// column is the column that the line declares, with its values.
func (l *Line) column() Column {
	c := Column{Name: l.Name, Type: l.Type}
	if l.Of != nil {
		l.Of.show(&c)
	}
	c.Optional = l.Null != nil || l.Nullable && c.Type != Text
	if l.Null != nil {
		c.Null = *l.Null
	}
	return c
}

// Dictionary is the name of the dictionary of the line's codes, where it has no words.
func (l *Line) Dictionary() string { return cmp.Or(l.Dict, l.Name) }

// Kind is the type of the column as docs/log.md has it; a column of which rows may have no value has a ?.
func (l *Line) Kind() string {
	c := l.column()
	if c.Optional || l.Nullable {
		return c.Type.String() + "?"
	}
	return c.Type.String()
}

// NameIn is the name of the column in files of a version.
func (l *Line) NameIn(version int) string {
	if version <= l.Until {
		return l.Was
	}
	return l.Name
}

// At are the columns of the table in files of a version, without rows, with the names that they have there.
func (s Schema) At(version int) []Column {
	columns := make([]Column, 0, len(s.Lines))
	for i := range s.Lines {
		if l := &s.Lines[i]; !l.Inner && l.Since <= version {
			c := l.column()
			columns = append(columns, Column{Name: l.NameIn(version), Type: c.Type, Optional: c.Optional})
		}
	}
	return columns
}

// Upgrade gives the columns of a file of a version as they are in the version now. from are their places in the file,
// -1 for those that it lacks. What the file has behind the schema's columns are those of dimensions, if the table may
// have them. The error names the table and a column that the file lacks, or that is another there.
func (s Schema) Upgrade(file []Column, version int, dimensions bool) (columns []Column, from []int, err error) {
	then := s.At(version)
	for i, c := range then {
		if i == len(file) {
			return nil, nil, fmt.Errorf("table %s, column %s: missing; version %d has it", s.Name, c.Name, version)
		}
		if got := file[i]; got.Name != c.Name || got.Type != c.Type || got.Optional != c.Optional {
			return nil, nil, fmt.Errorf("table %s, column %s: it is %s; version %d has %s here", s.Name, got.Name,
				got.kind(), version, c.Name+" "+c.kind())
		}
	}
	at := 0
	for i := range s.Lines {
		l := &s.Lines[i]
		if l.Inner {
			continue
		}
		c := l.column()
		columns = append(columns, Column{Name: l.Name, Type: c.Type, Optional: c.Optional})
		if l.Since > version {
			from = append(from, -1)
			continue
		}
		from = append(from, at)
		at++
	}
	for i, c := range file[at:] {
		if !dimensions || c.Type != Int || !c.Optional {
			return nil, nil, fmt.Errorf("table %s, column %s: version %d has none of that name and type", s.Name,
				c.Name, version)
		}
		if s.Line(c.Name) != nil { // a dimension of a policy from before the table had a column of its name
			c.Name = "dimension_" + c.Name
		}
		columns, from = append(columns, c), append(from, at+i)
	}
	return columns, from, nil
}

// kind is the type of a column in words.
func (c *Column) kind() string {
	if c.Optional {
		return c.Type.String() + " or nothing"
	}
	return c.Type.String()
}

// byRow tells whether the line has a value for each row of the table.
func (l *Line) byRow() bool { return l.Of != nil && !l.Apart }

// dict is the dictionary of the line's codes.
func (l *Line) dict(named func(name string) Dict) Dict {
	if l.Words != nil {
		return l.Words
	}
	return named(l.Dictionary())
}

// Table is a view of the table. Lines without cells are left out: they are made where the table is written.
func (s Schema) Table() Table {
	t := Table{Name: s.Name, Rows: s.Rows(), Columns: make([]Column, 0, len(s.Lines))}
	for i := range s.Lines {
		if l := &s.Lines[i]; !l.Inner && l.Of != nil {
			t.Columns = append(t.Columns, l.column())
		}
	}
	return t
}

// eachNull calls f for the nulls of the table, once for those that lines share.
func (s Schema) eachNull(f func(*[]bool)) {
	for i, l := range s.Lines {
		if l.Null != nil && !slices.ContainsFunc(s.Lines[:i], func(o Line) bool { return o.Null == l.Null }) {
			f(l.Null)
		}
	}
}

// Extend adds rows, whose values the caller sets, and gives the number of the first.
func (s Schema) Extend(rows int) (first int) {
	first = s.Rows()
	s.Resize(first + rows)
	return first
}

// Spare adds rows that are not in use: they are 0 throughout, and name nothing. It gives the number of the first.
func (s Schema) Spare(rows int) (first int) {
	first = s.Extend(rows)
	for i := range s.Lines {
		if l := &s.Lines[i]; l.byRow() && !l.Bare {
			value := int64(0)
			if l.Names != "" {
				value = NoID
			}
			l.Of.fill(first, value)
		}
	}
	return first
}

// Resize makes the table so many rows long. Rows that are new have any values.
func (s Schema) Resize(rows int) {
	for i := range s.Lines {
		if l := &s.Lines[i]; l.byRow() && !l.Bare {
			l.Of.Resize(rows)
		}
	}
	s.eachNull(func(null *[]bool) { *null = resized(*null, rows) })
}

// Reset empties the table, keeping its memory. The codes that follow are of the words of their lines, or of a
// dictionary that dict gives by name.
func (s Schema) Reset(dict func(name string) Dict) {
	s.Resize(0)
	for _, l := range s.Lines {
		if c, ok := l.Of.(*Coded); ok {
			c.Dict = l.dict(dict)
		}
	}
}

// CopyFrom makes the table a copy of another of its schema. dict gives the form of a dictionary that does not change;
// nil: dictionaries are shared.
func (s Schema) CopyFrom(other Schema, dict func(Dict) Dict) {
	for i, l := range s.Lines {
		if l.Of == nil {
			continue
		}
		l.Of.copy(other.Lines[i].Of)
		if c, ok := l.Of.(*Coded); ok && dict != nil && c.Dict != nil {
			c.Dict = dict(c.Dict)
		}
		if l.Null != nil {
			*l.Null = slices.Clone(*other.Lines[i].Null)
		}
	}
}

// Drop removes the first rows; those behind them move up. O(rows that stay).
func (s Schema) Drop(rows int) {
	for _, l := range s.Lines {
		l.Of.Drop(rows)
	}
	s.eachNull(func(null *[]bool) { *null = dropped(*null, rows) })
}

// Save names the columns of the table, in the order of the lines, then the rows that have no value; a line of a later
// version than the one that is loaded gets what it has in earlier ones. Codes that are loaded must be of the line's
// words, or of a dictionary that dict gives by name. Errors, kept by the Coder, name table, column and row.
func (s Schema) Save(c *pack.Coder, version int, dict func(name string) Dict) {
	for i := range s.Lines {
		s.Lines[i].save(c, s.Name, version, s.Rows(), dict)
	}
	s.eachNull(func(null *[]bool) { s.saveNull(c, version, null) })
	s.check(c)
}

// SaveNamed is Save for a form that had columns in another order, by name; a name that ends with ? is that of the rows
// in which the column has no value.
func (s Schema) SaveNamed(c *pack.Coder, version int, names []string, dict func(name string) Dict) {
	for _, name := range names {
		if column, null := cutMark(name); null {
			s.saveNull(c, version, s.Line(column).Null)
		} else {
			s.Line(name).save(c, s.Name, version, s.Rows(), dict)
		}
	}
}

func cutMark(name string) (column string, null bool) {
	if n := len(name); name[n-1] == '?' {
		return name[:n-1], true
	}
	return name, false
}

// save names the values of a column; a table that is loaded has so many rows.
func (l *Line) save(c *pack.Coder, table string, version, rows int, dict func(name string) Dict) {
	if l.Of == nil || l.Derived {
		return
	}
	text, coded := l.Of.(*Coded)
	if coded {
		c.Note(&text.Dict)
	}
	if version < l.Since {
		pack.Noted(c, l.Of.Save)
		if c.Loading() {
			l.Of.Resize(rows)
			l.Of.fill(0, l.Absent)
		}
		return
	}
	l.Of.Save(c)
	if !coded || !c.Loading() {
		return
	}
	text.Dict = l.dict(dict)
	if row := misplaced(text.Code, text.Dict); row >= 0 {
		c.Fail("table %s, column %s, row %d: code %d of a dictionary of %d", table, l.Name, row, text.Code[row],
			words(text.Dict))
	}
}

// saveNull names the rows in which the columns that share it have no value: all, in versions before theirs.
func (s Schema) saveNull(c *pack.Coder, version int, null *[]bool) {
	of := s.Lines[slices.IndexFunc(s.Lines, func(l Line) bool { return l.Null == null })]
	if version >= of.Since {
		pack.Bools(c, null)
		return
	}
	pack.Noted(c, func(c *pack.Coder) { pack.Bools(c, null) })
	if c.Loading() {
		*null = slices.Repeat([]bool{true}, s.Rows())
	}
}

// check fails the Coder where columns that were loaded are of several lengths.
func (s Schema) check(c *pack.Coder) {
	if !c.Loading() {
		return
	}
	if err := s.Sound(); err != nil {
		c.Fail("%w", err)
	}
}

// Sound tells whether all columns have the rows of the first. The error names table and column.
func (s Schema) Sound() error {
	rows := s.Rows()
	for i := range s.Lines {
		l := &s.Lines[i]
		if !l.byRow() || l.Derived {
			continue
		}
		if n := lengthBut(l.Of, rows); n != rows && (n > 0 || !l.Bare) {
			return fmt.Errorf("table %s, column %s: %d values for %d rows", s.Name, l.Name, n, rows)
		}
		if l.Null != nil && len(*l.Null) != rows {
			return fmt.Errorf("table %s, column %s: %d nulls for %d rows", s.Name, l.Name, len(*l.Null), rows)
		}
	}
	return nil
}

// lengthBut is the length of cells, of columns for each dimension the first that differs from so many rows; these where
// none does.
func lengthBut(of Cells, rows int) int {
	columns, ok := of.(*grid)
	if !ok {
		return of.Len()
	}
	for _, c := range *columns {
		if len(c) != rows {
			return len(c)
		}
	}
	return rows
}

// Known tells whether the rows that values name are there: rows gives the number of rows of a table, or dictionary.
// The error names table, column and row.
func (s Schema) Known(rows func(table string) int) error {
	for i := range s.Lines {
		l := &s.Lines[i]
		if l.Names == "" || l.Derived {
			continue
		}
		least, live := 0, s.Live
		if l.Nullable {
			least = NoID
		}
		if l.Apart {
			live = nil
		}
		if row, id := l.Of.(IDs).outside(least, rows(l.Names), live); row >= 0 {
			return fmt.Errorf("table %s, column %s, row %d: row %d of %s, which has %d", s.Name, l.Name, row, id,
				l.Names, rows(l.Names))
		}
	}
	return nil
}

// Renumber gives the values that name rows of a table other ids. Rows that are not in use get free.
func (s Schema) Renumber(table string, free int32, to func(id int32) int32) {
	for i := range s.Lines {
		if l := &s.Lines[i]; l.Names == table {
			l.Of.(IDs).Renumber(func(row int, id int32) int32 {
				switch {
				case s.Live != nil && !l.Apart && !s.Live(row):
					return free
				case id == NoID:
					return NoID
				}
				return to(id)
			})
		}
	}
}
