package awscloud

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/termfence"
)

// DescribeTimeout bounds one [Describer.Describe], its retries included.
const DescribeTimeout = 5 * time.Second

// Describer reads the state and the disks of EC2 instances. It is safe for
// concurrent use.
type Describer struct {
	client  *ec2.Client
	timeout time.Duration
}

// NewDescriber makes a Describer from the SDK's default configuration. It
// sends no request.
func NewDescriber(ctx context.Context) (*Describer, error) {
	cfg, err := configure(ctx)
	if err != nil {
		return nil, err
	}
	return &Describer{ec2.NewFromConfig(cfg), DescribeTimeout}, nil
}

// Describe reads box's instance, alone, in the region that its cloud names: its
// state and its disks, both from one reply. An instance that EC2 does not know,
// or leaves out of a whole answer, is an observation with Found false; every
// failure is an error, [ErrIncomplete] where EC2 answered but not in full.
//
// The observations' Account is the owner that the reply names, not the one
// expected: comparing them is the verifier's part.
func (d *Describer) Describe(ctx context.Context, box boxid.Cloud) (termfence.Observation, boxvolumes.Observation, error) {
	seen, err := d.describe(ctx, box)
	if err != nil {
		return termfence.Observation{}, boxvolumes.Observation{}, fmt.Errorf("describe %s: %w", box, err)
	}
	return seen.state, boxvolumes.Observation{
		Found: seen.state.Found, InstanceID: seen.state.InstanceID, Account: seen.state.Account,
		Region: seen.state.Region, State: seen.state.State, Volumes: seen.volumes,
	}, nil
}

// sight is what one reply says of the one instance that it is about.
type sight struct {
	state   termfence.Observation
	volumes []boxvolumes.Volume
}

func (d *Describer) describe(ctx context.Context, box boxid.Cloud) (sight, error) {
	if !box.Complete() {
		return sight{}, errNoCloud
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	out, err := d.client.DescribeInstances(ctx,
		&ec2.DescribeInstancesInput{InstanceIds: []string{box.InstanceID}},
		func(o *ec2.Options) { o.Region = box.Region })
	if err != nil {
		return describeFailed(box, err)
	}
	seen := absent(box)
	seen.state.RequestID = requestID(out.ResultMetadata)
	if err := seen.read(out); err != nil {
		return sight{}, fmt.Errorf("%w (request %s)", err, seen.state.RequestID)
	}
	return seen, nil
}

var errNoCloud = errors.New("the box has no complete cloud identity")

// absent is the sight of box's instance not being in the answer.
func absent(box boxid.Cloud) sight {
	return sight{state: termfence.Observation{Via: termfence.ViaDescribe, InstanceID: box.InstanceID, Region: box.Region}}
}

// describeFailed tells the one refusal that is an answer from all others: only
// NotFound says something about the instance.
func describeFailed(box boxid.Cloud, err error) (sight, error) {
	var refused smithy.APIError
	if !errors.As(err, &refused) || refused.ErrorCode() != "InvalidInstanceID.NotFound" {
		return sight{}, err
	}
	seen := absent(box)
	var failed interface{ ServiceRequestID() string }
	if errors.As(err, &failed) {
		seen.state.RequestID = failed.ServiceRequestID()
	}
	return seen, nil
}

// read fills s from a reply that must be whole and about nothing else.
func (s *sight) read(out *ec2.DescribeInstancesOutput) error {
	if aws.ToString(out.NextToken) != "" {
		return fmt.Errorf("%w: more pages follow", ErrIncomplete)
	}
	for _, r := range out.Reservations {
		for _, i := range r.Instances {
			if s.state.Found {
				return fmt.Errorf("%w: it names more than one instance", ErrIncomplete)
			}
			if err := s.readInstance(aws.ToString(r.OwnerId), i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sight) readInstance(owner string, i types.Instance) error {
	if id := aws.ToString(i.InstanceId); id != s.state.InstanceID {
		return fmt.Errorf("%w: it names instance %q", ErrIncomplete, id)
	}
	if owner == "" {
		return fmt.Errorf("%w: it names no owner", ErrIncomplete)
	}
	if i.State == nil || i.State.Name == "" {
		return fmt.Errorf("%w: it names no state", ErrIncomplete)
	}
	if i.Placement != nil {
		// A reply may leave the zone out.
		if zone := aws.ToString(i.Placement.AvailabilityZone); zone != "" && !zoneIn(zone, s.state.Region) {
			return fmt.Errorf("%w: its zone %q is not in %s", ErrIncomplete, zone, s.state.Region)
		}
	}
	s.state.Found, s.state.Account, s.state.State = true, owner, string(i.State.Name)
	s.volumes = volumes(i.BlockDeviceMappings)
	return nil
}

// volumes lists the EBS volumes of a mapping. One that lacks a member is listed
// without it, and one that does not say that it goes with its instance as
// staying: boxvolumes refuses to rest on either.
func volumes(mapping []types.InstanceBlockDeviceMapping) []boxvolumes.Volume {
	var all []boxvolumes.Volume
	for _, m := range mapping {
		if m.Ebs == nil {
			continue // an instance store, which ends with its instance
		}
		all = append(all, boxvolumes.Volume{
			ID: aws.ToString(m.Ebs.VolumeId), Device: aws.ToString(m.DeviceName),
			Status: string(m.Ebs.Status), DeleteOnTermination: aws.ToBool(m.Ebs.DeleteOnTermination),
		})
	}
	return all
}
