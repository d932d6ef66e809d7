package worker

import (
	"context"
	"sync"
)

// maxPending bounds a set of names; what does not fit is found by a sweep.
const maxPending = 100_000

// pending is names that somebody is to look at, each once.
type pending struct {
	mu    *sync.Mutex
	names map[string]bool
	more  chan struct{}
}

func newPending() pending {
	return pending{mu: new(sync.Mutex), names: map[string]bool{}, more: make(chan struct{}, 1)}
}

func (p pending) add(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.names) < maxPending {
		p.names[name] = true
		signal(p.more)
	}
}

// take waits until there is a name, and takes them all; none where ctx ended
// first.
func (p pending) take(ctx context.Context) []string {
	select {
	case <-ctx.Done():
		return nil
	case <-p.more:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	names := make([]string, 0, len(p.names))
	for name := range p.names {
		names = append(names, name)
	}
	clear(p.names)
	return names
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
