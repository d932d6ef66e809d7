package awscloud_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/awscloud"
	"github.com/carlosframework/regionha/awscloud/event"
	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/membership"
)

// More instances of the recorded answers: see testdata/moto.
const (
	memberID = "i-7bf51d63d606f6059"
	disksID  = "i-27ef96a28547cc8bb"
)

func TestRecordedDisksOfAnotherMock(t *testing.T) {
	for _, row := range []struct {
		name, id string
		want     []boxvolumes.Volume
	}{
		{"disks", disksID, []boxvolumes.Volume{
			{ID: "vol-671e3662754c0dbdd", Device: "/dev/sda1", Status: "attached", DeleteOnTermination: true},
			{ID: "vol-209c3b86e33049392", Device: "/dev/sdf", Status: "attached"},
		}},
		{"running", runningID, []boxvolumes.Volume{{ID: "vol-5dfe4b235b7c2c6c0", Device: "/dev/sda1", Status: "attached", DeleteOnTermination: true}}},
		{"terminated", terminatedID, nil},
		{"notfound", unknownID, nil},
	} {
		seen := disks(t, describer(t, recorded(t, row.name)).Describer, boxOf(row.id))
		require.Equal(t, row.want, seen.Volumes, row.name)
	}
}

func TestRecordedMembershipsOfAnotherMock(t *testing.T) {
	groups := func(instances, groups string) *awscloud.Groups {
		sdkEnv(t)
		t.Setenv("AWS_ENDPOINT_URL_AUTO_SCALING", serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name := instances
			if r.FormValue("Action") == "DescribeAutoScalingGroups" {
				name = groups
			}
			recorded(t, name).ServeHTTP(w, r)
		})))
		g, err := awscloud.NewGroups(t.Context())
		require.NoError(t, err)
		return g
	}
	seen, err := groups("asg-instance", "asg-group").Member(t.Context(), homeRegion, memberID)
	require.NoError(t, err)
	require.Len(t, seen.RequestIDs, 2)
	seen.RequestIDs = nil
	require.Equal(t, membership.Observation{Found: true, InstanceID: memberID, AWSRegion: homeRegion, Zone: "eu-west-1a",
		GroupName: "shop", LifecycleState: membership.InService,
		GroupARN: "arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:b37c694c-1adc-46d7-85d7-08a00ee65a84:autoScalingGroupName/shop",
	}, seen)

	seen, err = groups("asg-noinstance", "asg-nogroup").Member(t.Context(), homeRegion, unknownID)
	require.NoError(t, err)
	require.False(t, seen.Found)
	_, err = groups("asg-instance", "asg-nogroup").Member(t.Context(), homeRegion, memberID)
	require.ErrorIs(t, err, awscloud.ErrIncomplete, "the two disagree")
	_, err = groups("asg-instance", "asg-group").Member(t.Context(), homeRegion, unknownID)
	require.ErrorIs(t, err, awscloud.ErrIncomplete, "another instance")
}

func TestRecordedMessagesOfAnotherMock(t *testing.T) {
	receive := func(name string) ([]event.Message, error) {
		sdkEnv(t)
		t.Setenv("AWS_ENDPOINT_URL_SQS", serve(t, recorded(t, name)))
		queue, err := awscloud.NewQueue(t.Context(), "http://127.0.0.1:5599/123456789012/terminations")
		require.NoError(t, err)
		return queue.Receive(t.Context())
	}
	all, err := receive("sqs-events")
	require.NoError(t, err)
	require.Len(t, all, 2)
	for n, state := range []string{"shutting-down", "terminated"} {
		require.NotEmpty(t, all[n].ID)
		require.NotEmpty(t, all[n].Handle)
		require.Equal(t, 1, all[n].Receives)
		_, err := event.Decode(all[n].Body)
		require.ErrorContains(t, err, "account is empty", "the mock leaves out what EventBridge never does")
		whole := strings.Replace(string(all[n].Body), "{", `{"account":"123456789012",`, 1)
		seen, err := event.Decode([]byte(whole))
		require.NoError(t, err)
		require.Equal(t, state, seen.State)
	}

	all, err = receive("sqs-others")
	require.NoError(t, err)
	require.Len(t, all, 2)
	_, err = event.Decode(all[0].Body)
	require.ErrorIs(t, err, event.ErrOtherEvent)
	require.Equal(t, "poison", string(all[1].Body))
	all, err = receive("sqs-empty")
	require.NoError(t, err)
	require.Empty(t, all)
	_, err = receive("sqs-noqueue")
	require.ErrorContains(t, err, "NonExistentQueue")
}
