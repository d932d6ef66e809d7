// Package s3test gives tests a real S3 server.
//
// The server is versitygw, in the nested module internal/s3gateway. It is built
// once for each version of that module, into the user's cache directory, under
// a lock that all test processes share. Each test process runs one server on
// loopback. The server stops, and removes its files, when the process ends,
// also by a failure or a kill, because it reads from a pipe that then closes.
package s3test

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// starts is how often a start is tried: another process may take the port.
const starts = 3

// Start returns the store URL of a fresh bucket that keeps versions. It sets
// the process's AWS credentials to those of the server.
func Start(tb testing.TB) string {
	tb.Helper()
	s, err := shared()
	if err != nil {
		tb.Fatalf("start the S3 test server: %v", err)
	}
	url, err := s.bucket()
	if err != nil {
		tb.Fatalf("make a bucket on the S3 test server: %v", err)
	}
	return url
}

// server is a running gateway, spoken to by lines.
type server struct {
	mu  sync.Mutex
	in  io.Writer
	out *bufio.Reader
}

// shared starts the one server of this process.
var shared = sync.OnceValues(func() (*server, error) {
	binary, err := build()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Setenv("AWS_ACCESS_KEY_ID", rand.Text()), os.Setenv("AWS_SECRET_ACCESS_KEY", rand.Text()), os.Unsetenv("AWS_SESSION_TOKEN")); err != nil {
		return nil, err
	}
	for range starts {
		var s *server
		if s, err = start(binary); err == nil {
			return s, nil
		}
	}
	return nil, err
})

// start runs the gateway and waits until it has made a first bucket, which is
// not used.
func start(binary string) (*server, error) {
	cmd := exec.Command(binary)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{in: in, out: bufio.NewReader(out)}
	if _, err := s.bucket(); err != nil {
		return nil, errors.Join(err, in.Close(), cmd.Wait())
	}
	return s, nil
}

// bucket asks for a new bucket and returns its store URL.
func (s *server) bucket() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := io.WriteString(s.in, "\n"); err != nil {
		return "", err
	}
	line, err := s.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("the server ended: %w", err)
	}
	url := strings.TrimSpace(line)
	if !strings.HasPrefix(url, "s3://") {
		return "", fmt.Errorf("the server says %q, not a store URL", url)
	}
	return url, nil
}

// build returns the gateway's binary, made by whoever needs it first.
func build() (string, error) {
	module, err := gatewayDir()
	if err != nil {
		return "", err
	}
	key, err := cacheKey(module)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "regionha")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(dir, "s3gateway.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	binary := filepath.Join(dir, "s3gateway-"+key)
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	cmd := exec.Command("go", "build", "-o", binary+".new", ".")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", module, err, output)
	}
	return binary, os.Rename(binary+".new", binary)
}

// gatewayDir finds internal/s3gateway above the working directory, which for a
// test is its package's.
func gatewayDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		module := filepath.Join(dir, "internal", "s3gateway")
		if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
			return module, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("internal/s3gateway is in no directory above the working directory")
		}
		dir = parent
	}
}

// cacheKey is a digest of all that the binary is made of.
func cacheKey(module string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		b, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, name, len(b))
		sum.Write(b)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}
