//go:build unix

package measure

import (
	"runtime"
	"syscall"
)

// peakRSS is the most resident memory that this process has had, in bytes, 0 when it is not known.
func peakRSS() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return u.Maxrss // bytes there, KiB elsewhere
	}
	return u.Maxrss * 1024
}
