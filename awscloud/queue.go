package awscloud

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/carlosframework/regionha/awscloud/event"
)

const (
	// ReceiveWait is how long SQS waits for a message that is not there yet.
	ReceiveWait = 20 * time.Second

	// MaxMessages bounds what one [Queue.Receive] returns, as SQS itself does.
	MaxMessages = 10

	// The client waits longer than SQS does, its retries included.
	receiveTimeout = ReceiveWait + 10*time.Second
	deleteTimeout  = 5 * time.Second
)

// Queue is an SQS queue to which EventBridge sends. It is safe for concurrent
// use.
type Queue struct {
	client  *sqs.Client
	url     string
	timeout time.Duration // of a receive
}

// NewQueue makes a Queue from the SDK's default configuration. It sends no
// request. The requests go to the region that the queue's URL names,
// https://sqs.<region>.amazonaws.com/<account>/<name>; with any other host, to
// the region that is configured.
func NewQueue(ctx context.Context, queueURL string) (*Queue, error) {
	cfg, err := configure(ctx)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(queueURL)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	if u.Host == "" || strings.Trim(u.Path, "/") == "" {
		return nil, fmt.Errorf("queue is %q, expected https://sqs.<region>.amazonaws.com/<account>/<name>", queueURL)
	}
	if labels := strings.Split(u.Hostname(), "."); len(labels) > 3 && labels[0] == "sqs" {
		cfg.Region = labels[1]
	}
	if cfg.Region == "" {
		return nil, fmt.Errorf("queue %s names no region, and none is configured", queueURL)
	}
	return &Queue{sqs.NewFromConfig(cfg), queueURL, receiveTimeout}, nil
}

// Receive waits up to [ReceiveWait] for messages and returns at most
// [MaxMessages], none if none came. One that is not deleted comes again after
// the queue's own visibility timeout.
func (q *Queue) Receive(ctx context.Context) ([]event.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:                    &q.url,
		MaxNumberOfMessages:         MaxMessages,
		WaitTimeSeconds:             int32(ReceiveWait / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameApproximateReceiveCount},
	})
	if err != nil {
		return nil, fmt.Errorf("receive from %s: %w", q.url, err)
	}
	if len(out.Messages) > MaxMessages {
		return nil, fmt.Errorf("receive from %s: %w: %d messages, expected at most %d", q.url, ErrIncomplete, len(out.Messages), MaxMessages)
	}
	all := make([]event.Message, 0, len(out.Messages))
	for _, m := range out.Messages {
		all = append(all, message(m))
	}
	return all, nil
}

// message never fails: whatever came is the receiver's to drop.
func message(m types.Message) event.Message {
	received := event.Message{ID: aws.ToString(m.MessageId), Handle: aws.ToString(m.ReceiptHandle)}
	received.Receives, _ = strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
	if body := aws.ToString(m.Body); len(body) <= event.MaxBody {
		received.Body = []byte(body)
	}
	return received
}

// Delete takes a message off the queue for ever. A handle that a later delivery
// has replaced may no longer do so: the message then comes again.
func (q *Queue) Delete(ctx context.Context, m event.Message) error {
	if m.Handle == "" {
		return fmt.Errorf("delete message %q: %w", m.ID, errNoHandle)
	}
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	_, err := q.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &q.url, ReceiptHandle: &m.Handle})
	if err != nil {
		return fmt.Errorf("delete message %s from %s: %w", m.ID, q.url, err)
	}
	return nil
}

var errNoHandle = errors.New("it has no receipt handle")
