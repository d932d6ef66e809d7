package membership_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/membership"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

// endless is a store that lists for ever.
type endless struct{ *memstore.Store }

func (endless) List(context.Context, string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		for i := 0; yield(objstore.Info{Key: fmt.Sprintf("control/box-memberships/b/%09d", i)}, nil); i++ {
		}
	}
}

func TestTwoWorkersConfirmOneBoxAndBothSucceed(t *testing.T) {
	w := newWorld(t)
	second := own(t)
	second.by = confirmer("worker-2")
	first, err := w.publish(t, must(t, own(t)))
	require.NoError(t, err)
	again, err := w.publish(t, must(t, second))
	require.NoError(t, err, "at the very same time: one record")
	require.Equal(t, first, again)
	require.Len(t, w.Log(), 2)
	second.at = now.Add(1)
	other, err := w.publish(t, must(t, second))
	require.NoError(t, err, "at another time: two")
	require.Equal(t, "worker-2", other.Record().Confirmer.Box)
}

func TestARecordOfUnknownOutcomeIsNoEvidence(t *testing.T) {
	w := newWorld(t)
	w.Inject(memstore.Once(memstore.OpPut, "control/box-memberships/", memstore.Lose))
	ev, err := w.publish(t, must(t, own(t)))
	require.ErrorIs(t, err, objstore.ErrUnknown)
	require.Zero(t, ev)
	w.Inject(memstore.Once(memstore.OpPut, "control/box-memberships/", memstore.LoseAnswer))
	ev, err = w.publish(t, must(t, own(t)))
	require.NoError(t, err)
	require.Equal(t, "new", ev.Record().Box)
}

func TestARecordThatIsThereAndDoesNotHoldIsNoEvidence(t *testing.T) {
	w, bad := newWorld(t), must(t, own(t))
	bad.V = 2
	w.plant(t, bad)
	_, err := w.publish(t, must(t, own(t)))
	require.ErrorIs(t, err, membership.ErrUnverified)
}

func TestAConfirmedBoxIsEnrolledWithoutAPerson(t *testing.T) {
	for _, a := range []*attempt{own(t), distant(t)} {
		w := newWorld(t)
		ev, err := w.publish(t, must(t, a))
		require.NoError(t, err)
		snap, err := w.edit(t, func(r *roster.Roster) error {
			return r.Enroll(a.seen.Identity, ev, a.target, "default", "e-new", now)
		})
		require.NoError(t, err)
		require.Equal(t, a.seen.Identity.Cloud(), snap.Boxes["new"].Cloud)
		require.Equal(t, a.target, snap.Boxes["new"].Region)
	}
}

func TestAConfirmationBindsOnlyWhatItIsAbout(t *testing.T) {
	w := newWorld(t)
	a := distant(t)
	ev, err := w.publish(t, must(t, a))
	require.NoError(t, err)
	identity := a.seen.Identity
	require.NoError(t, ev.Binds(a.roster, identity, "de", now.Add(membership.MaxAge)))
	for name, c := range map[string]struct {
		identity boxid.Evidence
		region   string
		spoil    func(*attempt)
		reason   string
	}{
		"another box":            {boxidtest.Unbound(t, "copy", cloud("eu-central-1", "i-new")), "de", nil, "it is about box"},
		"another instance":       {boxidtest.Unbound(t, "new", cloud("eu-central-1", "i-other")), "de", nil, `the box is "i-other"`},
		"another cloud region":   {boxidtest.Unbound(t, "new", cloud("eu-west-1", "i-new")), "de", nil, `the box's is "eu-west-1"`},
		"another placement":      {identity, "ie", nil, `it is for placement "de"`},
		"a box enrolled since":   {identity, "de", func(a *attempt) { a.roster.Boxes["x"] = entry("x", "de", cloud("eu-central-1", "i-x"), 0) }, `does not list box "x"`},
		"a worker lost since":    {identity, "de", box("worker-1", func(b *roster.Box) { b.State = roster.Quarantined }), "is quarantined"},
		"a group replaced since": {identity, "de", region("de", func(r *roster.Region) { r.GroupARN += "x" }), "the placement's is"},
	} {
		t.Run(name, func(t *testing.T) {
			by := distant(t)
			if c.spoil != nil {
				c.spoil(by)
			}
			err := ev.Binds(by.roster, c.identity, c.region, now)
			require.ErrorIs(t, err, membership.ErrUnverified)
			require.ErrorContains(t, err, c.reason)
		})
	}
}

func TestAnOldConfirmationBindsNothing(t *testing.T) {
	w, a := newWorld(t), own(t)
	ev, err := w.publish(t, must(t, a))
	require.NoError(t, err)
	_, err = w.edit(t, func(r *roster.Roster) error {
		return r.Enroll(a.seen.Identity, ev, a.target, "default", "e-new", now.Add(membership.MaxAge+time.Second))
	})
	require.ErrorIs(t, err, membership.ErrUnverified)
	require.ErrorContains(t, err, "30m1s ago")
}

func TestAnEnrollmentBetweenTheReadAndTheWriteIsSeen(t *testing.T) {
	w, a := newWorld(t), distant(t)
	ev, err := w.publish(t, must(t, a))
	require.NoError(t, err)
	w.edit(t, func(r *roster.Roster) error {
		r.Boxes["newer"] = entry("newer", "de", cloud("eu-central-1", "i-newer"), 0)
		return nil
	})
	_, err = w.edit(t, func(r *roster.Roster) error {
		return r.Enroll(a.seen.Identity, ev, "de", "default", "e-new", now.Add(time.Minute))
	})
	require.ErrorIs(t, err, roster.ErrInvalid)
	require.ErrorIs(t, err, membership.ErrUnverified)
}
