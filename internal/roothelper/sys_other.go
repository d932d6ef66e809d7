//go:build !linux

package roothelper

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
)

// Apps run on Linux only, and so does their helper.
var errPlatform = fmt.Errorf("the root helper does not run on %s: %w", runtime.GOOS, errors.ErrUnsupported)

const oobSpace = 0

func cut(int) bool { return true }

func rights(*os.File) ([]byte, error) { return nil, errPlatform }

func fileOf([]byte) (*os.File, error) { return nil, errPlatform }

func peerUID(*net.UnixConn) (uint32, error) { return 0, errPlatform }

func lockDir(string) (*os.File, error) { return nil, errPlatform }
