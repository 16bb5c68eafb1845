package export

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/parquet-go/parquet-go"

	"github.com/stintd/stint/core/decision"
)

// TestPartsText has a table in parts of each size read as Print writes it whole.
func TestPartsText(t *testing.T) {
	whole := streamSample()
	for _, format := range []string{"csv", "json", "ndjson"} {
		for size := range 4 {
			for rows := range 4 {
				var want, got bytes.Buffer
				if err := Print(&want, whole.Slice(0, rows), format, PrintOptions{}); err != nil {
					t.Fatal(err)
				}
				writeParts(t, &got, whole.Slice(0, rows), format, size)
				if got.String() != want.String() {
					t.Errorf("%s, %d rows in parts of %d:\n%s\nwant\n%s", format, rows, size, got.String(),
						want.String())
				}
			}
		}
	}
}

// writeParts writes a table in parts of a size; 0: as one.
func writeParts(t *testing.T, to *bytes.Buffer, whole *decision.Table, format string, size int) {
	t.Helper()
	p, err := NewParts(to, format, 5)
	if err != nil {
		t.Fatal(err)
	}
	if size == 0 {
		size = max(whole.Rows, 1)
	}
	for from := 0; from == 0 || from < whole.Rows; from += size {
		if err := p.Write(whole.Slice(from, min(from+size, whole.Rows))); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// long is a table of so many rows, each with a word of its own out of a dictionary that is longer still.
func long(rows int) *decision.Table {
	words := make(decision.Words, 3*rows)
	for i := range words {
		words[i] = fmt.Sprint("w", i)
	}
	t := &decision.Table{Name: "long", Rows: rows, Columns: []decision.Column{
		{Name: "word", Type: decision.Text, Dict: words}, {Name: "n", Type: decision.Int},
	}}
	for i := range rows {
		t.Columns[0].Code = append(t.Columns[0].Code, int32(3*i))
		t.Columns[1].Int = append(t.Columns[1].Int, int64(i))
	}
	return t
}

func TestPartsArrow(t *testing.T) {
	var b bytes.Buffer
	writeParts(t, &b, long(1000), "arrow", 90)
	r, err := ipc.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	row := 0
	for r.Next() {
		words, numbers := r.RecordBatch().Column(0).(*array.Dictionary), r.RecordBatch().Column(1)
		for i := range int(r.RecordBatch().NumRows()) {
			got, n := words.Dictionary().ValueStr(words.GetValueIndex(i)), numbers.ValueStr(i)
			if got != fmt.Sprint("w", 3*row) || n != fmt.Sprint(row) {
				t.Fatalf("row %d is %s, %s", row, got, n)
			}
			row++
		}
	}
	if r.Err() != nil || row != 1000 {
		t.Error(row, "rows,", r.Err())
	}
}

func TestPartsParquet(t *testing.T) {
	const rows = rowGroupRows + 1000
	var b bytes.Buffer
	writeParts(t, &b, long(rows), "parquet", 9_999)
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if f.NumRows() != rows || len(f.RowGroups()) != 2 {
		t.Error(f.NumRows(), "rows in", len(f.RowGroups()), "row groups")
	}
	var names []string
	for _, c := range f.Root().Columns() {
		names = append(names, c.Name())
	}
	if strings.Join(names, " ") != "cycle word n" {
		t.Error(names)
	}
	group := f.RowGroups()[1].Rows()
	defer group.Close()
	row := make([]parquet.Row, 1)
	if n, _ := group.ReadRows(row); n != 1 || row[0][0].Int64() != 5 ||
		row[0][1].String() != fmt.Sprint("w", 3*rowGroupRows) || row[0][2].Int64() != rowGroupRows {
		t.Error(row)
	}
}
