// Package heap tells the garbage collector how far it may let the heap of a process grow before it comes.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"syscall"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// The heap below which nothing is collected is so large at most, and so small a part of the memory that the process may
// use at most. A cold cycle over 100,000 hosts and a million units allocates three quarters of it; what such a cluster
// lives in then is a good half, which the collector would let double anyway.
const (
	floorBytesMax = 768 << 20
	memoryPart    = 8
)

const (
	percentMin   = 100     // the collector's own default
	liveBytesMin = 4 << 20 // what the collector applies the percentage to where less is alive
)

// Floor lets the heap grow to 768 MiB, or an eighth of the memory that the machine or its control group has, before it
// is collected, and to twice what is alive where that is more, as the collector does by itself. At the beginning little
// is alive, so that the collector would come again at every doubling while a first cycle fills the state, each time
// beside two goroutines that keep the processors busy. A memory limit (GOMEMLIMIT) holds besides. Nothing is done where
// the environment sets GOGC, as who runs the process has decided then, nor where the memory is not known. It is called
// once, when a process begins; after each collection the world stops for some microseconds.
func Floor() {
	if os.Getenv("GOGC") != "" {
		return
	}
	if memory, err := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)(); err == nil {
		keep(min(floorBytesMax, memory/memoryPart))
	}
}

// unlimited is about what debug.SetMemoryLimit and getrlimit give for no limit.
const unlimited = 1 << 60

// Share is how much memory a process that is told nothing else should make do with: what GOMEMLIMIT says, else half of
// what the machine, its control group or the limit on the address space (ulimit -v) leaves it, whichever is least; 0
// where none of that is known.
func Share() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < unlimited {
		return limit
	}
	memory, err := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)()
	if err != nil {
		memory = unlimited
	}
	var space syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &space) == nil {
		memory = min(memory, uint64(space.Cur)) //nolint:unconvert // it is an int64 on FreeBSD
	}
	if memory >= unlimited {
		return 0
	}
	return int64(memory / 2)
}

// Limit has the collector work harder the closer the process comes to so many bytes. It never raises a limit that is
// set already.
func Limit(bytes int64) {
	debug.SetMemoryLimit(min(bytes, debug.SetMemoryLimit(-1)))
}

// mark is what the collector finds dead each time it comes. It has a pointer so that it shares its memory with nothing.
type mark struct{ _ *mark }

// keep sets the percentage by what the last collection left alive, and again after each one to come. Where one begins
// before it was done after the last, it is done after the next: collections come so close only while the heap is far
// below the floor, or twice what is alive.
func keep(floor uint64) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	debug.SetGCPercent(percent(sample[0].Value.Uint64(), floor))
	runtime.AddCleanup(&mark{}, keep, floor)
}

// percent is by how much of what is alive the heap may grow, in hundredths.
func percent(live, floor uint64) int {
	if live = max(live, liveBytesMin); live >= floor {
		return percentMin
	}
	return max(percentMin, int((floor-live)*100/live))
}
