package stopevidence

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What a complete look needs, by the number of the capability: to read any
// process, and to follow its mappings.
const (
	capPtrace     = 19
	capAdmin      = 21
	capCheckpoint = 40 // CAP_CHECKPOINT_RESTORE, which capAdmin includes
)

// openProc opens /proc, and wants it to show every process to this one: it is a
// real one, of this process's own pid namespace, and nothing of it is hidden.
func openProc() (int, error) {
	proc, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("/proc: %w", err)
	}
	if err := checkProc(proc); err != nil {
		unix.Close(proc)
		return -1, fmt.Errorf("/proc: %w", err)
	}
	return proc, nil
}

func checkProc(proc int) error {
	var s unix.Statfs_t
	if err := unix.Fstatfs(proc, &s); err != nil {
		return err
	}
	if s.Type != unix.PROC_SUPER_MAGIC {
		return fmt.Errorf("file system type is %#x, expected %#x", s.Type, unix.PROC_SUPER_MAGIC)
	}
	status, err := readAt(proc, "self/status")
	if err != nil {
		return err
	}
	// One number for each pid namespace from that of this /proc inwards.
	if got, own := statusField(status, "NSpid"), strconv.Itoa(os.Getpid()); got != own {
		return fmt.Errorf("it knows this process as %q, expected %q alone: it is of another pid namespace", got, own)
	}
	if err := checkPrivilege(statusField(status, "CapEff")); err != nil {
		return err
	}
	// A kernel without one of these would look as if nobody held anything.
	for _, dir := range []string{"self/fd", "self/task", "self/map_files"} {
		if _, err := statFile(proc, dir); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

// checkPrivilege holds what may see every process against hidepid and the rest.
func checkPrivilege(effective string) error {
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("user is %d, expected root", uid)
	}
	caps, err := strconv.ParseUint(effective, 16, 64)
	if err != nil {
		return fmt.Errorf("CapEff: %w", err)
	}
	has := func(bit uint) bool { return caps>>bit&1 == 1 }
	if !has(capPtrace) || !has(capAdmin) && !has(capCheckpoint) {
		return fmt.Errorf("capabilities are %#x, expected CAP_SYS_PTRACE, and CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE", caps)
	}
	return nil
}

// statusField is the value of a line of a process's status; "" where it has none.
func statusField(status []byte, name string) string {
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// readAt reads a file of the kernel's, whole.
func readAt(dir int, name string) ([]byte, error) {
	var b bytes.Buffer
	err := readInto(&b, dir, name)
	return b.Bytes(), err
}

func readInto(b *bytes.Buffer, dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for {
		b.Grow(8 << 10)
		n, err := unix.Read(fd, b.AvailableBuffer()[:8<<10])
		if err != nil || n == 0 {
			return err
		}
		b.Write(b.AvailableBuffer()[:n])
	}
}

// stat is what a look reads of a process's stat.
type stat struct {
	command string
	start   uint64 // in clock ticks since boot
	exiting bool   // it has let go of its files, or is about to
}

// pfExiting is PF_EXITING of the flags in a stat: the kernel sets it before it
// takes anything from a task that exits.
const pfExiting = 0x4

// readStat parses the fields of a stat. They follow the command name, which is in
// parentheses and may hold anything.
func readStat(dir int, name string) (stat, error) {
	b, err := readAt(dir, name)
	if err != nil {
		return stat{}, err
	}
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return stat{}, errors.New("stat has no command name")
	}
	fields := bytes.Fields(b[end+1:])
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("stat has %d fields after the name, expected 20 or more", len(fields))
	}
	flags, errFlags := strconv.ParseUint(string(fields[6]), 10, 64)
	start, errStart := strconv.ParseUint(string(fields[19]), 10, 64)
	return stat{command: string(b[open+1 : end]), start: start, exiting: flags&pfExiting != 0}, errors.Join(errFlags, errStart)
}

// What kcmp compares.
const (
	kcmpFile  = 0 // KCMP_FILE: what two descriptors are
	kcmpVM    = 1 // KCMP_VM: the memory
	kcmpFiles = 2 // KCMP_FILES: the table of descriptors
)

// same asks the kernel whether two tasks share one thing, or whether their
// descriptors with one number are one.
func same(kind, a, b, fd int) (bool, error) {
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), uintptr(kind), uintptr(fd), uintptr(fd), 0)
	if errno != 0 {
		return false, errno
	}
	return order == 0, nil
}

// list reads directories into memory that it keeps.
type list struct {
	fd    int
	buf   []byte
	names []string
}

func newList() *list { return &list{fd: -1, buf: make([]byte, 32<<10)} }

func (l *list) open(dir int, name string) (err error) {
	l.fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return err
}

func (l *list) close() { unix.Close(l.fd) }

// next returns more entries; none: there are no more.
func (l *list) next() ([]string, error) {
	n, err := unix.ReadDirent(l.fd, l.buf)
	if err != nil {
		return nil, err
	}
	_, _, l.names = unix.ParseDirent(l.buf[:n], -1, l.names[:0])
	return l.names, nil
}

// each visits the entries of a directory.
func (l *list) each(dir int, name string, visit func(dir int, name string) error) error {
	if err := l.open(dir, name); err != nil {
		return err
	}
	defer l.close()
	for {
		names, err := l.next()
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := visit(l.fd, name); err != nil {
				return err
			}
		}
	}
}

// openDir opens a directory of the kernel's to look below it.
func openDir(dir int, name string) (int, error) {
	return unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}
