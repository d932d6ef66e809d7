package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
)

// TestAHostThatABoxSaysItHasIsReadWhereItWasSeenElsewhere: the worker missed how
// it came there.
func TestAHostThatABoxSaysItHasIsReadWhereItWasSeenElsewhere(t *testing.T) {
	w, _, _ := region(t)
	_, err := placement.Publish(t.Context(), w.control, placement.Published{}, placement.Edges{Box: "box-1", Region: "ie",
		Address: "127.0.0.1:1", Internal: "127.0.0.1:2", Protocol: roster.Protocol, SecretsKeyFP: secretFP, At: time.Now().UTC(),
		Hosts: map[string]placement.Host{host: {Role: placement.RoleHome, Stamp: 2, App: "demo/notes"}}})
	require.NoError(t, err)
	_, err = w.survey.Look(t.Context())
	require.NoError(t, err)
	w.claims.put(host, entry{gen: 1, box: "box-3"})
	w.queueHostsOf("box-1")
	require.True(t, w.news.names[host])

	clear(w.news.names)
	w.claims.put(host, entry{gen: 2, box: "box-3", moving: true})
	w.queueHostsOf("box-1")
	require.Empty(t, w.news.names, "its driver reads it")
}

func TestAClaimThatCouldNotBeReadIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, s := region(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.readNews(ctx) }()
		s.Inject(memstore.Once(memstore.OpGet, "control/hosts/", memstore.Lose))
		w.news.add(host)
		synctest.Wait()
		require.Zero(t, w.claims.get(host).gen)
		time.Sleep(readAgain)
		synctest.Wait()
		require.NotZero(t, w.claims.get(host).gen)
		stop()
		require.NoError(t, <-ended)
	})
}
