package awscloud_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/awscloud"
	"github.com/carlosframework/regionha/awscloud/event"
	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/simcloud"
)

const visibility = 30 * time.Second

// queued is a cloud and a real client of its home region's queue, which waits
// for no message for long.
type queued struct {
	*cloud
	*awscloud.Queue
}

func newQueued(t *testing.T) queued {
	c := newCloud(t, simcloud.Config{Visibility: visibility, LongestWait: 20 * time.Millisecond})
	queue, err := awscloud.NewQueue(t.Context(), "https://sqs."+homeRegion+".amazonaws.com"+c.QueuePath())
	require.NoError(t, err)
	return queued{c, queue}
}

func (q queued) receive(t *testing.T) []event.Message {
	all, err := q.Receive(t.Context())
	require.NoError(t, err)
	return all
}

// drain deletes what waits, and returns what it was.
func (q queued) drain(t *testing.T) []event.Message {
	var all []event.Message
	for {
		got := q.receive(t)
		if len(got) == 0 {
			return all
		}
		for _, m := range got {
			require.NoError(t, q.Delete(t.Context(), m))
		}
		all = append(all, got...)
	}
}

// statesOf decodes messages that all are events about box.
func statesOf(t *testing.T, box boxid.Cloud, all []event.Message) []string {
	var states []string
	for _, m := range all {
		seen, err := event.Decode(m.Body)
		require.NoError(t, err)
		require.Equal(t, box, boxid.Cloud{Provider: boxid.AWS, Account: seen.Account, Region: seen.Region, InstanceID: seen.InstanceID})
		states = append(states, seen.State)
	}
	return states
}

func TestEveryChangeOfStateComesThroughTheQueue(t *testing.T) {
	q := newQueued(t)
	box := q.launch(t)
	require.NoError(t, q.Stop(box.InstanceID))
	q.now = q.now.Add(shutdownTime)
	require.NoError(t, q.Start(box.InstanceID))
	q.now = q.now.Add(shutdownTime)
	require.NoError(t, q.Terminate(box.InstanceID))
	require.Equal(t, []string{"running", "stopping", "stopped", "pending", "running", "shutting-down"}, statesOf(t, box, q.drain(t)))
	q.now = q.now.Add(shutdownTime)
	require.Equal(t, []string{"terminated"}, statesOf(t, box, q.drain(t)))
}

func TestAMessageThatIsNotDeletedComesAgain(t *testing.T) {
	q := newQueued(t)
	q.launch(t)
	first := q.receive(t)[0]
	require.Equal(t, 1, first.Receives)
	require.Empty(t, q.receive(t), "hidden")
	q.now = q.now.Add(visibility)
	again := q.receive(t)[0]
	require.Equal(t, first.ID, again.ID)
	require.Equal(t, first.Body, again.Body)
	require.NotEqual(t, first.Handle, again.Handle)
	require.Equal(t, 2, again.Receives)

	require.NoError(t, q.Delete(t.Context(), first), "an old handle is no error and deletes nothing")
	q.now = q.now.Add(visibility)
	require.Len(t, q.drain(t), 1)
	q.now = q.now.Add(time.Hour)
	require.Empty(t, q.receive(t))
}

func TestAReceiveReturnsAtMostTen(t *testing.T) {
	q := newQueued(t)
	for range 12 {
		q.launch(t)
	}
	require.Len(t, q.receive(t), awscloud.MaxMessages)
	require.Len(t, q.receive(t), 2)
}

func TestAReceiveAsksForTenAndRefusesMore(t *testing.T) {
	sdkEnv(t)
	var asked map[string]any
	t.Setenv("AWS_ENDPOINT_URL_SQS", serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&asked)
		_, _ = io.WriteString(w, `{"Messages":[{"Body":"a"}`+strings.Repeat(`,{"Body":"b"}`, awscloud.MaxMessages)+`]}`)
	})))
	queue, err := awscloud.NewQueue(t.Context(), "https://sqs.eu-west-1.amazonaws.com/123456789012/q")
	require.NoError(t, err)
	_, err = queue.Receive(t.Context())
	require.ErrorIs(t, err, awscloud.ErrIncomplete)
	require.ErrorContains(t, err, "11 messages")
	require.EqualValues(t, 20, asked["WaitTimeSeconds"])
	require.EqualValues(t, 10, asked["MaxNumberOfMessages"])
	require.NotContains(t, asked, "VisibilityTimeout", "the queue's own")
}

func TestAReceiveWaitsForTheNextMessage(t *testing.T) {
	c := newCloud(t, simcloud.Config{LongestWait: time.Minute})
	queue, err := awscloud.NewQueue(t.Context(), "https://sqs."+homeRegion+".amazonaws.com"+c.QueuePath())
	require.NoError(t, err)
	type result struct {
		all []event.Message
		err error
	}
	got := make(chan result, 1)
	go func() {
		all, err := queue.Receive(t.Context())
		got <- result{all, err}
	}()
	box := c.launch(t)
	r := <-got
	require.NoError(t, r.err)
	require.Equal(t, []string{"running"}, statesOf(t, box, r.all))
}

func TestAQueueIsOfTheRegionThatItsURLNames(t *testing.T) {
	q := newQueued(t)
	q.launch(t)
	elsewhere, err := awscloud.NewQueue(t.Context(), "http://127.0.0.1:1"+q.QueuePath())
	require.NoError(t, err)
	all, err := elsewhere.Receive(t.Context())
	require.NoError(t, err)
	require.Empty(t, all, "the region that is configured, "+clientRegion)
	require.Len(t, q.receive(t), 1)

	for _, bad := range []string{"", "terminations", "https://sqs.eu-west-1.amazonaws.com", "https://sqs.eu-west-1.amazonaws.com/", ":"} {
		_, err := awscloud.NewQueue(t.Context(), bad)
		require.ErrorContains(t, err, "queue", bad)
	}
	t.Setenv("AWS_REGION", "")
	_, err = awscloud.NewQueue(t.Context(), "http://127.0.0.1:1/123456789012/terminations")
	require.ErrorContains(t, err, "no region")
}

func TestAFailedReceiveIsAnErrorAndTakesNothing(t *testing.T) {
	for kind, want := range map[string]string{
		simcloud.Throttled: "RequestThrottled",
		simcloud.Denied:    "AccessDenied",
		simcloud.Expired:   "ExpiredToken",
		simcloud.Broken:    "InternalFailure",
	} {
		t.Run(kind, func(t *testing.T) {
			q := newQueued(t)
			q.launch(t)
			require.NoError(t, q.Inject(simcloud.Fault{Kind: kind}))
			all, err := q.Receive(t.Context())
			require.ErrorContains(t, err, want)
			require.Empty(t, all)
			q.ClearFaults()
			require.Len(t, q.receive(t), 1)
		})
	}
	q := newQueued(t)
	missing, err := awscloud.NewQueue(t.Context(), "https://sqs."+homeRegion+".amazonaws.com/1/other")
	require.NoError(t, err)
	_, err = missing.Receive(t.Context())
	require.ErrorContains(t, err, "NonExistentQueue")
	require.ErrorContains(t, q.Delete(t.Context(), event.Message{ID: "m"}), "no receipt handle")
}

func TestAThrottledReceiveIsRetried(t *testing.T) {
	q := newQueued(t)
	q.launch(t)
	require.NoError(t, q.Inject(simcloud.Fault{Kind: simcloud.Throttled, Count: 2}))
	require.Len(t, q.receive(t), 1)
}

// What a reply lost comes again: the delivery was counted, not acknowledged.
func TestAReceiveThatIsCutOffLosesNoMessage(t *testing.T) {
	q := newQueued(t)
	q.launch(t)
	require.NoError(t, q.Inject(simcloud.Fault{Kind: simcloud.Cut, Count: 1}))
	_, err := q.Receive(t.Context())
	require.NoError(t, err, "the retry finds the message hidden, or the queue empty")
	q.now = q.now.Add(visibility)
	again := q.receive(t)
	require.Len(t, again, 1)
	require.Equal(t, 2, again[0].Receives)
}

func TestAReceiveThatHangsIsCutOff(t *testing.T) {
	q := newQueued(t)
	require.NoError(t, q.Inject(simcloud.Fault{Kind: simcloud.Hang}))
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := q.WithTimeout(50 * time.Millisecond).Receive(patient)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, patient.Err(), "its own bound cut it off")
}

// A queue may deliver twice, late and in any order: each delivery says the same,
// and a late "running" is no proof of anything.
func TestDuplicateDelayedAndReorderedDeliveriesSayTheSame(t *testing.T) {
	q := newQueued(t)
	box := q.terminated(t)
	require.NoError(t, q.Inject(simcloud.Fault{Kind: simcloud.Empty, Count: 1}))
	require.Empty(t, q.receive(t), "delayed")
	require.NoError(t, q.Inject(simcloud.Fault{Kind: simcloud.Duplicate, Count: 1}))
	once := q.receive(t)
	require.NoError(t, q.Inject(simcloud.Fault{Kind: simcloud.Reordered, Count: 1}))
	twice := q.receive(t)
	require.Equal(t, []string{"running", "shutting-down", "terminated"}, statesOf(t, box, once))
	require.Equal(t, []string{"terminated", "shutting-down", "running"}, statesOf(t, box, twice))
	for n := range once {
		require.Equal(t, once[n].Body, twice[len(twice)-1-n].Body)
		require.Equal(t, once[n].ID, twice[len(twice)-1-n].ID)
	}
}

// fencing is how many of the messages prove that box is gone.
func fencing(box boxid.Cloud, all []event.Message) (n int) {
	for _, m := range all {
		if seen, err := event.Decode(m.Body); err == nil && proves(box, seen) == nil {
			n++
		}
	}
	return n
}

func TestOnlyTheEventOfATerminationFences(t *testing.T) {
	q := newQueued(t)
	box := q.launch(t)
	for range 3 {
		require.NoError(t, q.Stop(box.InstanceID))
		q.now = q.now.Add(shutdownTime)
		require.NoError(t, q.Start(box.InstanceID))
		q.now = q.now.Add(shutdownTime)
	}
	require.NoError(t, q.Terminate(box.InstanceID))
	q.now = q.now.Add(shutdownTime - time.Second)
	require.Zero(t, fencing(box, q.drain(t)), "an instance that flaps, and is shutting-down for long")
	q.now = q.now.Add(time.Second)
	require.Equal(t, 1, fencing(box, q.drain(t)))
}

func TestNoFalseFriendOnTheQueueFences(t *testing.T) {
	q := newQueued(t)
	box := q.terminated(t)
	all := q.drain(t)
	require.Equal(t, 1, fencing(box, all))
	good := string(all[len(all)-1].Body)
	other := q.launchIn(t, homeRegion, "999900001111")
	require.NoError(t, q.Terminate(other.InstanceID))
	q.now = q.now.Add(shutdownTime)
	require.Zero(t, fencing(box, q.drain(t)), "another account's instance")
	q.launchIn(t, clientRegion, "")

	seen, err := event.Decode([]byte(good))
	require.NoError(t, err)
	for name, body := range map[string]string{
		"not JSON":                  "poison",
		"nothing in it":             "{}",
		"without an id":             strings.Replace(good, seen.EventID, "", 1),
		"another account":           strings.ReplaceAll(good, box.Account, "999900001111"),
		"another region":            strings.ReplaceAll(good, homeRegion, clientRegion),
		"another instance":          strings.ReplaceAll(good, box.InstanceID, unknownID),
		"a resource of another's":   strings.Replace(good, "instance/"+box.InstanceID, "instance/"+unknownID, 1),
		"a spot warning":            strings.Replace(good, "EC2 Instance State-change Notification", "EC2 Spot Instance Interruption Warning", 1),
		"a rebalance advice":        strings.Replace(good, "EC2 Instance State-change Notification", "EC2 Instance Rebalance Recommendation", 1),
		"a CloudTrail request":      strings.Replace(good, "EC2 Instance State-change Notification", "AWS API Call via CloudTrail", 1),
		"an Auto Scaling activity":  strings.Replace(good, "EC2 Instance State-change Notification", "EC2 Instance Terminate Successful", 1),
		"whoever may send says so":  strings.Replace(good, "aws.ec2", "custom.ec2", 1),
		"two states":                strings.Replace(good, `"state"`, `"state":"running","state"`, 1),
		"longer than a body may be": good + strings.Repeat(" ", event.MaxBody),
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, good, body)
			require.NoError(t, q.Post(homeRegion, []byte(body)))
			got := q.drain(t)
			require.Len(t, got, 1, "it can be taken off the queue")
			require.NotEmpty(t, got[0].ID)
			require.Zero(t, fencing(box, got))
		})
	}
}
