package membership_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/membership"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

func TestWhatIsStoredIsHeldToTheRosterAgain(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(*membership.Record)
		reason string
	}{
		"another version":           {func(r *membership.Record) { r.V = 2 }, "version 2"},
		"no placement":              {func(r *membership.Record) { r.TargetPlacement = "xx" }, `placement "xx" is not in the roster`},
		"another cloud region":      {func(r *membership.Record) { r.AWSRegion = "eu-west-1" }, `cloud region "eu-west-1"`},
		"another group":             {func(r *membership.Record) { r.GroupARN = groupIE }, "the placement's is"},
		"a placement without group": {func(r *membership.Record) { r.TargetPlacement, r.AWSRegion, r.GroupARN = "fr", "eu-west-3", "" }, "names no Auto Scaling group"},
		"no instance":               {func(r *membership.Record) { r.InstanceID = "" }, "names no instance"},
		"another state":             {func(r *membership.Record) { r.LifecycleState = "Terminating" }, "Terminating"},
		"no request ids":            {func(r *membership.Record) { r.RequestIDs = nil }, "no request id"},
		"an unknown confirmer":      {func(r *membership.Record) { r.Confirmer.Box = "worker-9" }, "is not in the roster"},
		"a confirmer's other life":  {func(r *membership.Record) { r.Confirmer.Enrollment = "e-9" }, "is not in the roster"},
		"a confirmer of elsewhere":  {func(r *membership.Record) { r.Confirmer.Region = "de" }, `is of "ie"`},
		"a list in the own region":  {func(r *membership.Record) { r.TargetPlacement, r.AWSRegion, r.GroupARN = "ie", "eu-west-1", groupIE }, "lists terminated enrollments"},
		"one enrollment left out":   {func(r *membership.Record) { r.TerminatedEnrollments = r.TerminatedEnrollments[:1] }, `does not list box "old"`},
		"another enrollment":        {func(r *membership.Record) { r.TerminatedEnrollments[1].Enrollment = "e-9" }, `does not list box "old"`},
		"another box":               {func(r *membership.Record) { r.TerminatedEnrollments[1].Box = "lost" }, "the roster has"},
		"another of its instances":  {func(r *membership.Record) { r.TerminatedEnrollments[1].InstanceID = "i-9" }, "the roster has"},
		"a termination at no time":  {func(r *membership.Record) { r.TerminatedEnrollments[1].ObservedAt = time.Time{} }, "no time"},
		"a termination unanswered":  {func(r *membership.Record) { r.TerminatedEnrollments[1].RequestID = "" }, "no request id"},
	} {
		t.Run(name, func(t *testing.T) {
			w, rec := newWorld(t), must(t, distant(t))
			c.spoil(&rec)
			_, err := w.publish(t, rec)
			require.ErrorIs(t, err, membership.ErrUnverified, "it is not even written")
			require.Len(t, w.Log(), 1)
			w.plant(t, rec)
			ev, found, err := w.reader.Find(t.Context(), "new")
			require.ErrorIs(t, err, membership.ErrUnverified)
			require.ErrorContains(t, err, c.reason)
			require.False(t, found)
			require.Zero(t, ev)
		})
	}
}

func TestAConfirmationWithoutATimeOrAReferenceIsNone(t *testing.T) {
	w, rec := newWorld(t), must(t, own(t))
	rec.ObservedAt = time.Time{}
	_, err := w.publish(t, rec)
	require.ErrorContains(t, err, "no time of observation")
	rec = must(t, own(t))
	rec.Box = "no.label"
	_, err = w.publish(t, rec)
	require.ErrorContains(t, err, "bad box reference")
	rec.Box = "\xff"
	_, err = w.publish(t, rec)
	require.ErrorContains(t, err, "encode record")
}

func TestGarbageIsNoConfirmation(t *testing.T) {
	w := newWorld(t)
	_, err := w.Put(t.Context(), membership.Key("new", now), []byte("{}"), objstore.IfAbsent())
	require.NoError(t, err)
	_, _, err = w.reader.Find(t.Context(), "new")
	require.ErrorIs(t, err, membership.ErrUnverified)
	require.ErrorContains(t, err, "malformed record")
}

func TestAConfirmationIsWhereItSaysThatItIs(t *testing.T) {
	w, rec := newWorld(t), must(t, own(t))
	_, err := w.publish(t, rec)
	require.NoError(t, err)
	obj, err := w.Get(t.Context(), membership.Key("new", now))
	require.NoError(t, err)
	for _, key := range []string{membership.Key("copy", now), membership.Key("new", now.Add(1))} {
		_, err = w.Put(t.Context(), key, obj.Body, objstore.IfAbsent())
		require.NoError(t, err)
	}
	_, _, err = w.reader.Find(t.Context(), "copy")
	require.ErrorIs(t, err, membership.ErrUnverified)
	ev, found, err := w.reader.Find(t.Context(), "new")
	require.NoError(t, err)
	require.True(t, found, "a copy hides nothing")
	require.Equal(t, membership.Key("new", now), ev.Key())
	require.Equal(t, rec, ev.Record())
}

func TestAFullerConfirmationTakesThePlaceOfOneThatNoLongerCovers(t *testing.T) {
	w := newWorld(t)
	first := must(t, distant(t))
	_, err := w.publish(t, first)
	require.NoError(t, err)
	w.edit(t, func(r *roster.Roster) error {
		r.Boxes["newer"] = entry("newer", "de", cloud("eu-central-1", "i-newer"), 0)
		return nil
	})
	_, _, err = w.reader.Find(t.Context(), "new")
	require.ErrorIs(t, err, membership.ErrUnverified)
	require.ErrorContains(t, err, `does not list box "newer"`)

	a := distant(t)
	a.at = now.Add(time.Minute)
	a.roster.Boxes["newer"] = entry("newer", "de", cloud("eu-central-1", "i-newer"), 0)
	a.seen.Others["e-newer"] = membership.Other{Seen: described("i-newer", "terminated"), At: a.at}
	_, err = w.publish(t, must(t, a))
	require.NoError(t, err)
	ev, found, err := w.reader.Find(t.Context(), "new")
	require.NoError(t, err)
	require.True(t, found)
	require.Len(t, ev.Record().TerminatedEnrollments, 3)
}

func TestAnOlderConfirmationCountsWhereTheNewestDoesNot(t *testing.T) {
	w := newWorld(t)
	_, err := w.publish(t, must(t, own(t)))
	require.NoError(t, err)
	a := own(t)
	a.by, a.at = confirmer("worker-2"), now.Add(time.Minute)
	_, err = w.publish(t, must(t, a))
	require.NoError(t, err)
	w.box(t, "worker-2", func(b *roster.Box) { b.State = roster.Quarantined })
	ev, found, err := w.reader.Find(t.Context(), "new")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "worker-1", ev.Record().Confirmer.Box)
}

func TestOnlyTheNewestConfirmationsAreRead(t *testing.T) {
	w := newWorld(t)
	good := must(t, own(t))
	_, err := w.publish(t, good)
	require.NoError(t, err)
	for i := range 4 {
		rec := good
		rec.ObservedAt, rec.V = now.Add(time.Duration(i+1)), 2
		w.plant(t, rec)
	}
	gets := 0
	w.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpGet && r.Key != roster.Key {
			gets++
		}
		return memstore.None
	})
	_, _, err = w.reader.Find(t.Context(), "new")
	require.ErrorContains(t, err, "version 2")
	require.Equal(t, 4, gets)
}

func TestAListingIsOfEveryBoxNewestFirst(t *testing.T) {
	w := newWorld(t)
	rec := must(t, own(t))
	var want []string
	for i := range 6 {
		rec.ObservedAt = now.Add(time.Duration(i))
		want = append([]string{w.plant(t, rec)}, want...)
	}
	rec.Box = "next"
	only := w.plant(t, rec)
	for _, key := range []string{"control/box-memberships/stray.json", "control/box-memberships/No/x.json"} {
		_, err := w.Put(t.Context(), key, nil, objstore.IfAbsent())
		require.NoError(t, err)
	}
	keys, err := w.reader.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string][]string{"new": want[:4], "next": {only}}, keys)
}

func TestWhatCannotBeReadIsNeverNone(t *testing.T) {
	w := newWorld(t)
	_, found, err := w.reader.Find(t.Context(), "new")
	require.NoError(t, err)
	require.False(t, found)
	_, err = w.publish(t, must(t, own(t)))
	require.NoError(t, err)
	for name, fault := range map[string]func(memstore.Request) memstore.Fault{
		"the listing": memstore.Once(memstore.OpList, "control/box-memberships/", memstore.Lose),
		"the record":  memstore.Once(memstore.OpGet, "control/box-memberships/", memstore.Lose),
		"the roster":  memstore.Once(memstore.OpGet, roster.Key, memstore.Lose),
	} {
		t.Run(name, func(t *testing.T) {
			w.Inject(fault)
			_, found, err := w.reader.Find(t.Context(), "new")
			require.ErrorIs(t, err, memstore.ErrInjected)
			require.NotErrorIs(t, err, membership.ErrUnverified)
			require.False(t, found)
		})
	}
	w.Inject(memstore.Once(memstore.OpList, "control/box-memberships/", memstore.Lose))
	_, err = w.reader.List(t.Context())
	require.ErrorIs(t, err, memstore.ErrInjected)
}

func TestAnEndlessListingIsRefused(t *testing.T) {
	reader := membership.Reader{Store: endless{memstore.New()}}
	_, err := reader.List(t.Context())
	require.ErrorContains(t, err, "more than 100000 keys")
}

func TestEvidenceSaysWhatWasVerified(t *testing.T) {
	w := newWorld(t)
	ev, err := w.publish(t, must(t, own(t)))
	require.NoError(t, err)
	found, err := w.reader.Read(t.Context(), "new", []string{ev.Key()})
	require.NoError(t, err)
	require.Equal(t, ev, found)
	require.Len(t, ev.SHA256(), 64)
	_, err = w.reader.Read(t.Context(), "new", nil)
	require.ErrorIs(t, err, membership.ErrUnverified)
	require.ErrorIs(t, membership.Evidence{}.Binds(deployment(), boxid.Evidence{}, "", now), membership.ErrUnverified)
	_, err = w.reader.Read(t.Context(), "new", []string{membership.Key("new", now.Add(1))})
	require.ErrorIs(t, err, objstore.ErrNotFound, fmt.Sprintf("%v", err))
}
