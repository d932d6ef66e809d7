package ingress_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/ingress"
)

// refusing is an address of this machine that refuses connections.
func refusing(t *testing.T) net.Addr {
	addr, err := net.ResolveTCPAddr("tcp", nobody(t))
	require.NoError(t, err)
	return addr
}

func TestOnlyHarmlessRequestsAreSentAgainAfterABackendHadThem(t *testing.T) {
	for name, tc := range map[string]struct {
		method, body string
		header       []string
		again        bool
	}{
		"a safe method":           {http.MethodGet, "", nil, true},
		"a safe one with a body":  {http.MethodOptions, "what?", nil, true},
		"a write":                 {http.MethodPost, "a note", nil, false},
		"an idempotent method":    {http.MethodPut, "a note", nil, false},
		"a write that has a key":  {http.MethodPost, "a note", []string{"Idempotency-Key", "k1"}, true},
		"a key, but a long body":  {http.MethodPost, strings.Repeat("x", 5000), []string{"Idempotency-Key", "k1"}, false},
		"a write without a body":  {http.MethodDelete, "", nil, false},
		"a key, without any body": {http.MethodDelete, "", []string{"Idempotency-Key", "k1"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b1, b2 := newBox(t, "b1", func(c *ingress.Config) { c.MaxBody = 1000 }), newBox(t, "b2", nil)
			bodies := make(chan string, 2)
			a := newApp(t, "a", func(_ http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				bodies <- string(b)
			})
			addr, accepted := breaker(t)
			b1.home(ingress.Home{Box: "dying", Addr: addr.String(), Stamp: 5})
			b2.local(a.ready(6))

			got := b1.later(t.Context(), tc.method, tc.body, tc.header...)
			if !tc.again {
				answer := result(t, got)
				require.NoError(t, answer.err)
				require.Equal(t, http.StatusBadGateway, answer.status)
				require.Contains(t, answer.body, "may or may not")
				require.Equal(t, 1, accepted())
				require.Zero(t, a.count())
				require.Equal(t, []string{"dying"}, b1.hinted(), "not a byte came back")
				return
			}
			b1.awaitHeld(t, 1)
			b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 6})
			result(t, got).from(t, "a")
			require.Equal(t, tc.body, <-bodies)
		})
	}
}

func TestAHomeThatIsFrozenIsLeftForANewerOne(t *testing.T) {
	for method, status := range map[string]int{http.MethodGet: http.StatusOK, http.MethodPost: http.StatusBadGateway} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			b1, b2, a := newBox(t, "b1", nil), newBox(t, "b2", nil), newApp(t, "a", nil)
			addr, accepted := frozen(t)
			b1.home(ingress.Home{Box: "frozen", Addr: addr.String(), Stamp: 5})
			b2.local(a.ready(6))
			got := b1.later(t.Context(), method, "")
			require.Eventually(t, func() bool { return accepted() == 1 }, patience, 1e6)
			b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 6})
			require.Equal(t, status, result(t, got).status)
		})
	}
}

func TestAnAppCannotSayThatItWasNotReached(t *testing.T) {
	b1, b2 := newBox(t, "b1", nil), newBox(t, "b2", nil)
	a := newApp(t, "a", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Regionha-Unserved", "1")
	})
	b2.local(a.ready(6))
	b1.home(ingress.Home{Box: "b2", Addr: b2.addr(), Stamp: 6})
	got := b1.ask(t.Context(), http.MethodPost, "a note")
	got.from(t, "a")
	require.Empty(t, got.header.Get("X-Regionha-Unserved"))
	require.Equal(t, 1, a.count())
}

func TestAnAnswerThatBreaksOffIsNotSentAgain(t *testing.T) {
	b := newBox(t, "b1", nil)
	a := newApp(t, "a", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "the first half")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	b.local(a.ready(6))
	require.Error(t, b.get(t).err, "the client sees that it is not whole")
	require.Equal(t, 1, a.count())
}
