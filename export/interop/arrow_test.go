// Package interop reads the decision log with other libraries than the one that writes it.
// It is a module of its own, so that their dependencies are not those of stint.
package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/export"
)

const (
	rowGroupRows = 122880
	rows         = 2*rowGroupRows + 3
)

// fill makes a cycle with more than two row groups of grants, and rows with every type and
// nulls in the other tables.
func fill() *decision.Cycle {
	c := &decision.Cycle{Summary: decision.Summary{Cycle: 7,
		NowUS: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC).UnixMicro(), Window: "night"}}
	text := func(n, words int) decision.Coded {
		dict := make(decision.Words, words)
		for i := range dict {
			dict[i] = "ä, \"" + strconv.Itoa(i)
		}
		coded := decision.Coded{Dict: dict}
		for i := range n {
			coded.Add(int32(i*i%(words+1)) - 1)
		}
		return coded
	}
	g := &c.Grants
	for i, column := range []*decision.Coded{&g.Plan, &g.Consumer, &g.Allocation, &g.Sub, &g.Source, &g.Host, &g.Origin,
		&g.Pool} {
		*column = text(rows, 1+i*i*100)
	}
	g.Lender = text(rows, 1)
	clear(g.Lender.Code)
	g.Device = text(rows, 2)
	for i := range rows {
		g.Units = append(g.Units, int64(i*i)<<(i%40)-99)
	}
	s := &c.Shares
	s.Plan, s.Consumer, s.Pool = text(3, 1), text(3, 2), text(3, 3)
	s.Ratio, s.Priority = []int64{1, 2, 3}, []int64{-1, 0, 1}
	s.UnitsHeld, s.UnitsWanted = []int64{0, 0, 0}, []int64{1 << 62, 0, -1 << 63}
	s.Usage, s.UsageDemand, s.UsageQuota = []float64{1.0 / 3, 0, 1}, []float64{1, 1, 1}, []float64{0, 0.5, 0}
	s.DecayedUsage, s.EffectiveRatio = []float64{0.25, 0, 0}, []float64{2.5, 0, 0}
	s.HistoryNull = []bool{false, true, true}
	f := &c.Shortfalls
	f.Plan, f.Consumer, f.Allocation, f.Sub = text(2, 1), text(2, 1), text(2, 1), text(2, 1)
	f.Reason, f.Dimension, f.Blocker, f.Detail = text(2, 2), text(2, 1), text(2, 1), text(2, 1)
	f.UnitsShort, f.Until, f.UntilNull = []int64{3, 4}, []int64{0, c.Summary.NowUS + 1}, []bool{true, false}
	f.Since = []int64{6, 7}
	return c
}

// TestArrow reads every table with Arrow's own Parquet reader and finds the same values.
func TestArrow(t *testing.T) {
	dir, c := t.TempDir(), fill()
	w, err := export.Open(dir, export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var inputs []export.Input
	for _, content := range []string{"a", "b"} {
		in, err := w.Input("demand", "s", "csv", []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, in)
	}
	if err := w.Cycle(c, inputs); err != nil {
		t.Fatal(err)
	}
	bare := *c
	bare.Summary.Cycle++
	if err := w.Cycle(&bare, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range append(c.Tables(), c.Summary.Schema().Table()) {
		if want.Rows > 0 {
			same(t, dir, 7, &want)
		}
	}
	last := bare.Summary.Schema().Table() // without inputs
	same(t, dir, 8, &last)
}

func same(t *testing.T, dir string, cycle int, want *decision.Table) {
	t.Helper()
	f, err := file.OpenParquetFile(filepath.Join(dir, want.Name, "date=2026-01-05",
		fmt.Sprintf("cycles-%012d-%012d.parquet", cycle, cycle)), false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if v := f.MetaData().KeyValueMetadata().FindValue("stint.rules"); v == nil || *v != decision.RulesVersion {
		t.Errorf("%s: metadata %v", want.Name, f.MetaData().KeyValueMetadata())
	}
	for g := range f.NumRowGroups() {
		if n := f.MetaData().RowGroups[g].NumRows; n > rowGroupRows {
			t.Errorf("%s: a row group of %d", want.Name, n)
		}
	}
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.ReadTable(context.Background())
	if err != nil {
		t.Fatalf("%s: %v", want.Name, err)
	}
	defer got.Release()
	if got.NumRows() != int64(want.Rows) || int(got.NumCols()) != len(want.Columns)+1 {
		t.Fatalf("%s: %d rows, %d columns", want.Name, got.NumRows(), got.NumCols())
	}
	number := make([]int64, want.Rows)
	for i := range number {
		number[i] = int64(cycle)
	}
	sameValues(t, got.Column(0), &decision.Column{Name: "cycle", Int: number})
	for i := range want.Columns {
		sameValues(t, got.Column(i+1), &want.Columns[i])
	}
}

func sameValues(t *testing.T, got *arrow.Column, want *decision.Column) {
	t.Helper()
	row := 0
	for _, chunk := range got.Data().Chunks() {
		for i := range chunk.Len() {
			g, w := arrowValue(chunk, i), cell(want, row)
			if g != w {
				t.Errorf("%s, row %d: %s, expected %s", want.Name, row, g, w)
				return
			}
			row++
		}
	}
	if got.Name() != want.Name {
		t.Errorf("column %s, expected %s", got.Name(), want.Name)
	}
	if _, ok := got.DataType().(*arrow.TimestampType); ok != (want.Type == decision.Time) {
		t.Errorf("%s is a %s", want.Name, got.DataType())
	}
}

// cell is a value as arrowValue gives it.
func cell(c *decision.Column, row int) string {
	switch {
	case c.Null != nil && c.Null[row] || c.Type == decision.Text && c.Code[row] == decision.Null:
		return "null"
	case c.Type == decision.Text:
		return string(c.Dict.Bytes(c.Code[row]))
	case c.Type == decision.Time:
		return fmt.Sprint(c.Int[row], " us UTC")
	case c.Type == decision.Float:
		return fmt.Sprint(c.Float[row])
	case c.Type == decision.List:
		return strings.Join(c.Lists[row], " ")
	}
	return fmt.Sprint(c.Int[row])
}

func arrowValue(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "null"
	}
	switch a := a.(type) {
	case *array.Int64:
		return fmt.Sprint(a.Value(i))
	case *array.Float64:
		return fmt.Sprint(a.Value(i))
	case *array.String:
		return a.Value(i)
	case *array.Timestamp:
		typ := a.DataType().(*arrow.TimestampType)
		return fmt.Sprintf("%d %s %s", a.Value(i), typ.Unit, typ.TimeZone)
	case *array.List:
		from, end := a.ValueOffsets(i)
		var list []string
		for j := from; j < end; j++ {
			list = append(list, arrowValue(a.ListValues(), int(j)))
		}
		return strings.Join(list, " ")
	}
	return fmt.Sprintf("%T", a)
}
