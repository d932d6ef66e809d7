package ingress_test

import (
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// zeros reads as n bytes of them.
func zeros(n int64) io.Reader { return io.LimitReader(zero{}, n) }

type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// stream sends size bytes up through two ingresses and gets as many down.
func stream(t testing.TB, b *box, size int64) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.srv.URL, zeros(size))
	require.NoError(t, err)
	req.Host, req.ContentLength = host, size
	resp, err := b.srv.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.Equal(t, size, n)
}

// echo answers with as many bytes as it got.
func echo(w http.ResponseWriter, r *http.Request) {
	n, _ := io.Copy(io.Discard, r.Body)
	io.Copy(w, zeros(n))
}

// TestLongBodiesTakeLittleMemory: of 256 MiB each way; BenchmarkStream sends 1 GiB.
func TestLongBodiesTakeLittleMemory(t *testing.T) {
	b := twoHops(t, echo)
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	var peak atomic.Uint64
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			runtime.ReadMemStats(&now)
			peak.Store(max(peak.Load(), now.HeapInuse))
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	stream(t, b, 256<<20)
	close(done)
	<-watched
	require.Less(t, int64(peak.Load())-int64(before.HeapInuse), int64(32<<20))
}

func BenchmarkStream(bench *testing.B) {
	b := twoHops(bench, echo)
	const size = 1 << 30
	bench.SetBytes(2 * size)
	for bench.Loop() {
		stream(bench, b, size)
	}
}

func BenchmarkLocal(bench *testing.B) {
	b, a := newBox(bench, "b1", nil), newApp(bench, "a", nil)
	b.local(a.ready(7))
	benchmark(bench, b)
}

func BenchmarkHop(bench *testing.B) { benchmark(bench, twoHops(bench, nil)) }

// BenchmarkUnknown asks for a host that is nowhere: what a stranger costs.
func BenchmarkUnknown(bench *testing.B) { benchmark(bench, newBox(bench, "b1", nil)) }

func benchmark(bench *testing.B, b *box) {
	b.srv.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 64
	bench.ReportAllocs()
	bench.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			req, err := http.NewRequestWithContext(bench.Context(), http.MethodGet, b.srv.URL, nil)
			if err != nil {
				bench.Error(err)
				return
			}
			req.Host = host
			resp, err := b.srv.Client().Do(req)
			if err != nil {
				bench.Error(err)
				return
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	})
}
