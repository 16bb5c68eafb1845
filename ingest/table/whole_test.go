package table

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestWholeNumbers takes whole numbers as programs write them that have floats or decimals only, in each format.
func TestWholeNumbers(t *testing.T) {
	file, err := os.ReadFile("testdata/decimal-18-0.parquet")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"float.csv":     "consumer,allocation,units,ncpus\n/A,a,2.0,1e2\n",
		"exponent.csv":  "consumer,allocation,units,ncpus\n/A,a,20e-1,1.E+2\n",
		"float.ndjson":  `{"consumer":"/A","allocation":"a","units":2.0,"ncpus":1e2}`,
		"float.json":    `[{"consumer":"/A","allocation":"a","units":2.0,"ncpus":100.00}]`,
		"columns.json":  `{"consumer":["/A"],"allocation":["a"],"units":[2.0],"ncpus":[1E2]}`,
		"decimal.arrow": decimals(t, decimal128.FromI64(2), decimal128.FromI64(100)),
	} {
		d, err := ReadDemand(strings.NewReader(text), Options{Name: name, Dimensions: []string{"ncpus"}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d.Rows != 1 || d.Units[0] != 2 || d.Size[0][0] != 100 {
			t.Errorf("%s: %d rows, %v units of %v", name, d.Rows, d.Units, d.Size)
		}
	}
	o := Options{Name: "d.parquet", Dimensions: []string{"ncpus"}}
	if _, err := ReadDemand(bytes.NewReader(file), o); err != nil {
		t.Errorf("decimal-18-0.parquet: %v", err)
	}
}

// decimals is an Arrow stream of demand with decimals of 128 bits.
func decimals(t *testing.T, units, ncpus decimal128.Num) string {
	t.Helper()
	number := &arrow.Decimal128Type{Precision: 38}
	schema := arrow.NewSchema([]arrow.Field{{Name: "consumer", Type: arrow.BinaryTypes.String},
		{Name: "allocation", Type: arrow.BinaryTypes.String}, {Name: "units", Type: number},
		{Name: "ncpus", Type: number}}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	defer b.Release()
	b.Field(0).(*array.StringBuilder).Append("/A")
	b.Field(1).(*array.StringBuilder).Append("a")
	b.Field(2).(*array.Decimal128Builder).Append(units)
	b.Field(3).(*array.Decimal128Builder).Append(ncpus)
	record := b.NewRecordBatch()
	defer record.Release()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	if err := w.Write(record); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestNoWholeNumbers refuses numbers that are not whole or too large, and CSV that other programs wrote in their way,
// each with a hint.
func TestNoWholeNumbers(t *testing.T) {
	const head = "consumer,allocation,units,ncpus\n"
	for name, c := range map[string]struct{ text, want string }{
		"half.csv":     {head + "/A,a,2.5,1\n", `column units, value "2.5": not a whole number`},
		"huge.csv":     {head + "/A,a,1e17,1\n", `column units, value "1e17": not a whole number`},
		"endless.csv":  {head + "/A,a,1e999999999,1\n", "not a whole number"},
		"hex.csv":      {head + "/A,a,0x2,1\n", "not a whole number"},
		"half.ndjson":  {`{"consumer":"/A","allocation":"a","units":2.5,"ncpus":1}`, "not a whole number"},
		"huge.arrow":   {decimals(t, decimal128.New(1, 2), decimal128.FromI64(1)), "not a whole number"},
		"deccomma.csv": {head + "/A,a,\"2,0\",\"1,5\"\n", `value "2,0": not a whole number from 0 to 9007199254740992: write it`},
		"semi.csv":     {"consumer;allocation;units;ncpus\n/A;a;2;1\n", "the header has semicolons and no comma"},
		"trailing.csv": {head + "/A,a,2,1\n,,,\n", "row 2: the row has commas only: remove it"},
		"more.csv":     {head + "/A,a,2,1,\n", "5 fields, where the header has 4 (a comma at the end of the line"},
	} {
		_, err := ReadDemand(strings.NewReader(c.text), Options{Name: name, Dimensions: []string{"ncpus"}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
