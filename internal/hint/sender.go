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
	"github.com/carlosframework/regionha/internal/regionfile"
)

const (
	queued   = 256
	parallel = 16
	within   = time.Second
)

// Sender sends hints without making anyone wait. A hint that does not fit its
// queue is dropped, but for its bump.
type Sender struct {
	Secret boxauth.Secret
	Peers  func(refs []string) []string // internal addresses of these boxes; nil refs: of all
	Log    *slog.Logger                 // slog.Default if nil

	// Bump names up to 128 hosts in the region's file; nil: nobody does.
	Bump func(ctx context.Context, changes ...regionfile.Change) error

	// Deliver brings a hint to an address; nil: the signed POST.
	Deliver func(ctx context.Context, addr string, h Hint) error

	queue  chan Outgoing
	bumps  *bumps
	client *http.Client
}

// NewSender makes a sender from its exported fields. Call Run.
func NewSender(s Sender) *Sender {
	if s.Log == nil {
		s.Log = slog.Default()
	}
	s.queue, s.bumps = make(chan Outgoing, queued), newBumps()
	s.client = &http.Client{Timeout: within, Transport: &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute}}
	if s.Deliver == nil {
		s.Deliver = s.post
	}
	return &s
}

// Send queues a hint.
func (s *Sender) Send(o Outgoing) {
	o.V = 1
	if o.Gen > 0 && !o.Quiet {
		s.bumps.add(o.Host, o.To)
	}
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
	var group errgroup.Group
	group.Go(func() error { s.bump(ctx); return nil })
	group.Go(func() error { return s.send(ctx) })
	return group.Wait()
}

func (s *Sender) send(ctx context.Context) error {
	var posts errgroup.Group
	posts.SetLimit(parallel)
	sending := context.WithoutCancel(ctx) // each post has its own bound
	for ctx.Err() == nil {
		select {
		case o := <-s.queue:
			s.deliver(sending, &posts, o)
		case <-ctx.Done():
		}
	}
	for {
		select {
		case o := <-s.queue:
			s.deliver(sending, &posts, o)
		default:
			return posts.Wait()
		}
	}
}

// deliver starts the posts of one hint. What fails is logged, and costs one poll.
func (s *Sender) deliver(ctx context.Context, posts *errgroup.Group, o Outgoing) {
	for _, addr := range s.Peers(o.To) {
		posts.Go(func() error { s.failed(addr, s.Deliver(ctx, addr, o.Hint)); return nil })
	}
}

func (s *Sender) failed(what string, err error) {
	if err != nil {
		s.Log.Debug("hint not delivered", "to", what, "err", err)
	}
}

func (s *Sender) post(ctx context.Context, addr string, h Hint) error {
	body, err := record.Encode(h)
	if err != nil {
		return err
	}
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
