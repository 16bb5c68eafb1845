//go:build unix

package main

import "syscall"

// cpuUS is the processor time that this process has had, in microseconds: what others do on the machine is not in it. A
// goroutine that helps is.
func cpuUS() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("BUG: getrusage: " + err.Error())
	}
	//nolint:unconvert // they are an int32 each on 32 bits
	return (int64(u.Utime.Sec)+int64(u.Stime.Sec))*1e6 + int64(u.Utime.Usec) + int64(u.Stime.Usec)
}
