package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/hint"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// guarded is a region whose boxes publish, and whose worker sweeps and takes
// hints. Nobody can be reached while down says so.
func guarded(t *testing.T, down *atomic.Bool, act func(t *testing.T, w *Worker, seen *cloud, s *memstore.Store)) {
	synctest.Test(t, func(t *testing.T) {
		w, seen, s := region(t)
		for _, ref := range []string{"box-1", "box-2", "box-3", "worker-2"} {
			publish(t, w, ref)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		w.set.Reach = func(context.Context, string) error {
			if down.Load() {
				return errors.New("refused")
			}
			return nil
		}
		for _, loop := range []func(context.Context) error{w.sweepLoop, w.lookLoop} {
			go func() { ended <- loop(ctx) }()
		}
		time.Sleep(time.Second)
		act(t, w, seen, s)
		cancel()
		require.NoError(t, errors.Join(<-ended, <-ended))
	})
}

func (w *Worker) awaiting(ref string) bool { return w.alerts.Raised(alert.AwaitingEvidence, ref) }

func TestABoxThatMayBeGoneAwaitsEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(boxid.Cloud) (termfence.Observation, error)
		after  time.Duration
	}{
		"stopped":       {state("stopped"), time.Minute},
		"shutting-down": {state("shutting-down"), endsWithin + time.Minute},
		"stopping":      {state("stopping"), endsWithin + time.Minute},
		"not found": {func(box boxid.Cloud) (termfence.Observation, error) {
			return termfence.Observation{Via: termfence.ViaDescribe, InstanceID: box.InstanceID, RequestID: "r"}, nil
		}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			guarded(t, new(atomic.Bool), func(t *testing.T, w *Worker, seen *cloud, _ *memstore.Store) {
				require.False(t, w.awaiting("box-1"))
				seen.say("i-box-1", c.answer)
				time.Sleep(c.after)
				require.True(t, w.awaiting("box-1"))
				require.False(t, w.awaiting("box-2"))
				time.Sleep(10 * time.Minute)
				require.False(t, w.gone.has("box-1"), "for however long")
				seen.say("i-box-1", nil)
				time.Sleep(time.Minute)
				require.False(t, w.awaiting("box-1"), "it is back")
				seen.say("i-box-1", c.answer)
				time.Sleep(c.after)
				require.True(t, w.awaiting("box-1"))
				seen.say("i-box-1", state("terminated"))
				time.Sleep(time.Minute)
				require.False(t, w.awaiting("box-1"), "it is fenced")
			})
		})
	}
}

func TestAnOrdinaryEndAwaitsNothing(t *testing.T) {
	guarded(t, new(atomic.Bool), func(t *testing.T, w *Worker, seen *cloud, _ *memstore.Store) {
		seen.say("i-box-1", state("shutting-down"))
		time.Sleep(endsWithin - 10*time.Second)
		require.False(t, w.awaiting("box-1"))
	})
}

// TestABoxThatIsSilentAwaitsEvidenceThoughItsInstanceRuns: or whatever the cloud
// does not say.
func TestABoxThatIsSilentAwaitsEvidenceThoughItsInstanceRuns(t *testing.T) {
	for name, answer := range map[string]func(boxid.Cloud) (termfence.Observation, error){
		"running": state("running"),
		"no answer": func(boxid.Cloud) (termfence.Observation, error) {
			return termfence.Observation{}, errors.New("ExpiredToken")
		},
	} {
		t.Run(name, func(t *testing.T) {
			guarded(t, new(atomic.Bool), func(t *testing.T, w *Worker, seen *cloud, _ *memstore.Store) {
				seen.say("i-box-1", answer)
				time.Sleep(placement.FreshFor - time.Minute)
				require.False(t, w.awaiting("box-1"), "an error alone is none of it")
				require.Equal(t, name != "running", w.alerts.Raised(alert.Cloud, "ie"))
				time.Sleep(3 * time.Minute)
				require.True(t, w.awaiting("box-1"))
				old, err := placement.Read(t.Context(), w.control, "box-1")
				require.NoError(t, err)
				_, err = placement.Publish(t.Context(), w.control, old, old.Edges)
				require.NoError(t, err)
				time.Sleep(2 * time.Minute)
				require.False(t, w.awaiting("box-1"))
			})
		})
	}
}

func TestABoxThatAHintIsAboutAndThatCannotBeReachedAwaitsEvidence(t *testing.T) {
	var down atomic.Bool
	guarded(t, &down, func(t *testing.T, w *Worker, _ *cloud, _ *memstore.Store) {
		down.Store(true)
		w.Hint(hint.Hint{Box: "box-1"})
		time.Sleep(unreachedFor - time.Second)
		require.False(t, w.awaiting("box-1"), "its agent may start anew")
		time.Sleep(3 * time.Second)
		require.True(t, w.awaiting("box-1"))
		down.Store(false)
		time.Sleep(2 * time.Minute)
		require.False(t, w.awaiting("box-1"))
	})
}

func TestAHintMakesExactlyItsBoxBeDescribedAtOnceAndSeldom(t *testing.T) {
	guarded(t, new(atomic.Bool), func(t *testing.T, w *Worker, seen *cloud, _ *memstore.Store) {
		time.Sleep(5 * time.Second)
		one, two := seen.count("i-box-1"), seen.count("i-box-2")
		w.Hint(hint.Hint{Box: "box-1"})
		time.Sleep(time.Second)
		require.Equal(t, one+1, seen.count("i-box-1"))
		for range 100 {
			w.Hint(hint.Hint{Box: "box-1"})
			w.Hint(hint.Hint{Box: "nobody"})
			time.Sleep(100 * time.Millisecond)
		}
		require.LessOrEqual(t, seen.count("i-box-1"), one+1+6, "once in two seconds")
		require.Equal(t, two, seen.count("i-box-2"))
		seen.say("i-box-1", state("terminated"))
		time.Sleep(2 * time.Second)
		w.Hint(hint.Hint{Box: "box-1"})
		time.Sleep(time.Second)
		require.True(t, w.gone.fenced("box-1"))
	})
}

// TestWhoAsksMeanwhileGetsTheSameLook: the first began before the others asked,
// and the second serves both.
func TestWhoAsksMeanwhileGetsTheSameLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, seen, _ := region(t)
		seen.say("i-box-1", func(box boxid.Cloud) (termfence.Observation, error) {
			time.Sleep(3 * time.Second)
			return state("running")(box)
		})
		snap, self, err := w.enrolled(t.Context())
		require.NoError(t, err)
		box, _ := snap.Box("box-1")
		var looks sync.WaitGroup
		for range 3 {
			looks.Go(func() { _ = w.lookAt(t.Context(), box, self) })
			time.Sleep(time.Second)
		}
		looks.Wait()
		require.Equal(t, 2, seen.count("i-box-1"))
	})
}

func TestAllDescribesTogetherStayUnderTheirRate(t *testing.T) {
	guarded(t, new(atomic.Bool), func(t *testing.T, w *Worker, seen *cloud, s *memstore.Store) {
		_, err := roster.Update(t.Context(), s, private, w.roster, func(r *roster.Roster) error {
			for n := range 200 {
				ref := fmt.Sprint("many-", n)
				r.Boxes[ref] = roster.Box{Enrollment: "enr-" + ref, EnrolledAt: time.Now().UTC(), Region: "ie", Pool: "default", State: roster.Active,
					Cloud: boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: "i-" + ref}}
			}
			return nil
		})
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		before := seen.total()
		for n := range 200 {
			w.Hint(hint.Hint{Box: fmt.Sprint("many-", n)})
		}
		time.Sleep(5 * time.Second)
		require.LessOrEqual(t, seen.total()-before, burst+5*describes+looksAtOnce)
		time.Sleep(20 * time.Second)
		require.GreaterOrEqual(t, seen.total()-before, 200)
	})
}

func TestWhyABoxAwaitsEvidence(t *testing.T) {
	now := time.Now()
	stale := errors.New("its edges file is 16m0s old")
	for want, c := range map[string]struct {
		sight sight
		stale error
	}{
		"":                                     {sight{at: now, found: true, state: "running"}, nil},
		"the cloud does not know its instance": {sight{at: now}, nil},
		"its instance is stopped":              {sight{at: now, found: true, state: "stopped"}, nil},
		"its instance is shutting-down for 1h0m0s":                            {sight{at: now, found: true, state: "shutting-down", since: now.Add(-time.Hour)}, nil},
		"its edges file is 16m0s old, and its instance is running":            {sight{at: now, found: true, state: "running"}, stale},
		"its edges file is 16m0s old, and the cloud does not answer about it": {sight{err: errors.New("denied")}, stale},
		"its edges file is 16m0s old, and its instance cannot be asked for":   {sight{}, stale},
		"it cannot be reached, and its instance is running":                   {sight{at: now, found: true, state: "running", unreached: now.Add(-unreachedFor)}, nil},
	} {
		require.Equal(t, want, c.sight.awaits(c.stale, now))
	}
	for _, s := range []sight{{err: errors.New("denied")}, {at: now, found: true, state: "pending"},
		{at: now, found: true, state: "running", unreached: now.Add(-time.Second)}} {
		require.Empty(t, s.awaits(nil, now))
	}
}
