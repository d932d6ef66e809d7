package roster_test

import (
	"errors"
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
	snap, err := d.update(t, func(r *roster.Roster) error { return r.Enroll(evidence, word, "ie", "default", id, now) })
	require.NoError(t, err)
	b, ok := snap.ByEnrollment(id)
	require.True(t, ok)
	require.Equal(t, roster.Box{Ref: "box-3", Enrollment: id, EnrolledAt: now, Region: "ie", Pool: "default",
		State: roster.Active, Cloud: cloud("i-3"), EvidenceSHA256: evidence.SHA256()}, b)
}

func TestTheFirstRosterMayHoldABox(t *testing.T) {
	r := valid()
	r.Boxes = nil
	require.NoError(t, r.Enroll(boxidtest.Evidence(t, "box-3", cloud("i-3")), word, "ie", "default", "e-3", now))
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
			_, err := d.update(t, func(r *roster.Roster) error { return r.Enroll(c.evidence, word, c.region, "default", c.id, now) })
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.reason)
			require.Len(t, d.store.Log(), 1)
		})
	}
}

func TestEnrollNeedsSomeonesWordForTheInstance(t *testing.T) {
	d := newDeployment(t)
	unbound := boxidtest.Unbound(t, "box-3", cloud("i-3"))
	_, err := d.update(t, func(r *roster.Roster) error { return r.Enroll(unbound, word, "ie", "default", "e-3", now) })
	require.ErrorIs(t, err, roster.ErrInvalid)
	require.ErrorContains(t, err, "name the expected instance")
	_, err = d.update(t, func(r *roster.Roster) error { return r.Enroll(unbound, nil, "ie", "default", "e-3", now) })
	require.ErrorIs(t, err, roster.ErrInvalid)
}

// judge is a binding that records what it was asked.
type judge struct {
	answer error
	boxes  int
	asked  []string
}

func (j *judge) Binds(r roster.Roster, identity boxid.Evidence, region string, at time.Time) error {
	j.boxes = len(r.Boxes)
	j.asked = append(j.asked, identity.Box(), identity.Cloud().InstanceID, region, at.Format(time.RFC3339))
	return j.answer
}

func TestABindingIsAskedByTheRosterThatIsWritten(t *testing.T) {
	d := newDeployment(t)
	unbound := boxidtest.Unbound(t, "box-3", cloud("i-3"))
	_, err := d.update(t, func(r *roster.Roster) error {
		refuses := errors.New("not of that group")
		err := r.Enroll(unbound, &judge{answer: refuses}, "ie", "default", "e-3", now)
		require.ErrorIs(t, err, refuses)
		return err
	})
	require.ErrorIs(t, err, roster.ErrInvalid)
	require.Len(t, d.store.Log(), 1)

	binds := &judge{}
	snap, err := d.update(t, func(r *roster.Roster) error {
		return r.Enroll(unbound, binds, "ie", "default", "e-3", now)
	})
	require.NoError(t, err)
	require.Equal(t, cloud("i-3"), snap.Boxes["box-3"].Cloud)
	require.Equal(t, []string{"box-3", "i-3", "ie", now.Format(time.RFC3339)}, binds.asked)
	require.Equal(t, 2, binds.boxes)
}

func TestARetiredMachineIsReadmittedUnderAnotherReference(t *testing.T) {
	d := newDeployment(t)
	evidence := boxidtest.Evidence(t, "box-1b", cloud("i-1"))
	again := func(r *roster.Roster) error {
		if err := r.Readmit("box-1", evidence); err != nil {
			return err
		}
		return r.Enroll(evidence, word, "ie", "default", "e-1b", now)
	}
	_, err := d.update(t, again)
	require.ErrorContains(t, err, `readmit box "box-1": it is active`)
	_, err = d.update(t, become("box-1", roster.Retired))
	require.NoError(t, err)
	snap, err := d.update(t, again)
	require.NoError(t, err)
	require.Equal(t, "box-1b", snap.Boxes["box-1"].ReadmittedAs)
	_, err = snap.Self("box-1b", cloud("i-1"))
	require.NoError(t, err)
	_, err = snap.Self("box-1", cloud("i-1"))
	require.ErrorIs(t, err, roster.ErrNotSelf)

	alone := func(r *roster.Roster) error { return r.Readmit("box-1", evidence) }
	same, err := d.update(t, alone)
	require.NoError(t, err)
	require.Equal(t, snap.Revision, same.Revision)
}

func TestReadmitRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		ref      string
		evidence boxid.Evidence
		reason   string
	}{
		"not there":          {"box-9", boxidtest.Evidence(t, "box-3", cloud("i-2")), "it is not in the roster"},
		"active":             {"box-1", boxidtest.Evidence(t, "box-3", cloud("i-1")), "it is active"},
		"another instance":   {"box-2", boxidtest.Evidence(t, "box-3", cloud("i-3")), "and \"box-3\" is"},
		"no evidence":        {"blank", boxid.Evidence{}, `readmit box "blank"`},
		"readmitted already": {"box-4", boxidtest.Evidence(t, "box-3", cloud("i-4")), `it was readmitted as "box-4b"`},
		"nobody follows":     {"box-2", boxidtest.Evidence(t, "box-3", cloud("i-2")), "is not an entry of the same instance"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDeployment(t)
			_, err := d.update(t, func(r *roster.Roster) error {
				r.Boxes["box-4"], r.Boxes["box-4b"] = box("e-4", "i-4"), box("e-4b", "i-4")
				readmit(r, "box-4", "box-4b")
				blank := box("e-blank", "")
				blank.Cloud, blank.State = boxid.Cloud{}, roster.Retired
				r.Boxes["blank"] = blank
				return become("box-2", roster.Retired)(r)
			})
			require.NoError(t, err)
			before := len(d.store.Log())
			_, err = d.update(t, func(r *roster.Roster) error { return r.Readmit(c.ref, c.evidence) })
			require.ErrorIs(t, err, roster.ErrInvalid)
			require.ErrorContains(t, err, c.reason)
			require.Len(t, d.store.Log(), before)
		})
	}
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
		func(r *roster.Roster) error { return r.Enroll(evidence, word, "ie", "default", "e-new", now) },
		func(r *roster.Roster) error { return r.Enroll(evidence, word, "ie", "other", "e-old", now) },
		func(r *roster.Roster) error { return r.Enroll(evidence, word, "ie2", "default", "e-old", now) },
	} {
		_, err = d.update(t, other)
		require.ErrorIs(t, err, roster.ErrEnrolled, "its enrollment, region and pool stay")
	}
	prove := func(r *roster.Roster) error {
		return r.Enroll(evidence, word, "ie", "default", "e-old", now.Add(time.Hour))
	}
	snap, err := d.update(t, prove)
	require.NoError(t, err)
	b, _ := snap.Box("old")
	require.Equal(t, cloud("i-old"), b.Cloud)
	require.Equal(t, now, b.EnrolledAt)
	require.True(t, b.Draining)
	_, err = d.update(t, prove)
	require.ErrorIs(t, err, roster.ErrEnrolled)
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
