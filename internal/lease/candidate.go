package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

const (
	// DefaultTTL is how long a lease lasts after its last renewal.
	DefaultTTL = 15 * time.Second

	// BuildTTL suits work that moves whole databases.
	BuildTTL = 60 * time.Second

	maxTTL = 10 * time.Minute

	// modTimeStep is how coarse a store's ModTime may be.
	modTimeStep = time.Second
)

// HeldError says that another holder's lease has not expired yet.
type HeldError struct {
	Key    string
	Holder string
	Wait   time.Duration // until it may be taken over, if it is not renewed
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("lease %s: held by %s, free in %s at the latest unless renewed",
		e.Key, e.Holder, e.Wait.Round(time.Millisecond))
}

// Candidate wants one lease. It remembers what it saw between two looks, so
// keep it for as long as the lease is wanted. It is for one goroutine.
type Candidate struct {
	Store objstore.Store
	Key   string

	// Holder names the candidate. A lease under the same name is taken over at
	// once, so at most one live process may use it: a box's enrollment, under
	// the lock on its data directory.
	Holder string

	TTL time.Duration // 15 s if zero

	// StoreTime, if set, returns a time that the store's clock has surely
	// passed, such as the ModTime of this process's newest write. It frees a
	// lease that was abandoned long ago at the first look.
	StoreTime func() time.Time

	// New says that nobody is known to have held this lease yet: the first
	// Acquire creates it without a look before. It costs one PUT more where
	// that is not so.
	New bool

	seen  string    // the ETag of a foreign lease
	since time.Time // when it was first seen
}

// Acquire looks once and takes the lease if it may: one GET and one PUT, or one
// PUT of a new one. The context bounds this call only; the lease renews itself
// until it is released.
// Errors: [*HeldError]; objstore.ErrConflict when another candidate was faster;
// objstore.ErrUnknown, after which the next Acquire finds out; record.ErrMalformed.
func (c *Candidate) Acquire(ctx context.Context) (*Lease, error) {
	ttl := c.TTL
	if ttl == 0 {
		ttl = DefaultTTL
	}
	if c.Holder == "" || ttl < time.Millisecond || ttl > maxTTL {
		return nil, fmt.Errorf("lease %s: holder %q, ttl %s: want a name, and 1ms to %s", c.Key, c.Holder, ttl, maxTTL)
	}
	if c.New {
		c.New = false
		l, err := c.take(ctx, body{}, objstore.IfAbsent(), ttl)
		if !errors.Is(err, objstore.ErrConflict) {
			return l, err
		}
	}
	last, cond, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	return c.take(ctx, last, cond, ttl)
}

// take writes this candidate's lease over the version last, on a condition.
func (c *Candidate) take(ctx context.Context, last body, cond objstore.Condition, ttl time.Duration) (*Lease, error) {
	body := last.next()
	body.Holder, body.Token, body.TTLMillis, body.Free = c.Holder, record.Nonce(), ttl.Milliseconds(), false
	sent := time.Now()
	info, err := put(ctx, c.Store, c.Key, body, cond)
	if errors.Is(err, objstore.ErrSuperseded) {
		err = fmt.Errorf("%w: %w", objstore.ErrUnknown, err)
	}
	if err != nil {
		return nil, fmt.Errorf("lease %s: acquire: %w", c.Key, err)
	}
	return start(ctx, c.Store, c.Key, body, info.ETag, sent), nil
}

// look reads the lease and says under which condition it may be taken.
func (c *Candidate) look(ctx context.Context) (body, objstore.Condition, error) {
	obj, err := c.Store.Get(ctx, c.Key)
	if errors.Is(err, objstore.ErrNotFound) {
		return body{}, objstore.IfAbsent(), nil
	}
	if err != nil {
		return body{}, objstore.Condition{}, fmt.Errorf("lease %s: read: %w", c.Key, err)
	}
	b, err := decode(obj.Body)
	if err != nil {
		return body{}, objstore.Condition{}, fmt.Errorf("lease %s: %w", c.Key, err)
	}
	if !b.Free && b.Holder != c.Holder {
		if wait := c.wait(obj.Info, b.ttl()); wait > 0 {
			return body{}, objstore.Condition{}, &HeldError{Key: c.Key, Holder: b.Holder, Wait: wait}
		}
	}
	return b, objstore.IfMatch(obj.ETag), nil
}

// wait is how long the version must still be seen unchanged; see the package's
// clock rule.
func (c *Candidate) wait(seen objstore.Info, ttl time.Duration) time.Duration {
	if c.StoreTime != nil && !c.StoreTime().Before(seen.ModTime.Add(ttl+modTimeStep)) {
		return 0
	}
	if c.seen != seen.ETag {
		c.seen, c.since = seen.ETag, time.Now()
	}
	return ttl - time.Since(c.since)
}
