package export

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/parquet-go/parquet-go"

	"github.com/stintd/stint/core/decision"
)

func streamSample() *decision.Table {
	return &decision.Table{Name: "changes", Rows: 3, Columns: []decision.Column{
		{Name: "cycle", Type: decision.Int, Int: []int64{7, 7, 8}},
		{Name: "host", Type: decision.Text, Code: []int32{2, decision.Null, 0},
			Dict: decision.Words{"h0", "unused", "h2"}},
		{Name: "deadline", Type: decision.Time, Int: []int64{0, 5, 6}, Null: []bool{true, false, false},
			Optional: true},
		{Name: "share", Type: decision.Float, Float: []float64{0.5, math.NaN(), 1}},
		{Name: "inputs", Type: decision.List, Lists: [][]string{{"a", "b"}, nil, {"c"}}},
	}}
}

func TestStreamArrow(t *testing.T) {
	var b bytes.Buffer
	if err := Stream(&b, streamSample(), "arrow", 0); err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var lines []string
	for r.Next() {
		rec := r.RecordBatch()
		for row := range int(rec.NumRows()) {
			var cells []string
			for _, c := range rec.Columns() {
				if d, ok := c.(*array.Dictionary); ok && d.IsValid(row) {
					cells = append(cells, d.Dictionary().ValueStr(d.GetValueIndex(row)))
				} else {
					cells = append(cells, c.ValueStr(row))
				}
			}
			lines = append(lines, strings.Join(cells, " "))
		}
		if words := rec.Column(1).(*array.Dictionary).Dictionary().Len(); words != 2 {
			t.Errorf("%d words in the dictionary", words)
		}
	}
	want := []string{
		`7 h2 (null) 0.5 ["a","b"]`,
		`7 (null) 1970-01-01T00:00:00.000005Z (null) []`,
		`8 h0 1970-01-01T00:00:00.000006Z 1 ["c"]`,
	}
	if r.Err() != nil || fmt.Sprint(lines) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s\n%v", strings.Join(lines, "\n"), strings.Join(want, "\n"), r.Err())
	}
}

func TestStreamOthers(t *testing.T) {
	for format, want := range map[string]string{
		"csv":    "cycle,host,deadline,share,inputs\n7,h2,,0.5,a b\n",
		"ndjson": `{"cycle":7,"host":"h2","deadline":null,"share":0.5,"inputs":["a","b"]}` + "\n",
		"json":   `[{"cycle":7`,
	} {
		var b bytes.Buffer
		if err := Stream(&b, streamSample(), format, 0); err != nil || !strings.HasPrefix(b.String(), want) {
			t.Errorf("%s: %v\n%s", format, err, b.String())
		}
	}
	var b bytes.Buffer
	if err := Stream(&b, streamSample(), "parquet", 0); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || f.NumRows() != 3 || f.Schema().Fields()[0].Name() != "cycle" || len(f.Schema().Fields()) != 5 {
		t.Error(err, f.Schema())
	}
	if err := Stream(&b, streamSample(), "xml", 0); err == nil {
		t.Error("xml")
	}
}
