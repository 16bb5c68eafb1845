package export

import (
	"encoding/binary"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/stintd/stint/core/decision"
)

// firstSchema is the version of columns that this program reads too, and does not write. It had other names, and
// lacked columns.
const firstSchema = "1"

// silentSchema is the version that lacked the messages of policies and nothing that came before. Programs that know it
// and not the next one would count messages among what was decided (D-77).
const silentSchema = "2"

// decidedSchema is the version that lacked the tables of what stands (D-79). Cycles of it and of earlier ones do not have
// them.
const decidedSchema = "3"

// renamed are the columns that have another name since the first schema.
var renamed = map[string]string{
	"cycles.window": "time_window", "consumers.limit": "slot_limit", "amounts.limit": "share_limit",
}

// added are the columns that came after the first schema, by the column that they stand after. Those of consumers are
// made of the paths when they are read (decision.Tree); who gave an input is not known.
var added = map[string][]decision.Column{
	"consumers.consumer": {{Name: "parent", Type: decision.Text}, {Name: "depth"}, {Name: "leaf"}},
	"inputs.rows":        {{Name: "author", Type: decision.Text}},
}

// addedLast are those that came with the present schema.
var addedLast = map[string][]decision.Column{"cycles.shortfalls_cycle": {{Name: "standing_cycle"}}}

// upgrade gives the columns of a file of an earlier schema as they are now. from are their places in the file, -1 for
// those that it lacks.
func upgrade(table, schema string, old []decision.Column) (columns []decision.Column, from []int) {
	for i, c := range old {
		was := table + "." + c.Name
		if name, ok := renamed[was]; ok && schema == firstSchema {
			c.Name = name
		}
		columns, from = append(columns, c), append(from, i)
		more := addedLast[was]
		if schema == firstSchema {
			more = slices.Concat(added[was], more)
		}
		for _, c := range more {
			columns, from = append(columns, c), append(from, -1)
		}
	}
	return columns, from
}

// missing fills a column that the file lacks: without values, or with 0.
func (b *builder) missing(i int) {
	c, rows := &b.table.Columns[i], len(b.table.Columns[0].Int)
	if before := len(c.Int); c.Optional && before < rows {
		if c.Null == nil {
			c.Null = make([]bool, before)
		}
		c.Null = append(c.Null, slices.Repeat([]bool{true}, rows-before)...)
	}
	for c.Type == decision.Text && len(c.Code) < rows {
		c.Code = append(c.Code, decision.Null)
	}
	for c.Type == decision.Int && len(c.Int) < rows {
		c.Int = append(c.Int, 0)
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
	return bounds{int64(binary.LittleEndian.Uint64(told.MinValue)), int64(binary.LittleEndian.Uint64(told.MaxValue))}, true
}
