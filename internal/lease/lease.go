package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/carlosframework/regionha/objstore"
)

// ErrLost: the lease does not hold any more, and never will again. Stop what
// needed it, then acquire afresh.
var ErrLost = errors.New("lease lost")

// releaseTimeout bounds the write of a release, which goes on after its
// caller's context has ended.
const releaseTimeout = 10 * time.Second

// Lease is one acquisition. It is safe for concurrent use.
type Lease struct {
	store objstore.Store
	key   string
	stop  context.CancelFunc
	done  chan struct{} // the renewing goroutine has ended
	lost  chan struct{}

	mu    sync.Mutex
	body  body
	etag  string
	safe  time.Time
	err   error       // latched
	timer *time.Timer // fires at safe
}

func start(ctx context.Context, s objstore.Store, key string, b body, etag string, sent time.Time) *Lease {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &Lease{store: s, key: key, stop: stop, done: make(chan struct{}), lost: make(chan struct{})}
	l.mu.Lock()
	l.body, l.etag, l.safe = b, etag, safeUntil(sent, b)
	l.timer = time.AfterFunc(time.Until(l.safe), func() { _ = l.Check() })
	l.mu.Unlock()
	go l.run(ctx)
	return l
}

func safeUntil(sent time.Time, b body) time.Time { return sent.Add(b.ttl() * 9 / 10) }

// SafeUntil is when the lease ends if no further renewal applies: nobody else
// holds it before. It is a local time with a monotonic reading.
func (l *Lease) SafeUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.safe
}

// Check is nil while the lease holds. Otherwise it is [ErrLost] with the
// reason, now and for ever. It costs no request.
func (l *Lease) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && !time.Now().Before(l.safe) {
		l.lose("not renewed in time")
	}
	return l.err
}

// Lost is closed when the lease ends, by loss or by release.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Release ends the lease and writes that it is free, so that the next candidate
// need not wait. It joins the renewing goroutine. On a lease that is lost or
// released it does nothing. After an error the lease has ended all the same,
// and the object expires.
func (l *Lease) Release(ctx context.Context) error {
	l.stop()
	<-l.done
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	l.mu.Lock()
	held := l.err == nil
	if held {
		l.lose("released")
	}
	l.mu.Unlock()
	if !held {
		return nil
	}
	err := l.write(ctx, true)
	if errors.Is(err, errAdopted) {
		err = l.write(ctx, true)
	}
	if err != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("lease %s: release: %w", l.key, err)
	}
	return nil
}

// lose latches the end. The caller holds mu and has seen err nil.
func (l *Lease) lose(why string) {
	l.err = fmt.Errorf("lease %s: %w: %s", l.key, ErrLost, why)
	l.timer.Stop()
	close(l.lost)
}

// run renews until the lease ends. A renewal that failed is tried again at a
// quarter of the pace, until SafeUntil passes.
func (l *Lease) run(ctx context.Context) {
	defer close(l.done)
	pace := l.body.ttl() / 3
	for wait := pace; ; {
		select {
		case <-ctx.Done():
			return
		case <-l.lost:
			return
		case <-time.After(jittered(wait)):
		}
		wait = pace
		if err := l.renew(ctx, pace); err != nil {
			wait = pace / 4
		}
	}
}

func jittered(d time.Duration) time.Duration { return d - rand.N(d/10+1) }

func (l *Lease) renew(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := l.write(ctx, false)
	if errors.Is(err, ErrLost) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.err == nil {
			l.lose("another took it over")
		}
	}
	return err
}

// errAdopted: the stored version is an earlier write of this lease, whose
// outcome had been unknown. The next write may replace it.
var errAdopted = errors.New("an earlier write of this lease had landed")

// write makes the next version: a renewal, or the free one. Only the renewing
// goroutine calls it, and Release after joining that.
func (l *Lease) write(ctx context.Context, free bool) error {
	l.mu.Lock()
	next, cond := l.body.next(), objstore.IfMatch(l.etag)
	l.mu.Unlock()
	next.Free = free
	sent := time.Now()
	info, err := put(ctx, l.store, l.key, next, cond)
	if errors.Is(err, objstore.ErrConflict) || errors.Is(err, objstore.ErrSuperseded) {
		return l.adopt(ctx)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.body, l.etag = next, info.ETag
	if l.err == nil {
		l.safe = safeUntil(sent, next)
		l.timer.Reset(time.Until(l.safe))
	}
	return nil
}

// adopt finds out whose version stopped a write. What it adopts does not move
// SafeUntil: when that write was sent is not known any more.
func (l *Lease) adopt(ctx context.Context) error {
	obj, err := l.store.Get(ctx, l.key)
	if errors.Is(err, objstore.ErrNotFound) {
		return ErrLost
	}
	if err != nil {
		return err
	}
	stored, err := decode(obj.Body)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if stored.Token != l.body.Token {
		return ErrLost
	}
	l.body, l.etag = stored, obj.ETag
	return errAdopted
}
