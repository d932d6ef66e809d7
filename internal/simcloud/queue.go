package simcloud

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

const (
	// maxWaiting bounds what waits in one queue; the oldest goes first, as it
	// does at the end of a real queue's retention.
	maxWaiting = 10_000

	// maxPost bounds one posted body in bytes. It is more than SQS takes, so
	// that a receiver can be shown what it must not trust SQS to refuse.
	maxPost = 2 << 20
)

// queue is one region's, to which EventBridge sends every change of state of an
// instance there. The cloud's lock guards it.
type queue struct {
	waiting []*message
}

type message struct {
	id, body, handle string // the handle of the newest delivery
	sent, hidden     time.Time
	receives         int
}

// queue returns a region's queue. The caller holds mu.
func (c *Cloud) queue(region string) *queue {
	if c.queues[region] == nil {
		c.queues[region] = &queue{}
	}
	return c.queues[region]
}

func (q *queue) post(body []byte, now time.Time) {
	if len(q.waiting) == maxWaiting {
		q.waiting = q.waiting[1:]
	}
	q.waiting = append(q.waiting, &message{id: uuid(), body: string(body), sent: now})
}

// Post sends any body to the queue of a region that has instances.
func (c *Cloud) Post(region string, body []byte) error {
	if len(body) > maxPost {
		return fmt.Errorf("post: the body has %d bytes, expected at most %d", len(body), maxPost)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.signers[region] == nil {
		return fmt.Errorf("post: nothing was launched in region %q", region)
	}
	c.tell()
	c.queue(region).post(body, c.cfg.Now())
	return nil
}

// tell sends an event of every change of state that came to pass and of which
// none was sent, the oldest first. The caller holds mu.
func (c *Cloud) tell() {
	type news struct {
		change
		of *instance
	}
	var all []news
	now := c.cfg.Now()
	for _, i := range c.instances {
		for ; i.told < len(i.history) && !i.history[i.told].at.After(now); i.told++ {
			all = append(all, news{i.history[i.told], i})
		}
	}
	slices.SortFunc(all, func(a, b news) int { return a.at.Compare(b.at) })
	for _, n := range all {
		c.queue(n.of.region).post(n.of.event(n.change), n.at)
	}
}

// stateEvent is what EventBridge sends, with its members in its order.
type stateEvent struct {
	Version    string      `json:"version"`
	ID         string      `json:"id"`
	DetailType string      `json:"detail-type"`
	Source     string      `json:"source"`
	Account    string      `json:"account"`
	Time       string      `json:"time"`
	Region     string      `json:"region"`
	Resources  []string    `json:"resources"`
	Detail     stateDetail `json:"detail"`
}

type stateDetail struct {
	InstanceID string `json:"instance-id"`
	State      string `json:"state"`
}

func (i *instance) event(to change) []byte {
	body, err := json.Marshal(stateEvent{
		Version: "0", ID: uuid(), DetailType: "EC2 Instance State-change Notification", Source: "aws.ec2",
		Account: i.account, Time: to.at.UTC().Format(time.RFC3339), Region: i.region,
		Resources: []string{fmt.Sprintf("arn:aws:ec2:%s:%s:instance/%s", i.region, i.account, i.id)},
		Detail:    stateDetail{i.id, to.state},
	})
	if err != nil {
		panic(fmt.Sprintf("simcloud: encode an event: %v", err)) // strings alone
	}
	return body
}

// take delivers up to most messages that are not hidden, and hides them for a
// time. The caller holds the cloud's lock.
func (q *queue) take(most int, hide time.Duration, fault string, now time.Time) []message {
	there := slices.Clone(q.waiting)
	switch fault {
	case Empty:
		return nil
	case Duplicate:
		hide = 0
	case Reordered:
		slices.Reverse(there)
	}
	var all []message
	for _, m := range there {
		if len(all) == most {
			break
		}
		if !m.hidden.After(now) {
			m.handle, m.hidden = uuid(), now.Add(hide)
			m.receives++
			all = append(all, *m)
		}
	}
	return all
}

// drop deletes the message whose newest delivery has this handle. Any other
// handle deletes nothing, and is no error.
func (q *queue) drop(handle string) {
	q.waiting = slices.DeleteFunc(q.waiting, func(m *message) bool { return m.handle == handle })
}
