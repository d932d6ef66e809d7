//go:build !linux

package machine

import (
	"errors"
	"fmt"
	"runtime"
)

// Apps run on Linux only: elsewhere the kernel does not end an app whose agent
// died, and an app must never run without its replicator.
var errPlatform = fmt.Errorf("apps do not run on %s: %w", runtime.GOOS, errors.ErrUnsupported)

func cgroupParent(path, name string) (string, error) { return "", errPlatform }

// BootID needs Linux.
func BootID() (string, error) { return "", errPlatform }

// StartTime needs Linux.
func StartTime(int) (uint64, error) { return 0, errPlatform }

func start(Spec, Tree) (Process, error) { return nil, errPlatform }

func (t Tree) empty() (bool, error) { return false, errPlatform }

func (t Tree) kill() error { return errPlatform }

func (t Tree) remove() error { return errPlatform }
