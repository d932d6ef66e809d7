package memstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/carlosframework/regionha/objstore"
)

// ErrInjected is in every error that a [Fault] made.
var ErrInjected = errors.New("injected fault")

// Op is a kind of request.
type Op string

// The kinds of request. A listing is one request per 1,000 keys.
const (
	OpGet           Op = "get"
	OpPut           Op = "put"
	OpList          Op = "list"
	OpListVersions  Op = "list-versions"
	OpGetVersion    Op = "get-version"
	OpDeleteVersion Op = "delete-version"
	OpCopyVersion   Op = "copy-version"
	OpCopy          Op = "copy"
)

// Request is what the store was asked, before it is carried out.
type Request struct {
	Op      Op
	Key     string // the prefix for a listing, the destination for a copy
	Version string
	Cond    objstore.Condition
	Body    []byte // of a write; not to be modified
}

// Fault says what becomes of one request.
type Fault uint8

const (
	None       Fault = iota // carried out and answered
	Lose                    // never arrives; the caller gets an error
	LoseAnswer              // carried out; the caller gets an error
	Hold                    // a write that is out on the network: the caller gets an error, [Store.Held] delivers it
	Replay                  // a write that arrives twice; the second answer is given, a conflict with itself
	Refuse                  // a write that is told of a conflict though its condition holds (S3's 409)
	Stale                   // a listing that misses the newest write under its prefix
	Torn                    // a listing that fails after half of a page
)

// Write is one write that applied.
type Write struct {
	objstore.Info
	Seq    uint64 // order of application over the whole store, from 1
	Cond   objstore.Condition
	SHA256 string // of the body, hex
	Body   []byte // not to be modified
}

// Held is a write that was sent and has not arrived yet.
type Held struct {
	Request
	store *Store
}

// Inject makes f decide the fault of every later request; nil ends that. f is
// called by each goroutine that makes a request, without the store's lock: it
// may block, and may itself use the store, for which it is called again.
func (s *Store) Inject(f func(Request) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inject = f
}

// Once returns a decision for [Store.Inject] that makes the first op on a key
// with this prefix fail so, and no other request.
func Once(op Op, prefix string, fault Fault) func(Request) Fault {
	var done atomic.Bool
	return func(r Request) Fault {
		if r.Op == op && strings.HasPrefix(r.Key, prefix) && done.CompareAndSwap(false, true) {
			return fault
		}
		return None
	}
}

// Log returns every write that applied, in order. Deleting a version leaves it
// in the log.
func (s *Store) Log() []Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Requests returns how many requests of each kind arrived or were lost.
func (s *Store) Requests() map[Op]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.requests)
}

// Held returns the writes on hold, oldest first.
func (s *Store) Held() []*Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.held)
}

// Deliver lets the write arrive now, under its own condition, whoever sent it
// and whatever has become of them. It returns what a sender would have been
// told. A second delivery is a duplicated packet: it is tried again.
func (h *Held) Deliver() (objstore.Info, error) {
	h.store.mu.Lock()
	h.store.held = slices.DeleteFunc(h.store.held, func(o *Held) bool { return o == h })
	h.store.mu.Unlock()
	return h.store.apply(h.Request)
}

// arrive counts r and decides its fault. It answers a lost request with an
// error; the caller carries out what is left.
func (s *Store) arrive(ctx context.Context, r Request) (Fault, error) {
	s.mu.Lock()
	s.requests[r.Op]++
	inject := s.inject
	s.mu.Unlock()
	fault := None
	if inject != nil {
		fault = inject(r)
	}
	if err := ctx.Err(); err != nil {
		return fault, err
	}
	reads := r.Op != OpPut && r.Op != OpCopyVersion && r.Op != OpCopy && r.Op != OpDeleteVersion
	if fault == Lose || reads && fault == LoseAnswer {
		return fault, ErrInjected
	}
	return fault, nil
}

// write carries out a conditional write with its fault.
func (s *Store) write(ctx context.Context, r Request) (objstore.Info, error) {
	fault, err := s.arrive(ctx, r)
	if err != nil {
		return objstore.Info{}, fmt.Errorf("put %s: %w: %w", r.Key, objstore.ErrUnknown, err)
	}
	switch fault {
	case Hold:
		s.mu.Lock()
		s.held = append(s.held, &Held{Request: r, store: s})
		s.mu.Unlock()
	case LoseAnswer:
		_, _ = s.apply(r) // whatever the answer is, nobody hears it
	case Refuse:
		return objstore.Info{}, fmt.Errorf("put %s: %w: %w", r.Key, objstore.ErrConflict, ErrInjected)
	case Replay:
		_, _ = s.apply(r)
		return s.apply(r)
	default:
		return s.apply(r)
	}
	return objstore.Info{}, fmt.Errorf("put %s: %w: %w", r.Key, objstore.ErrUnknown, ErrInjected)
}

// beforeNewest returns the sequence number just before the newest write under
// prefix. The caller holds the lock.
func (s *Store) beforeNewest(prefix string) uint64 {
	for _, w := range slices.Backward(s.log) {
		if strings.HasPrefix(w.Key, prefix) {
			return w.Seq - 1
		}
	}
	return s.seq
}
