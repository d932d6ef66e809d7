package membership_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/membership"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

func TestAWorkerConfirmsABoxOfItsRegionsGroup(t *testing.T) {
	for _, state := range []string{"Pending", "InService"} {
		a := own(t)
		a.seen.Group.LifecycleState = state
		rec := must(t, a)
		require.Equal(t, "new", rec.Box)
		require.Equal(t, "i-new", rec.InstanceID)
		require.Equal(t, state, rec.LifecycleState)
		require.Equal(t, []string{"r-member", "r-group"}, rec.RequestIDs)
		require.Empty(t, rec.TerminatedEnrollments)
	}
}

func TestAWorkerOfAnotherRegionListsWhatItReadTerminated(t *testing.T) {
	for _, state := range []string{"pending", "running"} {
		a := distant(t)
		a.seen.Instance.State = state
		rec := must(t, a)
		require.Equal(t, []string{"r-member", "r-group", "r-i-new"}, rec.RequestIDs)
		require.Equal(t, []membership.Terminated{
			{Box: "lost", Enrollment: "e-lost", InstanceID: "i-lost", ObservedAt: now.Add(-time.Second), RequestID: "r-i-lost"},
			{Box: "old", Enrollment: "e-old", InstanceID: "i-old", ObservedAt: now.Add(-2 * time.Second), RequestID: "r-i-old"},
		}, rec.TerminatedEnrollments)
	}
}

func TestTheFirstBoxOfARegionHasNoneBeforeIt(t *testing.T) {
	a := distant(t)
	for _, ref := range []string{"old", "lost", "past"} {
		delete(a.roster.Boxes, ref)
	}
	a.seen.Others = nil
	require.Empty(t, must(t, a).TerminatedEnrollments)
}

// refusal is one rule that an attempt breaks.
type refusal struct {
	name   string
	spoil  func(*attempt)
	reason string
}

func box(ref string, change func(*roster.Box)) func(*attempt) {
	return func(a *attempt) {
		b := a.roster.Boxes[ref]
		change(&b)
		a.roster.Boxes[ref] = b
	}
}

func region(code string, change func(*roster.Region)) func(*attempt) {
	return func(a *attempt) {
		r := a.roster.Regions[code]
		change(&r)
		a.roster.Regions[code] = r
	}
}

func other(enrollment string, change func(*membership.Other)) func(*attempt) {
	return func(a *attempt) {
		o := a.seen.Others[enrollment]
		change(&o)
		a.seen.Others[enrollment] = o
	}
}

func refuses(t *testing.T, perfect func(testing.TB) *attempt, rules []refusal) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			a := perfect(t)
			r.spoil(a)
			rec, err := a.verify()
			require.ErrorIs(t, err, membership.ErrNotMember)
			require.ErrorContains(t, err, r.reason)
			require.Zero(t, rec)
		})
	}
}

func TestAConfirmationIsRefused(t *testing.T) {
	rules := []refusal{
		{"no identity", func(a *attempt) { a.seen.Identity = boxid.Evidence{} }, "no verified identity"},
		{"a placement that is not there", func(a *attempt) { a.target = "xx" }, "the placement's is"},
		{"a reference that is enrolled", box("new", func(b *roster.Box) { b.State = roster.Retired }), "in the roster already"},
		{"not found", func(a *attempt) { a.seen.Group.Found = false }, "absence is not evidence"},
		{"another instance", func(a *attempt) { a.seen.Group.InstanceID = "i-other" }, `instance "i-other"`},
		{"another group of the same ARN", func(a *attempt) { a.seen.Group.GroupName = "other" }, `its group is "other"`},
		{"another group of the same name", func(a *attempt) { a.seen.Group.GroupARN += "x" }, "the placement's is"},
		{"another region answered", func(a *attempt) { a.seen.Group.AWSRegion = "eu-west-3" }, `cloud region "eu-west-3"`},
		{"a zone elsewhere", func(a *attempt) { a.seen.Group.Zone = "eu-west-3a" }, `zone "eu-west-3a"`},
		{"a state on its way out", func(a *attempt) { a.seen.Group.LifecycleState = "Terminating" }, `"Terminating"`},
		{"a state before it runs", func(a *attempt) { a.seen.Group.LifecycleState = "Pending:Wait" }, `"Pending:Wait"`},
		{"no request id", func(a *attempt) { a.seen.Group.RequestIDs = nil }, "no request id"},
		{"an empty request id", func(a *attempt) { a.seen.Group.RequestIDs[1] = "" }, "no request id"},
		{"a worker that is not enrolled", func(a *attempt) { a.by.Box = "worker-9" }, "is not in the roster"},
		{"a worker of another enrollment", func(a *attempt) { a.by.Enrollment = "e-other" }, "is not in the roster"},
		{"a worker that says another region", func(a *attempt) { a.by = membership.Confirmer{Box: "fr-1", Enrollment: "e-fr-1", Region: a.by.Region} }, `is of "fr"`},
		{"a worker that was declared lost", box("worker-1", func(b *roster.Box) { b.State = roster.Quarantined }), "is quarantined"},
		{"a worker that is retired", box("worker-1", func(b *roster.Box) { b.State = roster.Retired }), "is retired"},
		{"a worker without a cloud", box("worker-1", func(b *roster.Box) { b.Cloud = boxid.Cloud{} }), "no complete cloud"},
	}
	t.Run("own region", func(t *testing.T) {
		refuses(t, own, append(rules, []refusal{
			{"no time", func(a *attempt) { a.at = time.Time{} }, "no time of observation"},
			{"no group in the roster", func(a *attempt) {
				region("ie", func(r *roster.Region) { r.GroupName, r.GroupARN = "", "" })(a)
				a.seen.Group.GroupName, a.seen.Group.GroupARN = "", ""
			}, `its group is ""`},
			{"no ARN in the roster", func(a *attempt) {
				region("ie", func(r *roster.Region) { r.GroupARN = "" })(a)
				a.seen.Group.GroupARN = ""
			}, "names no Auto Scaling group"},
			{"another account", func(a *attempt) {
				c := cloud("eu-west-1", "i-new")
				c.Account = "999999999999"
				a.seen.Identity = boxidtest.Unbound(t, "new", c)
			}, `account "999999999999"`},
			{"an identity of another cloud region", func(a *attempt) {
				a.seen.Identity = boxidtest.Unbound(t, "new", cloud("eu-west-3", "i-new"))
			}, `cloud region "eu-west-3"`},
		}...))
	})
	t.Run("another region", func(t *testing.T) { refuses(t, distant, rules) })
}

func TestAnEmptiedRegionIsProvenBoxByBox(t *testing.T) {
	gone := func(e string, change func(*termfence.Observation)) func(*attempt) {
		return other(e, func(o *membership.Other) { change(&o.Seen) })
	}
	rules := []refusal{
		{"the new instance was not shown", func(a *attempt) { a.seen.Instance = termfence.Observation{} }, `source ""`},
		{"the new instance is not found", func(a *attempt) { a.seen.Instance.Found = false }, "absence is not evidence"},
		{"the new instance ends", func(a *attempt) { a.seen.Instance.State = "shutting-down" }, `"shutting-down", expected pending or running`},
		{"the new instance is another owner's", func(a *attempt) { a.seen.Instance.Account = "999999999999" }, "999999999999"},
		{"the new instance is another", func(a *attempt) { a.seen.Instance.InstanceID = "i-other" }, "i-other"},
		{"the new instance is elsewhere", func(a *attempt) { a.seen.Instance.Region = "eu-west-1" }, "eu-west-1/i-new"},
		{"an event about the new instance", func(a *attempt) { a.seen.Instance.Via = termfence.ViaEvent }, "does not count"},
		{"no request id of the new instance", func(a *attempt) { a.seen.Instance.RequestID = "" }, "no request id"},
		{"a new box that was not looked at", func(a *attempt) {
			a.roster.Boxes["newer"] = entry("newer", "de", cloud("eu-central-1", "i-newer"), 0)
		}, `box "newer" of "de" was not looked at`},
		{"a box without a cloud", box("old", func(b *roster.Box) { b.Cloud = boxid.Cloud{} }), "has no complete cloud"},
		{"looked at in an earlier pass", other("e-old", func(o *membership.Other) { o.At = now.Add(-5*time.Minute - 1) }), "not in the pass"},
		{"looked at later", other("e-old", func(o *membership.Other) { o.At = now.Add(1) }), "not in the pass"},
		{"looked at at no time", other("e-old", func(o *membership.Other) { o.At = time.Time{} }), "not in the pass"},
	}
	for _, e := range []string{"e-old", "e-lost"} {
		rules = append(rules,
			refusal{e + " was not looked at", func(a *attempt) { delete(a.seen.Others, e) }, "was not looked at"},
			refusal{e + " is not found", gone(e, func(o *termfence.Observation) { o.Found = false }), "absence is not evidence"},
			refusal{e + " is another instance's", gone(e, func(o *termfence.Observation) { o.InstanceID = "i-other" }), "i-other"},
			refusal{e + " is another owner's", gone(e, func(o *termfence.Observation) { o.Account = "9" }), "the reply is about 9/"},
			refusal{e + " is elsewhere", gone(e, func(o *termfence.Observation) { o.Region = "eu-west-1" }), "the reply is about"},
			refusal{e + " has no request id", gone(e, func(o *termfence.Observation) { o.RequestID = "" }), "no request id"},
			refusal{e + " is an event", gone(e, func(o *termfence.Observation) { o.Via = termfence.ViaEvent }), "does not count"},
		)
		for _, state := range []string{"pending", "running", "shutting-down", "stopping", "stopped", "Terminated", ""} {
			rules = append(rules, refusal{e + " is " + state, gone(e, func(o *termfence.Observation) { o.State = state }), `only "terminated" counts`})
		}
	}
	refuses(t, distant, rules)
}

func TestAPassMayTakeFiveMinutes(t *testing.T) {
	a := distant(t)
	other("e-old", func(o *membership.Other) { o.At = now.Add(-5 * time.Minute) })(a)
	other("e-lost", func(o *membership.Other) { o.At = now })(a)
	must(t, a)
}

func TestAZoneLiesInARegion(t *testing.T) {
	for zone, in := range map[string]bool{
		"eu-west-1a": true, "eu-west-1z": true, "eu-west-1-lon-1a": true,
		"eu-west-1": false, "eu-west-10a": false, "eu-west-11": false, "eu-west-1A": false, "eu-west-2a": false, "": false, "a": false,
	} {
		a := own(t)
		a.seen.Group.Zone = zone
		_, err := a.verify()
		require.Equal(t, in, err == nil, zone)
	}
}

func TestTheBoxEnrolledLastIsAskedAboutFirst(t *testing.T) {
	r := deployment()
	r.Boxes["b"], r.Boxes["a"] = entry("b", "de", boxid.Cloud{}, time.Hour), entry("a", "de", boxid.Cloud{}, time.Hour)
	var refs []string
	for _, b := range membership.Occupants(r, "de") {
		refs = append(refs, b.Ref)
	}
	require.Equal(t, []string{"a", "b", "lost", "old"}, refs)
}
