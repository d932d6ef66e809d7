// Package fencetest makes real evidence that a box is gone for the tests of
// packages that take it. There is no other way to a value that a transition
// accepts: it signs a roster, verifies an observation or quarantines the box,
// stores the record and reads it back, all on a store in memory.
package fencetest

import (
	"context"
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

const (
	bucket    = "memory"
	account   = "000000000001"
	awsRegion = "test-1"
	worker    = "fencing-worker"
)

// Evidence returns the evidence that the box with this enrollment, of the
// region with this placement code, was read terminated at a time. The worker
// that saw it is another box of the region. The same arguments make the same
// evidence.
func Evidence(tb testing.TB, box, enrollment, region string, at time.Time) termfence.Evidence {
	tb.Helper()
	return enroll(tb, box, enrollment, region, at).fence(tb, at)
}

// Declared returns the evidence that an operator declared the box lost at a
// time. The same arguments make the same evidence.
func Declared(tb testing.TB, box, enrollment, region string, at time.Time) termfence.Evidence {
	tb.Helper()
	d := enroll(tb, box, enrollment, region, at)
	ctx := context.Background()
	_, err := roster.Update(ctx, d.store, d.private, d.reader.Roster, func(r *roster.Roster) error { return r.Quarantine(box) })
	require.NoError(tb, err)
	evidence, err := termfence.Declare(ctx, d.store, d.reader, termfence.Declaration{
		Box: box, Enrollment: enrollment, Cloud: d.box.Cloud, Region: region, Who: "operator", Why: "it vanished",
		Checked: []string{"it does not answer"}, Confirmation: box, DeclaredAt: at.UTC(),
	})
	require.NoError(tb, err)
	return evidence
}

// Destroyed returns an operator's statement that the disks of the box, which
// was read terminated before, are destroyed. The same arguments make the same
// statement.
func Destroyed(tb testing.TB, box, enrollment, region string) termfence.Destroyed {
	tb.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d := enroll(tb, box, enrollment, region, at)
	d.fence(tb, at)
	destroyed, err := termfence.DeclareDestroyed(context.Background(), d.store, d.reader, termfence.Destruction{
		Box: box, Enrollment: enrollment, Who: "operator", Why: "it was terminated", How: "the volumes were deleted",
		Confirmation: box, DeclaredAt: at.Add(time.Hour),
	})
	require.NoError(tb, err)
	return destroyed
}

// deployment is a region of one box and a worker.
type deployment struct {
	store       *memstore.Store
	private     ed25519.PrivateKey
	reader      termfence.Reader
	box, worker roster.Box
}

func enroll(tb testing.TB, box, enrollment, region string, at time.Time) deployment {
	tb.Helper()
	store := memstore.New()
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	snap, err := roster.Create(context.Background(), store, private, roster.Roster{
		DeploymentBucket: bucket,
		Regions:          map[string]roster.Region{region: {Account: account, AWSRegion: awsRegion}},
		Boxes: map[string]roster.Box{
			box:    entry(enrollment, region, "i-gone", at),
			worker: entry("fencing-worker-1", region, "i-worker", at),
		},
	})
	require.NoError(tb, err)
	d := deployment{store: store, private: private,
		reader: termfence.Reader{Store: store, Roster: roster.Open(store, private.Public().(ed25519.PublicKey), bucket)}}
	d.box, _ = snap.Box(box)
	d.worker, _ = snap.Box(worker)
	return d
}

func entry(enrollment, region, instance string, at time.Time) roster.Box {
	return roster.Box{
		Enrollment: enrollment, EnrolledAt: at.Add(-time.Hour).UTC(), Region: region, Pool: "default", State: roster.Active,
		Cloud: boxid.Cloud{Provider: boxid.AWS, Account: account, Region: awsRegion, InstanceID: instance},
	}
}

// fence publishes that the box was read terminated.
func (d deployment) fence(tb testing.TB, at time.Time) termfence.Evidence {
	tb.Helper()
	rec, err := termfence.Verify(d.box, d.worker, termfence.Observation{
		Via: termfence.ViaDescribe, Found: true, State: termfence.Terminated, RequestID: "request-1",
		InstanceID: d.box.Cloud.InstanceID, Account: account, Region: awsRegion,
	}, at)
	require.NoError(tb, err)
	evidence, err := termfence.Publish(context.Background(), d.store, d.reader, rec)
	require.NoError(tb, err)
	return evidence
}
