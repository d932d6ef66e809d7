package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
)

func TestAHostThatAnotherBoxPublishesLatelyIsNotThisOnes(t *testing.T) {
	n := newNewcomer(t)
	require.False(t, n.foreign("notes.example"), "the edges files were not read")
	n.publish("notes.example")
	require.True(t, n.foreign("notes.example"))
	require.False(t, n.foreign("new.example"))
	require.False(t, n.homes.elsewhere("notes.example", time.Now().Add(placement.FreshFor+time.Minute)), "who published it may be dead")
	require.NoError(t, os.MkdirAll(filepath.Join(n.set.DataDir, "hosts", "notes.example"), 0o700))
	require.False(t, n.foreign("notes.example"), "something of it lies here")
	require.NoError(t, os.RemoveAll(filepath.Join(n.set.DataDir, "hosts", "notes.example")))
	n.hosts["notes.example"] = &host{}
	require.False(t, n.foreign("notes.example"), "it has a row")
}

func TestASweepReadsNothingOfOtherBoxesButTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNewcomer(t)
		n.publish("notes.example")
		again := func() { // box-2 publishes again, and this box reads it: two GETs
			was, err := placement.Read(t.Context(), n.store, "box-2")
			require.NoError(t, err)
			_, err = placement.Publish(t.Context(), n.store, was, was.Edges)
			require.NoError(t, err)
			n.homes.refresh(t.Context())
		}
		two := hostclaim.Member{Box: "box-2", Enrollment: "enr-2"}
		o := n.claim("notes.example", two)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		reads := func() (count int) {
			synctest.Wait()
			return n.store.Requests()[memstore.OpGet]
		}
		go func() { ended <- n.watch(ctx) }()
		synctest.Wait()
		polls := func(d time.Duration) int { return int(d / pollEvery) }
		before := reads()
		_, err := hostclaim.Update(t.Context(), n.store, o, hostclaim.CompleteCreate("op-1", two.Box, two.Enrollment))
		require.NoError(t, err)
		again()
		time.Sleep(14 * time.Minute)
		require.Equal(t, 2+polls(14*time.Minute), reads()-before, "nothing but the region's file")
		for range 5 {
			again()
			time.Sleep(10 * time.Minute)
		}
		require.Equal(t, 12+polls(64*time.Minute), reads()-before)
		time.Sleep(25 * time.Minute) // box-2 is dead, or withholds it
		require.Equal(t, 12+polls(89*time.Minute)+1, reads()-before, "the claim that changed")
		stop()
		require.NoError(t, <-ended)
	})
}

func TestAClaimThatWasSeenIsNotLookedAtAgain(t *testing.T) {
	n := newNewcomer(t)
	h := &host{agent: n.Agent, name: "notes.example", wake: make(chan struct{}, 1)}
	n.hosts["notes.example"] = h
	seen := &hostclaim.Claim{Host: "notes.example", Gen: 7}
	require.True(t, n.concern(hostclaim.Observed{Host: "notes.example", Claim: seen}))
	require.Len(t, h.wake, 1)
	<-h.wake
	h.show(func(s *shown) { s.claim = seen })
	require.True(t, n.concern(hostclaim.Observed{Host: "notes.example", Claim: seen}))
	require.Empty(t, h.wake)
	require.True(t, n.concern(hostclaim.Observed{Host: "notes.example", Claim: &hostclaim.Claim{Host: "notes.example", Gen: 8}}))
	require.Len(t, h.wake, 1)
}

func TestABoxThatKnowsNoWorkerLooksForOne(t *testing.T) {
	n := newNewcomer(t)
	n.publish()
	require.Empty(t, n.homes.peers([]string{"box-2"}))
	require.Len(t, n.homes.ask, 1)
	<-n.homes.ask
}

func TestANewNameOnAnotherBoxIsFoundAndAStrangersNamesCostAReadingASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNewcomer(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.homes.run(ctx) }()
		time.Sleep(time.Minute + 2*time.Second)
		n.edgesOf("box-3", placement.Published{})
		e := placement.Edges{Box: "box-2", Region: "ie", Protocol: 1, Hosts: map[string]placement.Host{"new.example": {Role: placement.RoleHome, Stamp: 1}}}
		_, err := placement.Publish(t.Context(), n.store, placement.Published{}, e)
		require.NoError(t, err)

		home, ok := n.homes.home("new.example")
		require.True(t, ok)
		require.True(t, home.Transit, "the map is older than the name may be")
		time.Sleep(100 * time.Millisecond)
		home, ok = n.homes.home("new.example")
		require.True(t, ok)
		require.Equal(t, "box-2", home.Box)
		_, ok = n.homes.home("nobody.example")
		require.False(t, ok, "a map that was just read knows better")

		lists := n.store.Requests()[memstore.OpList]
		for i := range 1000 {
			_, _ = n.homes.home(fmt.Sprintf("stranger-%d.example", i))
			time.Sleep(10 * time.Millisecond)
		}
		require.LessOrEqual(t, n.store.Requests()[memstore.OpList]-lists, 10+5)
		stop()
		require.NoError(t, <-ended)
	})
}
