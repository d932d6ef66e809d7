package ingress_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/ingress"
)

// A notebook is the one database of a host that moves: a session of its app may
// write while it is the newest.
type notebook struct {
	mu      sync.Mutex
	session int
	notes   map[string]int // how often each was written
	foreign int            // writes of a session that was over
}

// session starts the host's app again, as a server of its own.
func (n *notebook) start(t *testing.T) *httptest.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.session++
	own := n.session
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		time.Sleep(rand.N(2 * time.Millisecond)) // its work
		n.mu.Lock()
		defer n.mu.Unlock()
		if r.Method == http.MethodPost {
			if n.session != own {
				n.foreign++
			}
			n.notes[r.Header.Get("X-Note")]++
		}
		fmt.Fprint(w, len(body))
	}))
}

// A region is a host's two homes and a box that only passes on.
type region struct {
	notebook
	boxes []*box
	stamp uint64
	app   *httptest.Server
}

// serve makes a box the home: what its agent knows at once, and the others by and
// by, from its edges file.
func (r *region) serve(t *testing.T, home int) {
	r.app, r.stamp = r.start(t), r.stamp+2
	r.boxes[home].local(ingress.Local{Ready: true, Addr: r.app.Listener.Addr(), Stamp: r.stamp})
	for _, b := range r.boxes {
		time.Sleep(rand.N(3 * time.Millisecond))
		b.home(ingress.Home{Box: fmt.Sprint("b", home), Addr: r.boxes[home].addr(), Stamp: r.stamp})
	}
}

// drain moves the host from one box to the other, as their agents do it.
func (r *region) drain(t *testing.T, from, to int) {
	r.boxes[from].local(ingress.Local{Stamp: r.stamp})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, r.boxes[from].Quiet(ctx, host))
	r.app.CloseClientConnections() // it ends, and nobody is told
	r.app.Close()
	r.boxes[to].local(ingress.Local{Stamp: r.stamp})
	time.Sleep(rand.N(20 * time.Millisecond)) // it restores
	r.serve(t, to)
	r.boxes[from].set(func(locals map[string]ingress.Local, _ map[string]ingress.Home) { delete(locals, host) })
}

// TestDrainsBackAndForthUnderLoadFailNoRequest: every client of every box sees
// latency and no error, and every note is written once.
func TestDrainsBackAndForthUnderLoadFailNoRequest(t *testing.T) {
	r := &region{notebook: notebook{notes: map[string]int{}}}
	for i := range 3 {
		r.boxes = append(r.boxes, newBox(t, fmt.Sprint("b", i), func(c *ingress.Config) { c.HoldFor = patience })) // a slow machine is no error
	}
	r.serve(t, 0)
	defer func() { r.app.Close() }()

	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var mu sync.Mutex
	var sent []string
	var failed []error
	for c := range 24 {
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				note := fmt.Sprintf("%d-%d", c, n)
				err := write(t, r.boxes[c%3], c, note)
				mu.Lock()
				if sent = append(sent, note); err != nil {
					failed = append(failed, err)
				}
				mu.Unlock()
			}
		})
	}
	for n := range 30 {
		r.drain(t, n%2, (n+1)%2)
		time.Sleep(rand.N(30 * time.Millisecond))
	}
	cancel()
	clients.Wait()

	require.Empty(t, failed)
	require.Zero(t, r.foreign)
	require.GreaterOrEqual(t, len(sent), 24, "a note of each client at least")
	for _, note := range sent {
		require.Equal(t, 1, r.notes[note], note)
	}
}

// write sends one note, of a size and in a way that a client has of its own, and
// reads in between.
func write(t *testing.T, b *box, client int, note string) error {
	size := []int{0, 100, 100_000, 2 << 20}[client/3%4]
	var body io.Reader = strings.NewReader(strings.Repeat("x", size))
	if client%2 == 1 {
		body = io.MultiReader(body) // of no announced length
	}
	for method, body := range map[string]io.Reader{http.MethodGet: nil, http.MethodPost: body} {
		req, err := http.NewRequestWithContext(t.Context(), method, b.srv.URL, body)
		if err != nil {
			return err
		}
		req.Host = host
		req.Header.Set("X-Note", note)
		resp, err := b.srv.Client().Do(req)
		if err != nil {
			return err
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		switch {
		case err != nil:
			return err
		case resp.StatusCode != http.StatusOK:
			return fmt.Errorf("%s %s of %d bytes: %s: %s", method, note, size, resp.Status, got)
		case method == http.MethodPost && string(got) != fmt.Sprint(size):
			return fmt.Errorf("%s: the app got %s bytes of %d", note, got, size)
		}
	}
	return nil
}

// TestAHeldRequestGoesOnAtOnce: nothing that a held request waits for is found by
// asking now and then.
func TestAHeldRequestGoesOnAtOnce(t *testing.T) {
	a := newApp(t, "a", nil)
	for name, turns := range map[string]func(b1, b2 *box) (held, move func()){
		"the row becomes ready": func(b1, _ *box) (held, move func()) {
			return func() { b1.local(ingress.Local{Stamp: 5}) }, func() { b1.local(a.ready(6)) }
		},
		"the app answers": func(b1, _ *box) (held, move func()) {
			return func() { b1.local(ingress.Local{Ready: true, Stamp: 6}) }, func() { b1.local(a.ready(6)) }
		},
		"the home moves": func(b1, b2 *box) (held, move func()) {
			b2.local(a.ready(6))
			return func() { b1.home(ingress.Home{Transit: true}) },
				func() { b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 6}) }
		},
		"the old home did not serve": func(b1, b2 *box) (held, move func()) {
			old := newBox(t, "b0", nil)
			old.local(ingress.Local{Stamp: 5})
			b2.local(a.ready(6))
			return func() { b1.home(ingress.Home{Box: "b0", Addr: old.addr(), Stamp: 5}) },
				func() { b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 6}) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			b1, b2 := newBox(t, "b1", nil), newBox(t, "b2", nil)
			held, move := turns(b1, b2)
			var took []time.Duration
			for range 9 {
				held()
				got := b1.later(t.Context(), http.MethodPost, "a note")
				b1.awaitHeld(t, 1)
				began := time.Now()
				move()
				result(t, got).from(t, "a")
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			require.Less(t, took[len(took)/2], within, "the shortest poll is %s", 150*time.Millisecond)
		})
	}
}
