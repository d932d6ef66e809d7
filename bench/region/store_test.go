package region_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// The latencies of an object store in the same region: medians; one request in a
// hundred takes five times as long.
const (
	getTakes  = 15 * time.Millisecond
	putTakes  = 30 * time.Millisecond
	listTakes = 60 * time.Millisecond

	page = 1000 // keys in one answer of a listing
)

// spread is the sigma of a lognormal distribution whose 99th percentile is five
// times its median.
var spread = math.Log(5) / 2.326

// client is one process's way to a bucket. It counts what a cloud would bill, and
// takes the time that a cloud would take: half before the store acts, half after.
type client struct {
	bucket *memstore.Store
	who    string
	seen   *tally
	ledger *ledger // nil: this bucket holds no claims

	mu   sync.Mutex
	rng  *rand.Rand
	dead bool // its machine is gone: nothing arrives any more
}

var (
	_ objstore.Store    = (*client)(nil)
	_ objstore.Streamer = (*client)(nil)
	_ objstore.Copier   = (*client)(nil)
)

var errDead = errors.New("the machine is gone")

// die lets no request arrive from now on.
func (c *client) die() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
}

func (c *client) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// half is half of a latency with this median.
func (c *client) half(median time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(float64(median) / 2 * math.Exp(spread*c.rng.NormFloat64()))
}

// ask makes one request: act is when it arrives.
func (c *client) ask(ctx context.Context, op, key string, median time.Duration, act func() error) error {
	defer c.seen.count(c.who, op, key)()
	half := c.half(median)
	if !sleep(ctx, half) {
		return act() // which answers for a context that ended
	}
	if c.isDead() {
		return errDead
	}
	err := act()
	sleep(ctx, half)
	return err
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (c *client) Get(ctx context.Context, key string) (o objstore.Object, err error) {
	err = c.ask(ctx, "GET", key, getTakes, func() (err error) {
		o, err = c.bucket.Get(ctx, key)
		return err
	})
	return o, err
}

func (c *client) GetReader(ctx context.Context, key, ifMatch string, offset int64) (r io.ReadCloser, info objstore.Info, err error) {
	err = c.ask(ctx, "GET", key, getTakes, func() (err error) {
		r, info, err = c.bucket.GetReader(ctx, key, ifMatch, offset)
		return err
	})
	return r, info, err
}

func (c *client) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (info objstore.Info, err error) {
	err = c.ask(ctx, "PUT", key, putTakes, func() (err error) {
		put := func() error {
			info, err = c.bucket.Put(ctx, key, body, cond)
			return err
		}
		if c.ledger != nil && strings.HasPrefix(key, claimPrefix) {
			return c.ledger.write(key, body, put)
		}
		err = put()
		if c.ledger != nil && err == nil && strings.HasPrefix(key, fencePrefix) {
			c.ledger.fence(key)
		}
		return err
	})
	return info, err
}

func (c *client) PutReader(ctx context.Context, key string, r io.ReadSeeker, size int64, cond objstore.Condition) (info objstore.Info, err error) {
	err = c.ask(ctx, "PUT", key, putTakes, func() (err error) {
		info, err = c.bucket.PutReader(ctx, key, r, size, cond)
		return err
	})
	return info, err
}

func (c *client) Copy(ctx context.Context, src objstore.Info, dst string) (info objstore.Info, err error) {
	err = c.ask(ctx, "PUT", dst, putTakes, func() (err error) {
		info, err = c.bucket.Copy(ctx, src, dst)
		return err
	})
	return info, err
}

// List takes its time, and is counted, page by page.
func (c *client) List(ctx context.Context, prefix string) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		turn := func() error { return c.ask(ctx, "LIST", prefix, listTakes, func() error { return ctx.Err() }) }
		if err := turn(); err != nil {
			yield(objstore.Info{}, err)
			return
		}
		n := 0
		for info, err := range c.bucket.List(ctx, prefix) {
			if n > 0 && n%page == 0 && err == nil {
				err = turn()
			}
			if n++; !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// cell is what requests are counted by.
type cell struct{ who, op, prefix string }

// tally counts the requests of the region, and how many are under way.
type tally struct {
	mu        sync.Mutex
	by        map[cell]int
	from      time.Time
	now, peak int
}

func newTally() *tally { return &tally{by: map[cell]int{}} }

// count counts a request that begins; what it returns is called at its end.
func (t *tally) count(who, op, key string) func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.by[cell{who, op, prefixOf(key)}]++
	t.now++
	t.peak = max(t.peak, t.now)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.now--
	}
}

// prefixOf is the part of a key that says what is stored there.
func prefixOf(key string) string {
	parts := strings.SplitN(key, "/", 3)
	if len(parts) < 2 || parts[0] != "control" {
		return parts[0]
	}
	return parts[0] + "/" + parts[1]
}

// take takes what was counted and how many requests were under way at most, and
// begins to count anew.
func (t *tally) take() (c counts, peak int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, peak = counts{t.by, time.Since(t.from)}, t.peak
	t.by, t.from, t.peak = map[cell]int{}, time.Now(), t.now
	return c, peak
}
