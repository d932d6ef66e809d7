package stopevidence

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// numbers is how far the kernel has come in giving numbers to tasks. It gives the
// next free one, up to the highest, and then starts over.
type numbers struct {
	last  uint64 // was given last
	given uint64 // tasks that were ever started, on all of the machine
	free  uint64 // at least so many are free
}

// reservedPIDs are at the low end, and not given again when the numbers start over.
const reservedPIDs = 300

// startedOver reports whether the numbers may have, since then. Where they came
// past the one that was the last then, too, only the tasks that were started tell:
// it takes as many as were free. Half of them are enough to be careful, as what
// is left of a session or a group keeps a number that no task has.
func (n numbers) startedOver(then numbers) bool {
	return n.last < then.last || n.given-then.given >= then.free/2
}

func readNumbers(proc int) (n numbers, err error) {
	load, err := readAt(proc, "loadavg")
	if err != nil {
		return numbers{}, fmt.Errorf("/proc/loadavg: %w", err)
	}
	fields := strings.Fields(string(load))
	if len(fields) != 5 {
		return numbers{}, fmt.Errorf("/proc/loadavg has %d fields, expected 5", len(fields))
	}
	if n.last, err = strconv.ParseUint(fields[4], 10, 64); err != nil {
		return numbers{}, fmt.Errorf("/proc/loadavg: %w", err)
	}
	_, all, _ := strings.Cut(fields[3], "/")
	tasks, err := strconv.ParseUint(all, 10, 64)
	if err != nil {
		return numbers{}, fmt.Errorf("/proc/loadavg: %w", err)
	}
	most, err := readAt(proc, "sys/kernel/pid_max")
	if err != nil {
		return numbers{}, fmt.Errorf("/proc/sys/kernel/pid_max: %w", err)
	}
	highest, err := strconv.ParseUint(string(bytes.TrimSpace(most)), 10, 64)
	if err != nil {
		return numbers{}, fmt.Errorf("/proc/sys/kernel/pid_max: %w", err)
	}
	n.free = highest - min(highest, reservedPIDs+tasks)
	n.given, err = tasksStarted(proc)
	return n, err
}

// tasksStarted is how many tasks were ever started: it does not start over.
func tasksStarted(proc int) (uint64, error) {
	stat, err := readAt(proc, "stat")
	if err != nil {
		return 0, fmt.Errorf("/proc/stat: %w", err)
	}
	for line := range strings.Lines(string(stat)) {
		if count, ok := strings.CutPrefix(line, "processes "); ok {
			return strconv.ParseUint(strings.TrimSpace(count), 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/stat has no line for processes")
}
