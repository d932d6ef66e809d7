package ingress

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A replay keeps what is read of a request's body, so that it can be sent again,
// as long as that fits its bound and its host's share.
type replay struct {
	body  io.ReadCloser
	max   int64
	share *share

	// stalls bounds the next Read: it sets the deadline of reading from the
	// client; the zero time lifts it.
	stalls func(time.Time)
	stall  time.Duration

	reading sync.Mutex // held for a Read of body, which may wait for the client
	mu      sync.Mutex // guards the rest
	kept    []byte     // all that was read of body, unless lost
	lost    bool       // it is not all kept any more
	err     error      // how reading ended, io.EOF at its end
}

// readBody reads on in body and keeps what it got. The caller holds reading.
func (b *replay) readBody(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.lost:
	case int64(len(b.kept)+n) <= b.max && b.share.take(int64(n)):
		b.kept = append(b.kept, p[:n]...)
	default:
		b.drop()
	}
	if err != nil {
		b.err = err
	}
	return n, err
}

// drop gives up what is kept. The caller holds mu.
func (b *replay) drop() {
	b.share.give(int64(len(b.kept)))
	b.kept, b.lost = nil, true
}

// fill reads body to its end, which is waited for until the time until.
func (b *replay) fill(until time.Time) error {
	b.reading.Lock()
	defer b.reading.Unlock()
	b.stalls(until) // for good if that is over: the server reads on where it ends a connection
	p := make([]byte, 32<<10)
	for {
		_, err := b.readBody(p)
		if err == io.EOF {
			b.stalls(time.Time{})
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

// ended reports whether the client's body was read to its end.
func (b *replay) ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err == io.EOF
}

// broken is why the client's body cannot be read; nil while it can, and where it
// was read to its end.
func (b *replay) broken() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == io.EOF {
		return nil
	}
	return b.err
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
	atEnd  func() // called at the body's end, before that is told
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
	a.stalls(time.Now().Add(a.stall))
	n, err := a.readBody(p)
	a.at += n
	if err == io.EOF {
		a.stalls(time.Time{})
		a.atEnd()
	}
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
