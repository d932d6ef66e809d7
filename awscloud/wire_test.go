package awscloud_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/simcloud"
)

// The simulation is held to its protocol by the real SDK here, where EC2's
// client is compiled anyway.
func sdk(t *testing.T) *ec2.Client {
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(homeRegion))
	require.NoError(t, err)
	return ec2.NewFromConfig(cfg)
}

func TestTheSDKTerminatesAndStops(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	a, b, client := c.launch(t).InstanceID, c.launch(t).InstanceID, sdk(t)

	out, err := client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{a}})
	require.NoError(t, err)
	require.Len(t, out.TerminatingInstances, 1)
	require.Equal(t, types.InstanceStateNameRunning, out.TerminatingInstances[0].PreviousState.Name)
	require.Equal(t, types.InstanceStateNameShuttingDown, out.TerminatingInstances[0].CurrentState.Name)
	require.EqualValues(t, 32, *out.TerminatingInstances[0].CurrentState.Code)

	stopped, err := client.StopInstances(t.Context(), &ec2.StopInstancesInput{InstanceIds: []string{b}})
	require.NoError(t, err)
	require.Equal(t, types.InstanceStateNameStopping, stopped.StoppingInstances[0].CurrentState.Name)

	_, err = client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{b, unknownID}})
	requireCode(t, err, "InvalidInstanceID.NotFound")
	seen, err := c.Describe(t.Context(), boxOf(b))
	require.NoError(t, err)
	require.Equal(t, "stopping", seen.State, "one unknown id refuses the whole request")
}

func TestTheSDKPages(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	var want []string
	for range 12 {
		want = append(want, c.launch(t).InstanceID)
	}
	c.launchIn(t, clientRegion, "")

	pages := ec2.NewDescribeInstancesPaginator(sdk(t), &ec2.DescribeInstancesInput{MaxResults: aws.Int32(5)})
	var got []string
	for n := 0; pages.HasMorePages(); n++ {
		require.Less(t, n, 3)
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		got = append(got, ids(page)...)
	}
	require.Equal(t, want, got)
}

func TestTheSDKFilters(t *testing.T) {
	c := newCloud(t, simcloud.Config{})
	running, gone, client := c.launch(t).InstanceID, c.terminated(t).InstanceID, sdk(t)
	by := func(name string, values ...string) ([]string, error) {
		out, err := client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{
			Filters: []types.Filter{{Name: &name, Values: values}}})
		if err != nil {
			return nil, err
		}
		return ids(out), nil
	}
	got, err := by("instance-state-name", "terminated", "stopped")
	require.NoError(t, err)
	require.Equal(t, []string{gone}, got)
	got, err = by("owner-id", simcloud.DefaultAccount)
	require.NoError(t, err)
	require.Equal(t, []string{running, gone}, got)
	_, err = by("colour", "blue")
	requireCode(t, err, "InvalidParameterValue")

	_, err = client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{
		InstanceIds: []string{running}, MaxResults: aws.Int32(5)})
	requireCode(t, err, "InvalidParameterCombination")
}

func ids(out *ec2.DescribeInstancesOutput) []string {
	var all []string
	for _, r := range out.Reservations {
		for _, i := range r.Instances {
			all = append(all, *i.InstanceId)
		}
	}
	return all
}

func requireCode(t *testing.T, err error, code string) {
	var refused smithy.APIError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, code, refused.ErrorCode())
}
