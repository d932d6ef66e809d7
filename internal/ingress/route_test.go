package ingress_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/ingress"
)

func TestAReadyHostIsServedByItsApp(t *testing.T) {
	b, a := newBox(t, "b1", nil), newApp(t, "a", nil)
	b.local(a.ready(7))
	b.home(ingress.Home{Box: "b1", Addr: b.addr(), Stamp: 7})
	b.get(t).from(t, "a")
	require.Equal(t, host, a.requests[0].Host, "the app sees the client's Host")
	require.Equal(t, "/notes?x=1", a.requests[0].URL.String())
}

func TestAnAppMayListenOnASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-App", r.Host)
	}))
	app.Listener = l
	app.Start()
	defer app.Close()
	b := newBox(t, "b1", nil)
	b.local(ingress.Local{Ready: true, Addr: l.Addr()})
	b.get(t).from(t, host)
}

func TestTheHostIsReadFromAnySpelling(t *testing.T) {
	b, a := newBox(t, "b1", nil), newApp(t, "a", nil)
	b.local(a.ready(1))
	for name, want := range map[string]int{"Notes.Example": 200, "notes.example:8080": 200, "notes.example.": 200,
		"other.example": 404, "a b": 400, "": 400, "nötes": 400, strings.Repeat("a", 254): 400} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = name
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		require.Equal(t, want, w.Code, name)
	}
}

func TestAnUnknownHostIsNotFoundInTheClientsFormat(t *testing.T) {
	b := newBox(t, "b1", nil)
	got := b.get(t)
	require.Equal(t, http.StatusNotFound, got.status)
	require.Equal(t, "text/plain; charset=utf-8", got.header.Get("Content-Type"))
	got = b.ask(t.Context(), http.MethodGet, "", "Accept", "text/html,*/*")
	require.Equal(t, http.StatusNotFound, got.status)
	require.Equal(t, "text/html; charset=utf-8", got.header.Get("Content-Type"))
	require.Contains(t, got.body, "<h1>Not found</h1>")
}

func TestAnotherBoxesHostIsOneHopAway(t *testing.T) {
	b1, b2, a := newBox(t, "b1", nil), newBox(t, "b2", nil), newApp(t, "a", nil)
	b2.local(a.ready(7))
	b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 7})
	b1.get(t).from(t, "a")
	require.Equal(t, host, a.requests[0].Host)
	require.Empty(t, a.requests[0].Header.Get("X-Regionha-Hop"), "the app sees no mark")
}

func TestAMarkedRequestIsNeverPassedOnNorHeld(t *testing.T) {
	b1, b2, a := newBox(t, "b1", nil), newBox(t, "b2", nil), newApp(t, "a", nil)
	b2.local(a.ready(9))
	for name, set := range map[string]func(){
		"its home is elsewhere":    func() { b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 9}) },
		"held here":                func() { b1.local(ingress.Local{Stamp: 3}) },
		"unknown here":             func() {},
		"an empty mark is one too": func() { b1.home(ingress.Home{Box: "b2", Addr: b2.addr()}) },
	} {
		t.Run(name, func(t *testing.T) {
			b1.set(func(l map[string]ingress.Local, h map[string]ingress.Home) { clear(l); clear(h) })
			set()
			mark := "1"
			if strings.HasPrefix(name, "an empty") {
				mark = ""
			}
			got := b1.ask(t.Context(), http.MethodGet, "", "X-Regionha-Hop", mark)
			got.unavailable(t)
			require.Equal(t, "1", got.header.Get("X-Regionha-Unserved"))
		})
	}
	require.Zero(t, a.count())
}

func TestTwoBoxesThatPointAtEachOtherDoNotLoop(t *testing.T) {
	brief := func(c *ingress.Config) { c.HoldFor = 1 }
	b1, b2 := newBox(t, "b1", brief), newBox(t, "b2", brief)
	b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 5})
	b2.home(ingress.Home{Box: "b1", Addr: b1.addr(), Stamp: 5})
	b1.get(t).unavailable(t)
}

func TestAHostWithANewerStampElsewhereIsNeverServedHere(t *testing.T) {
	b1, b2 := newBox(t, "b1", func(c *ingress.Config) { c.HoldFor = 1 }), newBox(t, "b2", nil)
	old, young := newApp(t, "old", nil), newApp(t, "young", nil)
	b1.local(old.ready(5))
	b2.local(young.ready(6))

	b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 6})
	b1.get(t).from(t, "young")
	b1.home(ingress.Home{Transit: true}) // the home map forgot; this box does not
	b1.get(t).unavailable(t)
	b1.home(ingress.Home{Box: "b1", Addr: b1.addr(), Stamp: 5})
	b1.get(t).unavailable(t)
	require.Zero(t, old.count())

	b1.local(old.ready(7)) // admitted again
	b1.get(t).from(t, "old")
}

func TestAnEqualOrOlderStampElsewhereDoesNotStopServing(t *testing.T) {
	b1, a := newBox(t, "b1", nil), newApp(t, "a", nil)
	b1.local(a.ready(5))
	for _, stamp := range []uint64{0, 4, 5} {
		b1.home(ingress.Home{Box: "b2", Addr: nobody(t), Stamp: stamp})
		b1.get(t).from(t, "a")
	}
}

func TestAHeldRowGoesToTheHomeItIsHeldFor(t *testing.T) {
	b1, b2, a := newBox(t, "b1", func(c *ingress.Config) { c.HoldFor = 1 }), newBox(t, "b2", nil), newApp(t, "a", nil)
	b2.local(a.ready(6))
	b1.local(ingress.Local{Stamp: 6})
	b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 6})
	b1.get(t).from(t, "a")
	b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 5}) // the one it is taken from
	b1.get(t).unavailable(t)
	require.Equal(t, 1, a.count())
}

func TestForwardingHeadersAreBelievedFromPeersOnly(t *testing.T) {
	token := func(c *ingress.Config) { c.PeerToken = "s3cret" }
	b1, b2, a := newBox(t, "b1", token), newBox(t, "b2", token), newApp(t, "a", nil)
	b2.local(a.ready(7))
	b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 7})

	b1.ask(t.Context(), http.MethodGet, "", "X-Forwarded-For", "6.6.6.6").from(t, "a")
	require.Equal(t, "127.0.0.1, 127.0.0.1", a.requests[0].Header.Get("X-Forwarded-For"), "the client's own is dropped, the peer's kept")
	require.Equal(t, host, a.requests[0].Header.Get("X-Forwarded-Host"))
	b2.ask(t.Context(), http.MethodGet, "", "X-Forwarded-For", "6.6.6.6", "X-Regionha-Hop", "guess").from(t, "a")
	require.Equal(t, "127.0.0.1", a.requests[1].Header.Get("X-Forwarded-For"))
}

func TestRefusedWritesLeaveReadsAlone(t *testing.T) {
	b, a := newBox(t, "b1", nil), newApp(t, "a", nil)
	l := a.ready(7)
	l.WriteGate = func(*http.Request) error { return net.ErrClosed }
	b.local(l)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, "PROPFIND"} {
		b.ask(t.Context(), method, "").unavailable(t)
	}
	require.Zero(t, a.count())
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace} {
		b.ask(t.Context(), method, "").from(t, "a")
	}
}

func TestAConfigurationThatCannotWorkIsRefused(t *testing.T) {
	local := func(string) (ingress.Local, bool) { return ingress.Local{}, false }
	home := func(string) (ingress.Home, bool) { return ingress.Home{}, false }
	for _, cfg := range []ingress.Config{
		{Local: local, Home: home}, {Self: "b1", Home: home}, {Self: "b1", Local: local},
		{Self: "b1", Local: local, Home: home, MaxHeld: -1},
	} {
		_, err := ingress.New(cfg)
		require.Error(t, err)
	}
	g, err := ingress.New(ingress.Config{Self: "b1", Local: local, Home: home})
	require.NoError(t, err)
	g.Close()
}
