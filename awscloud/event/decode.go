package event

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/carlosframework/regionha/termfence"
)

const (
	source     = "aws.ec2"
	detailType = "EC2 Instance State-change Notification"
)

// ErrOtherEvent: the body is an EventBridge event, but not a state change of an
// EC2 instance (a spot warning, a scheduled event, another service's). It says
// nothing about any box and may be dropped.
var ErrOtherEvent = errors.New("not an EC2 instance state change")

// notification holds the members that are read. AWS documents that members may
// be added, so others are allowed; the parser still refuses duplicate names,
// trailing data and invalid UTF-8.
type notification struct {
	Version    string   `json:"version"`
	ID         string   `json:"id"`
	Source     string   `json:"source"`
	DetailType string   `json:"detail-type"`
	Account    string   `json:"account"`
	Region     string   `json:"region"`
	Resources  []string `json:"resources"`
	Detail     struct {
		InstanceID string `json:"instance-id"`
		State      string `json:"state"`
	} `json:"detail"`
}

// Decode reads one "EC2 Instance State-change Notification", as an SQS queue
// delivers it, into the observation that it makes. Every other event is [ErrOtherEvent]; one that lacks its id, its account, region,
// instance or state, or whose resource ARN disagrees with them, is refused.
func Decode(body []byte) (termfence.Observation, error) {
	var e notification
	if err := json.Unmarshal(body, &e); err != nil {
		return termfence.Observation{}, fmt.Errorf("event: %w", err)
	}
	if e.Source != source || e.DetailType != detailType {
		return termfence.Observation{}, fmt.Errorf("event %q: %w: source %q, detail-type %q",
			e.ID, ErrOtherEvent, e.Source, e.DetailType)
	}
	if err := e.check(); err != nil {
		return termfence.Observation{}, fmt.Errorf("event %q: %w", e.ID, err)
	}
	return termfence.Observation{
		Via: termfence.ViaEvent, Found: true, EventID: e.ID,
		InstanceID: e.Detail.InstanceID, State: e.Detail.State,
		Account: e.Account, Region: e.Region,
	}, nil
}

func (e notification) check() error {
	for _, f := range []struct{ name, value string }{
		{"id", e.ID}, {"account", e.Account}, {"region", e.Region},
		{"detail.instance-id", e.Detail.InstanceID}, {"detail.state", e.Detail.State},
	} {
		if f.value == "" {
			return fmt.Errorf("%s is empty", f.name)
		}
	}
	if e.Version != "0" {
		return fmt.Errorf("version is %q, expected \"0\"", e.Version)
	}
	if len(e.Resources) != 1 {
		return fmt.Errorf("resources has %d entries, expected 1", len(e.Resources))
	}
	return e.checkARN(e.Resources[0])
}

// checkARN holds the event against its own resource,
// arn:<partition>:ec2:<region>:<account>:instance/<id>.
func (e notification) checkARN(arn string) error {
	rest, ok := strings.CutPrefix(arn, "arn:")
	partition, rest, cut := strings.Cut(rest, ":")
	want := fmt.Sprintf("ec2:%s:%s:instance/%s", e.Region, e.Account, e.Detail.InstanceID)
	if !ok || !cut || partition == "" || rest != want {
		return fmt.Errorf("resource is %q, expected arn:<partition>:%s", arn, want)
	}
	return nil
}
