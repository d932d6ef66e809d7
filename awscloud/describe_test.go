package awscloud_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/simcloud"
	"github.com/carlosframework/regionha/termfence"
)

func TestADescribeSaysWhatEC2Saw(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	box := c.launch(t)
	see := func() termfence.Observation {
		seen, err := c.Describe(t.Context(), box)
		require.NoError(t, err)
		require.NotEmpty(t, seen.RequestID)
		seen.RequestID = ""
		return seen
	}
	want := termfence.Observation{Via: termfence.ViaDescribe, Found: true,
		InstanceID: box.InstanceID, Account: simcloud.DefaultAccount, Region: homeRegion, State: "running"}
	require.Equal(t, want, see())

	require.NoError(t, c.Stop(box.InstanceID))
	want.State = "stopping"
	require.Equal(t, want, see())
	c.now = c.now.Add(shutdownTime)
	want.State = "stopped"
	require.Equal(t, want, see())

	require.NoError(t, c.Terminate(box.InstanceID))
	want.State = "shutting-down"
	require.Equal(t, want, see())
	c.now = c.now.Add(shutdownTime)
	want.State = "terminated"
	require.Equal(t, want, see())
}

func TestALaggingReplyIsOldAndNeverAhead(t *testing.T) {
	c := newCloud(t, simcloud.Config{Lag: 10 * time.Second})
	box := c.launch(t)
	seen, err := c.Describe(t.Context(), box)
	require.NoError(t, err)
	require.False(t, seen.Found, "launched a moment ago")

	c.now = c.now.Add(time.Hour)
	require.NoError(t, c.Terminate(box.InstanceID))
	c.now = c.now.Add(shutdownTime + 9*time.Second)
	seen, err = c.Describe(t.Context(), box)
	require.NoError(t, err)
	require.Equal(t, "shutting-down", seen.State)
	c.now = c.now.Add(time.Second)
	seen, err = c.Describe(t.Context(), box)
	require.NoError(t, err)
	require.Equal(t, "terminated", seen.State)
}

// requireAbsent: an observation, of an instance that is not there.
func requireAbsent(t *testing.T, box boxid.Cloud, seen termfence.Observation, err error) {
	require.NoError(t, err)
	require.NotEmpty(t, seen.RequestID)
	seen.RequestID = ""
	require.Equal(t, termfence.Observation{Via: termfence.ViaDescribe, InstanceID: box.InstanceID, Region: box.Region}, seen)
}

func TestNotFoundIsAnEmptyObservationOfThatOneAlone(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	gone, other := c.terminated(t), c.launch(t)
	c.Forget(gone.InstanceID)
	seen, err := c.Describe(t.Context(), gone)
	requireAbsent(t, gone, seen, err)

	seen, err = c.Describe(t.Context(), other)
	require.NoError(t, err)
	require.True(t, seen.Found, "one unknown id hides no other")
}

func TestAnEmptyReplyIsAnEmptyObservation(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	box := c.terminated(t)
	require.NoError(t, c.Inject(simcloud.Fault{Kind: simcloud.Empty}))
	seen, err := c.Describe(t.Context(), box)
	requireAbsent(t, box, seen, err)
}

func TestTheDescribeGoesToTheBoxsOwnRegion(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	box := c.launch(t)
	seen, err := c.Describe(t.Context(), box)
	require.NoError(t, err)
	require.True(t, seen.Found, "the client is configured with "+clientRegion)

	// The same id under another region's name is another question.
	box.Region = clientRegion
	seen, err = c.Describe(t.Context(), box)
	requireAbsent(t, box, seen, err)
}

func TestTheOwnerIsTheReplysAndNotTheExpected(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	box := c.launchIn(t, homeRegion, "999900001111")
	box.Account = simcloud.DefaultAccount
	seen, err := c.Describe(t.Context(), box)
	require.NoError(t, err)
	require.Equal(t, "999900001111", seen.Account)
}

func TestAThrottledDescribeIsRetried(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	box := c.terminated(t)
	for _, kind := range []string{simcloud.Throttled, simcloud.Broken, simcloud.Cut} {
		require.NoError(t, c.Inject(simcloud.Fault{Kind: kind, Count: 1}))
		seen, err := c.Describe(t.Context(), box)
		require.NoError(t, err, kind)
		require.Equal(t, "terminated", seen.State, kind)
	}
}

// Every reply below is about an instance that is terminated, and none says so.
func TestAFailedDescribeIsAnErrorAndNoObservation(t *testing.T) {
	for kind, want := range map[string]string{
		simcloud.Throttled: "RequestLimitExceeded",
		simcloud.Denied:    "UnauthorizedOperation",
		simcloud.Expired:   "RequestExpired",
		simcloud.Broken:    "InternalError",
		simcloud.Cut:       "EOF",
		simcloud.Partial:   "more pages follow",
		simcloud.NoOwner:   "names no owner",
		simcloud.NoState:   "names no state",
	} {
		t.Run(kind, func(t *testing.T) {
			c := newCloud(t, simcloud.Config{})
			box := c.terminated(t)
			require.NoError(t, c.Inject(simcloud.Fault{Kind: kind, Action: "DescribeInstances", InstanceID: box.InstanceID}))
			seen, err := c.Describe(t.Context(), box)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, box.InstanceID)
			require.Zero(t, seen)

			c.ClearFaults()
			seen, err = c.Describe(t.Context(), box)
			require.NoError(t, err)
			require.Equal(t, "terminated", seen.State)
		})
	}
}

func TestADescribeThatHangsIsCutOff(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	box := c.terminated(t)
	require.NoError(t, c.Inject(simcloud.Fault{Kind: simcloud.Hang}))
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, _, err := c.WithTimeout(50*time.Millisecond).Describe(patient, box)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, patient.Err(), "its own bound cut it off")

	hasty, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = c.Describe(hasty, box)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestABoxWithoutACompleteCloudIsNotDescribed(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	require.NoError(t, c.Inject(simcloud.Fault{Kind: simcloud.Hang}))
	whole := c.launch(t)
	for _, strip := range []func(*boxid.Cloud){
		func(b *boxid.Cloud) { b.Provider = "" }, func(b *boxid.Cloud) { b.Account = "" },
		func(b *boxid.Cloud) { b.Region = "" }, func(b *boxid.Cloud) { b.InstanceID = "" },
	} {
		box := whole
		strip(&box)
		_, err := c.Describe(t.Context(), box)
		require.ErrorContains(t, err, "no complete cloud")
	}
}
