package ingress_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/ingress"
)

func TestAHeldRequestGoesOnWhenItsHostIsReadyHere(t *testing.T) {
	b, a := newBox(t, "b1", nil), newApp(t, "a", nil)
	b.local(ingress.Local{Stamp: 6})
	got := b.later(t.Context(), http.MethodPost, "a note")
	b.awaitHeld(t, 1)
	b.local(a.ready(6))
	result(t, got).from(t, "a")
	b.awaitHeld(t, 0)
}

func TestAHeldRequestGoesOnToTheNewHome(t *testing.T) {
	// A drain: the source holds what it still gets, and passes it on.
	b1, b2 := newBox(t, "b1", nil), newBox(t, "b2", nil)
	a := newApp(t, "a", func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, 100)
		n, _ := r.Body.Read(b)
		w.Write(b[:n])
	})
	b1.local(ingress.Local{Stamp: 5})
	b1.home(ingress.Home{Box: "b1", Addr: b1.addr(), Stamp: 5})
	got := b1.later(t.Context(), http.MethodPost, "a note")
	b1.awaitHeld(t, 1)
	b2.local(a.ready(6))
	b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 6})
	answer := result(t, got)
	answer.from(t, "a")
	require.Equal(t, "a note", answer.body)
	require.Equal(t, 1, a.count())
}

func TestAHomeThatIsUnreachableIsHintedAndItsRequestsHeld(t *testing.T) {
	b1, b2, a := newBox(t, "b1", nil), newBox(t, "b2", nil), newApp(t, "a", nil)
	b1.home(ingress.Home{Box: "dead", Addr: nobody(t), Stamp: 5})
	first := b1.later(t.Context(), http.MethodPost, "a note")
	second := b1.later(t.Context(), http.MethodGet, "")
	b1.awaitHeld(t, 2)
	require.Equal(t, []string{"dead"}, b1.hinted(), "at most once a second")
	b2.local(a.ready(6))
	b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 6})
	result(t, first).from(t, "a")
	result(t, second).from(t, "a")
	require.Equal(t, 2, a.count())
}

func TestAHomeThatDoesNotServeItsHostYetIsAskedAgain(t *testing.T) {
	b1, b2, a := newBox(t, "b1", nil), newBox(t, "b2", nil), newApp(t, "a", nil)
	b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 6}) // b2 has no row yet
	got := b1.later(t.Context(), http.MethodPost, "a note")
	b1.awaitHeld(t, 1)
	require.Zero(t, b2.Held(), "the box that the client is connected to holds it")
	require.Empty(t, b1.hinted())
	b2.local(a.ready(6)) // b1 is told nothing
	result(t, got).from(t, "a")
}

func TestAnAppThatIsStartedAgainIsWaitedFor(t *testing.T) {
	b, a := newBox(t, "b1", nil), newApp(t, "a", nil)
	b.home(ingress.Home{Box: "b1", Addr: b.addr(), Stamp: 6})
	b.local(ingress.Local{Ready: true, Stamp: 6})
	got := b.later(t.Context(), http.MethodPost, "a note")
	b.awaitHeld(t, 1)
	refused := ingress.Local{Ready: true, Stamp: 6, Addr: refusing(t)}
	b.local(refused)
	b.awaitHeld(t, 1)
	b.local(a.ready(6))
	result(t, got).from(t, "a")
	require.Empty(t, b.hinted(), "its own app is no box")
}

func TestAHeldRequestWhoseClientIsGoneIsDropped(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		t.Run(method, func(t *testing.T) {
			b, a := newBox(t, "b1", nil), newApp(t, "a", nil)
			b.local(ingress.Local{Stamp: 6})
			ctx, cancel := context.WithCancel(t.Context())
			body := map[string]string{http.MethodPost: strings.Repeat("x", 100_000)}[method]
			got := b.later(ctx, method, body)
			b.awaitHeld(t, 1)
			cancel()
			require.ErrorIs(t, result(t, got).err, context.Canceled)
			b.awaitHeld(t, 0)
			b.local(a.ready(6))
			b.get(t).from(t, "a")
			require.Equal(t, 1, a.count())
		})
	}
}

func TestHeldRequestsAreBoundedInNumber(t *testing.T) {
	b := newBox(t, "b1", func(c *ingress.Config) { c.MaxHeld, c.MaxHeldHost = 3, 2 })
	b.local(ingress.Local{Stamp: 6})
	ctx, cancel := context.WithCancel(t.Context())
	first, second := b.later(ctx, http.MethodGet, ""), b.later(ctx, http.MethodGet, "")
	b.awaitHeld(t, 2)
	b.get(t).unavailable(t) // this host has its share

	b.set(func(l map[string]ingress.Local, _ map[string]ingress.Home) {
		l["other.example"], l["third.example"] = ingress.Local{}, ingress.Local{}
	})
	other := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.srv.URL, nil)
		if err == nil {
			req.Host = "other.example"
			_, err = b.srv.Client().Do(req)
		}
		other <- err
	}()
	b.awaitHeld(t, 3)
	r := httptest.NewRequest(http.MethodGet, "http://third.example/", nil)
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r) // and all together theirs
	require.Equal(t, http.StatusServiceUnavailable, w.Code)

	cancel()
	require.Error(t, result(t, first).err)
	require.Error(t, result(t, second).err)
	require.Error(t, <-other)
	b.awaitHeld(t, 0)
}

func TestHeldBodiesAreBoundedTogether(t *testing.T) {
	b := newBox(t, "b1", func(c *ingress.Config) { c.MaxBodies = 15 })
	b.local(ingress.Local{Stamp: 6})
	ctx, cancel := context.WithCancel(t.Context())
	one, other := b.later(ctx, http.MethodPost, "ten bytes."), b.later(ctx, http.MethodPost, "ten bytes.")
	select { // whichever came second
	case refused := <-one:
		refused.unavailable(t)
		one = other
	case refused := <-other:
		refused.unavailable(t)
	}
	b.awaitHeld(t, 1)
	cancel()
	require.Error(t, result(t, one).err)
	b.awaitHeld(t, 0)

	a := newApp(t, "a", nil)
	got := b.later(t.Context(), http.MethodPost, "ten bytes.")
	b.awaitHeld(t, 1) // what was kept was given back
	b.local(a.ready(6))
	result(t, got).from(t, "a")
}

func TestABodyOverTheBoundIsHeldUnread(t *testing.T) {
	b := newBox(t, "b1", func(c *ingress.Config) { c.MaxBody = 5 })
	a := newApp(t, "a", func(w http.ResponseWriter, r *http.Request) {
		buf := make([]byte, 100)
		n, _ := r.Body.Read(buf)
		w.Write(buf[:n])
	})
	b.local(ingress.Local{Stamp: 6})
	got := b.later(t.Context(), http.MethodPost, "ten bytes.")
	b.awaitHeld(t, 1)
	b.local(a.ready(6))
	answer := result(t, got)
	answer.from(t, "a")
	require.Equal(t, "ten bytes.", answer.body)
}

func TestAClientThatDoesNotSendItsBodyIsDroppedAtTheBound(t *testing.T) {
	b := newBox(t, "b1", func(c *ingress.Config) { c.HoldFor = 50 * time.Millisecond })
	b.local(ingress.Local{Stamp: 6})
	conn := dial(t, b.srv)
	_, err := conn.Write([]byte("POST / HTTP/1.1\r\nHost: notes.example\r\nContent-Length: 10\r\n\r\nfive"))
	require.NoError(t, err)
	n, err := conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.Zero(t, n, "no answer: an empty one would say that all went well")
	b.awaitHeld(t, 0)
}

func TestARequestIsHeldToItsBoundAndItsHostLookedAtOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks []time.Duration
		began := time.Now()
		b, err := ingress.New(ingress.Config{Self: "b1", Log: slog.New(slog.DiscardHandler),
			Local: func(string) (ingress.Local, bool) { return ingress.Local{}, true },
			Home:  func(string) (ingress.Home, bool) { return ingress.Home{}, false },
			Look: func(h string) {
				require.Equal(t, host, h)
				looks = append(looks, time.Since(began))
			},
		})
		require.NoError(t, err)
		done := make(chan *httptest.ResponseRecorder)
		for range 5 {
			go func() {
				w := httptest.NewRecorder()
				b.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://"+host, nil))
				done <- w
			}()
		}
		for range 5 {
			w := <-done
			require.Equal(t, http.StatusServiceUnavailable, w.Code)
			require.NotEmpty(t, w.Header().Get("Retry-After"))
		}
		require.Equal(t, 10*time.Second, time.Since(began))
		require.InDelta(t, 9, len(looks), 1)
		require.Zero(t, looks[0], "the first look is at once")
		for i := 1; i < len(looks); i++ {
			require.GreaterOrEqual(t, looks[i]-looks[i-1], time.Second)
		}
	})
}

func TestNothingIsLookedAtForRequestsThatAreServed(t *testing.T) {
	b, a := newBox(t, "b1", nil), newApp(t, "a", nil)
	b.local(a.ready(6))
	b.get(t).from(t, "a")
	require.Empty(t, b.looked())
}
