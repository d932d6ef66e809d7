package worker

import (
	"context"

	"github.com/carlosframework/regionha/awscloud/event"
	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/membership"
	"github.com/carlosframework/regionha/termfence"
)

// Cloud is what a worker asks of the cloud. It only reads there, but for the
// messages that it takes off its queue.
type Cloud struct {
	Instances Instances // required
	Groups    Groups    // nil: boxes are enrolled by an operator only
	Events    Events    // nil: no queue; terminations are found by asking
}

// Instances tells the state of machines.
type Instances interface {
	// Describe reads one instance, alone, in its own region: its state, and its
	// disks from the same reply. An instance that the cloud does not know is an
	// observation that says so; an error says nothing.
	Describe(ctx context.Context, box boxid.Cloud) (termfence.Observation, boxvolumes.Observation, error)
}

// Groups tells which group launched a machine.
type Groups interface {
	// Member reads the membership of one instance in a region of the cloud.
	Member(ctx context.Context, awsRegion, instanceID string) (membership.Observation, error)
}

// Events is the queue of the cloud's own notifications.
type Events interface {
	// Receive waits up to 20 s for messages, and returns at most 10. One that is
	// not deleted comes again.
	Receive(ctx context.Context) ([]event.Message, error)

	// Delete takes a message off the queue for ever.
	Delete(ctx context.Context, m event.Message) error
}
