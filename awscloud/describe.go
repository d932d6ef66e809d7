package awscloud

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/termfence"
)

const (
	// DescribeTimeout bounds one [Describer.Describe], its retries included.
	DescribeTimeout = 5 * time.Second

	// Callers ask again by themselves, so few attempts and short waits: a call
	// that fails fast says why sooner than one that hangs.
	attempts   = 3
	maxBackoff = 300 * time.Millisecond
)

// ErrIncomplete: the reply is not a whole answer about the one instance asked
// for. It is no observation; ask again.
var ErrIncomplete = errors.New("incomplete reply")

// Describer reads the state of EC2 instances. It is safe for concurrent use.
type Describer struct {
	client  *ec2.Client
	timeout time.Duration
}

// NewDescriber makes a Describer from the SDK's default configuration. It
// sends no request.
func NewDescriber(ctx context.Context) (*Describer, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("aws configuration: %w", err)
	}
	client := ec2.NewFromConfig(cfg, func(o *ec2.Options) {
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) { r.MaxAttempts, r.MaxBackoff = attempts, maxBackoff })
	})
	return &Describer{client, DescribeTimeout}, nil
}

// Describe reads box's instance, alone, in the region that its cloud names. An
// instance that EC2 does not know, or leaves out of a whole answer, is an
// observation with Found false; every failure is an error, [ErrIncomplete]
// where EC2 answered but not in full.
//
// The observation's Account is the owner that the reply names, not the one
// expected: comparing them is the verifier's part.
func (d *Describer) Describe(ctx context.Context, box boxid.Cloud) (termfence.Observation, error) {
	if !box.Complete() {
		return termfence.Observation{}, fmt.Errorf("describe %s: %w", box, errNoCloud)
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
	seen.RequestID, _ = awsmiddleware.GetRequestIDMetadata(out.ResultMetadata)
	if err := read(&seen, out); err != nil {
		return termfence.Observation{}, fmt.Errorf("describe %s in %s: %w (request %s)",
			box.InstanceID, box.Region, err, seen.RequestID)
	}
	return seen, nil
}

var errNoCloud = errors.New("the box has no complete cloud identity")

// absent is the observation that box's instance was not in the answer.
func absent(box boxid.Cloud) termfence.Observation {
	return termfence.Observation{Via: termfence.ViaDescribe, InstanceID: box.InstanceID, Region: box.Region}
}

// describeFailed tells the one refusal that is an answer from all others: only
// NotFound says something about the instance.
func describeFailed(box boxid.Cloud, err error) (termfence.Observation, error) {
	var refused smithy.APIError
	if errors.As(err, &refused) && refused.ErrorCode() == "InvalidInstanceID.NotFound" {
		seen := absent(box)
		var failed interface{ ServiceRequestID() string }
		if errors.As(err, &failed) {
			seen.RequestID = failed.ServiceRequestID()
		}
		return seen, nil
	}
	return termfence.Observation{}, fmt.Errorf("describe %s in %s: %w", box.InstanceID, box.Region, err)
}

// read fills seen from a reply that must be whole and about nothing else.
func read(seen *termfence.Observation, out *ec2.DescribeInstancesOutput) error {
	if token := aws.ToString(out.NextToken); token != "" {
		return fmt.Errorf("%w: more pages follow", ErrIncomplete)
	}
	for _, r := range out.Reservations {
		for _, i := range r.Instances {
			if seen.Found {
				return fmt.Errorf("%w: it names more than one instance", ErrIncomplete)
			}
			if err := readInstance(seen, aws.ToString(r.OwnerId), i); err != nil {
				return err
			}
		}
	}
	return nil
}

func readInstance(seen *termfence.Observation, owner string, i types.Instance) error {
	if id := aws.ToString(i.InstanceId); id != seen.InstanceID {
		return fmt.Errorf("%w: it names instance %q", ErrIncomplete, id)
	}
	if owner == "" {
		return fmt.Errorf("%w: it names no owner", ErrIncomplete)
	}
	if i.State == nil || i.State.Name == "" {
		return fmt.Errorf("%w: it names no state", ErrIncomplete)
	}
	if i.Placement != nil {
		if zone := aws.ToString(i.Placement.AvailabilityZone); !zoneIn(zone, seen.Region) {
			return fmt.Errorf("%w: its zone %q is not in %s", ErrIncomplete, zone, seen.Region)
		}
	}
	seen.Found, seen.Account, seen.State = true, owner, string(i.State.Name)
	return nil
}

// zoneIn reports whether an availability zone ("eu-west-1a", the local zone
// "us-west-2-lax-1a") may be in region. It catches an endpoint setting that
// sends every region's requests to one region. A reply may leave the zone out.
func zoneIn(zone, region string) bool {
	rest, ok := strings.CutPrefix(zone, region)
	return zone == "" || ok && rest != "" && (rest[0] < '0' || rest[0] > '9')
}
