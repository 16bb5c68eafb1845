package table

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"

	"github.com/stintd/stint/core/cluster"
)

var demandDimensions = []string{"ncpus", "maxmem", "gpus"}

// demandText writes a demand table of any size; the names and figures are those of a busy grid.
func demandText(f Format, rows int) []byte {
	var b bytes.Buffer
	if f == CSV {
		b.WriteString("consumer,allocation,sub,units,ncpus,maxmem,gpus\n")
	}
	for i := range rows {
		consumer := fmt.Sprintf("/Risk/Desk%d/Book%d", i/1000, i/50%20)
		allocation := fmt.Sprintf("job-%d", 5_000_000+i/2)
		line := "%s,%s,s%d,%d,%d,%d,%d\n"
		if f == NDJSON {
			line = `{"consumer":"%s","allocation":"%s","sub":"s%d","units":%d,"ncpus":%d,"maxmem":%d,"gpus":%d}` + "\n"
		}
		fmt.Fprintf(&b, line, consumer, allocation, i%2, 1+i*7%200, 1<<(i%5), 1024*(1+i%16), i%9/8)
	}
	return b.Bytes()
}

const (
	rateRows  = 1_000_000
	rateBatch = 122_880 // rows of a record batch and of a row group
)

var rateDimensions = []string{"ncpus", "maxmem", "gpus", "slots"}

// rateRow is a row of the table that the rates are measured on.
type rateRow struct {
	Consumer    string `parquet:"consumer,dict"`
	Allocation  string `parquet:"allocation"`
	Sub         string `parquet:"sub,dict"`
	Plan        string `parquet:"plan,dict"`
	Requirement string `parquet:"requirement,dict"`
	Units       int64  `parquet:"units"`
	CPUs        int64  `parquet:"ncpus"`
	Memory      int64  `parquet:"maxmem"`
	GPUs        int64  `parquet:"gpus"`
	Slots       int64  `parquet:"slots"`
}

// rateTable is demand as a busy grid pushes it: 10,000 consumers, which come in runs of some ten rows;
// four rows of five have an allocation of their own, the fifth is one more sub-allocation of the row before.
func rateTable(rows int) []rateRow {
	random := rand.New(rand.NewPCG(3, 1))
	requirements := [...]string{"", "", "", "select(gpus > 0)", "select(model == 'A100')"}
	table := make([]rateRow, rows)
	for i := range table {
		r := &table[i]
		if i > 0 {
			*r = table[i-1]
		}
		if i == 0 || random.IntN(10) == 0 {
			c := random.IntN(10_000)
			r.Consumer = fmt.Sprintf("/Risk/Desk%03d/Book%02d", c/100, c%100)
			r.Requirement = requirements[random.IntN(len(requirements))]
		}
		if i == 0 || random.IntN(5) > 0 {
			r.Allocation, r.Sub = fmt.Sprintf("nightly-run-%d-%04d", 5_000_000+i, random.IntN(10_000)), "first-tasks-00"
		} else {
			r.Sub = fmt.Sprintf("later-tasks-%02d", random.IntN(40))
		}
		r.Plan, r.Units = "grid-general", 1+random.Int64N(400)
		r.CPUs, r.Memory, r.GPUs, r.Slots = 1<<random.IntN(6), 1024*(1+random.Int64N(64)), random.Int64N(9)/8, 1
	}
	return table
}

// rateInput writes the table down.
func rateInput(t testing.TB, f Format, rows []rateRow) []byte {
	switch f {
	case Parquet:
		return parquetFile(t, rows, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rateBatch))
	case Arrow:
		return rateArrow(t, rows)
	}
	var b bytes.Buffer
	before, line, between, after := "", `{"consumer":"%s","allocation":"%s","sub":"%s","plan":"%s","requirement":"%s",`+
		`"units":%d,"ncpus":%d,"maxmem":%d,"gpus":%d,"slots":%d}`, "\n", "\n"
	switch f {
	case CSV:
		before = "consumer,allocation,sub,plan,requirement,units,ncpus,maxmem,gpus,slots\n"
		line = "%s,%s,%s,%s,%s,%d,%d,%d,%d,%d"
	case JSON:
		before, between, after = "[", ",\n", "]\n"
	}
	b.WriteString(before)
	for i := range rows {
		r := &rows[i]
		if i > 0 {
			b.WriteString(between)
		}
		fmt.Fprintf(&b, line, r.Consumer, r.Allocation, r.Sub, r.Plan, r.Requirement, r.Units, r.CPUs, r.Memory, r.GPUs,
			r.Slots)
	}
	b.WriteString(after)
	return b.Bytes()
}

// rateArrow writes the table as one stream, what repeats as dictionaries.
func rateArrow(t testing.TB, rows []rateRow) []byte {
	var fields []arrow.Field
	for _, name := range []string{"consumer", "sub", "plan", "requirement"} {
		fields = append(fields, nullable(name, dictionaryOf(primitive.Int32)))
	}
	fields = append(fields, nullable("allocation", arrow.BinaryTypes.String))
	for _, name := range append([]string{"units"}, rateDimensions...) {
		fields = append(fields, nullable(name, primitive.Int64))
	}
	schema := fieldsOf(fields...)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := range rows {
		r := &rows[i]
		for f, s := range [...]string{r.Consumer, r.Sub, r.Plan, r.Requirement} {
			if err := b.Field(f).(*array.BinaryDictionaryBuilder).AppendString(s); err != nil {
				t.Fatal(err)
			}
		}
		b.Field(4).(*array.StringBuilder).Append(r.Allocation)
		for f, n := range [...]int64{r.Units, r.CPUs, r.Memory, r.GPUs, r.Slots} {
			b.Field(5 + f).(*array.Int64Builder).Append(n)
		}
	}
	all := b.NewRecordBatch()
	var records []arrow.RecordBatch
	for from := int64(0); from < all.NumRows(); from += rateBatch {
		records = append(records, all.NewSlice(from, min(from+rateBatch, all.NumRows())))
	}
	return arrowStream(t, schema, records)
}

var byteSum int // so that the loop has a use

// sumOf is a function of its own because the compiler keeps the variables of a benchmark's loop in memory.
//
//go:noinline
func sumOf(p []byte) (sum int) {
	for _, c := range p {
		sum += int(c)
	}
	return sum
}

// BenchmarkRate decodes a million rows into a table that is used again, and each time also walks over the same bytes
// with a plain loop, the least that anything has to do. rows/s, MB/s and the ratio (decoding time ÷ loop time) are of
// the medians. CSV is decoded on two cores where there are two, all else and the loop on one; -cpu 1 shows CSV on one.
func BenchmarkRate(b *testing.B) {
	rows := rateTable(rateRows)
	for _, f := range []Format{CSV, NDJSON, JSON, Arrow, Parquet} {
		b.Run(f.String(), func(b *testing.B) {
			src := rateInput(b, f, rows)
			o := Options{Format: f, Dimensions: rateDimensions}
			var table cluster.DemandTable
			r := bytes.NewReader(nil)
			var decode, loop []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				r.Reset(src)
				if err := ReadDemandInto(&table, r, o); err != nil || table.Rows != len(rows) {
					b.Fatal(table.Rows, err)
				}
				decoded := time.Now()
				byteSum += sumOf(src)
				decode, loop = append(decode, decoded.Sub(start)), append(loop, time.Since(decoded))
			}
			slices.Sort(decode)
			slices.Sort(loop)
			middle, least := decode[len(decode)/2].Seconds(), loop[len(loop)/2].Seconds()
			b.ReportMetric(float64(len(src))/1e6/middle, "MB/s")
			b.ReportMetric(float64(len(rows))/middle, "rows/s")
			b.ReportMetric(middle/least, "×loop")
		})
	}
}

// TestRateInputs: the inputs that the rates are measured on all hold the same table.
func TestRateInputs(t *testing.T) {
	rows := rateTable(3_000)
	var want string
	for _, f := range []Format{CSV, NDJSON, JSON, Arrow, Parquet} {
		got, err := ReadDemand(bytes.NewReader(rateInput(t, f, rows)), Options{Format: f, Dimensions: rateDimensions})
		if err != nil {
			t.Fatal(f, err)
		}
		s := dumpDemand(got)
		if want == "" {
			want = s
		}
		if s != want || !strings.Contains(s, rows[2_999].Allocation) || got.Units[7] != rows[7].Units ||
			got.Size[1][2_999] != rows[2_999].Memory {
			t.Errorf("%s: another table", f)
		}
	}
}
