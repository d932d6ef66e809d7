package machine

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func (t Tree) listens(port int) error {
	pids, err := t.pids()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		holds, err := holdsListener(pid, port)
		if err != nil {
			return err
		}
		if holds {
			return nil
		}
	}
	return fmt.Errorf("port %d: %w", port, ErrStranger)
}

func holdsListener(pid, port int) (bool, error) {
	inodes, err := listenInodes(pid, port)
	if err != nil || len(inodes) == 0 {
		return false, err
	}
	fds, err := os.ReadDir(procPath(pid, "fd"))
	if noProcess(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, fd := range fds {
		link, err := os.Readlink(filepath.Join(procPath(pid, "fd"), fd.Name()))
		if err == nil && inodes[link] {
			return true, nil
		}
		if err != nil && !noProcess(err) {
			return false, err
		}
	}
	return false, nil
}

// listenInodes are the sockets that listen on the port in pid's network, as
// /proc/<pid>/fd links name them.
func listenInodes(pid, port int) (map[string]bool, error) {
	inodes := map[string]bool{}
	for _, table := range []string{"net/tcp", "net/tcp6"} {
		f, err := os.Open(procPath(pid, table))
		if errors.Is(err, fs.ErrNotExist) {
			continue // no such process, or no IPv6
		}
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			if inode, ok := listening(lines.Text(), port); ok {
				inodes["socket:["+inode+"]"] = true
			}
		}
		err = errors.Join(lines.Err(), f.Close())
		if err != nil && !noProcess(err) {
			return nil, err
		}
	}
	return inodes, nil
}

// listening reads one line of /proc/net/tcp: local address:port in hex is the
// second field, the state (0A: listen) the fourth, the inode the tenth.
func listening(line string, port int) (inode string, ok bool) {
	f := strings.Fields(line)
	if len(f) < 10 || f[3] != "0A" || !strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
		return "", false
	}
	return f[9], true
}
