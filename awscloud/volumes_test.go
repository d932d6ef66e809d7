package awscloud_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/awscloud"
	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/internal/simcloud"
)

// disks describes box and returns what its reply says of its disks.
func disks(t *testing.T, d *awscloud.Describer, box boxid.Cloud) boxvolumes.Observation {
	state, seen, err := d.Describe(t.Context(), box)
	require.NoError(t, err)
	require.Equal(t, state.Found, seen.Found)
	require.Equal(t, state.State, seen.State)
	require.Equal(t, state.Account, seen.Account)
	require.Equal(t, box.InstanceID, seen.InstanceID)
	require.Equal(t, box.Region, seen.Region)
	return seen
}

func TestStateAndDisksAreOneReply(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	box := c.launch(t)
	requests := 0
	d := describer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		c.EC2().ServeHTTP(w, r)
	}))
	seen := disks(t, d.Describer, box)
	require.Equal(t, 1, requests)
	require.Len(t, seen.Volumes, 1)
	root := seen.Volumes[0]
	require.NotEmpty(t, root.ID)
	root.ID = ""
	require.Equal(t, boxvolumes.Volume{Device: "/dev/xvda", Status: "attached", DeleteOnTermination: true}, root)
}

func TestTheDisksOfALife(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	box := c.launch(t)
	see := func() []boxvolumes.Volume { return disks(t, c.Describer, box).Volumes }
	root := see()[0]

	data, err := c.Attach(box.InstanceID, simcloud.Volume{})
	require.NoError(t, err)
	want := boxvolumes.Volume{ID: data.ID, Device: "/dev/sdg", Status: "attached"}
	require.Equal(t, []boxvolumes.Volume{root, want}, see())
	data.DeleteOnTermination, want.DeleteOnTermination = true, true
	_, err = c.Attach(box.InstanceID, data)
	require.NoError(t, err)
	require.Equal(t, []boxvolumes.Volume{root, want}, see(), "its flag changed")
	require.NoError(t, c.Detach(box.InstanceID, data.ID))
	require.Equal(t, []boxvolumes.Volume{root}, see())

	require.NoError(t, c.Terminate(box.InstanceID))
	root.Status = "detaching"
	require.Equal(t, []boxvolumes.Volume{root}, see(), "shutting-down")
	c.now = c.now.Add(shutdownTime)
	require.Empty(t, see(), "terminated")
	c.Forget(box.InstanceID)
	require.Equal(t, boxvolumes.Observation{InstanceID: box.InstanceID, Region: box.Region}, disks(t, c.Describer, box))
}

func TestAFailedDescribeSaysNothingOfDisks(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	box := c.launch(t)
	for _, kind := range []string{simcloud.Denied, simcloud.Expired, simcloud.Partial, simcloud.NoOwner, simcloud.NoState} {
		require.NoError(t, c.Inject(simcloud.Fault{Kind: kind, Count: 1}))
		_, seen, err := c.Describer.Describe(t.Context(), box)
		require.Error(t, err, kind)
		require.Zero(t, seen, kind)
	}
}

// A mapping that lacks a member is shown, and whoever judges it refuses.
func TestNoVolumeIsLeftOutForWhatItLacks(t *testing.T) {
	instance := func(mapping string) http.Handler {
		return body(reservations(`<item><instanceId>` + runningID + `</instanceId><instanceState><name>running</name></instanceState>` +
			`<blockDeviceMapping><item><deviceName>/dev/xvda</deviceName><ebs><volumeId>vol-1</volumeId><status>attached</status>` +
			`<deleteOnTermination>true</deleteOnTermination></ebs></item>` + mapping + `</blockDeviceMapping></item>`))
	}
	whole := boxvolumes.Volume{ID: "vol-1", Device: "/dev/xvda", Status: "attached", DeleteOnTermination: true}
	for name, row := range map[string]struct {
		mapping string
		want    boxvolumes.Volume
		reason  string
	}{
		"no id": {`<item><deviceName>b</deviceName><ebs><status>attached</status><deleteOnTermination>true</deleteOnTermination></ebs></item>`,
			boxvolumes.Volume{Device: "b", Status: "attached", DeleteOnTermination: true}, "has no id"},
		"no device": {`<item><ebs><volumeId>vol-2</volumeId><status>attached</status><deleteOnTermination>true</deleteOnTermination></ebs></item>`,
			boxvolumes.Volume{ID: "vol-2", Status: "attached", DeleteOnTermination: true}, "has no device"},
		"no status": {`<item><deviceName>b</deviceName><ebs><volumeId>vol-2</volumeId><deleteOnTermination>true</deleteOnTermination></ebs></item>`,
			boxvolumes.Volume{ID: "vol-2", Device: "b", DeleteOnTermination: true}, `is ""`},
		"no flag": {`<item><deviceName>b</deviceName><ebs><volumeId>vol-2</volumeId><status>attached</status></ebs></item>`,
			boxvolumes.Volume{ID: "vol-2", Device: "b", Status: "attached"}, "outlives"},
		"nothing": {`<item><ebs/></item>`, boxvolumes.Volume{}, "has no id"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := disks(t, describer(t, instance(row.mapping)).Describer, boxOf(runningID))
			require.Equal(t, []boxvolumes.Volume{whole, row.want}, seen.Volumes)
			verdict := judged(seen)
			require.False(t, verdict.Discharged())
			require.Contains(t, verdict.Reason(), row.reason)
		})
	}

	stored := describer(t, instance(`<item><deviceName>/dev/xvdb</deviceName><virtualName>ephemeral0</virtualName></item>`))
	seen := disks(t, stored.Describer, boxOf(runningID))
	require.Equal(t, []boxvolumes.Volume{whole}, seen.Volumes, "an instance store is none")
	require.True(t, judged(seen).Discharged())
}

// judged is the verdict on a life of which seen is the only record.
func judged(seen boxvolumes.Observation) boxvolumes.Verdict {
	now := time.Unix(1, 0)
	entry := entryOf("a", boxOf(seen.InstanceID))
	record := boxvolumes.Record{V: 1, Box: entry.Ref, Enrollment: entry.Enrollment, Cloud: entry.Cloud,
		State: seen.State, ObservedAt: now, Volumes: seen.Volumes}
	return boxvolumes.Discharge([]boxvolumes.Record{record}, entry, now, now)
}
