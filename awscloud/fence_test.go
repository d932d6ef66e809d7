package awscloud_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/simcloud"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// fences asks EC2 about box and termfence about the answer.
func (c *cloud) fences(t *testing.T, box boxid.Cloud) error {
	seen, err := c.Describe(t.Context(), box)
	if err != nil {
		require.Zero(t, seen)
		return err
	}
	return proves(box, seen)
}

// proves asks termfence whether what was seen proves that box is gone.
func proves(box boxid.Cloud, seen termfence.Observation) error {
	worker := box
	worker.InstanceID = unknownID
	_, err := termfence.Verify(entryOf("a", box), entryOf("w", worker), seen, time.Unix(1, 0))
	return err
}

func entryOf(ref string, cloud boxid.Cloud) roster.Box {
	return roster.Box{Ref: ref, Enrollment: "enrollment-" + ref, Region: "ie", State: roster.Active, Cloud: cloud}
}

func TestOnlyATerminatedInstanceFencesThroughTheWire(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	box := c.launch(t)
	require.ErrorIs(t, c.fences(t, box), termfence.ErrNoProof, "running")
	require.NoError(t, c.Terminate(box.InstanceID))
	require.ErrorIs(t, c.fences(t, box), termfence.ErrNoProof, "shutting-down")
	c.now = c.now.Add(shutdownTime)
	require.NoError(t, c.fences(t, box))

	for _, fault := range []string{simcloud.Denied, simcloud.Expired, simcloud.Throttled, simcloud.Broken,
		simcloud.Partial, simcloud.NoOwner, simcloud.NoState, simcloud.Cut} {
		require.NoError(t, c.Inject(simcloud.Fault{Kind: fault}))
		require.Error(t, c.fences(t, box), fault)
		c.ClearFaults()
	}
	for _, fault := range []string{simcloud.NotFound, simcloud.Empty} {
		require.NoError(t, c.Inject(simcloud.Fault{Kind: fault}))
		require.ErrorIs(t, c.fences(t, box), termfence.ErrNoProof, fault)
		c.ClearFaults()
	}
	require.NoError(t, c.fences(t, box))
}

func TestNoFalseFriendOfATerminationFences(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	stopped := c.launch(t)
	require.NoError(t, c.Stop(stopped.InstanceID))
	require.ErrorIs(t, c.fences(t, stopped), termfence.ErrNoProof, "stopping")
	gone := c.terminated(t) // and stopped is stopped by then
	require.ErrorIs(t, c.fences(t, stopped), termfence.ErrNoProof, "stopped")

	elsewhere := gone
	elsewhere.Region = clientRegion
	require.ErrorIs(t, c.fences(t, elsewhere), termfence.ErrNoProof, "another region")
	foreign := gone
	foreign.Account = "999900001111"
	require.ErrorIs(t, c.fences(t, foreign), termfence.ErrNoProof, "another account")
	unknown := gone
	unknown.InstanceID = unknownID
	require.ErrorIs(t, c.fences(t, unknown), termfence.ErrNoProof, "an instance that never was")
	c.Forget(gone.InstanceID)
	require.ErrorIs(t, c.fences(t, gone), termfence.ErrNoProof, "an instance that is no longer listed")
}
