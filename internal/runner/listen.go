package runner

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// A listener is where one run is told to listen, and how it is told.
type listener struct {
	addr       net.Addr
	env, value string
	dir        string // holds the socket; "" for a port
}

// maxSocketPath is what a unix socket's address holds on Linux, less its zero.
const maxSocketPath = 107

func (c Config) newListener() (listener, error) {
	if c.Listen == ListenPort {
		port, err := c.pickPort()
		if err != nil {
			return listener{}, fmt.Errorf("find a free port: %w", err)
		}
		addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
		return listener{addr: addr, env: "PORT", value: strconv.Itoa(port)}, nil
	}
	// The host's own directory is too long a path for a socket's address.
	dir, err := os.MkdirTemp("", "app-")
	if err != nil {
		return listener{}, err
	}
	path := filepath.Join(dir, "sock")
	if len(path) > maxSocketPath {
		os.Remove(dir)
		return listener{}, fmt.Errorf("socket path %q has %d bytes, at most %d: set TMPDIR to a shorter path", path, len(path), maxSocketPath)
	}
	return listener{addr: &net.UnixAddr{Net: "unix", Name: path}, env: "LISTEN_SOCKET", value: path, dir: dir}, nil
}

func (l listener) remove() error {
	if l.dir == "" {
		return nil
	}
	return os.RemoveAll(l.dir)
}

// freePort is a port of 127.0.0.1 that was free a moment ago. Another process
// may take it before the app does; the app then exits and gets another one.
func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
