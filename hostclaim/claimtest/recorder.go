package claimtest

import (
	"context"
	"fmt"

	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// Fault is what befalls a write.
type Fault string

// The faults of a write.
const (
	None        Fault = ""
	Stale       Fault = "stale"        // it was made of an observation that had moved on
	LoseRequest Fault = "lost request" // it never arrives
	LoseAnswer  Fault = "lost answer"  // it applies, and its sender is not told
	Held        Fault = "held"         // it arrives later, under its own condition, whatever became of its sender
	Retried     Fault = "retried"      // its step is made again of a newer observation, with the arguments of the first
	Repeated    Fault = "repeated"     // it is sent twice
)

// recorder is the control store of a run. It keeps the writes that applied, and
// lets a fault befall the next one.
type recorder struct {
	*memstore.Store
	next    Fault
	applied []written // since the checker looked
	held    []put
}

// written is one write that applied.
type written struct {
	etag string
	body []byte
}

type put struct {
	key  string
	body []byte
	cond objstore.Condition
}

// Put implements [objstore.Store].
func (r *recorder) Put(ctx context.Context, key string, body []byte, cond objstore.Condition) (objstore.Info, error) {
	switch r.next {
	case LoseRequest:
		return objstore.Info{}, errLost(key)
	case Held:
		r.held = append(r.held, put{key, body, cond})
		return objstore.Info{}, errLost(key)
	}
	info, err := r.Store.Put(ctx, key, body, cond)
	if err == nil {
		r.applied = append(r.applied, written{info.ETag, body})
	}
	if r.next == LoseAnswer {
		return objstore.Info{}, errLost(key)
	}
	return info, err
}

// Get implements [objstore.Store]. Who was not told cannot look again either.
func (r *recorder) Get(ctx context.Context, key string) (objstore.Object, error) {
	if r.next != None {
		return objstore.Object{}, errLost(key)
	}
	return r.Store.Get(ctx, key)
}

// deliver lets a write that was held arrive.
func (r *recorder) deliver(ctx context.Context, i int) {
	p := r.held[i]
	r.held = append(r.held[:i], r.held[i+1:]...)
	if info, err := r.Store.Put(ctx, p.key, p.body, p.cond); err == nil {
		r.applied = append(r.applied, written{info.ETag, p.body})
	}
}

func errLost(key string) error { return fmt.Errorf("%s: %w: the network", key, objstore.ErrUnknown) }
