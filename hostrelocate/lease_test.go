package hostrelocate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/lease"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

func TestAReplicaLeaseThatADeadProcessLeftIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c := &hostclaim.Claim{Host: host, Holder: &hostclaim.Holder{Region: region, Location: hostclaim.LocationOf(host, "inc")}}
		key := "control/leases/" + region + "/" + c.Holder.Location + ".json"
		var dead, mine hostrelocate.Leases
		held, err := dead.Acquire(ctx, s, c, "enr-dead")
		require.NoError(t, err)
		left, err := s.Get(ctx, key)
		require.NoError(t, err)
		held.Release(ctx)
		released, err := s.Get(ctx, key)
		require.NoError(t, err)
		_, err = s.Put(ctx, key, left.Body, objstore.IfMatch(released.ETag)) // it died before its release
		require.NoError(t, err)

		began := time.Now()
		for {
			got, err := mine.Acquire(ctx, s, c, "enr-mine")
			if err == nil {
				got.Release(ctx)
				break
			}
			var other *lease.HeldError
			require.ErrorAs(t, err, &other)
			require.LessOrEqual(t, time.Since(began), lease.BuildTTL)
			time.Sleep(time.Second)
		}
		require.GreaterOrEqual(t, time.Since(began), lease.BuildTTL)
	})
}
