package agent

import (
	"bufio"
	"fmt"
	"os"
	"syscall"
)

// headroom is what this machine has left: memory, and disk below dir. What
// cannot be read is 0, which decides nothing.
func headroom(dir string) (memory, disk int64) {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) == nil {
		disk = int64(fs.Bavail) * fs.Bsize
	}
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, disk
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kib int64
		if n, _ := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10, disk
		}
	}
	return 0, disk
}
