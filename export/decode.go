package export

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/stintd/stint/core/decision"
)

// What a reader takes from one file, and from all files of one call.
const (
	fileBytesMax = 1 << 30
	rowsMax      = 1 << 27
)

// texts is a dictionary of texts read from files.
type texts [][]byte

// Len is the number of texts.
func (t texts) Len() int { return len(t) }

// Bytes gives a text.
func (t texts) Bytes(code int32) []byte { return t[code] }

// builder collects the rows of a table from files.
type builder struct {
	name     string             // of the table
	upgraded bool               // whether a file was of the first schema
	groups   []parquet.RowGroup // of the file that is read: those that have rows of the cycles asked for
	rows     int64              // in these
	table    decision.Table     // the column `cycle` first
	intern   []map[string]int32
	values   []parquet.Value
}

// read reads a sealed file's footer. want is the seal it must have, "" for any. Errors and
// panics of the library become errors that begin with the path.
func read(from Files, path, want string) (f *parquet.File, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}()
	defer catch(&err)
	info, err := from.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > fileBytesMax {
		return nil, fmt.Errorf("%d bytes, more than %d", info.Size(), fileBytesMax)
	}
	data, err := readFile(from, path)
	if err != nil {
		return nil, err
	}
	if err := unseal(data, want); err != nil {
		return nil, err
	}
	f, err = parquet.OpenFile(bytes.NewReader(data), int64(len(data)), parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	if _, err := versionOf(f); err != nil {
		return nil, err
	}
	return f, nil
}

func catch(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("damaged: %v", r)
	}
}

// add appends the rows of the cycles first … last of a file that may hold those of s. All
// files must have the same columns, save those of dimensions (unite). After an error the builder is of no use.
func (b *builder) add(f *parquet.File, s span, first, last int64) (err error) {
	defer catch(&err)
	columns, from, oldest, err := upgrade(b.name, f) // from: by column, that of the file; -1 for one that it lacks
	if err != nil {
		return err
	}
	b.upgraded = b.upgraded || oldest
	if b.table.Columns == nil {
		b.table.Columns, b.intern = columns, make([]map[string]int32, len(columns))
		b.values = make([]parquet.Value, 1024)
	}
	if decision.HasFigures(b.name) {
		from, columns = b.unite(columns, from), b.table.Columns
	}
	b.choose(f, s, first, last)
	if n := b.rows; n < 0 || n > int64(rowsMax-b.table.Rows) {
		return fmt.Errorf("more than %d rows to hold at once: ask for fewer cycles", rowsMax)
	}
	var keep []bool // nil: all
	for i := range columns {
		leaf := from[i]
		switch {
		case i == 0:
			keep, err = b.cycles(s, first, last)
		case leaf < 0:
			b.missing(i)
		default:
			err = b.column(leaf, i, keep)
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", columns[i].Name, err)
		}
	}
	b.table.Rows = len(b.table.Columns[0].Int)
	return b.table.Check()
}

// columnsOf are the columns of a file, without rows.
func columnsOf(f *parquet.File) ([]decision.Column, error) {
	var columns []decision.Column
	for _, path := range f.Schema().Columns() {
		leaf, _ := f.Schema().Lookup(path...)
		c := decision.Column{Name: path[0]}
		switch kind := leaf.Node.Type().Kind(); {
		case kind == parquet.ByteArray && leaf.MaxRepetitionLevel == 1:
			c.Type = decision.List
		case leaf.MaxRepetitionLevel > 0 || leaf.MaxDefinitionLevel > 1:
			return nil, fmt.Errorf("column %s is nested", strings.Join(path, "."))
		case kind == parquet.ByteArray:
			c.Type = decision.Text
		case kind == parquet.Double:
			c.Type, c.Optional = decision.Float, leaf.MaxDefinitionLevel == 1
		case kind == parquet.Int64:
			c.Optional = leaf.MaxDefinitionLevel == 1
			if lt := leaf.Node.Type().LogicalType(); lt != nil {
				if _, ok := lt.Value.(*format.TimestampType); ok {
					c.Type = decision.Time
				}
			}
		default:
			return nil, fmt.Errorf("column %s has the type %s", path[0], leaf.Node.Type())
		}
		columns = append(columns, c)
	}
	if len(columns) == 0 || columns[0].Name != "cycle" || columns[0].Type != decision.Int || columns[0].Optional {
		return nil, errors.New("its first column is not cycle")
	}
	return columns, nil
}

func sameColumns(a, b []decision.Column) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || a[i].Type != b[i].Type || a[i].Optional != b[i].Optional {
			return false
		}
	}
	return true
}

// cycles reads the column `cycle` and says which rows are of the cycles asked for, nil when all are.
func (b *builder) cycles(s span, first, last int64) ([]bool, error) {
	var keep []bool
	c := &b.table.Columns[0]
	all := true
	err := b.each(0, func(v parquet.Value) error {
		if int64(len(keep)) == b.rows {
			return errTooMany
		}
		if v.Int64() < s.first || v.Int64() > s.last {
			return fmt.Errorf("a row of cycle %d", v.Int64())
		}
		is := v.Int64() >= first && v.Int64() <= last
		keep, all = append(keep, is), all && is
		if is {
			c.Int = append(c.Int, v.Int64())
		}
		return nil
	})
	if err == nil && int64(len(keep)) != b.rows {
		err = fmt.Errorf("%d values for %d rows", len(keep), b.rows)
	}
	if all {
		keep = nil
	}
	return keep, err
}

var errTooMany = errors.New("more values than rows")

// column reads another column's values of the rows to keep, from a leaf column of the file.
func (b *builder) column(leaf, i int, keep []bool) error {
	c, row := &b.table.Columns[i], int64(-1)
	list := -1 // the last row of a List column that was kept
	return b.each(leaf, func(v parquet.Value) error {
		if v.RepetitionLevel() == 0 {
			row++
		}
		if row < 0 || row >= b.rows {
			return errTooMany
		}
		if keep != nil && !keep[row] {
			return nil
		}
		if c.Type == decision.List {
			if v.RepetitionLevel() == 0 {
				c.Lists = append(c.Lists, nil)
				list = len(c.Lists) - 1
			}
			if !v.IsNull() {
				c.Lists[list] = append(c.Lists[list], string(v.ByteArray()))
			}
			return nil
		}
		return b.put(c, i, v)
	})
}

// put appends a value that is not a list.
func (b *builder) put(c *decision.Column, i int, v parquet.Value) error {
	null := v.IsNull()
	switch c.Type {
	case decision.Text:
		if null {
			c.Code = append(c.Code, decision.Null)
			return nil
		}
		if b.intern[i] == nil {
			b.intern[i] = map[string]int32{}
			c.Dict = &texts{}
		}
		code, ok := b.intern[i][string(v.ByteArray())]
		if !ok {
			words := c.Dict.(*texts)
			code = int32(len(*words)) // at most rowsMax
			word := bytes.Clone(v.ByteArray())
			b.intern[i][string(word)] = code
			*words = append(*words, word)
		}
		c.Code = append(c.Code, code)
		return nil
	case decision.Float:
		c.Float = append(c.Float, 0)
		if !null {
			c.Float[len(c.Float)-1] = v.Double()
		}
	default:
		c.Int = append(c.Int, 0)
		if !null {
			c.Int[len(c.Int)-1] = v.Int64()
		}
	}
	rows := len(c.Int) + len(c.Float)
	if null && c.Null == nil {
		c.Null = make([]bool, rows-1, max(rows, cap(c.Int), cap(c.Float)))
	}
	if c.Null != nil {
		c.Null = append(c.Null, null)
	}
	return nil
}

// each visits the values of a leaf column.
func (b *builder) each(column int, visit func(parquet.Value) error) error {
	for _, group := range b.groups {
		if err := b.chunk(group.ColumnChunks()[column], visit); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) chunk(chunk parquet.ColumnChunk, visit func(parquet.Value) error) (err error) {
	pages := chunk.Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) && page == nil {
			return nil
		}
		if err != nil {
			return err
		}
		values := page.Values()
		for {
			n, err := values.ReadValues(b.values)
			for _, v := range b.values[:n] {
				if err := visit(v); err != nil {
					return err
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			if n == 0 {
				return io.ErrNoProgress
			}
		}
		parquet.Release(page)
	}
}
