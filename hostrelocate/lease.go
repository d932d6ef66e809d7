package hostrelocate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/lease"
	"github.com/carlosframework/regionha/objstore"
)

// Leases takes the leases on hosts' locations, which keep two builders or
// pinners from doing the same work. Safety does not rest on them. It remembers
// the leases of others that it met: only so is one that a dead process left ever
// seen to expire. The zero value is ready, and safe for concurrent use.
type Leases struct {
	mu  sync.Mutex
	met map[string]lease.Candidate // by key
}

// Acquire takes the lease on the location of c's host. One GET and one PUT, and
// a PUT at its release. While another holds it, the error is a
// [lease.HeldError]: ask again.
func (l *Leases) Acquire(ctx context.Context, control objstore.Store, c *hostclaim.Claim, holder string) (*lease.Lease, error) {
	return l.acquire(ctx, control, c, holder, lease.BuildTTL)
}

// acquire takes the lease for a time that suits the work: how long it takes is
// how long others wait for one who died over it.
func (l *Leases) acquire(ctx context.Context, control objstore.Store, c *hostclaim.Claim, holder string, ttl time.Duration) (*lease.Lease, error) {
	key := fmt.Sprintf("control/leases/%s/%s.json", c.Holder.Region, c.Holder.Location)
	candidate := l.candidate(key)
	candidate.Store, candidate.Key, candidate.Holder, candidate.TTL = control, key, holder, ttl
	got, err := candidate.Acquire(ctx)
	l.remember(candidate, err)
	if err != nil {
		return nil, fmt.Errorf("replica lease of %s: %w", c.Host, err)
	}
	return got, nil
}

func (l *Leases) candidate(key string) lease.Candidate {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.met[key]
}

func (l *Leases) remember(c lease.Candidate, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, held := errors.AsType[*lease.HeldError](err); held {
		if l.met == nil {
			l.met = map[string]lease.Candidate{}
		}
		l.met[c.Key] = c
	} else if err == nil {
		delete(l.met, c.Key)
	}
}
