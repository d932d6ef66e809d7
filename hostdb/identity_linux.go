package hostdb

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func identityOf(path string) (identity, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return identity{}, fmt.Errorf("read the boot id: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return identity{}, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	return identity{
		Boot: strings.TrimSpace(string(boot)), Dev: st.Dev, Ino: st.Ino, Size: st.Size,
		Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(),
	}, nil
}
