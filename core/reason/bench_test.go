package reason_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/reason"
	"github.com/stintd/stint/datasets"
)

// BenchmarkReasons explains who is short of a million units of 200 sizes on 100,000 hosts of which half the consumers
// own some and lend them: with nothing known, and after one row in a hundred wants something else.
func BenchmarkReasons(b *testing.B) {
	d, err := datasets.Lenders(datasets.Options{Hosts: 100_000, Consumers: 10_000, Units: 1_000_000, Shapes: 200,
		Seed: 1})
	v := newSite(b, d, err)
	v.rest(b)
	var cold, warm time.Duration
	rounds := 0
	for b.Loop() {
		v.reasons = reason.Reasons{}
		cold += v.explain(b)
		v.change(b, d, rounds)
		v.rest(b)
		warm += v.explain(b)
		rounds++
	}
	b.ReportMetric(cold.Seconds()*1e3/float64(rounds), "cold-ms")
	b.ReportMetric(warm.Seconds()*1e3/float64(rounds), "warm-ms")
	b.ReportMetric(float64(len(v.out.Shortfalls.UnitsShort)), "rows")
	b.ReportMetric(float64(v.reasons.Rebuilt()), "rebuilt")
}

// explain explains, and takes the processors' time without that of views and figures.
func (v *site) explain(b *testing.B) time.Duration {
	out := reason.Shortfalls{Details: new(cluster.Names)}
	e := v.env()
	runtime.GC()
	begin := processorTime()
	v.reasons.Explain(e, &out)
	took := processorTime() - begin
	if out.Sub.Len() != len(v.out.Shortfalls.UnitsShort) {
		b.Fatalf("%d rows, want %d", out.Sub.Len(), len(v.out.Shortfalls.UnitsShort))
	}
	return took
}

// processorTime is what all threads have used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
