package hostfiles

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// readFlags opens a file for a scan. A pipe that took a file's place since it
// was looked at must not block the open.
const readFlags = os.O_RDONLY | unix.O_NONBLOCK

// identify adds to st what only this system knows: which file it is, when it
// last changed in any way, and whose it is.
func (st *stat) identify(info fs.FileInfo) {
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	st.device, st.inode = uint64(sys.Dev), sys.Ino
	st.changed = sys.Ctim.Nano()
	if os.Geteuid() == 0 {
		st.owned, st.owner = true, Owner{UID: sys.Uid, GID: sys.Gid}
	}
}

// syncTree makes everything that was written below dir durable, in one call.
func syncTree(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Syncfs(int(file.Fd()))
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}
