package roothelper

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// oobSpace has room for one descriptor, and for the one too many that alignment
// leaves room for.
var oobSpace = unix.CmsgSpace(4)

// cut reports whether the kernel left out a part of a message, or a descriptor.
func cut(flags int) bool { return flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 }

// rights is the control message that sends file. What it is sent to writes to it
// as to any pipe, so it is made to block.
func rights(file *os.File) ([]byte, error) {
	fd := int(file.Fd())
	if err := unix.SetNonblock(fd, false); err != nil {
		return nil, err
	}
	return unix.UnixRights(fd), nil
}

// fileOf is the one file that a control message brought; nil: none came.
func fileOf(oob []byte) (*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	for _, m := range messages {
		if got, err := unix.ParseUnixRights(&m); err == nil {
			fds = append(fds, got...)
		}
	}
	if len(fds) == 1 {
		return os.NewFile(uintptr(fds[0]), "output"), nil
	}
	for _, fd := range fds {
		_ = unix.Close(fd) // nothing was written
	}
	return nil, fmt.Errorf("%d descriptors came with a message, at most 1", len(fds))
}

// peerUID is who the kernel says made the other end.
func peerUID(c *net.UnixConn) (uint32, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var asked error
	err = raw.Control(func(fd uintptr) {
		cred, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, asked); err != nil {
		return 0, err
	}
	return cred.Uid, nil
}

// lockDir makes this process the one that holds dir, until the file is closed.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another helper has the cgroup %s: %w", dir, err), f.Close())
	}
	return f, nil
}
