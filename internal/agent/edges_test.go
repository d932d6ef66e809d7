package agent

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/ingress"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
)

// told makes the agent's hints be collected, each with those that it is for.
func (n *newcomer) told() (got chan hint.Hint, to chan []string) {
	got, to = make(chan hint.Hint, 8), make(chan []string, 8)
	n.hints = hint.NewSender(hint.Sender{Secret: n.secret, Log: n.log,
		Peers:   func(refs []string) []string { to <- refs; return []string{"peer"} },
		Deliver: func(_ context.Context, _ string, h hint.Hint) error { got <- h; return nil }})
	return got, to
}

func TestABoxThatEndsSaysGoodbyeToTheWorkers(t *testing.T) {
	n := newNewcomer(t)
	got, to := n.told()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.sendHints(ctx) }()
	stop()
	require.NoError(t, <-ended)
	require.Equal(t, hint.Hint{V: 1, Box: "box-1"}, <-got)
	require.Equal(t, []string{}, <-to, "to no box")
}

func TestTheLastEdgesFileOffersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNewcomer(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.publishEdges(ctx) }()
		time.Sleep(time.Second)
		accepting := func() bool {
			file, err := placement.Read(t.Context(), n.store, "box-1")
			require.NoError(t, err)
			return file.Edges.Accepting
		}
		require.True(t, accepting())
		stop()
		require.NoError(t, <-ended)
		require.False(t, accepting())
	})
}

func TestWhatDrainsByTheRosterSaysSo(t *testing.T) {
	n := newNewcomer(t)
	require.False(t, n.edges().Draining)
	box := n.snap.Boxes["box-1"]
	box.Draining = true
	n.snap.Boxes["box-1"] = box
	n.follow(t.Context(), n.snap)
	e := n.edges()
	require.True(t, e.Draining)
	require.False(t, e.Accepting)
	require.Len(t, n.dirty, 1, "and publishes it at once")
}

func TestOfHomesThatMovedEveryPeerIsToldOnce(t *testing.T) {
	n := newNewcomer(t)
	got, to := n.told()
	n.tellMoved([]string{"a.example", "b.example", "c.example"})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, n.hints.Run(ctx))
	require.Equal(t, hint.Hint{V: 1, Host: "a.example"}, <-got)
	require.Nil(t, <-to, "all of them")
	require.Empty(t, to)
}

func TestOnlyWhoHoldsRequestsLooksForAHomeThatMoved(t *testing.T) {
	n := newNewcomer(t)
	held, err := ingress.New(ingress.Config{Self: "box-1", Local: func(string) (ingress.Local, bool) { return ingress.Local{}, true },
		Home: func(string) (ingress.Home, bool) { return ingress.Home{}, false }})
	require.NoError(t, err)
	n.gateway = held
	n.homeMoved()
	require.Empty(t, n.homes.ask)
	ctx, stop := context.WithCancel(t.Context())
	var requests sync.WaitGroup
	requests.Go(func() {
		defer func() { _ = recover() }() // its client goes away
		held.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "http://notes.example/", nil))
	})
	require.Eventually(t, func() bool { return held.Held() == 1 }, time.Minute, time.Millisecond)
	n.homeMoved()
	require.Len(t, n.homes.ask, 1)
	stop()
	requests.Wait()
}

func TestTwoHomesUnderOneStampAreAlertedAsLongAsTheyAre(t *testing.T) {
	n := newNewcomer(t)
	conflict := func(boxes ...string) []placement.Conflict {
		if len(boxes) == 0 {
			return nil
		}
		return []placement.Conflict{{Name: "notes.example", Stamp: 7, Boxes: boxes}}
	}
	n.homes.report(conflict("box-2", "box-3"))
	require.True(t, n.alerts.Raised(alert.Conflict, "notes.example"))
	n.homes.report(conflict())
	require.False(t, n.alerts.Raised(alert.Conflict, "notes.example"))
}

// TestWhereEverythingMovesNobodyReadsEverythingAllTheTime: 200 boxes publish
// every second.
func TestWhereEverythingMovesNobodyReadsEverythingAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNewcomer(t)
		files := make([]placement.Published, 200)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		for i := range files {
			files[i] = n.edgesOf(fmt.Sprintf("box-%d", 100+i), placement.Published{})
		}
		go func() { ended <- n.homes.run(ctx) }()
		for range 5 * 60 {
			time.Sleep(time.Second)
			for i := range files {
				files[i] = n.edgesOf(fmt.Sprintf("box-%d", 100+i), files[i])
			}
		}
		gets := n.store.Requests()[memstore.OpGet]
		require.LessOrEqual(t, gets, 2*200+1, "no more than at rest")
		for range 60 { // somebody holds a request
			n.homes.soon()
			time.Sleep(time.Second)
			files[0] = n.edgesOf("box-100", files[0])
		}
		asked := n.store.Requests()[memstore.OpGet] - gets
		require.GreaterOrEqual(t, asked, 200+40, "it is answered within seconds")
		require.LessOrEqual(t, asked, 60*40)
		stop()
		require.NoError(t, <-ended)
	})
}

func (n *newcomer) edgesOf(ref string, prev placement.Published) placement.Published {
	p, err := placement.Publish(n.t.Context(), n.store, prev, placement.Edges{Box: ref, Region: "ie", Protocol: 1})
	require.NoError(n.t, err)
	return p
}
