package hostdb

// Descriptor is one open file of this process, with what identifies process and
// file beyond their reuse.
type Descriptor struct {
	PID      int
	Start    uint64 // the process's start time, in clock ticks since boot
	FD       int
	Dev, Ino uint64
	Path     string
}
