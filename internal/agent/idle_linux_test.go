package agent

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/placement"
)

// sleeper is a bench whose host sleeps when nobody used it, behind an ingress.
func sleeper(t *testing.T, timeout time.Duration) *bench {
	b := newBench(t)
	key := hostrecord.Key("demo", "notes", testHost)
	rec, err := hostrecord.Read(t.Context(), b.control, "demo", "notes", testHost)
	require.NoError(t, err)
	rec.IdleTimeout = hostrecord.Duration(timeout)
	body, err := record.Encode(rec.Record)
	require.NoError(t, err)
	was, err := b.control.Get(t.Context(), key)
	require.NoError(t, err)
	_, err = b.control.Put(t.Context(), key, body, objstore.IfMatch(was.ETag))
	require.NoError(t, err)
	require.NoError(t, b.agent.makeGateway())
	t.Cleanup(b.agent.gateway.Close)
	return b
}

// request sends one through the ingress.
func (b *bench) request(method, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.agent.gateway.ServeHTTP(w, httptest.NewRequest(method, "http://"+testHost+"/", strings.NewReader(body)))
	return w
}

// asleep steps until the host's session has ended in order.
func (b *bench) asleep() *hostclaim.Claim {
	c := b.until(func(c *hostclaim.Claim) bool { return c.Holder.Ended != nil })
	turn, err := b.step(b.t.Context())
	require.NoError(b.t, err)
	require.True(b.t, turn.Done(), turn)
	require.Nil(b.t, b.run)
	return c
}

// awake runs the supervisor's steps until the test ends.
func (b *bench) awake() (stop func()) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-done:
				return
			case <-b.wake:
			case <-time.After(look):
			}
			_, _ = b.step(b.t.Context())
		}
	}()
	return sync.OnceFunc(func() { close(done); <-over })
}

// TestAnIdleHostSleepsAndAStormOfRequestsWakesItOnce: it stays home meanwhile,
// and nothing of it is lost or declared.
func TestAnIdleHostSleepsAndAStormOfRequestsWakesItOnce(t *testing.T) {
	b := sleeper(t, 500*time.Millisecond)
	b.until(served(0))
	slept := b.asleep()
	require.Equal(t, slept.Holder.Session, slept.Holder.Ended.Session)
	require.Equal(t, placement.RoleHome, b.agent.edges().Hosts[testHost].Role, "it is home")
	require.Zero(t, b.agent.edges().Headroom.Awake)
	for range 3 { // and nothing but a request wakes it
		turn, err := b.step(t.Context())
		require.NoError(t, err)
		require.True(t, turn.Done())
	}

	defer b.awake()()
	var storm sync.WaitGroup
	for range 50 {
		storm.Go(func() { require.Equal(t, http.StatusOK, b.request(http.MethodPost, "a").Code) })
	}
	storm.Wait()
	c := b.claim()
	require.Len(t, c.Holder.Admissions, 2)
	last := c.Holder.Admissions[1]
	require.Equal(t, hostclaim.CleanReturn, last.Coverage)
	require.Nil(t, last.WritesLost)
}

func TestAHostThatIsUsedDoesNotSleep(t *testing.T) {
	b := sleeper(t, time.Hour)
	session := b.until(served(0)).Holder.Session
	turn, err := b.step(t.Context())
	require.NoError(t, err)
	require.Greater(t, turn.Again, sweep/2, "it is looked at when it may be idle")
	require.Equal(t, session, b.claim().Holder.Session)
}

// TestAnIdleHostOfARestartedAgentSleepsOn: 2,000 of them do not all start.
func TestAnIdleHostOfARestartedAgentSleepsOn(t *testing.T) {
	b := sleeper(t, time.Millisecond)
	b.until(served(0))
	session := b.asleep().Holder.Session
	b.restart(b.agent.set.DataDir)
	require.NoError(t, b.agent.makeGateway())
	turn, err := b.step(t.Context())
	require.NoError(t, err)
	require.True(t, turn.Done())
	require.Equal(t, session, b.claim().Holder.Session)
	l, ok := b.local()
	require.True(t, ok)
	require.True(t, l.Ready)
	require.Nil(t, l.Addr)

	b.agent.lookFor(testHost)
	b.until(served(session))
}

// TestNothingReachesAnAppBeforeItsGenerationIsPublished: a box that dies then would
// lose more than what is declared.
func TestNothingReachesAnAppBeforeItsGenerationIsPublished(t *testing.T) {
	b := newBench(t)
	for c := b.claim(); !published(c); c = b.claim() {
		_, err := b.step(t.Context())
		require.NoError(t, err)
		if l, ok := b.local(); ok && !published(b.shown.Load().claim) {
			require.Nil(t, l.Addr)
		}
		time.Sleep(10 * time.Millisecond)
	}
	_, err := b.step(t.Context())
	require.NoError(t, err)
	l, _ := b.local()
	require.NotNil(t, l.Addr)
}
