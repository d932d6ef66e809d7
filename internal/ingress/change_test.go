package ingress_test

import (
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/ingress"
)

// TestARequestReachesNoMoreThanTwoBackends: one that ends its app must not end it
// for as long as it is held.
func TestARequestReachesNoMoreThanTwoBackends(t *testing.T) {
	b := newBox(t, "b1", nil)
	addr, accepted := breaker(t)
	b.local(ingress.Local{Ready: true, Addr: addr, Stamp: 5})
	require.Equal(t, http.StatusBadGateway, b.get(t).status)
	require.Equal(t, 2, accepted())
}

// TestAHomeWhoseAppBrokeIsNotSaidToHaveSeenNothing: its peer sends a safe request
// once more, and a write never.
func TestAHomeWhoseAppBrokeIsNotSaidToHaveSeenNothing(t *testing.T) {
	for method, times := range map[string]int{http.MethodGet: 2, http.MethodPost: 1} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			b1, b2 := newBox(t, "b1", nil), newBox(t, "b2", nil)
			addr, accepted := breaker(t)
			b2.local(ingress.Local{Ready: true, Addr: addr, Stamp: 6})
			b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 6})
			got := b1.ask(t.Context(), method, "")
			require.Equal(t, http.StatusBadGateway, got.status)
			require.Empty(t, got.header.Get("X-Regionha-Unserved"))
			require.Equal(t, times, accepted())
			require.Empty(t, b1.hinted(), "the app's error is not its box's")
		})
	}
}

// TestAnAppThatSwitchesToAnotherProtocolThanAskedIsNotAskedAgain: it answered.
func TestAnAppThatSwitchesToAnotherProtocolThanAskedIsNotAskedAgain(t *testing.T) {
	b := newBox(t, "b1", nil)
	addr, accepted := listen(t, func(c net.Conn) {
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
	})
	b.local(ingress.Local{Ready: true, Addr: addr, Stamp: 6})
	resp, _, _ := converse(t, b.srv, "GET / HTTP/1.1\r\nHost: notes.example\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.Equal(t, http.StatusBadGateway, resp.StatusCode)
	require.Equal(t, 1, accepted())
}

func TestThreeBoxesThatPointAtEachOtherDoNotLoop(t *testing.T) {
	const n = 3
	boxes := make([]*box, n)
	for i := range boxes {
		boxes[i] = newBox(t, fmt.Sprint("b", i), func(c *ingress.Config) { c.HoldFor = 1 })
	}
	for i, b := range boxes {
		next := (i + 1) % n
		b.home(ingress.Home{Box: fmt.Sprint("b", next), Addr: boxes[next].addr(), Stamp: 5})
	}
	boxes[0].get(t).unavailable(t)
}

// TestAForgedMarkGivesNothing: the request goes nowhere else and is not held, and
// at the host's home it is one like any other.
func TestAForgedMarkGivesNothing(t *testing.T) {
	token := func(c *ingress.Config) { c.PeerToken = "s3cret" }
	b1, b2, a := newBox(t, "b1", token), newBox(t, "b2", token), newApp(t, "a", nil)
	b2.local(a.ready(6))
	b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 6})
	b1.ask(t.Context(), http.MethodGet, "", "X-Regionha-Hop", "1").unavailable(t)
	b2.ask(t.Context(), http.MethodGet, "", "X-Regionha-Hop", "1").from(t, "a")
	require.Empty(t, a.requests[0].Header.Get("X-Regionha-Hop"))
	b1.ask(t.Context(), http.MethodGet, "", "Connection", "X-Regionha-Hop").from(t, "a")
}

// TestAHigherStampIsRememberedUnderTheHostsOwnName, though it was seen when an
// alias was asked for.
func TestAHigherStampIsRememberedUnderTheHostsOwnName(t *testing.T) {
	b1 := newBox(t, "b1", func(c *ingress.Config) { c.HoldFor = 1 })
	old := newApp(t, "old", nil)
	l := old.ready(5)
	l.Host = "own.example"
	b1.set(func(locals map[string]ingress.Local, homes map[string]ingress.Home) {
		locals[host], locals["own.example"] = l, l
		homes["own.example"] = ingress.Home{Box: "b2", Addr: nobody(t), Stamp: 6}
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b1.srv.URL, nil)
	require.NoError(t, err)
	req.Host = "own.example"
	resp, err := b1.srv.Client().Do(req)
	require.NoError(t, err)
	resp.Body.Close()
	b1.get(t).unavailable(t)
	require.Zero(t, old.count())
}

// TestABoxThatCannotBeDialledIsHinted: whatever the reason is.
func TestABoxThatCannotBeDialledIsHinted(t *testing.T) {
	for name, addr := range map[string]string{"refused": nobody(t), "no answer": "192.0.2.1:80"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "b1", func(c *ingress.Config) { c.HoldFor = 1 })
			b.home(ingress.Home{Box: "dead", Addr: addr, Stamp: 5})
			b.get(t).unavailable(t)
			require.Equal(t, []string{"dead"}, b.hinted())
		})
	}
}
