package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// keptLogs is how many rotated files are kept beside the one that is written.
const keptLogs = 4

// A logFile takes an app's output: app.log, and when that is full, app.log.1
// (the newest) to app.log.4. Its Write never fails and never waits for anything
// but the disk: an app must not block or die for its log. What cannot be
// written is dropped, and that is logged once per rotation.
type logFile struct {
	path string
	max  int64
	log  *slog.Logger

	mu      sync.Mutex
	f       *os.File
	size    int64
	dropped bool
}

func openLog(dir string, max int64, log *slog.Logger) (*logFile, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	l := &logFile{path: filepath.Join(dir, "app.log"), max: max, log: log}
	return l, l.open()
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.f, l.size, l.dropped = f, info.Size(), false
	return nil
}

func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.write(b); err != nil && !l.dropped {
		l.dropped = true
		l.log.Warn("app output is dropped", "err", err)
	}
	return len(b), nil
}

func (l *logFile) write(b []byte) error {
	if l.size > 0 && l.size+int64(len(b)) > l.max {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	if l.f == nil {
		if err := l.open(); err != nil {
			return err
		}
	}
	n, err := l.f.Write(b)
	l.size += int64(n)
	return err
}

func (l *logFile) rotate() error {
	if err := l.close(); err != nil {
		return err
	}
	for i := keptLogs; i > 0; i-- {
		from := l.path
		if i > 1 {
			from = fmt.Sprintf("%s.%d", l.path, i-1)
		}
		err := os.Rename(from, fmt.Sprintf("%s.%d", l.path, i))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return l.open()
}

func (l *logFile) close() error {
	if l.f == nil {
		return nil
	}
	f := l.f
	l.f, l.size = nil, 0
	return f.Close()
}

// Close ends the file; later writes would open it again, so it comes last.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.close()
}
