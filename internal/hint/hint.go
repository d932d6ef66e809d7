// Package hint is how one process of a deployment tells others to look now: at
// a host whose claim moved, at a home that moved, or at a box that does not
// answer.
//
// A hint is one small signed POST to a peer's internal listener, and one bump of
// the region's file for those that it does not reach. It carries no authority:
// the receiver reads the claim, the edges files or the cloud itself, and a lost
// hint costs one poll.
package hint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/record"
)

// Path is where a process takes hints, on its internal listener.
const Path = "/v1/hint"

const (
	maxBody  = 4 << 10
	queued   = 256
	parallel = 16
	within   = time.Second
)

// Hint says where to look.
type Hint struct {
	V    int    `json:"v"`    // 1
	Host string `json:"host"` // whose claim, or home, moved
	Gen  uint64 `json:"gen"`  // of the claim; 0: its home moved
	Box  string `json:"box"`  // a box that did not accept a connection
}

// Outgoing is a hint with the boxes that it is for; none: every peer.
type Outgoing struct {
	Hint
	To []string
}

// Sender sends hints without making anyone wait. A hint that does not fit its
// queue is dropped.
type Sender struct {
	Secret boxauth.Secret
	Peers  func(refs []string) []string                     // internal addresses of these boxes and the workers; nil refs: of all
	Bump   func(ctx context.Context, hosts ...string) error // of the region's file
	Log    *slog.Logger                                     // slog.Default if nil

	queue  chan Outgoing
	client *http.Client
}

// NewSender makes a sender from its exported fields. Call Run.
func NewSender(s Sender) *Sender {
	if s.Log == nil {
		s.Log = slog.Default()
	}
	s.queue = make(chan Outgoing, queued)
	s.client = &http.Client{Timeout: within, Transport: &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute}}
	return &s
}

// Send queues a hint.
func (s *Sender) Send(o Outgoing) {
	o.V = 1
	select {
	case s.queue <- o:
	default:
		s.Log.Debug("hint dropped", "host", o.Host)
	}
}

// Run sends until ctx ends, and then what is queued still. A peer that does not
// answer keeps no hint from another.
func (s *Sender) Run(ctx context.Context) error {
	defer s.client.CloseIdleConnections()
	var posts errgroup.Group
	posts.SetLimit(parallel)
	sending := context.WithoutCancel(ctx) // each post has its own bound
	for ctx.Err() == nil {
		select {
		case o := <-s.queue:
			s.send(sending, &posts, o)
		case <-ctx.Done():
		}
	}
	for {
		select {
		case o := <-s.queue:
			s.send(sending, &posts, o)
		default:
			return posts.Wait()
		}
	}
}

// send starts the posts of one hint. What fails is logged, and costs one poll.
func (s *Sender) send(ctx context.Context, posts *errgroup.Group, o Outgoing) {
	body, err := record.Encode(o.Hint)
	if err != nil {
		return
	}
	if o.Gen > 0 {
		posts.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, 5*within)
			defer cancel()
			s.failed("the region's file", s.Bump(ctx, o.Host))
			return nil
		})
	}
	for _, addr := range s.Peers(o.To) {
		posts.Go(func() error { s.failed(addr, s.post(ctx, addr, body)); return nil })
	}
}

func (s *Sender) failed(what string, err error) {
	if err != nil {
		s.Log.Debug("hint not delivered", "to", what, "err", err)
	}
}

func (s *Sender) post(ctx context.Context, addr string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+Path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	s.Secret.Sign(req, body, time.Now())
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody))
	return errors.Join(err, resp.Body.Close())
}

// Handler takes hints that were signed with the deployment's secret. take must
// not wait.
func Handler(v *boxauth.Verifier, take func(Hint)) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+Path, v.Handler(maxBody, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "unreadable body", http.StatusBadRequest)
			return
		}
		h, err := record.Decode[Hint](body)
		if err != nil || h.V != 1 {
			http.Error(w, "not a hint", http.StatusBadRequest)
			return
		}
		take(h)
		w.WriteHeader(http.StatusNoContent)
	})))
	return mux
}
