package drain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/bench/quicktest"
	"github.com/carlosframework/regionha/internal/s3test"
)

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
	program := quicktest.Build(b)
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
	var r result
	region, end := quicktest.Run(b, program, store, &r, "-drains", "5", "-db-size", size)
	defer end()
	if r.Drain == nil {
		b.Skip(r.Skipped)
	}
	require.Equal(b, "ok", r.Outcome, r.Broken)
	require.Zero(b, r.Drain.Lost)
	b.ReportMetric(0, "ns/op") // the program's own time says nothing
	b.ReportMetric(float64(r.Drain.Median), "cut-ms")
	b.ReportMetric(float64(r.Drain.Worst), "worst-ms")
	b.ReportMetric(float64(restore(b, region).Milliseconds()), "restore-ms")
	b.ReportMetric(float64(r.Drain.Peak)/1e6, "agent-peak-MB")
	for step, ms := range r.Drain.Steps {
		if step != "releasing" { // the source serves until then
			b.ReportMetric(float64(ms), strings.ReplaceAll(step, "_", "-")+"-ms")
		}
	}
}

// restore is the fastest of three bare restores of the host's database.
func restore(b *testing.B, region quicktest.Region) time.Duration {
	claims, err := region.Claims(b.Context())
	require.NoError(b, err)
	require.Len(b, claims, 1)
	fastest := time.Hour
	for range 3 {
		took, err := region.Restore(b.Context(), claims[0], b.TempDir())
		require.NoError(b, err)
		fastest = min(fastest, took)
	}
	return fastest
}
