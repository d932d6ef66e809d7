package awscloud

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/carlosframework/regionha/membership"
)

// MemberTimeout bounds one [Groups.Member], its two requests and their retries
// included.
const MemberTimeout = 10 * time.Second

// Groups reads which Auto Scaling group an instance belongs to. It is safe for
// concurrent use.
type Groups struct {
	client *autoscaling.Client
}

// NewGroups makes a Groups from the SDK's default configuration. It sends no
// request.
func NewGroups(ctx context.Context) (*Groups, error) {
	cfg, err := configure(ctx)
	if err != nil {
		return nil, err
	}
	return &Groups{autoscaling.NewFromConfig(cfg)}, nil
}

// Member reads the membership of one instance in a region of the cloud, in two
// requests: the instance's own record, and the ARN of the group that it names.
// An instance that no group has is an observation with Found false; every
// failure is an error, [ErrIncomplete] where the replies are not a whole answer.
func (g *Groups) Member(ctx context.Context, awsRegion, instanceID string) (membership.Observation, error) {
	seen, err := g.member(ctx, awsRegion, instanceID)
	if err != nil {
		return membership.Observation{}, fmt.Errorf("membership of %s in %s: %w", instanceID, awsRegion, err)
	}
	return seen, nil
}

func (g *Groups) member(ctx context.Context, awsRegion, instanceID string) (membership.Observation, error) {
	if awsRegion == "" || instanceID == "" {
		return membership.Observation{}, errors.New("the region or the instance is empty") // no id asks for every instance
	}
	ctx, cancel := context.WithTimeout(ctx, MemberTimeout)
	defer cancel()
	in := func(o *autoscaling.Options) { o.Region = awsRegion }
	seen := membership.Observation{InstanceID: instanceID, AWSRegion: awsRegion}

	instances, err := g.client.DescribeAutoScalingInstances(ctx,
		&autoscaling.DescribeAutoScalingInstancesInput{InstanceIds: []string{instanceID}}, in)
	if err != nil {
		return seen, err
	}
	seen.RequestIDs = []string{requestID(instances.ResultMetadata)}
	one, err := single(instances.AutoScalingInstances, instances.NextToken)
	if err != nil || one == nil {
		return seen, err
	}
	if err := readMember(&seen, one); err != nil {
		return seen, err
	}

	groups, err := g.client.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{
		AutoScalingGroupNames: []string{seen.GroupName}, IncludeInstances: aws.Bool(false)}, in)
	if err != nil {
		return seen, err
	}
	seen.RequestIDs = append(seen.RequestIDs, requestID(groups.ResultMetadata))
	group, err := single(groups.AutoScalingGroups, groups.NextToken)
	if err != nil {
		return seen, err
	}
	return seen, readGroup(&seen, group)
}

// single returns the only entry of a whole reply, nil for none.
func single[T any](all []T, next *string) (*T, error) {
	switch {
	case aws.ToString(next) != "":
		return nil, fmt.Errorf("%w: more pages follow", ErrIncomplete)
	case len(all) > 1:
		return nil, fmt.Errorf("%w: it has %d entries, expected 1", ErrIncomplete, len(all))
	case len(all) == 0:
		return nil, nil
	}
	return &all[0], nil
}

func readMember(seen *membership.Observation, i *types.AutoScalingInstanceDetails) error {
	if id := aws.ToString(i.InstanceId); id != seen.InstanceID {
		return fmt.Errorf("%w: it names instance %q", ErrIncomplete, id)
	}
	seen.GroupName = aws.ToString(i.AutoScalingGroupName)
	seen.LifecycleState = aws.ToString(i.LifecycleState)
	seen.Zone = aws.ToString(i.AvailabilityZone)
	switch {
	case seen.GroupName == "":
		return fmt.Errorf("%w: it names no group", ErrIncomplete)
	case seen.LifecycleState == "":
		return fmt.Errorf("%w: it names no lifecycle state", ErrIncomplete)
	case !zoneIn(seen.Zone, seen.AWSRegion):
		return fmt.Errorf("%w: its zone %q is not in %s", ErrIncomplete, seen.Zone, seen.AWSRegion)
	}
	return nil
}

// readGroup completes seen. A group that its own instance names but that is not
// shown is one of two replies that disagree.
func readGroup(seen *membership.Observation, g *types.AutoScalingGroup) error {
	if g == nil {
		return fmt.Errorf("%w: it does not show group %q", ErrIncomplete, seen.GroupName)
	}
	if name := aws.ToString(g.AutoScalingGroupName); name != seen.GroupName {
		return fmt.Errorf("%w: it names group %q, expected %q", ErrIncomplete, name, seen.GroupName)
	}
	// arn:<partition>:autoscaling:<region>:<account>:autoScalingGroup:<uuid>:autoScalingGroupName/<name>
	arn := aws.ToString(g.AutoScalingGroupARN)
	if parts := strings.Split(arn, ":"); len(parts) < 6 || parts[3] != seen.AWSRegion {
		return fmt.Errorf("%w: its group's ARN %q is not in %s", ErrIncomplete, arn, seen.AWSRegion)
	}
	seen.Found, seen.GroupARN = true, arn
	return nil
}
