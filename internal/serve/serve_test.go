package serve_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/serve"
)

func listen(t *testing.T, addr string) net.Listener {
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// run serves handler until the returned stop, which returns HTTP's answer.
func run(t *testing.T, handler http.HandlerFunc, drain time.Duration) (addr string, stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	l := listen(t, "127.0.0.1:0")
	done := make(chan error, 1)
	go func() { done <- serve.HTTP(ctx, l, &http.Server{Handler: handler}, drain) }()
	return l.Addr().String(), func() error { cancel(); return <-done }
}

func TestARequestThatRunsMayFinish(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	addr, stop := run(t, func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-goOn
		_, _ = io.WriteString(w, "done")
	}, time.Minute)
	got := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + addr)
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		got <- string(body)
	}()
	<-began
	go close(goOn)
	require.NoError(t, stop())
	require.Equal(t, "done", <-got)
}

func TestARequestThatDoesNotFinishIsCutOff(t *testing.T) {
	began := make(chan struct{})
	addr, stop := run(t, func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
	}, time.Millisecond)
	failed := make(chan error, 1)
	go func() {
		_, err := http.Get("http://" + addr)
		failed <- err
	}()
	<-began
	require.NoError(t, stop())
	require.Error(t, <-failed)
}

func TestWhatPeersDial(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	addr, err := serve.Advertised(l, "")
	require.NoError(t, err)
	require.Equal(t, l.Addr().String(), addr)
	addr, err = serve.Advertised(l, "box-1.example")
	require.NoError(t, err)
	require.Equal(t, "box-1.example:"+port, addr)
	_, err = serve.Advertised(listen(t, ":0"), "")
	require.ErrorIs(t, err, serve.ErrNotDialable)
}
