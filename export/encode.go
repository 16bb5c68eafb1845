package export

import (
	"fmt"
	"io"
	"reflect"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/stintd/stint/core/decision"
)

// The shape of the files of the log.
const (
	rowGroupRows = 122880 // DuckDB's vector-friendly row group
	batchRows    = 8192   // rows handed to a column writer at once
)

// packing is the codec of all files: decisions compress well at the fastest level.
var packing = &zstd.Codec{Level: zstd.SpeedFastest, Concurrency: 1}

// schemaOf is the Parquet schema of a table, the column `cycle` first. It depends on the
// columns' names, types and Optional alone, never on their rows.
func schemaOf(t *decision.Table) *parquet.Schema {
	fields := []reflect.StructField{field(0, "cycle,delta", reflect.TypeFor[int64]())}
	for i, c := range t.Columns {
		tag, typ := c.Name, reflect.TypeFor[int64]()
		switch c.Type {
		case decision.Int:
			tag += ",delta"
		case decision.Time:
			tag += ",delta,timestamp(microsecond)"
		case decision.Float:
			typ = reflect.TypeFor[float64]()
		case decision.Text:
			tag, typ = tag+",dict", reflect.TypeFor[string]()
		case decision.List:
			tag, typ = tag+",list", reflect.TypeFor[[]string]()
		}
		if c.Optional || c.Type == decision.Text {
			tag += ",optional"
		}
		fields = append(fields, field(i+1, tag, typ))
	}
	return parquet.NewSchema(t.Name, parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface()))
}

func field(i int, tag string, typ reflect.Type) reflect.StructField {
	return reflect.StructField{
		Name: "F" + strconv.Itoa(i), Type: typ,
		Tag: reflect.StructTag(`parquet:` + strconv.Quote(tag)),
	}
}

// meta is a key and value of a file's metadata.
type meta struct{ key, value string }

// encode writes the table of a cycle as a Parquet file.
func encode(w io.Writer, t *decision.Table, cycle int64, metas []meta) error {
	return encodeRows(w, t, []int64{cycle}, metas)
}

// encodeRows writes a table as a Parquet file; cycles has the cycle of each row, or of all.
// Values go to the column writers in batches, column by column; memory is that of one row group.
func encodeRows(w io.Writer, t *decision.Table, cycles []int64, metas []meta) error {
	pw := newRowWriter(w, t, metas)
	sources := rowSources(t, cycles, len(cycles) == 1)
	batch := make([]parquet.Value, 0, batchRows)
	for first := 0; first < t.Rows; first += rowGroupRows {
		if err := writeRows(pw, sources, batch, first, min(first+rowGroupRows, t.Rows)); err != nil {
			return err
		}
		if err := pw.Flush(); err != nil {
			return err
		}
	}
	return pw.Close()
}

// newRowWriter begins a Parquet file of tables such as t.
func newRowWriter(w io.Writer, t *decision.Table, metas []meta) *parquet.GenericWriter[any] {
	options := []parquet.WriterOption{
		schemaOf(t), parquet.Compression(packing), parquet.MaxRowsPerRowGroup(rowGroupRows),
		parquet.DataPageStatistics(false), // the page index has them
		parquet.CreatedBy("stint", decision.RulesVersion, ""),
	}
	for _, c := range t.Columns {
		// Bounds of texts cost more than they prune, save of consumers, by which rows are ordered.
		if c.Type == decision.Text && c.Name != "consumer" {
			options = append(options, parquet.SkipPageBounds(c.Name))
		}
	}
	for _, m := range append(metas, meta{metaSeal, unsealed}) {
		options = append(options, parquet.KeyValueMetadata(m.key, m.value))
	}
	return parquet.NewGenericWriter[any](w, options...)
}

// rowSources are where the values of a file's columns come from: the cycles, of which there is one for all rows where
// same is set, and the table's columns.
func rowSources(t *decision.Table, cycles []int64, same bool) []source {
	sources := make([]source, 1, len(t.Columns)+1)
	sources[0] = source{column: &decision.Column{Type: decision.Int, Int: cycles}, same: same}
	for i := range t.Columns {
		sources = append(sources, newSource(&t.Columns[i], i+1, t.Rows))
	}
	return sources
}

// writeRows writes rows from … end-1; batch is scratch.
func writeRows(pw *parquet.GenericWriter[any], sources []source, batch []parquet.Value, from, end int) error {
	into := pw.ColumnWriters()
	if len(into) != len(sources) {
		return fmt.Errorf("BUG: a table has %d leaf columns for %d columns", len(into), len(sources))
	}
	for i := range sources {
		for at := from; at < end; at += batchRows {
			batch = sources[i].values(batch[:0], at, min(at+batchRows, end))
			if _, err := into[i].WriteRowValues(batch); err != nil {
				return err
			}
		}
	}
	return nil
}

// source gives the values of one column.
type source struct {
	column *decision.Column
	index  int             // of the leaf column
	same   bool            // the first value is that of every row
	words  []parquet.Value // by code, made when first met; nil where a dictionary is much longer than the table
}

func newSource(c *decision.Column, index, rows int) source {
	s := source{column: c, index: index}
	if c.Type == decision.Text && c.Dict != nil && c.Dict.Len() <= 2*rows {
		s.words = make([]parquet.Value, c.Dict.Len())
	}
	return s
}

// values appends those of rows from … end-1.
func (s *source) values(to []parquet.Value, from, end int) []parquet.Value {
	c := s.column
	null := parquet.NullValue().Level(0, 0, s.index)
	switch {
	case s.same:
		for range end - from {
			to = append(to, parquet.Int64Value(c.Int[0]).Level(0, 0, s.index))
		}
	case c.Type == decision.Text:
		for _, code := range c.Code[from:end] {
			switch {
			case code == decision.Null:
				to = append(to, null)
			case s.words == nil:
				to = append(to, s.word(code))
			default:
				if s.words[code].IsNull() {
					s.words[code] = s.word(code)
				}
				to = append(to, s.words[code])
			}
		}
	case c.Type == decision.List:
		for _, list := range c.Lists[from:end] {
			to = appendList(to, list, s.index)
		}
	default:
		to = s.numbers(to, from, end, null)
	}
	return to
}

func (s *source) word(code int32) parquet.Value {
	return parquet.ByteArrayValue(s.column.Dict.Bytes(code)).Level(0, 1, s.index)
}

func (s *source) numbers(to []parquet.Value, from, end int, null parquet.Value) []parquet.Value {
	c, present := s.column, 0
	if c.Optional {
		present = 1
	}
	for row := from; row < end; row++ {
		switch {
		case c.Null != nil && c.Null[row]:
			to = append(to, null)
		case c.Type == decision.Float:
			to = append(to, parquet.DoubleValue(c.Float[row]).Level(0, present, s.index))
		default:
			to = append(to, parquet.Int64Value(c.Int[row]).Level(0, present, s.index))
		}
	}
	return to
}

// appendList appends a row of texts: repetition 0 begins a row, definition 0 is an empty list.
func appendList(to []parquet.Value, list []string, index int) []parquet.Value {
	if len(list) == 0 {
		return append(to, parquet.NullValue().Level(0, 0, index))
	}
	for i, s := range list {
		to = append(to, parquet.ByteArrayValue([]byte(s)).Level(min(i, 1), 1, index))
	}
	return to
}
