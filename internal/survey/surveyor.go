package survey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/placement"
)

// lookFor is how long one look serves the hosts of one pass.
const lookFor = 2 * time.Second

// Surveyor chooses targets from one look at a time. What it gave away since
// that look counts. It is safe for concurrent use.
type Surveyor struct {
	Reader   Reader // used by this surveyor alone
	SecretFP string // of the deployment's secret
	Log      *slog.Logger

	mu   sync.Mutex
	look *Look
}

// Choose picks the box that the claim's host may be moved to, none of exclude;
// false where no box may be given it. The first choice of a pass costs a look,
// each choice one GET of the host's record. A fence that cannot be read is an
// error: then nobody is chosen.
func (s *Surveyor) Choose(ctx context.Context, c *hostclaim.Claim, exclude []string) (hostclaim.Member, bool, error) {
	chosen, err := s.choose(ctx, c, exclude)
	if none, ok := errors.AsType[*NoneError](err); ok {
		s.log().Debug("no target", "host", c.Host, "err", none)
		return hostclaim.Member{}, false, nil
	}
	if err != nil {
		return hostclaim.Member{}, false, fmt.Errorf("choose a box for %s: %w", c.Host, err)
	}
	return chosen, true, nil
}

func (s *Surveyor) choose(ctx context.Context, c *hostclaim.Claim, exclude []string) (hostclaim.Member, error) {
	h := c.Holder
	rec, err := hostrecord.Read(ctx, s.Reader.Store, h.Account, h.App, c.Host)
	if err != nil {
		return hostclaim.Member{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return hostclaim.Member{}, err
	}
	chosen, err := s.look.Choose(Want(c, rec.Pool, s.SecretFP, exclude), c.Host, App(h))
	if err == nil {
		s.look.give(chosen.Box, App(h))
	}
	return chosen, err
}

// Refresh looks again, unless the last look still serves its pass.
func (s *Surveyor) Refresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refresh(ctx)
}

// refresh is [Surveyor.Refresh] for who holds mu.
func (s *Surveyor) refresh(ctx context.Context) error {
	if s.look != nil && time.Since(s.look.At) < lookFor {
		return nil
	}
	look, err := s.Reader.Look(ctx)
	if err == nil {
		s.look = look
	}
	return err
}

// Edges is every edges file as of the last look; the zero Snapshot before it.
func (s *Surveyor) Edges() placement.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.look == nil {
		return placement.Snapshot{}
	}
	return s.look.Edges
}

func (s *Surveyor) log() *slog.Logger {
	if s.Log == nil {
		return slog.Default()
	}
	return s.Log
}
