package admin_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/admin"
)

func TestTheListenerAnswersItsOperator(t *testing.T) {
	dir := t.TempDir()
	registry := prometheus.NewRegistry()
	failovers := prometheus.NewCounter(prometheus.CounterOpts{Name: "regionha_failovers_total", Help: "x"})
	registry.MustRegister(failovers)
	var ready atomic.Bool
	var logged bytes.Buffer
	s, err := admin.Listen(admin.Config{Addr: "127.0.0.1:0", DataDir: dir, Registry: registry,
		Log: slog.New(slog.NewTextHandler(&logged, nil)),
		Ready: func() error {
			if ready.Load() {
				return nil
			}
			return errors.New("the roster was not read yet")
		}})
	require.NoError(t, err)
	require.Contains(t, logged.String(), s.Addr())
	written, err := os.ReadFile(filepath.Join(dir, "admin.addr"))
	require.NoError(t, err)
	require.Equal(t, s.Addr()+"\n", string(written))

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	get := func(method, path string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr()+path, nil)
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(body)
	}
	code, _ := get("GET", "/healthz")
	require.Equal(t, 200, code)
	code, body := get("GET", "/readyz")
	require.Equal(t, 503, code)
	require.Contains(t, body, "the roster was not read yet")
	ready.Store(true)
	code, _ = get("GET", "/readyz")
	require.Equal(t, 200, code)
	code, body = get("GET", "/metrics")
	require.Equal(t, 200, code)
	require.Contains(t, body, "regionha_failovers_total 0")
	require.Contains(t, body, "go_goroutines")
	code, _ = get("POST", "/healthz")
	require.Equal(t, 405, code)
	cancel()
	require.NoError(t, <-done)
}

func TestAPortInUseIsAnErrorThatNamesIt(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	dir := t.TempDir()
	_, err = admin.Listen(admin.Config{Addr: taken.Addr().String(), DataDir: dir})
	require.ErrorContains(t, err, taken.Addr().String())
	_, err = os.Stat(filepath.Join(dir, "admin.addr"))
	require.ErrorIs(t, err, os.ErrNotExist, "nothing was written")
}

func TestADataDirectoryThatIsNotThereIsAnError(t *testing.T) {
	_, err := admin.Listen(admin.Config{Addr: "127.0.0.1:0", DataDir: filepath.Join(t.TempDir(), "absent")})
	require.ErrorIs(t, err, os.ErrNotExist)
}
