package export

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/stintd/stint/core/decision"
)

// The versions of columns that this program reads too, and does not write.
const (
	firstSchema = "1" // had other names, and lacked columns
	// lacked the messages of policies: programs that know it alone would count them in digests (D-77)
	silentSchema  = "2"
	decidedSchema = "3" // lacked the tables of what stands (D-79): cycles of it and of earlier ones do not have them
	busySchema    = "4" // lacked work lost (D-120): it is null in its cycles
	// lacked min_units (D-157): it is 1 in its cycles, in which every unit came by itself; and budgets (D-162), of
	// which there are none
	singleSchema = "5"
	// lacked decayed usage (D-166): no plan of its cycles has a half-life; and together (D-108): gangs lay on any hosts
	presentSchema = "6"
	sumSchema     = "7" // lacked devices (D-187): no plan of its cycles has any
)

// schemas are all versions that are read, in the order in which they came.
var schemas = []string{firstSchema, silentSchema, decidedSchema, busySchema, singleSchema, presentSchema, sumSchema,
	SchemaVersion}

// renamed are the columns that have another name since a schema: in the first one several had a name that SQL has a
// use for, and a dimension gave way to a column of its name.
var renamed = map[string]struct{ since, name string }{
	"cycles.window": {silentSchema, "time_window"}, "consumers.limit": {silentSchema, "slot_limit"},
	"amounts.limit": {silentSchema, "share_limit"}, "sub_allocations.min_units": {presentSchema, "dimension_min_units"},
	"sub_allocations.together": {sumSchema, "dimension_together"},
}

// addition is columns that came with a schema.
type addition struct {
	schema  string
	columns []decision.Column
}

// added are the columns that came after the first schema, by the column that they stand after. Those of consumers'
// places are made of the paths when they are read (decision.Tree); who gave an input is not known.
var added = map[string]addition{
	"consumers.consumer": {silentSchema, []decision.Column{
		{Name: "parent", Type: decision.Text}, {Name: "depth"}, {Name: "leaf"},
	}},
	"inputs.rows":                {silentSchema, []decision.Column{{Name: "author", Type: decision.Text}}},
	"cycles.shortfalls_cycle":    {busySchema, []decision.Column{{Name: "standing_cycle"}}},
	"cycles.units_short":         workLost,
	"releases.lender":            workLost,
	"releases.unit_seconds_lost": onDevices,
	"grants.lender":              onDevices,
	"reclaims.deadline":          onDevices,
	"holdings.granted":           onDevices,
	"consumers.short":            workLost,
	"consumers.unit_seconds_lost": {presentSchema, []decision.Column{
		{Name: "budget", Optional: true}, {Name: "budget_dimension", Type: decision.Text},
		{Name: "budget_used", Type: decision.Float, Optional: true},
	}},
	"sub_allocations.requirement":  {sumSchema, []decision.Column{{Name: "together", Type: decision.Text}}},
	"sub_allocations.max_per_host": {presentSchema, []decision.Column{{Name: "min_units"}}},
	"shares.units_wanted": {sumSchema, []decision.Column{
		{Name: "decayed_usage", Type: decision.Float, Optional: true},
		{Name: "effective_ratio", Type: decision.Float, Optional: true},
	}},
}

// onDevices is the column of devices.
var onDevices = addition{SchemaVersion, []decision.Column{{Name: "device", Type: decision.Text}}}

// absent are the values of columns of numbers in files that lack them, where it is not 0.
var absent = map[string]int64{"sub_allocations.min_units": 1}

var workLost = addition{singleSchema, []decision.Column{
	{Name: "unit_seconds_lost", Type: decision.Float, Optional: true},
}}

// upgrade gives the columns of a file of an earlier schema as they are now. from are their places in the file, -1 for
// those that it lacks.
func upgrade(table, schema string, old []decision.Column) (columns []decision.Column, from []int) {
	version := slices.Index(schemas, schema)
	for i, c := range old {
		was := table + "." + c.Name
		if now, ok := renamed[was]; ok && version < slices.Index(schemas, now.since) {
			c.Name = now.name
		}
		columns, from = append(columns, c), append(from, i)
		for _, c := range since(version, was) {
			columns, from = append(columns, c), append(from, -1)
		}
	}
	return columns, from
}

// since are the columns that came behind a column, and behind those, after a version.
func since(version int, column string) (columns []decision.Column) {
	more := added[column]
	table, _, _ := strings.Cut(column, ".")
	for _, c := range more.columns {
		if version < slices.Index(schemas, more.schema) {
			columns = append(append(columns, c), since(version, table+"."+c.Name)...)
		}
	}
	return columns
}

// missing fills a column that the file lacks: without values, or with what it means that there is none.
func (b *builder) missing(i int) {
	c, rows := &b.table.Columns[i], len(b.table.Columns[0].Int)
	if before := len(c.Int) + len(c.Float); c.Optional && before < rows {
		if c.Null == nil {
			c.Null = make([]bool, before)
		}
		c.Null = append(c.Null, slices.Repeat([]bool{true}, rows-before)...)
	}
	for c.Type == decision.Text && len(c.Code) < rows {
		c.Code = append(c.Code, decision.Null)
	}
	for c.Type == decision.Int && len(c.Int) < rows {
		c.Int = append(c.Int, absent[b.name+"."+c.Name])
	}
	for c.Type == decision.Float && len(c.Float) < rows {
		c.Float = append(c.Float, 0)
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
