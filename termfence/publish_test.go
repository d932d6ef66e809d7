package termfence_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/termfence"
	"github.com/carlosframework/regionha/termfence/fencetest"
)

func (r region) publish(tb testing.TB, rec termfence.Record) (termfence.Evidence, error) {
	tb.Helper()
	return termfence.Publish(tb.Context(), r, r.reader, rec)
}

func TestPublishReturnsTheEvidenceThatIsStored(t *testing.T) {
	r := newRegion(t)
	ev, err := r.publish(t, fence(t, worker, now))
	require.NoError(t, err)
	read, err := r.reader.Read(t.Context(), ev.Ref())
	require.NoError(t, err)
	require.Equal(t, read, ev)
}

func TestTwoWorkersFenceOneBoxAtDifferentTimes(t *testing.T) {
	r := newRegion(t)
	first, err := r.publish(t, fence(t, worker, now))
	require.NoError(t, err)
	second, err := r.publish(t, fence(t, worker2, now.Add(time.Minute)))
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Len(t, r.Log(), 2, "the roster and one fence")
}

func TestPublishNeverUsesUpTheKeyForARecordThatDoesNotHold(t *testing.T) {
	r := newRegion(t)
	rec := fence(t, worker, now)
	rec.Cloud.InstanceID = "i-other"
	_, err := r.publish(t, rec)
	require.ErrorIs(t, err, termfence.ErrUnverified)
	require.Len(t, r.Log(), 1)
	_, err = r.publish(t, fence(t, worker, now))
	require.NoError(t, err)
}

func TestPublishDoesNotAcceptAForeignFence(t *testing.T) {
	r := newRegion(t)
	rec := fence(t, worker, now)
	rec.State = "stopped"
	r.plant(t, "e-shop-1", encode(t, rec))
	ev, err := r.publish(t, fence(t, worker, now))
	require.ErrorIs(t, err, termfence.ErrUnverified)
	require.Zero(t, ev)
}

func TestPublishSettlesItsOutcome(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault memstore.Fault
		want  error
	}{
		{"the answer is lost", memstore.LoseAnswer, nil},
		{"the request is lost", memstore.Lose, objstore.ErrUnknown},
		{"the request is late", memstore.Hold, objstore.ErrUnknown},
		{"the request is repeated", memstore.Replay, nil},
		{"another request is in progress", memstore.Refuse, objstore.ErrUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRegion(t)
			r.Inject(memstore.Once(memstore.OpPut, termfence.Key("e-shop-1"), c.fault))
			ev, err := r.publish(t, fence(t, worker, now))
			require.ErrorIs(t, err, c.want)
			require.Equal(t, c.want == nil, ev != termfence.Evidence{})
		})
	}
}

func TestTheZeroEvidenceNamesNothing(t *testing.T) {
	var ev termfence.Evidence
	require.Zero(t, ev.Ref())
	require.Empty(t, ev.Box())
	require.Empty(t, ev.Enrollment())
	require.Empty(t, ev.Region())
	require.Zero(t, ev.ObservedAt())
	require.False(t, ev.Declared())
}

func TestFencetestMakesTheEvidenceThatItIsAskedFor(t *testing.T) {
	ev := fencetest.Evidence(t, "shop-1", "e-1", "ie", now)
	require.Equal(t, "shop-1", ev.Box())
	require.Equal(t, "e-1", ev.Enrollment())
	require.Equal(t, "ie", ev.Region())
	require.Equal(t, now, ev.ObservedAt())
	require.Equal(t, ev, fencetest.Evidence(t, "shop-1", "e-1", "ie", now))
}
