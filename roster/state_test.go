package roster_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/roster"
)

func quarantine(ref string) func(*roster.Roster) error {
	return func(r *roster.Roster) error { return r.Quarantine(ref) }
}

func TestAQuarantinedBoxNeverActsAgain(t *testing.T) {
	d := newDeployment(t)
	before, err := d.dir.Read(t.Context())
	require.NoError(t, err)
	_, err = before.Self("box-1", cloud("i-1"))
	require.NoError(t, err)

	snap, err := d.update(t, quarantine("box-1"))
	require.NoError(t, err)
	want := before.Boxes["box-1"]
	want.State = roster.Quarantined
	require.Equal(t, want, snap.Boxes["box-1"], "nothing else of its entry changes")
	require.Equal(t, before.Boxes["box-2"], snap.Boxes["box-2"])
	_, err = snap.Self("box-1", cloud("i-1"))
	require.ErrorIs(t, err, roster.ErrNotSelf)
	_, err = d.update(t, become("box-1", roster.Active))
	require.ErrorIs(t, err, roster.ErrInvalid)
}

func TestQuarantiningTwiceIsOneRevision(t *testing.T) {
	d := newDeployment(t)
	first, err := d.update(t, quarantine("box-1"))
	require.NoError(t, err)
	again, err := d.update(t, quarantine("box-1"))
	require.NoError(t, err)
	require.Equal(t, first.Revision, again.Revision)
	require.Equal(t, first.Boxes, again.Boxes)
}

func TestQuarantineRefuses(t *testing.T) {
	d := newDeployment(t)
	_, err := d.update(t, become("box-2", roster.Retired))
	require.NoError(t, err)
	before := len(d.store.Log())
	for ref, reason := range map[string]string{
		"box-2": `quarantine box "box-2": it is retired`,
		"box-9": `quarantine box "box-9": it is not in the roster`,
		"":      `quarantine box "": it is not in the roster`,
	} {
		_, err := d.update(t, quarantine(ref))
		require.ErrorIs(t, err, roster.ErrInvalid)
		require.ErrorContains(t, err, reason)
	}
	require.Len(t, d.store.Log(), before)
}

func TestADrainedBoxIsUndrained(t *testing.T) {
	d := newDeployment(t)
	before, err := d.dir.Read(t.Context())
	require.NoError(t, err)
	drain := func(r *roster.Roster) error { return r.Drain("box-1") }
	first, err := d.update(t, drain)
	require.NoError(t, err)
	want := before.Boxes["box-1"]
	want.Draining = true
	require.Equal(t, want, first.Boxes["box-1"], "nothing else of its entry changes")
	require.Equal(t, before.Boxes["box-2"], first.Boxes["box-2"])
	again, err := d.update(t, drain)
	require.NoError(t, err)
	require.Equal(t, first.Revision, again.Revision)
	back, err := d.update(t, func(r *roster.Roster) error { return r.Undrain("box-1") })
	require.NoError(t, err)
	require.Equal(t, before.Boxes, back.Boxes)
}

func TestOnlyAnActiveBoxIsDrained(t *testing.T) {
	d := newDeployment(t)
	_, err := d.update(t, become("box-2", roster.Retired))
	require.NoError(t, err)
	before := len(d.store.Log())
	for ref, reason := range map[string]string{
		"box-2": `drain box "box-2": it is retired, and runs nothing`,
		"box-9": `drain box "box-9": it is not in the roster`,
	} {
		for _, change := range []func(*roster.Roster, string) error{(*roster.Roster).Drain, (*roster.Roster).Undrain} {
			_, err := d.update(t, func(r *roster.Roster) error { return change(r, ref) })
			require.ErrorIs(t, err, roster.ErrInvalid)
			require.ErrorContains(t, err, reason)
		}
	}
	require.Len(t, d.store.Log(), before)
}

func TestABoxIsRetiredOnceAndForEver(t *testing.T) {
	d := newDeployment(t)
	_, err := d.update(t, quarantine("box-2"))
	require.NoError(t, err)
	for _, ref := range []string{"box-1", "box-2"} {
		before, err := d.dir.Read(t.Context())
		require.NoError(t, err)
		retire := func(r *roster.Roster) error { return r.Retire(ref) }
		snap, err := d.update(t, retire)
		require.NoError(t, err)
		want := before.Boxes[ref]
		want.State = roster.Retired
		require.Equal(t, want, snap.Boxes[ref], "nothing else of its entry changes")
		again, err := d.update(t, retire)
		require.NoError(t, err)
		require.Equal(t, snap.Revision, again.Revision)
		_, err = d.update(t, become(ref, roster.Active))
		require.ErrorIs(t, err, roster.ErrInvalid)
	}
	_, err = d.update(t, func(r *roster.Roster) error { return r.Retire("box-9") })
	require.ErrorIs(t, err, roster.ErrInvalid)
	require.ErrorContains(t, err, `retire box "box-9": it is not in the roster`)
}
