package hostrelocate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// untargeted is a pinning operation without a target, as one that came from a
// move is.
func untargeted(t *testing.T) *world {
	w := newWorld(t)
	w.reach(in(hostclaim.Pinning))
	o := w.claim()
	c := o.Claim.Clone()
	c.Op.Intent.Target, c.Op.Participants, c.Op.Journal.Acks = hostclaim.Member{}, nil, nil
	c.Gen, c.Write = c.Gen+1, record.Nonce()
	_, err := w.control.Put(ctx, hostclaim.Key(host), encode(t, *c), objstore.IfMatch(o.ETag))
	require.NoError(t, err)
	return w
}

func TestAnOperationWithoutATargetIsGivenOne(t *testing.T) {
	w := untargeted(t)
	w.spares = []hostclaim.Member{spare}
	require.True(t, w.run(50))
	require.Equal(t, spare.Box, w.claim().Claim.Op.Exec)
}

func TestAnOperationForWhichNoTargetIsFoundIsStuck(t *testing.T) {
	w := untargeted(t)
	w.tick = 10 * time.Second
	w.reach(stuckFor(hostclaim.NoSpare))
}
