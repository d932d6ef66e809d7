package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/awscloud/event"
	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// mailbox is a queue whose messages come again after half a minute.
type mailbox struct {
	mu       sync.Mutex
	messages []event.Message
	hidden   map[string]time.Time
	deleted  []string
	fails    error
	receives int
}

func (m *mailbox) post(id, body string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.messages = append(m.messages, event.Message{ID: id, Handle: id, Body: []byte(body)})
}

func (m *mailbox) Receive(ctx context.Context) ([]event.Message, error) {
	for range 20 {
		if got, err := m.receive(); len(got) > 0 || err != nil {
			return got, err
		}
		if !pause.For(ctx, time.Second) {
			return nil, ctx.Err()
		}
	}
	return nil, nil
}

func (m *mailbox) receive() (got []event.Message, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.receives++
	for i := range m.messages {
		if msg := &m.messages[i]; m.fails == nil && time.Now().After(m.hidden[msg.ID]) && len(got) < 10 {
			m.hidden[msg.ID] = time.Now().Add(30 * time.Second)
			msg.Receives++
			got = append(got, *msg)
		}
	}
	return got, m.fails
}

func (m *mailbox) Delete(_ context.Context, msg event.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deleted = append(m.deleted, msg.ID)
	m.messages = slices.DeleteFunc(m.messages, func(x event.Message) bool { return x.ID == msg.ID })
	return nil
}

func (m *mailbox) isDeleted(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.deleted, id)
}

// notice is the body of a notification.
func notice(instance, account, region, state string) string {
	return fmt.Sprintf(`{"version":"0","id":"e-%s","source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","account":%q,"region":%q,`+
		`"resources":["arn:aws:ec2:%s:%s:instance/%s"],"detail":{"instance-id":%q,"state":%q}}`,
		instance, account, region, region, account, instance, instance, state)
}

func about(box, state string) string { return notice("i-"+box, "123456789012", "eu-west-1", state) }

// posted is a region whose worker reads a queue, of which only that loop runs.
func posted(t *testing.T, act func(t *testing.T, w *Worker, q *mailbox, seen *cloud, s *memstore.Store)) {
	synctest.Test(t, func(t *testing.T) {
		w, seen, s := region(t)
		q := &mailbox{hidden: map[string]time.Time{}}
		w.cloud.Events = q
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.events(ctx) }()
		act(t, w, q, seen, s)
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestAMessageIsDeletedOnceItsFenceExists(t *testing.T) {
	posted(t, func(t *testing.T, w *Worker, q *mailbox, seen *cloud, s *memstore.Store) {
		s.Inject(memstore.Once(memstore.OpPut, "control/box-fences/", memstore.Lose))
		q.post("m", about("box-1", "terminated"))
		time.Sleep(10 * time.Second)
		require.False(t, q.isDeleted("m"), "its fence could not be written")
		require.False(t, w.gone.has("box-1"))
		time.Sleep(time.Minute)
		require.True(t, q.isDeleted("m"))
		require.True(t, w.gone.fenced("box-1"))
		require.Zero(t, seen.count("i-box-1"), "the notification says it all")
	})
}

func TestAMessageOfAnotherStateMakesItsBoxBeDescribed(t *testing.T) {
	for _, state := range []string{"shutting-down", "stopped", "running"} {
		posted(t, func(t *testing.T, w *Worker, q *mailbox, seen *cloud, _ *memstore.Store) {
			seen.say("i-box-1", func(boxid.Cloud) (termfence.Observation, error) {
				return termfence.Observation{}, errors.New("throttled")
			})
			q.post("m", about("box-1", state))
			time.Sleep(5 * time.Second)
			require.Equal(t, 1, seen.count("i-box-1"))
			require.Zero(t, seen.count("i-box-2"))
			require.False(t, q.isDeleted("m"), "nobody looked yet")
			seen.say("i-box-1", nil)
			time.Sleep(time.Minute)
			require.True(t, q.isDeleted("m"))
			require.False(t, w.gone.has("box-1"))
		})
	}
}

func TestWhatIsDeletedAndWhatIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		body    string
		deleted bool
	}{
		"nobody's instance":           {notice("i-stranger", "123456789012", "eu-west-1", "terminated"), true},
		"another account's":           {notice("i-box-1", "210987654321", "eu-west-1", "terminated"), true},
		"another cloud region's":      {notice("i-box-1", "123456789012", "us-east-1", "terminated"), true},
		"another event":               {`{"version":"0","id":"e","source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning"}`, true},
		"this worker's own end":       {about("worker", "terminated"), false},
		"this worker's own start":     {about("worker", "running"), true},
		"a box of another region":     {notice("i-far", "123456789012", "eu-west-1", "terminated"), false},
		"no event":                    {`{"hello":`, false},
		"a notification without a id": {`{"version":"0","source":"aws.ec2","detail-type":"EC2 Instance State-change Notification"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			posted(t, func(t *testing.T, w *Worker, q *mailbox, _ *cloud, s *memstore.Store) {
				_, err := roster.Update(t.Context(), s, private, w.roster, func(r *roster.Roster) error {
					r.Regions["fr"] = r.Regions["ie"]
					r.Boxes["far"] = roster.Box{Enrollment: "enr-far", EnrolledAt: time.Now().UTC(), Region: "fr", Pool: "default", State: roster.Active,
						Cloud: boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: "i-far"}}
					return nil
				})
				require.NoError(t, err)
				q.post("m", c.body)
				time.Sleep(3 * time.Minute)
				require.Equal(t, c.deleted, q.isDeleted("m"))
				require.Empty(t, w.gone.boxes())
			})
		})
	}
}

// TestAPoisonMessageKeepsNoOther, nor does a box that hangs in the cloud.
func TestAPoisonMessageKeepsNoOther(t *testing.T) {
	posted(t, func(t *testing.T, w *Worker, q *mailbox, seen *cloud, _ *memstore.Store) {
		seen.say("i-box-2", func(boxid.Cloud) (termfence.Observation, error) {
			time.Sleep(time.Hour)
			return termfence.Observation{}, errors.New("timeout")
		})
		q.post("poison", "not json")
		q.post("hangs", about("box-2", "stopping"))
		q.post("m", about("box-1", "terminated"))
		time.Sleep(2 * time.Second)
		require.True(t, q.isDeleted("m"))
		require.True(t, w.gone.fenced("box-1"))
		require.True(t, w.alerts.Raised(alert.Queue, poisonAbout))
		require.Less(t, q.receives, 10, "it does not spin")
		q.Delete(t.Context(), event.Message{ID: "poison"}) // the redrive policy
		time.Sleep(poisonFor + time.Minute)
		require.False(t, w.alerts.Raised(alert.Queue, poisonAbout))
		time.Sleep(time.Hour)
	})
}

func TestDuplicateAndReorderedEventsMakeOneFence(t *testing.T) {
	posted(t, func(t *testing.T, w *Worker, q *mailbox, seen *cloud, s *memstore.Store) {
		for i, state := range []string{"terminated", "shutting-down", "terminated", "running"} {
			q.post(fmt.Sprint("m", i), about("box-1", state))
		}
		time.Sleep(time.Minute)
		for i := range 4 {
			require.True(t, q.isDeleted(fmt.Sprint("m", i)), i)
		}
		fences := 0
		for _, write := range s.Log() {
			if write.Key == termfence.Key("enr-box-1") {
				fences++
			}
		}
		require.Equal(t, 1, fences)
	})
}

func TestWithoutARosterNothingIsDeleted(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, *Worker, *memstore.Store){
		"it cannot be read": func(_ *testing.T, _ *Worker, s *memstore.Store) {
			s.Inject(func(r memstore.Request) memstore.Fault {
				if r.Key == roster.Key {
					return memstore.Lose
				}
				return memstore.None
			})
		},
		"this worker may not act": func(t *testing.T, w *Worker, _ *memstore.Store) { become(t, w, "worker", roster.Quarantined) },
		"its clock is off":        func(_ *testing.T, w *Worker, _ *memstore.Store) { w.clock.set(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			posted(t, func(t *testing.T, w *Worker, q *mailbox, _ *cloud, s *memstore.Store) {
				spoil(t, w, s)
				q.post("m", about("box-1", "terminated"))
				q.post("stranger", notice("i-stranger", "123456789012", "eu-west-1", "terminated"))
				time.Sleep(2 * time.Minute)
				require.False(t, q.isDeleted("m"))
				require.False(t, q.isDeleted("stranger"), "it may be enrolled since the last roster")
				require.Empty(t, w.gone.boxes())
			})
		})
	}
}

func TestAQueueThatFailsIsAlertedAndAskedMoreAndMoreRarely(t *testing.T) {
	posted(t, func(t *testing.T, w *Worker, q *mailbox, _ *cloud, _ *memstore.Store) {
		q.mu.Lock()
		q.fails = errors.New("ExpiredToken")
		q.mu.Unlock()
		time.Sleep(time.Hour)
		require.True(t, w.alerts.Raised(alert.Queue, "ie"))
		require.Less(t, q.receives, 90)
		q.mu.Lock()
		q.fails = nil
		q.mu.Unlock()
		time.Sleep(2 * time.Minute)
		require.False(t, w.alerts.Raised(alert.Queue, "ie"))
	})
}
