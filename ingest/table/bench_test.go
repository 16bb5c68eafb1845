package table

import (
	"bytes"
	"fmt"
	"testing"

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

func benchmarkDecode(b *testing.B, f Format) {
	src := demandText(f, 100_000)
	o := Options{Format: f, Dimensions: demandDimensions}
	var t cluster.DemandTable
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if err := ReadDemandInto(&t, bytes.NewReader(src), o); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100_000*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkCSV(b *testing.B)    { benchmarkDecode(b, CSV) }
func BenchmarkNDJSON(b *testing.B) { benchmarkDecode(b, NDJSON) }

// BenchmarkBaseline is the least that anything has to do: look at every byte once.
func BenchmarkBaseline(b *testing.B) {
	src := demandText(CSV, 100_000)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		n := 0
		for _, c := range src {
			if c == ',' || c == '\n' {
				n++
			}
		}
		if n != 7*100_001 {
			b.Fatal(n)
		}
	}
}
