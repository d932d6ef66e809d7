//go:build !linux

package runner

import (
	"errors"
	"fmt"
	"net"
	"runtime"
)

// Apps run on Linux only: elsewhere the kernel does not end an app whose agent
// died, and an app must never run without its replicator.
var errPlatform = fmt.Errorf("apps do not run on %s: %w", runtime.GOOS, errors.ErrUnsupported)

// CgroupParent needs Linux.
func CgroupParent(path, name string) (string, error) { return "", errPlatform }

func bootID() (string, error) { return "", errPlatform }

func checkCgroup(string) error { return errPlatform }

func startTime(int) (uint64, error) { return 0, errPlatform }

func (c *child) own(_ tree, started chan<- error) { started <- errPlatform }

func (t tree) terminate() error { return errPlatform }

func (t tree) empty() (bool, error) { return false, errPlatform }

func (t tree) kill() error { return errPlatform }

func (t tree) remove() error { return errPlatform }

func (t tree) listensAt(net.Addr) error { return errPlatform }
