package hint_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// TestTheRequestsOfBumpsDoNotGrowWithTheHosts: 2,000 hosts that change eight
// times within a minute cost a GET and a PUT a second.
func TestTheRequestsOfBumpsDoNotGrowWithTheHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, named := memstore.New(), map[string]bool{}
		s := hint.NewSender(hint.Sender{Peers: func([]string) []string { return nil },
			Bump: func(ctx context.Context, changes ...regionfile.Change) error {
				require.LessOrEqual(t, len(changes), 128, "who polls each 2 s misses none")
				for _, c := range changes {
					named[c.Host] = true
				}
				return regionfile.Tell(ctx, store, "ie", changes...)
			}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		for gen := range 8 {
			for n := range 2000 {
				s.Send(hint.Outgoing{Hint: hint.Hint{Host: fmt.Sprint("h", n), Gen: uint64(gen + 1)}, To: []string{"box-1"}})
			}
			time.Sleep(5 * time.Second)
		}
		time.Sleep(20 * time.Second)
		cancel()
		require.NoError(t, <-ended)
		require.Len(t, named, 2000)
		requests := store.Requests()
		require.LessOrEqual(t, requests[memstore.OpGet]+requests[memstore.OpPut], 2*62)
	})
}

func TestOneChangeIsBumpedAtOnceAndThoseAfterItTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var bumps [][]regionfile.Change
		s := hint.NewSender(hint.Sender{Peers: func([]string) []string { return nil },
			Bump: func(_ context.Context, changes ...regionfile.Change) error {
				mu.Lock()
				defer mu.Unlock()
				bumps = append(bumps, changes)
				return nil
			}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		send := func(host string, to ...string) {
			s.Send(hint.Outgoing{Hint: hint.Hint{Host: host, Gen: 1}, To: to})
			synctest.Wait()
		}
		send("a", "box-1")
		require.Len(t, bumps, 1)
		send("b", "box-1")
		send("b", "box-2")
		send("c", "box-1")
		send("c")
		s.Send(hint.Outgoing{Hint: hint.Hint{Host: "quiet", Gen: 1}, To: []string{"box-1"}, Quiet: true})
		s.Send(hint.Outgoing{Hint: hint.Hint{Host: "moved"}})
		cancel()
		require.NoError(t, <-ended)
		require.Equal(t, [][]regionfile.Change{{{Host: "a", Boxes: []string{"box-1"}}},
			{{Host: "b", Boxes: []string{"box-1", "box-2"}}, {Host: "c"}}}, bumps)
	})
}

func TestWhoIsToldOfAClaim(t *testing.T) {
	move := func(phase hostclaim.Phase, acks map[string]string) *hostclaim.Claim {
		return &hostclaim.Claim{Host: "h", Gen: 7, Op: hostclaim.Op{Kind: hostclaim.Relocating, Phase: phase, Exec: hostclaim.None,
			Participants: []string{"box-2"}, Intent: hostclaim.Intent{Source: hostclaim.Member{Box: "box-1"}}, Journal: hostclaim.Journal{Acks: acks}}}
	}
	acked, stuck := map[string]string{"box-2": "e"}, move(hostclaim.Probing, map[string]string{"box-2": "e"})
	stuck.Op.Journal.Stuck = &hostclaim.Stuck{}
	for name, c := range map[string]struct {
		claim *hostclaim.Claim
		quiet bool
	}{
		"a start":     {move(hostclaim.Starting, nil), false},
		"all are in":  {move(hostclaim.Starting, acked), true},
		"a hand-over": {move(hostclaim.Installing, acked), false},
		"a probe":     {move(hostclaim.Probing, acked), true},
		"it is stuck": {stuck, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := hint.Of(c.claim)
			require.Equal(t, c.quiet, o.Quiet)
			require.ElementsMatch(t, []string{"box-1", "box-2"}, o.To)
			require.EqualValues(t, 7, o.Gen)
		})
	}
	served := hint.Of(&hostclaim.Claim{Host: "h", Op: hostclaim.Op{Kind: hostclaim.Serving, Exec: "box-2"}})
	require.False(t, served.Quiet)
	require.Equal(t, []string{"box-2"}, served.To)
}
