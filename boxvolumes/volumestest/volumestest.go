// Package volumestest makes real verdicts about disks for the tests of packages
// that take them: it stores records on a store in memory and judges them.
package volumestest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

// Discharged returns the verdict that the disks of this box are gone: its one
// volume went with its instance. The same arguments make the same verdict.
func Discharged(tb testing.TB, box, enrollment string) boxvolumes.Verdict {
	tb.Helper()
	ctx, store := context.Background(), memstore.New()
	enrolledAt := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	entry := roster.Box{
		Ref: box, Enrollment: enrollment, EnrolledAt: enrolledAt, Region: "test", State: roster.Active,
		Cloud: boxid.Cloud{Provider: boxid.AWS, Account: "000000000001", Region: "test-1", InstanceID: "i-gone"},
	}
	body, err := record.Encode(boxvolumes.Record{
		V: 1, Box: box, Enrollment: enrollment, Cloud: entry.Cloud, State: "running", ObservedAt: enrolledAt,
		Volumes: []boxvolumes.Volume{{ID: "vol-1", Device: "/dev/xvda", Status: "attached", DeleteOnTermination: true}},
	})
	require.NoError(tb, err)
	_, err = objstore.Create(ctx, store, boxvolumes.Key(enrollment, enrolledAt), body)
	require.NoError(tb, err)
	verdict, err := boxvolumes.Read(ctx, store, entry, enrolledAt.Add(time.Hour))
	require.NoError(tb, err)
	require.True(tb, verdict.Discharged(), verdict.Reason())
	return verdict
}
