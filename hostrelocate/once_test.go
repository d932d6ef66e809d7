package hostrelocate_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// TestAFailoverReadsOnlyWhatItDidNotWrite: a worker and a box that step on what
// they wrote need no read of the claim between their writes, and the worker reads
// a fence once.
func TestAFailoverReadsOnlyWhatItDidNotWrite(t *testing.T) {
	w := newWorld(t)
	var claims, fences atomic.Int64
	w.control.Inject(func(r memstore.Request) memstore.Fault {
		switch {
		case r.Op != memstore.OpGet:
		case strings.HasPrefix(r.Key, "control/hosts/"):
			claims.Add(1)
		case strings.HasPrefix(r.Key, "control/box-fences/"):
			fences.Add(1)
		}
		return memstore.None
	})
	worker, box := w.worker(), w.participant()
	turn, err := w.start(w.claim())
	require.NoError(t, err)
	o := turn.Now
	claims.Store(0)
	for range 100 {
		var did hostrelocate.Turn
		for _, step := range []func() (hostrelocate.Turn, error){
			func() (hostrelocate.Turn, error) { return worker.Step(ctx, o) },
			func() (hostrelocate.Turn, error) { return box.Step(ctx, o) },
		} {
			did, err = step()
			require.NoError(t, err)
			if did.Now.Claim != nil {
				o = did.Now
			}
		}
		if o.Claim.Op.Kind == hostclaim.Serving {
			break
		}
		w.now = w.now.Add(w.tick)
	}
	require.Equal(t, hostclaim.Completed, o.Claim.Op.Outcome)
	require.Zero(t, claims.Load())
	require.Equal(t, int64(1), fences.Load())
}
