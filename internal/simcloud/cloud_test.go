package simcloud_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/simcloud"
)

// newCloud makes a cloud whose clock the test moves.
func newCloud(t *testing.T, cfg simcloud.Config) (*simcloud.Cloud, *time.Time) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cfg.CertDir = t.TempDir()
	cfg.Now = func() time.Time { return now }
	cloud, err := simcloud.New(cfg)
	require.NoError(t, err)
	t.Cleanup(cloud.Close)
	return cloud, &now
}

func launch(t *testing.T, c *simcloud.Cloud) simcloud.Instance {
	i, err := c.Launch("eu-west-1", "")
	require.NoError(t, err)
	return i
}

func stateOf(t *testing.T, c *simcloud.Cloud, id string) string {
	for _, i := range c.Instances() {
		if i.ID == id {
			return i.State
		}
	}
	require.Fail(t, "no instance", id)
	return ""
}

func TestATerminationIsSeenShuttingDownFirst(t *testing.T) {
	cloud, now := newCloud(t, simcloud.Config{ShutdownTime: time.Second})
	id := launch(t, cloud).ID
	require.NoError(t, cloud.Terminate(id))
	require.Equal(t, simcloud.ShuttingDown, stateOf(t, cloud, id))

	*now = now.Add(time.Second - 1)
	require.NoError(t, cloud.Terminate(id), "terminating again must not start anew")
	require.Equal(t, simcloud.ShuttingDown, stateOf(t, cloud, id))

	*now = now.Add(1)
	require.Equal(t, simcloud.Terminated, stateOf(t, cloud, id))
	require.NoError(t, cloud.Stop(id))
	require.Equal(t, simcloud.Terminated, stateOf(t, cloud, id), "terminated never changes")
}

func TestATerminationOvertakesAStop(t *testing.T) {
	cloud, now := newCloud(t, simcloud.Config{ShutdownTime: 2 * time.Second})
	id := launch(t, cloud).ID
	require.NoError(t, cloud.Stop(id))
	*now = now.Add(time.Second)
	require.Equal(t, simcloud.Stopping, stateOf(t, cloud, id))
	require.NoError(t, cloud.Terminate(id))
	*now = now.Add(time.Second)
	require.Equal(t, simcloud.ShuttingDown, stateOf(t, cloud, id))
	*now = now.Add(time.Second)
	require.Equal(t, simcloud.Terminated, stateOf(t, cloud, id))
}

func TestAStopEndsStopped(t *testing.T) {
	cloud, now := newCloud(t, simcloud.Config{ShutdownTime: time.Second})
	id := launch(t, cloud).ID
	require.NoError(t, cloud.Stop(id))
	*now = now.Add(time.Hour)
	require.Equal(t, simcloud.Stopped, stateOf(t, cloud, id))
}

func TestAStoppedInstanceStartsAgain(t *testing.T) {
	cloud, now := newCloud(t, simcloud.Config{ShutdownTime: time.Second})
	id := launch(t, cloud).ID
	require.NoError(t, cloud.Start(id))
	require.Equal(t, simcloud.Running, stateOf(t, cloud, id), "it runs already")
	require.NoError(t, cloud.Stop(id))
	*now = now.Add(time.Second)
	require.NoError(t, cloud.Start(id))
	require.Equal(t, simcloud.Pending, stateOf(t, cloud, id))
	*now = now.Add(time.Second)
	require.Equal(t, simcloud.Running, stateOf(t, cloud, id))
}

func TestWhatACloudHoldsIsBounded(t *testing.T) {
	cloud, _ := newCloud(t, simcloud.Config{})
	id := launch(t, cloud).ID
	for range 19 {
		_, err := cloud.Attach(id, simcloud.Volume{})
		require.NoError(t, err)
	}
	_, err := cloud.Attach(id, simcloud.Volume{})
	require.ErrorContains(t, err, "20 volumes")
	require.ErrorContains(t, cloud.Post("eu-west-1", make([]byte, 2<<20+1)), "at most")
}

func TestBadRequestsAreRefused(t *testing.T) {
	cloud, _ := newCloud(t, simcloud.Config{})
	require.ErrorIs(t, cloud.Terminate("i-0"), simcloud.ErrNoInstance)
	require.ErrorIs(t, cloud.Stop("i-0"), simcloud.ErrNoInstance)
	require.ErrorContains(t, cloud.Inject(simcloud.Fault{Kind: "rain"}), `"rain"`)
	_, err := cloud.Launch("", "")
	require.ErrorContains(t, err, "region")
	_, err = simcloud.New(simcloud.Config{})
	require.ErrorContains(t, err, "CertDir")
}
