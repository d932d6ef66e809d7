package survey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/placement"
)

const (
	// minLook and maxLook bound how long one look serves. In between it serves
	// as long as keeps a surveyor at lookRate requests a second: while hundreds
	// of boxes change their files all the time, a look reads them all.
	minLook, maxLook = 2 * time.Second, 30 * time.Second
	lookRate         = 10

	// givenFor is how long a host that was given away counts on its box without
	// being in the box's file. A move takes less.
	givenFor = 15 * time.Minute
)

// Surveyor chooses targets from one look at a time. What it gave away counts
// until the box's own file says it. It is safe for concurrent use.
type Surveyor struct {
	Reader   Reader // used by this surveyor alone
	SecretFP string // of the deployment's secret
	Log      *slog.Logger

	first  sync.Once
	choose chan struct{} // held by who chooses or looks: a look may take long
	newest atomic.Pointer[Look]
	until  time.Time        // how long the newest look serves
	given  map[string]given // by host
}

// enter waits for the choices and looks before; false where ctx ended first.
func (s *Surveyor) enter(ctx context.Context) bool {
	s.first.Do(func() { s.choose = make(chan struct{}, 1) })
	select {
	case s.choose <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Surveyor) leave() { <-s.choose }

// given is a host that was given to a box.
type given struct {
	box, app string
	at       time.Time
}

// Choose picks the box that the claim's host may be moved to, none of exclude;
// false where no box may be given it. It costs one GET of the host's record, and
// a look where the last one serves no more: all choices together cost at most
// ten requests a second for looks. A fence that cannot be read is an error: then
// nobody is chosen.
func (s *Surveyor) Choose(ctx context.Context, c *hostclaim.Claim, exclude []string) (hostclaim.Member, bool, error) {
	chosen, err := s.pick(ctx, c, exclude, func(want placement.Want) (hostclaim.Member, error) {
		return s.newest.Load().Choose(want, c.Host, App(c.Holder))
	})
	if none, ok := errors.AsType[*NoneError](err); ok {
		s.log().Debug("no target", "host", c.Host, "err", none)
		return hostclaim.Member{}, false, nil
	}
	if err != nil {
		return hostclaim.Member{}, false, fmt.Errorf("choose a box for %s: %w", c.Host, err)
	}
	return chosen, true, nil
}

// pick makes one choice from a look that serves, and counts it in.
func (s *Surveyor) pick(ctx context.Context, c *hostclaim.Claim, exclude []string,
	choose func(placement.Want) (hostclaim.Member, error)) (hostclaim.Member, error) {
	h := c.Holder
	rec, err := hostrecord.Read(ctx, s.Reader.Store, h.Account, h.App, c.Host)
	if err != nil {
		return hostclaim.Member{}, err
	}
	if !s.enter(ctx) {
		return hostclaim.Member{}, ctx.Err()
	}
	defer s.leave()
	if err := s.refresh(ctx); err != nil {
		return hostclaim.Member{}, err
	}
	chosen, err := choose(Want(c, rec.Pool, s.SecretFP, exclude))
	if err == nil {
		s.give(c.Host, given{box: chosen.Box, app: App(h), at: s.newest.Load().At})
	}
	return chosen, err
}

// give counts the host on its new box, and no longer on one that it was given to
// before: that move did not begin.
func (s *Surveyor) give(host string, g given) {
	if s.given == nil {
		s.given = map[string]given{}
	}
	if before, ok := s.given[host]; ok {
		s.newest.Load().take(before.box, before.app)
	}
	s.given[host] = g
	s.newest.Load().give(g.box, g.app)
}

// Look looks now; the choices that follow are made from it. Whoever gets it
// reads what it exports, and chooses by the surveyor.
func (s *Surveyor) Look(ctx context.Context) (*Look, error) {
	if !s.enter(ctx) {
		return nil, ctx.Err()
	}
	defer s.leave()
	if err := s.renew(ctx); err != nil {
		return nil, err
	}
	return s.newest.Load(), nil
}

// Named is the box that somebody names for the claim's host, as [Look.Named] has
// it, which is then counted in. It costs what a choice does.
func (s *Surveyor) Named(ctx context.Context, c *hostclaim.Claim, ref string) (hostclaim.Member, error) {
	return s.pick(ctx, c, nil, func(want placement.Want) (hostclaim.Member, error) { return s.newest.Load().Named(want, ref) })
}

// Pools is the edges files of the boxes of the region that may be given hosts, by
// pool, as of the last look.
func (s *Surveyor) Pools(ctx context.Context) (map[string][]placement.Published, error) {
	if !s.enter(ctx) {
		return nil, ctx.Err()
	}
	defer s.leave()
	pools, look := map[string][]placement.Published{}, s.newest.Load()
	if look == nil {
		return pools, nil
	}
	for _, box := range look.Boxes {
		if box.Region != s.Reader.Region || pools[box.Pool] != nil {
			continue
		}
		boxes, _, err := look.Eligible(placement.Want{Region: box.Region, Pool: box.Pool, SecretsKeyFP: s.SecretFP})
		if err != nil {
			return nil, err
		}
		for _, b := range boxes {
			file, _ := look.Edges.File(b.Ref)
			pools[box.Pool] = append(pools[box.Pool], file)
		}
	}
	return pools, nil
}

// refresh makes a look where the last one serves no more. The caller has entered,
// as for renew.
func (s *Surveyor) refresh(ctx context.Context) error {
	if s.newest.Load() != nil && time.Now().Before(s.until) {
		return nil
	}
	return s.renew(ctx)
}

func (s *Surveyor) renew(ctx context.Context) error {
	look, err := s.Reader.Look(ctx)
	if err != nil {
		return err
	}
	s.until = time.Now().Add(serves(look.Cost))
	for host, g := range s.given {
		if look.serves(g.box, host) || look.At.Sub(g.at) > givenFor {
			delete(s.given, host)
			continue
		}
		look.give(g.box, g.app)
	}
	s.newest.Store(look)
	return nil
}

// serves is how long a look serves that cost so many requests.
func serves(cost int) time.Duration {
	return min(max(minLook, time.Duration(cost)*time.Second/lookRate), maxLook)
}

// Edges is every edges file as of the last look; the zero Snapshot before it. It
// waits for nothing.
func (s *Surveyor) Edges() placement.Snapshot {
	if look := s.newest.Load(); look != nil {
		return look.Edges
	}
	return placement.Snapshot{}
}

func (s *Surveyor) log() *slog.Logger {
	if s.Log == nil {
		return slog.Default()
	}
	return s.Log
}
