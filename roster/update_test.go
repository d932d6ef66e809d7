package roster_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

// edit changes one entry.
func edit(ref string, change func(*roster.Box)) func(*roster.Roster) error {
	return func(r *roster.Roster) error {
		b := r.Boxes[ref]
		change(&b)
		r.Boxes[ref] = b
		return nil
	}
}

func drain(ref string) func(*roster.Roster) error {
	return edit(ref, func(b *roster.Box) { b.Draining = true })
}

func become(ref string, s roster.State) func(*roster.Roster) error {
	return edit(ref, func(b *roster.Box) { b.State = s })
}

func TestCreateRefusesASecondRoster(t *testing.T) {
	d := newDeployment(t)
	_, err := roster.Create(t.Context(), d.store, d.private, valid())
	require.ErrorIs(t, err, objstore.ErrConflict)
	_, err = roster.Create(t.Context(), memstore.New(), nil, valid())
	require.ErrorContains(t, err, "no private key")
}

// What one version of a roster can show is checked when it is signed and again
// when it is read.
func TestAnInvalidRosterIsNeverSigned(t *testing.T) {
	for name, spoil := range map[string]func(*roster.Roster){
		"no bucket":                  func(r *roster.Roster) { r.DeploymentBucket = "" },
		"a reference with a dot":     func(r *roster.Roster) { r.Boxes["box.1"] = box("e-3", "i-3") },
		"no enrollment":              func(r *roster.Roster) { r.Boxes["box-3"] = box("", "i-3") },
		"an enrollment with a slash": func(r *roster.Roster) { r.Boxes["box-3"] = box("../e", "i-3") },
		"one enrollment twice":       func(r *roster.Roster) { r.Boxes["box-3"] = box("e-1", "i-3") },
		"one instance twice":         func(r *roster.Roster) { r.Boxes["box-3"] = box("e-3", "i-1") },
		"one instance twice, one retired": func(r *roster.Roster) {
			b := box("e-3", "i-1")
			b.State = roster.Retired
			r.Boxes["box-3"] = b
		},
		"an unknown region":   func(r *roster.Roster) { delete(r.Regions, "ie") },
		"an unknown state":    func(r *roster.Roster) { _ = become("box-1", "gone")(r) },
		"no state":            func(r *roster.Roster) { _ = become("box-1", "")(r) },
		"an incomplete cloud": func(r *roster.Roster) { _ = edit("box-1", func(b *roster.Box) { b.Cloud.Account = "" })(r) },
		"readmitted and active": func(r *roster.Roster) {
			b := box("e-3", "i-1")
			b.ReadmittedAs = "box-1"
			r.Boxes["box-3"] = b
		},
		"readmitted as another instance": func(r *roster.Roster) { readmit(r, "box-1", "box-2") },
		"readmitted as itself":           func(r *roster.Roster) { readmit(r, "box-1", "box-1") },
		"readmitted as nobody":           func(r *roster.Roster) { readmit(r, "box-1", "box-9") },
		"readmitted without a cloud": func(r *roster.Roster) {
			for _, ref := range []string{"box-1", "box-2"} {
				_ = edit(ref, func(b *roster.Box) { b.Cloud = boxid.Cloud{} })(r)
			}
			readmit(r, "box-1", "box-2")
		},
		"a protocol that this build does not speak": func(r *roster.Roster) { r.ProtocolFloor = roster.Protocol + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			_, private := roster.GenerateKey()
			r := valid()
			spoil(&r)
			_, err := roster.Create(t.Context(), store, private, r)
			require.ErrorIs(t, err, roster.ErrInvalid)
			require.Empty(t, store.Log())
		})
	}
}

func readmit(r *roster.Roster, old, as string) {
	b := r.Boxes[old]
	b.State, b.ReadmittedAs = roster.Retired, as
	r.Boxes[old] = b
}

func TestARetiredEntryMayNameTheOneThatItWasReadmittedAs(t *testing.T) {
	d := newDeployment(t)
	again := func(old, as, enrollment string) func(*roster.Roster) error {
		return func(r *roster.Roster) error {
			readmit(r, old, as)
			r.Boxes[as] = box(enrollment, "i-1")
			return nil
		}
	}
	_, err := d.update(t, again("box-1", "box-1b", "e-1b"))
	require.NoError(t, err)
	_, err = d.update(t, again("box-1b", "box-1c", "e-1c"))
	require.NoError(t, err, "and again")
	_, err = d.dir.Read(t.Context())
	require.NoError(t, err)
}

func TestAChangeIsRefused(t *testing.T) {
	for name, change := range map[string]func(*roster.Roster) error{
		"an entry goes":         func(r *roster.Roster) error { delete(r.Boxes, "box-1"); return nil },
		"another enrollment":    edit("box-1", func(b *roster.Box) { b.Enrollment = "e-9" }),
		"another time":          edit("box-1", func(b *roster.Box) { b.EnrolledAt = now.AddDate(1, 0, 0) }),
		"another region":        edit("box-1", func(b *roster.Box) { b.Region = "de" }),
		"another instance":      edit("box-1", func(b *roster.Box) { b.Cloud.InstanceID = "i-9" }),
		"no instance":           edit("box-1", func(b *roster.Box) { b.Cloud = boxid.Cloud{} }),
		"active again":          become("gone", roster.Active),
		"quarantined, not gone": become("gone", roster.Quarantined),
		"active, not lost":      become("lost", roster.Active),
		"readmitted as another": edit("gone", func(b *roster.Box) { b.ReadmittedAs = "back-2" }),
		"not readmitted":        edit("gone", func(b *roster.Box) { b.ReadmittedAs = "" }),
		"a lower floor":         func(r *roster.Roster) error { r.ProtocolFloor = 0; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDeployment(t)
			_, err := d.update(t, func(r *roster.Roster) error {
				r.ProtocolFloor = 1
				r.Regions["de"] = r.Regions["ie"]
				r.Boxes["gone"], r.Boxes["lost"] = box("e-gone", "i-gone"), box("e-lost", "i-lost")
				r.Boxes["back"], r.Boxes["back-2"] = box("e-back", "i-gone"), box("e-back-2", "i-gone")
				readmit(r, "gone", "back")
				readmit(r, "back", "back-2")
				return become("lost", roster.Quarantined)(r)
			})
			require.NoError(t, err)
			before := len(d.store.Log())
			_, err = d.update(t, change)
			require.ErrorIs(t, err, roster.ErrInvalid)
			require.Len(t, d.store.Log(), before)
		})
	}
}

func TestUpdateIsOneWriteOfTheNextRevision(t *testing.T) {
	d := newDeployment(t)
	old, err := d.dir.Read(t.Context())
	require.NoError(t, err)
	snap, err := d.update(t, func(r *roster.Roster) error {
		r.V, r.Revision, r.Gen, r.Write, r.DeploymentBucket = 9, 90, 90, "w", "s3://elsewhere" // not the change's to set
		return errors.Join(drain("box-1")(r), become("box-2", roster.Quarantined)(r))
	})
	require.NoError(t, err)
	require.EqualValues(t, 2, snap.Revision)
	require.EqualValues(t, 2, snap.Gen)
	require.NotEqual(t, old.Write, snap.Write)
	require.Equal(t, bucket, snap.DeploymentBucket)
	require.True(t, snap.Boxes["box-1"].Draining)
	require.False(t, old.Boxes["box-1"].Draining, "the old snapshot is nobody's scratch paper")
	require.Len(t, d.store.Log(), 2)

	read, err := d.open().Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, snap, read)
}

func TestAnEmptyChangeWritesTheSameRevision(t *testing.T) {
	d := newDeployment(t)
	d.store.Inject(memstore.Once(memstore.OpPut, roster.Key, memstore.Hold))
	_, err := d.update(t, drain("box-1"))
	require.ErrorIs(t, err, objstore.ErrUnknown)

	snap, err := d.update(t, func(*roster.Roster) error { return nil })
	require.NoError(t, err)
	require.EqualValues(t, 1, snap.Revision)
	require.EqualValues(t, 2, snap.Gen)

	_, err = d.store.Held()[0].Deliver()
	require.ErrorIs(t, err, objstore.ErrConflict, "the write that was given up is dead")
}

func TestUpdateWritesNothing(t *testing.T) {
	d := newDeployment(t)
	refused := errors.New("refused by the change")
	_, err := d.update(t, func(r *roster.Roster) error { r.Boxes["box-9"] = box("e-9", "i-9"); return refused })
	require.ErrorIs(t, err, refused)

	_, other := roster.GenerateKey()
	for _, private := range [][]byte{other, nil} {
		_, err = roster.Update(t.Context(), d.store, private, d.dir, drain("box-1"))
		require.ErrorContains(t, err, "is not the one that this deployment trusts")
	}
	require.Len(t, d.store.Log(), 1)
}

func TestOfTwoUpdatesOneConflicts(t *testing.T) {
	d := newDeployment(t)
	_, err := d.update(t, func(r *roster.Roster) error {
		_, err := roster.Update(t.Context(), d.store, d.private, d.open(), drain("box-1"))
		require.NoError(t, err)
		return drain("box-2")(r)
	})
	require.ErrorIs(t, err, objstore.ErrConflict)
	snap, err := d.dir.Read(t.Context())
	require.NoError(t, err)
	require.True(t, snap.Boxes["box-1"].Draining)
	require.False(t, snap.Boxes["box-2"].Draining)
}

func TestALostAnswerIsSettled(t *testing.T) {
	d := newDeployment(t)
	d.store.Inject(memstore.Once(memstore.OpPut, roster.Key, memstore.LoseAnswer))
	snap, err := d.update(t, drain("box-1"))
	require.NoError(t, err)
	require.EqualValues(t, 2, snap.Revision)
	require.NotEmpty(t, snap.ETag)
}
