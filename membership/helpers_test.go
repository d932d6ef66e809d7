package membership_test

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/membership"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

const (
	account = "123456789012"
	bucket  = "s3://control"
	groupIE = "arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:1:autoScalingGroupName/boxes-ie"
	groupDE = "arn:aws:autoscaling:eu-central-1:123456789012:autoScalingGroup:2:autoScalingGroupName/boxes-de"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func cloud(region, instance string) boxid.Cloud {
	return boxid.Cloud{Provider: boxid.AWS, Account: account, Region: region, InstanceID: instance}
}

func entry(ref, placement string, c boxid.Cloud, age time.Duration) roster.Box {
	return roster.Box{Ref: ref, Enrollment: "e-" + ref, EnrolledAt: now.Add(-age), Region: placement,
		Pool: "default", State: roster.Active, Cloud: c}
}

// deployment is two placements. That of ie has two workers; all that ever ran in
// de is a box that is active, one that is quarantined and one that is retired.
func deployment() roster.Roster {
	boxes := map[string]roster.Box{}
	for _, b := range []roster.Box{
		entry("worker-1", "ie", cloud("eu-west-1", "i-worker-1"), time.Hour),
		entry("worker-2", "ie", cloud("eu-west-1", "i-worker-2"), time.Hour),
		entry("old", "de", cloud("eu-central-1", "i-old"), 3*time.Hour),
		entry("lost", "de", cloud("eu-central-1", "i-lost"), 2*time.Hour),
		entry("past", "de", cloud("eu-central-1", "i-past"), 9*time.Hour),
		entry("fr-1", "fr", cloud("eu-west-3", "i-fr"), time.Hour),
	} {
		boxes[b.Ref] = b
	}
	lost, past := boxes["lost"], boxes["past"]
	lost.State, past.State = roster.Quarantined, roster.Retired
	boxes["lost"], boxes["past"] = lost, past
	return roster.Roster{DeploymentBucket: bucket, Boxes: boxes, Regions: map[string]roster.Region{
		"ie": {Account: account, AWSRegion: "eu-west-1", GroupName: "boxes-ie", GroupARN: groupIE},
		"de": {Account: account, AWSRegion: "eu-central-1", GroupName: "boxes-de", GroupARN: groupDE},
		"fr": {Account: account, AWSRegion: "eu-west-3"},
	}}
}

func confirmer(ref string) membership.Confirmer {
	return membership.Confirmer{Box: ref, Enrollment: "e-" + ref, Region: "ie"}
}

// attempt is everything that Verify is told.
type attempt struct {
	roster roster.Roster
	by     membership.Confirmer
	target string
	seen   membership.Sighting
	at     time.Time
}

func (a attempt) verify() (membership.Record, error) {
	return membership.Verify(a.roster, a.by, a.target, a.seen, a.at)
}

// own is a perfect attempt of a worker of the box's own region.
func own(tb testing.TB) *attempt {
	return &attempt{roster: deployment(), by: confirmer("worker-1"), target: "ie", at: now, seen: membership.Sighting{
		Identity: boxidtest.Unbound(tb, "new", cloud("eu-west-1", "i-new")),
		Group: membership.Observation{Found: true, InstanceID: "i-new", AWSRegion: "eu-west-1", Zone: "eu-west-1a", GroupName: "boxes-ie",
			GroupARN: groupIE, LifecycleState: "InService", RequestIDs: []string{"r-member", "r-group"}},
	}}
}

// distant is a perfect attempt of a worker of another region.
func distant(tb testing.TB) *attempt {
	a := own(tb)
	a.target = "de"
	a.seen.Identity = boxidtest.Unbound(tb, "new", cloud("eu-central-1", "i-new"))
	a.seen.Group.AWSRegion, a.seen.Group.Zone, a.seen.Group.GroupName, a.seen.Group.GroupARN = "eu-central-1", "eu-central-1b", "boxes-de", groupDE
	a.seen.Instance = described("i-new", "running")
	a.seen.Others = map[string]membership.Other{
		"e-old":  {Seen: described("i-old", "terminated"), At: now.Add(-2 * time.Second)},
		"e-lost": {Seen: described("i-lost", "terminated"), At: now.Add(-time.Second)},
	}
	return a
}

func described(instance, state string) termfence.Observation {
	return termfence.Observation{Via: termfence.ViaDescribe, Found: true, InstanceID: instance, Account: account,
		Region: "eu-central-1", State: state, RequestID: "r-" + instance}
}

// world is a control store with the roster.
type world struct {
	*memstore.Store
	private ed25519.PrivateKey
	reader  membership.Reader
}

func newWorld(tb testing.TB) world {
	tb.Helper()
	store := memstore.New()
	public, private := roster.GenerateKey()
	_, err := roster.Create(tb.Context(), store, private, deployment())
	require.NoError(tb, err)
	return world{Store: store, private: private, reader: membership.Reader{Store: store, Roster: roster.Open(store, public, bucket)}}
}

func (w world) edit(tb testing.TB, change func(*roster.Roster) error) (roster.Snapshot, error) {
	tb.Helper()
	return roster.Update(tb.Context(), w.Store, w.private, w.reader.Roster, change)
}

// box changes a box's entry.
func (w world) box(tb testing.TB, ref string, change func(*roster.Box)) {
	tb.Helper()
	_, err := w.edit(tb, func(r *roster.Roster) error {
		b := r.Boxes[ref]
		change(&b)
		r.Boxes[ref] = b
		return nil
	})
	require.NoError(tb, err)
}

func (w world) publish(tb testing.TB, rec membership.Record) (membership.Evidence, error) {
	tb.Helper()
	return membership.Publish(tb.Context(), w.Store, w.reader, rec)
}

// plant stores any record, as someone with the bucket's keys could.
func (w world) plant(tb testing.TB, rec membership.Record) string {
	tb.Helper()
	body, err := record.Encode(rec)
	require.NoError(tb, err)
	key := membership.Key(rec.Box, rec.ObservedAt)
	_, err = w.Put(tb.Context(), key, body, objstore.IfAbsent())
	require.NoError(tb, err)
	return key
}

func must(tb testing.TB, a *attempt) membership.Record {
	tb.Helper()
	rec, err := a.verify()
	require.NoError(tb, err)
	return rec
}
