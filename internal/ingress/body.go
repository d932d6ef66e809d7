package ingress

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// A budget bounds the bytes that are kept for all requests together.
type budget struct {
	max  int64
	used atomic.Int64
}

func (b *budget) take(n int) bool {
	if b.used.Add(int64(n)) > b.max {
		b.give(n)
		return false
	}
	return true
}

func (b *budget) give(n int) { b.used.Add(-int64(n)) }

// A replay keeps what is read of a request's body, so that it can be sent again,
// as long as that fits its bound and the budget.
type replay struct {
	body  io.ReadCloser
	max   int64
	bytes *budget

	reading sync.Mutex // held for a Read of body, which may wait for the client
	mu      sync.Mutex // guards the rest
	kept    []byte     // all that was read of body, unless lost
	lost    bool       // it is not all kept any more
}

// readBody reads on in body and keeps what it got. The caller holds reading.
func (b *replay) readBody(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.lost:
	case int64(len(b.kept)+n) <= b.max && b.bytes.take(n):
		b.kept = append(b.kept, p[:n]...)
	default:
		b.drop()
	}
	return n, err
}

// drop gives up what is kept. The caller holds mu.
func (b *replay) drop() {
	b.bytes.give(len(b.kept))
	b.kept, b.lost = nil, true
}

// fill reads body to its end.
func (b *replay) fill() error {
	b.reading.Lock()
	defer b.reading.Unlock()
	p := make([]byte, 32<<10)
	for {
		_, err := b.readBody(p)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// whole reports whether all that was read can be read again. It waits for a read
// that an ended attempt still has under way, whose bytes would be missing.
func (b *replay) whole() bool {
	b.reading.Lock()
	defer b.reading.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.lost
}

// release gives back what was kept. A read that is still under way keeps
// nothing any more.
func (b *replay) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop()
}

// An attempt is one reading of the body from its start. A transport may go on
// reading after it failed: once closed, an attempt reads nothing any more.
type attempt struct {
	*replay
	at     int
	closed atomic.Bool
}

func (a *attempt) Read(p []byte) (int, error) {
	a.reading.Lock()
	defer a.reading.Unlock()
	if a.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	if n := a.again(p); n > 0 || len(p) == 0 {
		return n, nil
	}
	n, err := a.readBody(p)
	a.at += n
	return n, err
}

// again copies what an earlier attempt already read.
func (a *attempt) again(p []byte) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lost || a.at >= len(a.kept) {
		return 0
	}
	n := copy(p, a.kept[a.at:])
	a.at += n
	return n
}

// Close ends the attempt. The body itself is the server's to close.
func (a *attempt) Close() error {
	a.closed.Store(true)
	return nil
}
