package heap

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

const mib = 1 << 20

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		live, floor uint64
		want        int
	}{
		{0, 64 * mib, 1500},          // the heap grows to 4 MiB and 15 times that
		{4 * mib, 64 * mib, 1500},    //
		{16 * mib, 64 * mib, 300},    // 16 + 48
		{20 * mib, 64 * mib, 220},    // 20 + 44
		{32 * mib, 64 * mib, 100},    // twice what is alive is the floor
		{33 * mib, 64 * mib, 100},    // and more than it from here on
		{500 * mib, 64 * mib, 100},   //
		{mib, 2 * mib, percentMin},   // a floor below what the collector lets by anyway
		{1 << 50, 1 << 40, 100},      // more than there is
		{1 << 20, 1 << 40, 26214300}, // no overflow where a machine has much
	} {
		if got := percent(c.live, c.floor); got != c.want {
			t.Errorf("%d MiB alive, floor %d MiB: %d %%, not %d", c.live/mib, c.floor/mib, got, c.want)
		}
	}
}

var sink []byte

// churn allocates so much and keeps the last of it.
func churn(n int) {
	for range n {
		sink = make([]byte, mib)
	}
}

func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}

// percentNow is the percentage in force.
func percentNow() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// await collects until the percentage is as it should be: it is set by a goroutine of the runtime, which a second
// collection may outrun.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 100 {
		if runtime.GC(); ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: the percentage is %d", what, percentNow())
}

// TestFloor shows that nothing is collected below the floor, that something is above it, and that the percentage
// follows what is alive.
func TestFloor(t *testing.T) {
	runtime.GC()
	keep(256 * mib)
	before := collections()
	if churn(150); collections() != before {
		t.Errorf("%d collections below the floor", collections()-before)
	}
	if churn(1000); collections() == before {
		t.Error("no collection above the floor")
	}
	alive := make([]byte, 200*mib)
	await(t, "200 MiB are alive", func() bool { return percentNow() == percentMin })
	runtime.KeepAlive(alive)
	await(t, "nothing is alive any more", func() bool { return percentNow() > 10*percentMin })
}

// TestLimit has a limit be set, which a later one does not raise, and be what the process then makes do with.
func TestLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	debug.SetMemoryLimit(math.MaxInt64)
	if n := Share(); n <= 0 || n > 1<<50 {
		t.Errorf("the share of this machine is %d", n)
	}
	Limit(3 << 30)
	Limit(5 << 30)
	if n := debug.SetMemoryLimit(-1); n != 3<<30 || Share() != n {
		t.Errorf("the limit is %d, the share %d", n, Share())
	}
}
