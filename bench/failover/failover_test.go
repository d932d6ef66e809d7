package failover_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/bench/quicktest"
	"github.com/carlosframework/regionha/internal/s3test"
)

const (
	// pinDelay is the quickstart's own.
	pinDelay = 2 * time.Second

	// parallel is how many hosts a worker recovers at a time.
	parallel = 16
)

// result is what is read of the quickstart's JSON.
type result struct {
	Outcome string   `json:"outcome"`
	Broken  []string `json:"broken"`
	Region  region   `json:"region"`
}

type region struct {
	CameBack int   `json:"came_back"`
	Detected int64 `json:"detected_ms"`
	First    int64 `json:"first_ms"`
	Half     int64 `json:"median_ms"`
	Last     int64 `json:"last_ms"`
	Lost     int   `json:"lost_undeclared"`
	Writers  int   `json:"max_writers"`
}

func BenchmarkFailover(b *testing.B) {
	program := quicktest.Build(b)
	for _, on := range []string{"dir", "s3"} {
		for _, hosts := range []int{1, 20, 100} {
			b.Run(fmt.Sprintf("%s/%dhosts", on, hosts), func(b *testing.B) {
				store := ""
				if on == "s3" {
					store = s3test.Start(b)
				}
				for b.Loop() {
					measure(b, program, store, hosts)
				}
			})
		}
	}
}

// measure runs one quickstart and, while it is left running, a bare restore of
// its databases.
func measure(b *testing.B, program, store string, hosts int) {
	var r result
	left, end := quicktest.Run(b, program, store, &r, "-drains", "0", "-together", "-hosts", fmt.Sprint(hosts), "-db-size", "1MB")
	defer end()
	require.Equal(b, "ok", r.Outcome, r.Broken)
	require.Equal(b, hosts, r.Region.CameBack)
	require.Zero(b, r.Region.Lost)
	require.Equal(b, 1, r.Region.Writers)
	bare := restore(b, left)
	b.ReportMetric(0, "ns/op") // the program's own time says nothing
	b.ReportMetric(float64(r.Region.Detected), "detected-ms")
	b.ReportMetric(float64(r.Region.First), "first-ms")
	b.ReportMetric(float64(r.Region.Half), "half-ms")
	b.ReportMetric(float64(r.Region.Last), "last-ms")
	b.ReportMetric(float64(bare.Milliseconds()), "restore-ms")
	b.ReportMetric(float64(r.Region.Last-r.Region.Detected-pinDelay.Milliseconds()-bare.Milliseconds()), "overhead-ms")
}

// restore is how long a bare restore of every host's database takes.
func restore(b *testing.B, left quicktest.Region) time.Duration {
	claims, err := left.Claims(b.Context())
	require.NoError(b, err)
	dir, began := b.TempDir(), time.Now()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(parallel)
	for _, c := range claims {
		group.Go(func() error {
			_, err := left.Restore(ctx, c, dir)
			return err
		})
	}
	require.NoError(b, group.Wait())
	return time.Since(began)
}
