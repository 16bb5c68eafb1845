package export

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/stintd/stint/core/decision"
)

// versionOf is the version of the columns of a file, which this program reads from 1 to SchemaVersion. What changed
// from one to the next the schemas of core/decision say (Since).
func versionOf(f *parquet.File) (int, error) {
	text, _ := f.Lookup(metaSchema)
	version, err := strconv.Atoi(text)
	newest, _ := strconv.Atoi(SchemaVersion)
	if err != nil || version < 1 || version > newest {
		return 0, fmt.Errorf("its schema is version %q, this program reads \"1\" to %q", text, SchemaVersion)
	}
	return version, nil
}

// upgrade gives the columns of a file of a table as they are now. from are their places in the file, -1 for those that
// it lacks. first is whether the file is of the first version. The column cycle comes before those of the schema.
func upgrade(table string, f *parquet.File) (columns []decision.Column, from []int, first bool, err error) {
	file, err := columnsOf(f)
	if err != nil {
		return nil, nil, false, err
	}
	if _, told := f.Lookup(metaSchema); !told { // a service answered; the log refuses its own files on opening
		for i := range file {
			from = append(from, i)
		}
		return file, from, false, nil
	}
	version, err := versionOf(f)
	if err != nil {
		return nil, nil, false, err
	}
	cycle, rest := file[:1:1], file[1:]
	schema, known := decision.SchemaOf(table)
	if !known {
		panic("BUG: no schema of " + table)
	}
	if schema.Lines[0].Name == "cycle" { // of the audit, which is of no cycle
		cycle, rest = nil, file
	}
	columns, places, err := schema.Upgrade(rest, version, decision.HasFigures(table))
	if err != nil {
		return nil, nil, false, err
	}
	for i := range cycle {
		from = append(from, i)
	}
	for _, at := range places {
		if at >= 0 {
			at += len(cycle)
		}
		from = append(from, at)
	}
	return append(cycle, columns...), from, version == 1, nil
}

// missing fills a column that the file lacks: without values, or with what it means that there is none.
func (b *builder) missing(i int) {
	c, rows := &b.table.Columns[i], len(b.table.Columns[0].Int)
	more := rows - c.Rows()
	if c.Optional && more > 0 {
		if c.Null == nil {
			c.Null = make([]bool, c.Rows())
		}
		c.Null = append(c.Null, slices.Repeat([]bool{true}, more)...)
	}
	absent := int64(0)
	if schema, _ := decision.SchemaOf(b.name); schema.Line(c.Name) != nil {
		absent = schema.Line(c.Name).Absent
	}
	switch c.Type {
	case decision.Text:
		c.Code = append(c.Code, slices.Repeat([]int32{decision.Null}, more)...)
	case decision.Float:
		c.Float = append(c.Float, make([]float64, more)...)
	default:
		c.Int = append(c.Int, slices.Repeat([]int64{absent}, more)...)
	}
}

// choose notes the row groups of a file that may have rows of the cycles first … last, by the bounds that the file
// tells. A group that tells of cycles that the file cannot hold is read too, and found out.
func (b *builder) choose(f *parquet.File, s span, first, last int64) {
	b.groups, b.rows = b.groups[:0], 0
	for i, group := range f.RowGroups() {
		at, told := groupBounds(f, i)
		if told && s.first <= at.low && at.high <= s.last && (at.high < first || at.low > last) {
			continue
		}
		b.groups, b.rows = append(b.groups, group), b.rows+group.NumRows()
	}
}

// groupBounds are the cycles of a row group, as far as the file tells.
func groupBounds(f *parquet.File, group int) (bounds, bool) {
	told := f.Metadata().RowGroups[group].Columns[0].MetaData.Statistics
	if len(told.MinValue) != 8 || len(told.MaxValue) != 8 {
		return bounds{}, false
	}
	return bounds{int64(binary.LittleEndian.Uint64(told.MinValue)), int64(binary.LittleEndian.Uint64(told.MaxValue))},
		true
}
