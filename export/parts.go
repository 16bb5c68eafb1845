package export

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"

	"github.com/stintd/stint/core/decision"
)

// Parts writes a table that comes part by part, as Stream writes one that is there whole: it keeps of a part what the
// format needs, which is a row group in Parquet and else nothing. Write is called at least once, with a part that may
// be empty; then Close.
type Parts interface {
	Write(t *decision.Table) error
	Close() error
}

// NewParts makes a writer of parts in one of StreamFormats. In Parquet the column `cycle` comes first; where the parts
// have none it says cycle. JSON has the columns of these names as booleans; their values are 0 and 1, or the words
// false and true.
func NewParts(w io.Writer, format string, cycle int64, booleans ...string) (Parts, error) {
	switch format {
	case "arrow":
		return &arrowParts{w: w}, nil
	case "parquet":
		return &parquetParts{w: w, cycle: cycle}, nil
	case "ndjson", "json", "csv":
		return &textParts{w: bufio.NewWriter(w), format: format, booleans: booleans}, nil
	}
	return nil, fmt.Errorf("no format %q; there are %s", format, strings.Join(StreamFormats, ", "))
}

// textParts are rows of text.
type textParts struct {
	w        *bufio.Writer
	format   string
	booleans []string
	begun    bool
	rows     int
}

func (p *textParts) Write(t *decision.Table) error {
	rows := make([]int, t.Rows)
	for i := range rows {
		rows[i] = i
	}
	first := !p.begun
	p.begun = true
	if p.format == "csv" {
		return printCSVRows(p.w, t, rows, first)
	}
	if first && p.format == "json" {
		p.w.WriteString("[") // the writer keeps its error for Flush
	}
	printJSONRows(p.w, t, rows, p.booleans, p.format == "ndjson", p.rows == 0)
	p.rows += t.Rows
	return p.w.Flush()
}

func (p *textParts) Close() error {
	switch {
	case p.format == "json":
		p.w.WriteString("]\n")
	case p.format == "ndjson" && p.rows > 0:
		p.w.WriteString("\n")
	}
	return p.w.Flush()
}

// arrowParts are record batches. Each has dictionaries of the words that its rows use, which replace those before.
type arrowParts struct {
	w io.Writer
	z *ipc.Writer
}

func (p *arrowParts) Write(t *decision.Table) error {
	record, err := t.RecordBatch(memory.DefaultAllocator)
	if err != nil {
		return err
	}
	defer record.Release()
	if p.z == nil {
		p.z = ipc.NewWriter(p.w, ipc.WithSchema(record.Schema()))
	}
	return p.z.Write(record)
}

func (p *arrowParts) Close() error {
	if p.z == nil { // the first part could not be written
		return nil
	}
	return p.z.Close()
}

// parquetParts are row groups.
type parquetParts struct {
	w     io.Writer
	cycle int64
	pw    *parquet.GenericWriter[any]
	rows  int // of the row group under way
	batch []parquet.Value
}

func (p *parquetParts) Write(t *decision.Table) error {
	cycles, rest := []int64{p.cycle}, *t
	if c := t.Column("cycle"); c != nil {
		cycles = c.Int
		rest.Columns = slices.DeleteFunc(slices.Clone(t.Columns), func(c decision.Column) bool {
			return c.Name == "cycle"
		})
	}
	if p.pw == nil {
		p.pw = newRowWriter(p.w, &rest, nil)
		p.batch = make([]parquet.Value, 0, batchRows)
	}
	sources := rowSources(&rest, cycles, t.Column("cycle") == nil)
	for from := 0; from < t.Rows; {
		end := min(t.Rows, from+rowGroupRows-p.rows)
		if err := writeRows(p.pw, sources, p.batch, from, end); err != nil {
			return err
		}
		if p.rows += end - from; p.rows == rowGroupRows {
			p.rows = 0
			if err := p.pw.Flush(); err != nil {
				return err
			}
		}
		from = end
	}
	return nil
}

func (p *parquetParts) Close() error {
	if p.pw == nil {
		return nil
	}
	return p.pw.Close()
}
