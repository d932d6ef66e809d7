//go:build unix

package region_test

import (
	"syscall"
	"time"
)

// processor is the processor time that this process has used: in a bubble
// package time tells of the simulation's own.
func processor() time.Time {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Unix(0, u.Utime.Nano()+u.Stime.Nano())
}
