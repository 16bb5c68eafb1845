package export

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"github.com/stintd/stint/core/decision"
)

// sample fills the grants of a large cluster: 10,000 consumers, 40,000 allocations, 100,000 hosts.
func sample(rows int) *decision.Cycle {
	words := func(format string, n int) decision.Dict {
		w := make(texts, n)
		for i := range w {
			w[i] = fmt.Appendf(nil, format, i)
		}
		return w
	}
	var c decision.Cycle
	g := &c.Grants
	consumers := words("/Division%[1]d/Department/Team%[1]d", 10000)
	for col, d := range map[*decision.Coded]decision.Dict{
		&g.Plan: decision.Words{"grid"}, &g.Source: decision.Words{"default"}, &g.Consumer: consumers,
		&g.Allocation: words("allocation-%06d", 40000), &g.Sub: words("%d", 4),
		&g.Host:   words("host-%06d.grid.example", 100000),
		&g.Origin: decision.Origins, &g.Pool: consumers, &g.Lender: consumers, &g.Device: decision.Words{},
	} {
		col.Dict = d
		col.Code = make([]int32, rows)
	}
	g.Units = make([]int64, rows)
	random := uint32(1)
	for row := range rows {
		random = random*1664525 + 1013904223
		allocation := int32(row / 25 % 40000)
		g.Consumer.Code[row] = allocation / 4
		g.Allocation.Code[row] = allocation
		g.Sub.Code[row] = allocation % 4
		g.Host.Code[row] = int32(random>>8) % 100000
		g.Units[row] = int64(random>>28) + 1
		g.Origin.Code[row] = decision.OriginPublicPool
		g.Pool.Code[row] = 0
		g.Lender.Code[row], g.Device.Code[row] = decision.Null, decision.Null
	}
	return &c
}

// BenchmarkCycle publishes a cycle of one million grants. Besides elapsed time it reports CPU
// time, which a busy machine does not stretch as much, and by how much the process's peak
// memory exceeds what it was with the grants in hand.
func BenchmarkCycle(b *testing.B) {
	c := sample(1_000_000)
	c.Summary.Digest = "given" // the engine has it
	w, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	before, cpu := usage(b)
	b.ReportAllocs()
	for b.Loop() {
		c.Summary.Cycle++
		if err := w.Cycle(c, nil); err != nil {
			b.Fatal(err)
		}
	}
	peak, end := usage(b)
	b.ReportMetric(float64(peak-before)/(1<<20), "peak-MB")
	b.ReportMetric(float64(end-cpu)/float64(b.N)/1e6, "cpu-ms/op")
}

// usage is the process's peak memory and CPU nanoseconds so far.
func usage(b *testing.B) (peakBytes, cpuNS int64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Maxrss << 10, u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkTable reads those grants back.
func BenchmarkTable(b *testing.B) {
	c := sample(1_000_000)
	c.Summary.Cycle = 1
	dir := b.TempDir()
	w, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Cycle(c, nil); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r, err := OpenLog(dir)
		if err != nil {
			b.Fatal(err)
		}
		if t, err := r.Table("grants", 1); err != nil || t.Rows != 1_000_000 {
			b.Fatal(err)
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	c := sample(1_000_000)
	tables := c.Tables()
	for b.Loop() {
		decision.Digest(tables)
	}
}
