package roster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

func TestEnrollBindsAReferenceToItsInstance(t *testing.T) {
	d := newDeployment(t)
	evidence := boxidtest.Evidence(t, "box-3", cloud("i-3"))
	id := roster.NewEnrollment()
	require.NoError(t, roster.CheckEnrollment(id))
	snap, err := d.update(t, func(r *roster.Roster) error { return r.Enroll(evidence, "ie", "default", id, now) })
	require.NoError(t, err)
	b, ok := snap.ByEnrollment(id)
	require.True(t, ok)
	require.Equal(t, roster.Box{Ref: "box-3", Enrollment: id, EnrolledAt: now, Region: "ie", Pool: "default",
		State: roster.Active, Cloud: cloud("i-3"), EvidenceSHA256: evidence.SHA256()}, b)
}

func TestTheFirstRosterMayHoldABox(t *testing.T) {
	r := valid()
	r.Boxes = nil
	require.NoError(t, r.Enroll(boxidtest.Evidence(t, "box-3", cloud("i-3")), "ie", "default", "e-3", now))
	_, private := roster.GenerateKey()
	snap, err := roster.Create(t.Context(), memstore.New(), private, r)
	require.NoError(t, err)
	require.Contains(t, snap.Boxes, "box-3")
}

func TestEnrollRefuses(t *testing.T) {
	elsewhere, stranger := cloud("i-3"), cloud("i-3")
	elsewhere.Region, stranger.Account = "eu-west-2", "999999999999"
	for _, c := range []struct {
		name     string
		evidence boxid.Evidence
		region   string
		id       string
		want     error
		reason   string
	}{
		{"no evidence", boxid.Evidence{}, "ie", "e-3", roster.ErrInvalid, "no evidence"},
		{"a region that is not there", boxidtest.Evidence(t, "box-3", cloud("i-3")), "de", "e-3", roster.ErrInvalid, `region "de" is not in the roster`},
		{"another cloud region", boxidtest.Evidence(t, "box-3", elsewhere), "ie", "e-3", roster.ErrInvalid, "eu-west-2"},
		{"another account", boxidtest.Evidence(t, "box-3", stranger), "ie", "e-3", roster.ErrInvalid, "999999999999"},
		{"a bad enrollment", boxidtest.Evidence(t, "box-3", cloud("i-3")), "ie", "e/3", roster.ErrInvalid, `enrollment "e/3"`},
		{"an instance that is enrolled", boxidtest.Evidence(t, "box-3", cloud("i-1")), "ie", "e-3", roster.ErrInvalid, "are one instance"},
		{"a second enrollment", boxidtest.Evidence(t, "box-1", cloud("i-3")), "ie", "e-3", roster.ErrEnrolled, "e-1"},
		{"the same enrollment again", boxidtest.Evidence(t, "box-1", cloud("i-1")), "ie", "e-1", roster.ErrEnrolled, "e-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDeployment(t)
			_, err := d.update(t, func(r *roster.Roster) error { return r.Enroll(c.evidence, c.region, "default", c.id, now) })
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.reason)
			require.Len(t, d.store.Log(), 1)
		})
	}
}

func TestEnrollNeedsSomeonesWordForTheInstance(t *testing.T) {
	d := newDeployment(t)
	unbound := boxidtest.Unbound(t, "box-3", cloud("i-3"))
	_, err := d.update(t, func(r *roster.Roster) error { return r.Enroll(unbound, "ie", "default", "e-3", now) })
	require.ErrorIs(t, err, roster.ErrInvalid)
	require.ErrorContains(t, err, "name the expected instance")
}

func TestAnEntryWithoutACloudGetsItOnce(t *testing.T) {
	d := newDeployment(t)
	_, err := d.update(t, func(r *roster.Roster) error {
		b := box("e-old", "")
		b.Cloud, b.EvidenceSHA256, b.Draining = boxid.Cloud{}, "", true
		r.Boxes["old"] = b
		b.Enrollment = "e-older"
		r.Boxes["older"] = b // two entries without a cloud are not one instance
		r.Regions["ie2"] = r.Regions["ie"]
		return nil
	})
	require.NoError(t, err)
	evidence := boxidtest.Evidence(t, "old", cloud("i-old"))
	for _, other := range []func(*roster.Roster) error{
		func(r *roster.Roster) error { return r.Enroll(evidence, "ie", "default", "e-new", now) },
		func(r *roster.Roster) error { return r.Enroll(evidence, "ie", "other", "e-old", now) },
		func(r *roster.Roster) error { return r.Enroll(evidence, "ie2", "default", "e-old", now) },
	} {
		_, err = d.update(t, other)
		require.ErrorIs(t, err, roster.ErrEnrolled, "its enrollment, region and pool stay")
	}
	prove := func(r *roster.Roster) error { return r.Enroll(evidence, "ie", "default", "e-old", now.Add(time.Hour)) }
	snap, err := d.update(t, prove)
	require.NoError(t, err)
	b, _ := snap.Box("old")
	require.Equal(t, cloud("i-old"), b.Cloud)
	require.Equal(t, now, b.EnrolledAt)
	require.True(t, b.Draining)
	_, err = d.update(t, prove)
	require.ErrorIs(t, err, roster.ErrEnrolled)
}

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

func TestCheckEnrollment(t *testing.T) {
	long := make([]byte, 128)
	for i := range long {
		long[i] = 'a'
	}
	for _, good := range []string{"a", "A.b_c-9", "...", string(long)} {
		require.NoError(t, roster.CheckEnrollment(good), good)
	}
	for _, bad := range []string{"", ".", "..", "a/b", "a b", "é", "a\n", string(long) + "a"} {
		require.ErrorIs(t, roster.CheckEnrollment(bad), roster.ErrInvalid, bad)
	}
}

func TestABoxProvesWhoItIsBeforeItActs(t *testing.T) {
	r := valid()
	r.Boxes["unproven"] = roster.Box{Enrollment: "e-0", Region: "ie", State: roster.Active}
	b, err := r.Self("box-1", cloud("i-1"))
	require.NoError(t, err)
	require.Equal(t, "e-1", b.Enrollment)
	require.Equal(t, "box-1", b.Ref)

	with := func(change func(*boxid.Cloud)) boxid.Cloud {
		c := cloud("i-1")
		change(&c)
		return c
	}
	for _, c := range []struct {
		name, ref string
		self      boxid.Cloud
		state     roster.State
		reason    string
	}{
		{"not enrolled", "box-9", cloud("i-1"), roster.Active, "it is not enrolled"},
		{"no reference", "", cloud("i-1"), roster.Active, "it is not enrolled"},
		{"a cloned image", "box-1", cloud("i-2"), roster.Active, `instance "i-2", the entry's is "i-1"`},
		{"another account", "box-1", with(func(c *boxid.Cloud) { c.Account = "9" }), roster.Active, `account "9"`},
		{"another region", "box-1", with(func(c *boxid.Cloud) { c.Region = "r" }), roster.Active, `region "r"`},
		{"another provider", "box-1", with(func(c *boxid.Cloud) { c.Provider = "p" }), roster.Active, `provider "p"`},
		{"an incomplete self", "box-1", with(func(c *boxid.Cloud) { c.Account = "" }), roster.Active, "is incomplete"},
		{"empty against empty", "unproven", boxid.Cloud{}, roster.Active, "is incomplete"},
		{"an unproven entry", "unproven", cloud("i-1"), roster.Active, "has no proven cloud"},
		{"declared lost", "box-1", cloud("i-1"), roster.Quarantined, "its entry is quarantined"},
		{"retired", "box-1", cloud("i-1"), roster.Retired, "its entry is retired"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := valid()
			r.Boxes["unproven"] = roster.Box{Enrollment: "e-0", Region: "ie", State: roster.Active}
			require.NoError(t, become("box-1", c.state)(&r))
			b, err := r.Self(c.ref, c.self)
			require.ErrorIs(t, err, roster.ErrNotSelf)
			require.ErrorContains(t, err, c.reason)
			require.Zero(t, b)
		})
	}
}
