package awscloud_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/awscloud"
	"github.com/carlosframework/regionha/internal/simcloud"
	"github.com/carlosframework/regionha/membership"
)

const shopGroup = "shop"

// grouped is a cloud with an instance that a group launched.
func grouped(t *testing.T, cfg simcloud.Config) (*cloud, *awscloud.Groups, string) {
	c := newCloud(t, cfg)
	groups, err := awscloud.NewGroups(t.Context())
	require.NoError(t, err)
	i, err := c.LaunchInGroup(homeRegion, "", shopGroup)
	require.NoError(t, err)
	return c, groups, i.ID
}

func TestAMembershipIsReadWithItsGroupsARN(t *testing.T) {
	c, groups, id := grouped(t, simcloud.Config{JoinTime: time.Minute})
	member := func() membership.Observation {
		seen, err := groups.Member(t.Context(), homeRegion, id)
		require.NoError(t, err)
		return seen
	}
	seen := member()
	require.Len(t, seen.RequestIDs, 2)
	require.NotContains(t, seen.RequestIDs, "")
	seen.RequestIDs = nil
	want := membership.Observation{Found: true, InstanceID: id, AWSRegion: homeRegion, Zone: "eu-west-1a", GroupName: shopGroup,
		GroupARN: simcloud.GroupARN(homeRegion, simcloud.DefaultAccount, shopGroup), LifecycleState: membership.Pending}
	require.Equal(t, want, seen)

	c.now = c.now.Add(time.Minute)
	require.Equal(t, membership.InService, member().LifecycleState)
	require.NoError(t, c.Terminate(id))
	require.Equal(t, "Terminating", member().LifecycleState)
	c.now = c.now.Add(shutdownTime)
	require.False(t, member().Found, "terminated")
}

func TestAnInstanceOfNoGroupIsAnEmptyObservation(t *testing.T) {
	c, groups, id := grouped(t, simcloud.Config{})
	for name, asked := range map[string][2]string{
		"launched by nobody's group": {homeRegion, c.launch(t).InstanceID},
		"never launched":             {homeRegion, unknownID},
		"another region's":           {clientRegion, id},
	} {
		seen, err := groups.Member(t.Context(), asked[0], asked[1])
		require.NoError(t, err, name)
		require.Len(t, seen.RequestIDs, 1, name)
		seen.RequestIDs = nil
		require.Equal(t, membership.Observation{InstanceID: asked[1], AWSRegion: asked[0]}, seen, name)
	}
	for _, asked := range [][2]string{{"", id}, {homeRegion, ""}} {
		_, err := groups.Member(t.Context(), asked[0], asked[1])
		require.ErrorContains(t, err, "is empty", "no id would list every instance")
	}
}

func TestAFailedMembershipIsAnErrorAndNoObservation(t *testing.T) {
	for kind, want := range map[string]string{
		simcloud.Throttled: "Throttling",
		simcloud.Denied:    "AccessDenied",
		simcloud.Expired:   "ExpiredToken",
		simcloud.Broken:    "InternalFailure",
		simcloud.Partial:   "more pages follow",
		simcloud.Cut:       "EOF",
	} {
		for _, action := range []string{"DescribeAutoScalingInstances", "DescribeAutoScalingGroups"} {
			t.Run(kind+" "+action, func(t *testing.T) {
				c, groups, id := grouped(t, simcloud.Config{})
				require.NoError(t, c.Inject(simcloud.Fault{Kind: kind, Action: action}))
				seen, err := groups.Member(t.Context(), homeRegion, id)
				require.ErrorContains(t, err, want)
				require.ErrorContains(t, err, id)
				require.Zero(t, seen)
				c.ClearFaults()
				seen, err = groups.Member(t.Context(), homeRegion, id)
				require.NoError(t, err)
				require.True(t, seen.Found)
			})
		}
	}
}

func TestAThrottledMembershipIsRetried(t *testing.T) {
	c, groups, id := grouped(t, simcloud.Config{})
	require.NoError(t, c.Inject(simcloud.Fault{Kind: simcloud.Throttled, Count: 2}))
	seen, err := groups.Member(t.Context(), homeRegion, id)
	require.NoError(t, err)
	require.True(t, seen.Found)
}

func TestAMembershipThatHangsEndsWithItsCaller(t *testing.T) {
	c, groups, id := grouped(t, simcloud.Config{})
	require.NoError(t, c.Inject(simcloud.Fault{Kind: simcloud.Hang}))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := groups.Member(ctx, homeRegion, id)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// Each row spoils the good replies in one way.
func TestRepliesThatAreNoWholeAnswerAboutAMembership(t *testing.T) {
	for name, row := range map[string]struct{ action, old, new, refused string }{
		"another instance":    {"Instances", "<InstanceId>", "<InstanceId>i-0", "names instance"},
		"two instances":       {"Instances", "</member>", "</member><member><InstanceId>i-0</InstanceId></member>", "2 entries"},
		"no group":            {"Instances", shopGroup, "", "names no group"},
		"no lifecycle state":  {"Instances", "InService", "", "no lifecycle state"},
		"no zone":             {"Instances", "eu-west-1a", "", "zone"},
		"another zone":        {"Instances", "eu-west-1a", "us-east-1a", "zone"},
		"a longer region":     {"Instances", "eu-west-1a", "eu-west-10a", "zone"},
		"no such group":       {"Groups", "AutoScalingGroups>", "Nothing>", "does not show group"},
		"another group":       {"Groups", "Name>" + shopGroup, "Name>shop-2", "names group"},
		"two groups":          {"Groups", "</AutoScalingGroups>", "<member></member></AutoScalingGroups>", "2 entries"},
		"an ARN that is none": {"Groups", "arn:aws:autoscaling:eu-west-1:", "", "ARN"},
		"no ARN":              {"Groups", "AutoScalingGroupARN>", "Other>", "ARN"},
		"another region":      {"Groups", "arn:aws:autoscaling:eu-west-1:", "arn:aws:autoscaling:us-east-1:", "ARN"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, id := grouped(t, simcloud.Config{})
			t.Setenv("AWS_ENDPOINT_URL_AUTO_SCALING", serve(t, spoiled(t, c.AutoScaling(), "DescribeAutoScaling"+row.action, row.old, row.new)))
			groups, err := awscloud.NewGroups(t.Context())
			require.NoError(t, err)
			seen, err := groups.Member(t.Context(), homeRegion, id)
			require.ErrorIs(t, err, awscloud.ErrIncomplete)
			require.ErrorContains(t, err, row.refused)
			require.Zero(t, seen)
		})
	}
}

// spoiled replaces old by new in every reply to action.
func spoiled(t *testing.T, handler http.Handler, action, old, new string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := httptest.NewRecorder()
		handler.ServeHTTP(reply, r)
		body := reply.Body.String()
		if r.FormValue("Action") == action {
			require.Contains(t, body, old)
			body = strings.ReplaceAll(body, old, new)
		}
		w.Header().Set("Content-Type", reply.Header().Get("Content-Type"))
		_, _ = w.Write([]byte(body))
	})
}
