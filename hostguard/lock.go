package hostguard

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lockPoll is how often a lock that another holds is tried again.
const lockPoll = 10 * time.Millisecond

// DirLock is a data directory's one agent.
type DirLock struct{ f *os.File }

// LockDataDir takes <dir>/agent.lock for this process, or fails at once with
// [ErrLocked]. The lock ends with Close, or with the process.
func LockDataDir(dir string) (*DirLock, error) {
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("hostguard: data directory: %w", err)
	}
	f, err := openLock(filepath.Join(dir, "agent.lock"))
	if err != nil {
		return nil, fmt.Errorf("hostguard: data directory: %w", err)
	}
	ok, err := tryLock(f)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %s: another agent runs on it; stop that one, or set another data-dir", ErrLocked, dir)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("hostguard: lock: %w", err)
	}
	return &DirLock{f: f}, nil
}

// Close lets the directory go.
func (l *DirLock) Close() error { return l.f.Close() }

func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

// lockFile waits for the lock on path until ctx ends. Closing the file lets it
// go. The lock file is never removed: two processes would lock two files.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	for {
		ok, err := tryLock(f)
		if ok {
			return f, nil
		}
		if err == nil {
			err = waitPoll(ctx)
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
}

func waitPoll(ctx context.Context) error {
	t := time.NewTimer(lockPoll)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
