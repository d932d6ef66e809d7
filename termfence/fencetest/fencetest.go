// Package fencetest makes real termination evidence for the tests of packages
// that take it. There is no other way to a value that a transition accepts: it
// signs a roster, verifies an observation, publishes the fence and reads it
// back, all on a store in memory.
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
)

// Evidence returns the evidence that the box with this enrollment, of the
// region with this placement code, was read terminated at a time. The worker
// that saw it is another box of the region. The same arguments make the same
// evidence.
func Evidence(tb testing.TB, box, enrollment, region string, at time.Time) termfence.Evidence {
	tb.Helper()
	ctx := context.Background()
	store := memstore.New()
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	gone := entry(enrollment, region, "i-gone", at)
	worker := entry("fencing-worker-1", region, "i-worker", at)
	snap, err := roster.Create(ctx, store, private, roster.Roster{
		DeploymentBucket: bucket,
		Regions:          map[string]roster.Region{region: {Account: account, AWSRegion: awsRegion}},
		Boxes:            map[string]roster.Box{box: gone, "fencing-worker": worker},
	})
	require.NoError(tb, err)
	goneBox, _ := snap.Box(box)
	workerBox, _ := snap.Box("fencing-worker")

	rec, err := termfence.Verify(goneBox, workerBox, termfence.Observation{
		Via: termfence.ViaDescribe, Found: true, State: termfence.Terminated, RequestID: "request-1",
		InstanceID: gone.Cloud.InstanceID, Account: account, Region: awsRegion,
	}, at)
	require.NoError(tb, err)
	reader := termfence.Reader{Store: store, Roster: roster.Open(store, private.Public().(ed25519.PublicKey), bucket)}
	evidence, err := termfence.Publish(ctx, store, reader, rec)
	require.NoError(tb, err)
	return evidence
}

func entry(enrollment, region, instance string, at time.Time) roster.Box {
	return roster.Box{
		Enrollment: enrollment, EnrolledAt: at.Add(-time.Hour).UTC(), Region: region, Pool: "default", State: roster.Active,
		Cloud: boxid.Cloud{Provider: boxid.AWS, Account: account, Region: awsRegion, InstanceID: instance},
	}
}
