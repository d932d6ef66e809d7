// Package event reads what EventBridge sends through an SQS queue: a [Message]
// as the queue delivers it, and the [termfence.Observation] that its body makes.
// It knows no AWS SDK, so that a worker is built and tested without one;
// package awscloud has the queue itself.
//
// # Guarantees
//
// Only an "EC2 Instance State-change Notification" of EC2 itself becomes an
// observation: whole, unambiguous, and in agreement with its own resource ARN.
// A CloudTrail record of a request, a warning to a spot instance, an Auto
// Scaling activity and every other event are [ErrOtherEvent]. What cannot be
// read is an error, and an error is never an observation.
//
// # Not guaranteed
//
// A queue delivers late, twice and in any order, and whoever may send to it may
// send anything: an observation says what a message claims, not that it is true
// now. Whether it fences a box is termfence's rule, and its time is the reader's.
package event
