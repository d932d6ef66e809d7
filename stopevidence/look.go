package stopevidence

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrIncomplete: the look was not complete, so it says nothing at all: neither
// that something was found nor that nothing was. The caller is not root, there is
// no cgroup v2, something of the machine could not be read, or the context ended.
var ErrIncomplete = errors.New("the look at the machine is not complete")

// Descriptor is one open descriptor of one process, with what identifies process
// and file beyond their reuse.
type Descriptor struct {
	PID      int
	Start    uint64 // the process's start time, in clock ticks since boot
	FD       int
	Dev, Ino uint64
	Born     int64  // when the file was made, in ns since 1970; 0: the file system does not say
	Path     string // for people
}

// Subject is what must have stopped.
type Subject struct {
	// Cgroup is the absolute directory of the host's cgroup v2. One that is gone
	// is empty.
	Cgroup string
	// Database is the absolute path of the host's database. Its -wal and its
	// -shm are meant too.
	Database string
	// Known are files that the host is known to have had open: by Dev and Ino,
	// so that they count wherever they were renamed to, and when deleted. Born
	// tells such a file from a later one that got its number.
	Known []Descriptor
}

// maxHolders is how many holders an error lists.
const maxHolders = 16

// Holder is one way in which a task holds a file of the subject.
type Holder struct {
	PID     int
	TID     int    // the task: the pid itself but for a thread whose table of descriptors is its own
	Start   uint64 // the process's start time, in clock ticks since boot
	Command string
	FD      int    // -1: a mapping
	Path    string // as the kernel names it
}

// String is the holder in a sentence.
func (h Holder) String() string {
	by := fmt.Sprintf("fd %d", h.FD)
	if h.FD < 0 {
		by = "a mapping"
	}
	return fmt.Sprintf("%s (pid %d, task %d) has %s by %s", h.Command, h.PID, h.TID, h.Path, by)
}

// HeldError says that the look was complete, and the writer has not stopped.
type HeldError struct {
	Cgroup  string   // what still is in the cgroup; empty: nothing
	Holders []Holder // some of the holders
	More    int      // how many more there were
}

func (e *HeldError) Error() string {
	var why []string
	if e.Cgroup != "" {
		why = append(why, e.Cgroup)
	}
	for _, h := range e.Holders {
		why = append(why, h.String())
	}
	if e.More > 0 {
		why = append(why, fmt.Sprintf("%d more", e.More))
	}
	return "not stopped: " + strings.Join(why, "; ")
}

// ProcessDescriptors lists this process's own descriptors of the files at paths.
// The files are only looked at: to open and close one would drop its locks.
func ProcessDescriptors(paths ...string) ([]Descriptor, error) {
	return processDescriptors(paths)
}

// WritersStopped is one complete look at the machine: that nothing runs in the
// subject's cgroup, and that nothing has a file of it open or mapped, but for
// exactly the descriptors of replicator. The caller looks again while the error
// is a [*HeldError]. A mapping goes with the descriptors of its process: it is
// the replicator's where an exempt one of the same file is.
//
// Errors: a [*HeldError], or [ErrIncomplete].
func WritersStopped(ctx context.Context, s Subject, replicator []Descriptor) ([]Check, error) {
	return look(ctx, s, replicator)
}

// Collect is WritersStopped with no exception at all: not even the replicator
// holds a file any more. Its checks are [CgroupEmpty] and [NoHolders]; a receipt
// needs those of admission and producers besides, from who shut them.
func Collect(ctx context.Context, s Subject) ([]Check, error) {
	return look(ctx, s, nil)
}
