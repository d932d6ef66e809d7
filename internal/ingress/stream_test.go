package ingress_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/ingress"
)

func dial(t *testing.T, srv *httptest.Server) net.Conn {
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// twoHops is a box whose host is another box's.
func twoHops(t testing.TB, handler http.HandlerFunc) *box {
	b1, b2, a := newBox(t, "b1", nil), newBox(t, "b2", nil), newApp(t, "a", handler)
	b2.local(a.ready(7))
	b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 7})
	return b1
}

func TestUpgradedConnectionsPassBothWays(t *testing.T) {
	b := twoHops(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "echo" {
			http.Error(w, "no upgrade", http.StatusBadRequest)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(conn, rw)
	})
	conn := dial(t, b.srv)
	_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: notes.example\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	for _, line := range []string{"one\n", "two\n"} {
		_, err := io.WriteString(conn, line)
		require.NoError(t, err)
		got, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, line, got)
	}
}

func TestEventsArriveAsTheyAreSent(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "text/plain"} {
		t.Run(kind, func(t *testing.T) { testEvents(t, kind) })
	}
}

func testEvents(t *testing.T, kind string) {
	next := make(chan struct{})
	b := twoHops(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		if kind == "text/plain" {
			w.Header().Set("Content-Length", "22") // a proxy may then think that it may wait
		}
		for _, event := range []string{"data: one\n\n", "data: two\n\n"} {
			io.WriteString(w, event)
			http.NewResponseController(w).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.srv.URL, nil)
	require.NoError(t, err)
	req.Host = host
	b.srv.Client().Timeout = patience
	resp, err := b.srv.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	for _, want := range []string{"data: one\n", "data: two\n"} {
		got, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want, got)
		next <- struct{}{} // the app goes on only now
		_, err = r.ReadString('\n')
		require.NoError(t, err)
	}
}

// A long body streams through both hops; what is kept of it stays bounded.
func TestALongBodyStreamsBothWays(t *testing.T) {
	const size = 64 << 20
	b := twoHops(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		io.Copy(w, r.Body)
	})
	sent, got := sha256.New(), sha256.New()
	body := io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{}), size), sent)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.srv.URL, body)
	require.NoError(t, err)
	req.Host, req.ContentLength = host, size
	resp, err := b.srv.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	n, err := io.Copy(got, resp.Body)
	require.NoError(t, err)
	require.EqualValues(t, size, n)
	require.Equal(t, hex.EncodeToString(sent.Sum(nil)), hex.EncodeToString(got.Sum(nil)))
}
