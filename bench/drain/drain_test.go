package drain_test

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
	"github.com/carlosframework/regionha/internal/s3test"
	"github.com/carlosframework/regionha/objstore/storeurl"
)

const host = "notes.demo.example"

// result is what is read of the quickstart's JSON.
type result struct {
	Outcome string   `json:"outcome"`
	Broken  []string `json:"broken"`
	Skipped string   `json:"drain_skipped"`
	Drain   *struct {
		Median int64            `json:"unavailable_median_ms"`
		Worst  int64            `json:"unavailable_ms"`
		Lost   int              `json:"lost"`
		Steps  map[string]int64 `json:"steps_ms"`
		Peak   int64            `json:"agent_peak_bytes"`
	} `json:"drain"`
}

func BenchmarkDrain(b *testing.B) {
	program := filepath.Join(b.TempDir(), "quickstart")
	build := exec.Command("go", "build", "-o", program, "../../examples/quickstart")
	out, err := build.CombinedOutput()
	require.NoError(b, err, "%s", out)
	for _, on := range []string{"dir", "s3"} {
		for _, size := range []string{"1MB", "50MB", "500MB"} {
			b.Run(on+"/"+size, func(b *testing.B) {
				store := ""
				if on == "s3" {
					store = s3test.Start(b)
				}
				for b.Loop() {
					measure(b, program, store, size)
				}
			})
		}
	}
}

// measure runs one quickstart and, while it is left running, a bare restore of
// its database.
func measure(b *testing.B, program, store, size string) {
	args := []string{"-json", "-keep", "-drains", "5", "-db-size", size}
	if store != "" {
		args = append(args, "-store", store)
	}
	run := exec.Command(program, args...)
	out, err := run.StdoutPipe()
	require.NoError(b, err)
	run.Stderr = os.Stderr
	require.NoError(b, run.Start())
	defer func() {
		_ = run.Process.Signal(syscall.SIGINT)
		_, _ = io.Copy(io.Discard, out)
		_ = run.Wait()
	}()
	r, dir := outcome(b, out)
	if r.Drain == nil {
		b.Skip(r.Skipped)
	}
	require.Equal(b, "ok", r.Outcome, r.Broken)
	require.Zero(b, r.Drain.Lost)
	bare := restore(b, storeOf(store, dir, "control"), storeOf(store, dir, "data-ie"))
	b.ReportMetric(0, "ns/op") // the program's own time says nothing
	b.ReportMetric(float64(r.Drain.Median), "cut-ms")
	b.ReportMetric(float64(r.Drain.Worst), "worst-ms")
	b.ReportMetric(float64(bare.Milliseconds()), "restore-ms")
	b.ReportMetric(float64(r.Drain.Peak)/1e6, "agent-peak-MB")
	for step, ms := range r.Drain.Steps {
		if step != "releasing" { // the source serves until then
			b.ReportMetric(float64(ms), strings.ReplaceAll(step, "_", "-")+"-ms")
		}
	}
}

// outcome reads what the program prints, up to its line of JSON.
func outcome(b *testing.B, out io.Reader) (r result, dir string) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		if _, after, ok := strings.Cut(line, "everything is in "); ok {
			dir = after
		}
		if strings.HasPrefix(line, "{") {
			require.NoError(b, json.Unmarshal([]byte(line), &r))
			require.NotEmpty(b, dir)
			return r, dir
		}
	}
	b.Fatal(errors.Join(lines.Err(), errors.New("the quickstart ended without its line of JSON")))
	return r, dir
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

// restore is the fastest of three bare restores of what the claim's host has.
func restore(b *testing.B, controlURL, dataURL string) time.Duration {
	ctx := b.Context()
	control, err := storeurl.Open(ctx, controlURL)
	require.NoError(b, err)
	data, err := storeurl.Open(ctx, dataURL)
	require.NoError(b, err)
	o, err := hostclaim.Read(ctx, control, host)
	require.NoError(b, err)
	fastest := time.Hour
	for range 3 {
		fastest = min(fastest, once(ctx, b, data, o.Claim))
	}
	return fastest
}

func once(ctx context.Context, b *testing.B, data hostrelocate.Store, c *hostclaim.Claim) time.Duration {
	began := time.Now()
	baseline, err := hostrelocate.Newest(ctx, data, c)
	require.NoError(b, err)
	_, err = hostdb.Restore(ctx, data, baseline.Set, filepath.Join(b.TempDir(), "app.db"), nil)
	require.NoError(b, err)
	return time.Since(began)
}
