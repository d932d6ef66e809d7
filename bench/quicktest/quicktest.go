// Package quicktest runs examples/quickstart for benchmarks, and leaves it
// running for them to look at what it left.
package quicktest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/storeurl"
)

// Build builds the quickstart and returns the path of the program.
func Build(tb testing.TB) string {
	tb.Helper()
	program := filepath.Join(tb.TempDir(), "quickstart")
	out, err := exec.Command("go", "build", "-o", program, "github.com/carlosframework/regionha/examples/quickstart").CombinedOutput()
	require.NoError(tb, err, "%s", out)
	return program
}

// Region is a quickstart that has come to its end and is left running.
type Region struct {
	Control, Data storeurl.Store
}

// Run runs program on a store, a fresh directory if empty, until it has printed
// its line of JSON, which is read into result. The region ends with the
// returned function.
func Run(tb testing.TB, program, store string, result any, args ...string) (Region, func()) {
	tb.Helper()
	args = append([]string{"-json", "-keep"}, args...)
	if store != "" {
		args = append(args, "-store", store)
	}
	run := exec.Command(program, args...)
	out, err := run.StdoutPipe()
	require.NoError(tb, err)
	run.Stderr = os.Stderr
	require.NoError(tb, run.Start())
	end := func() {
		_ = run.Process.Signal(syscall.SIGINT)
		_, _ = io.Copy(io.Discard, out)
		_ = run.Wait()
	}
	dir, err := read(out, result)
	if err != nil {
		end()
	}
	require.NoError(tb, err)
	var r Region
	r.Control, err = storeurl.Open(tb.Context(), storeOf(store, dir, "control"))
	require.NoError(tb, err)
	r.Data, err = storeurl.Open(tb.Context(), storeOf(store, dir, "data-ie"))
	require.NoError(tb, err)
	return r, end
}

// read reads what the program prints, up to its line of JSON, and finds the
// directory of the run.
func read(out io.Reader, result any) (dir string, err error) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		if _, after, ok := strings.Cut(line, "everything is in "); ok {
			dir = after
		}
		if strings.HasPrefix(line, "{") {
			return dir, json.Unmarshal([]byte(line), result)
		}
	}
	return "", errors.Join(lines.Err(), errors.New("the quickstart ended without its line of JSON"))
}

// storeOf is the URL of one of the run's two stores: below its directory, or
// below a prefix of the same name.
func storeOf(store, dir, name string) string {
	if store == "" {
		return "dir://" + filepath.Join(dir, name)
	}
	url, query, _ := strings.Cut(store, "?")
	scheme, rest, _ := strings.Cut(url, "://")
	return scheme + "://" + path.Join(rest, filepath.Base(dir), name) + "?" + query
}

// Claims reads the claims of all hosts.
func (r Region) Claims(ctx context.Context) (claims []*hostclaim.Claim, err error) {
	for info, err := range r.Control.List(ctx, "control/hosts/") {
		if err != nil {
			return nil, err
		}
		host := strings.TrimSuffix(path.Base(info.Key), ".json")
		o, err := hostclaim.Read(ctx, r.Control, host)
		if err != nil {
			return nil, err
		}
		claims = append(claims, o.Claim)
	}
	return claims, nil
}

// Restore restores the database that a claim leads to into a fresh file of dir,
// with nothing around it, and returns how long that took.
func (r Region) Restore(ctx context.Context, c *hostclaim.Claim, dir string) (time.Duration, error) {
	began := time.Now()
	baseline, err := hostrelocate.Newest(ctx, r.Data, c)
	if err != nil {
		return 0, err
	}
	_, err = hostdb.Restore(ctx, objstore.Store(r.Data), baseline.Set, filepath.Join(dir, c.Host+".db"), nil)
	return time.Since(began), err
}
