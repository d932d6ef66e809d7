package region_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
)

const (
	claimPrefix = "control/hosts/"
	fencePrefix = "control/box-fences/"
)

// ledger follows every claim write of the region, and holds it to the history of
// its host: numbers grow by what they may, and an executor is left only by its
// release or on evidence.
type ledger struct {
	mu     sync.Mutex
	hosts  map[string]*life
	moving int // relocations that run
	peak   int // of them at once
	broken []error
	fenced map[string]time.Time // since when, by enrollment
}

// life is what is kept of one host's claim.
type life struct {
	gen, stamp, session uint64
	exec                string
	moving              bool
	began, served       time.Time // of its newest relocation
	moves, lost         int       // relocations completed, and sessions declared lost
}

func newLedger() *ledger { return &ledger{hosts: map[string]*life{}, fenced: map[string]time.Time{}} }

// write makes one write of a claim by put, and notes it where it applied.
func (l *ledger) write(key string, body []byte, put func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := put(); err != nil {
		return err
	}
	c, err := hostclaim.Decode(body)
	if err != nil {
		l.fail("%s: %w", key, err)
		return nil
	}
	l.note(c)
	return nil
}

func (l *ledger) fail(format string, args ...any) {
	if len(l.broken) < 10 {
		l.broken = append(l.broken, fmt.Errorf(format, args...))
	}
}

// fence notes when a fence was written.
func (l *ledger) fence(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fenced[strings.TrimSuffix(strings.TrimPrefix(key, fencePrefix), ".json")] = time.Now()
}

// note takes in the next version of a claim. The caller holds mu.
func (l *ledger) note(c *hostclaim.Claim) {
	was := l.hosts[c.Host]
	if was == nil {
		was = &life{}
		l.hosts[c.Host] = was
	}
	now := *was
	now.gen, now.exec, now.moving = c.Gen, c.Op.Exec, c.Op.Kind == hostclaim.Relocating
	now.stamp, now.session = c.Holder.Stamp, c.Holder.Session
	switch {
	case now.gen != was.gen+1 && was.gen > 0:
		l.fail("%s: gen %d follows %d", c.Host, now.gen, was.gen)
	case now.stamp < was.stamp || now.session < was.session || now.session > now.stamp:
		l.fail("%s: stamp %d and session %d follow %d and %d", c.Host, now.stamp, now.session, was.stamp, was.session)
	case was.exec != now.exec && now.exec != "" && now.exec != hostclaim.None && now.stamp <= was.stamp:
		l.fail("%s: %s took it from %s under the same stamp", c.Host, now.exec, was.exec)
	}
	if !was.moving && now.moving {
		now.began = time.Now()
		l.moving++
		l.peak = max(l.peak, l.moving)
	}
	if was.moving && !now.moving {
		now.served = time.Now()
		now.moves++
		l.moving--
	}
	now.lost = 0
	for _, a := range c.Holder.Admissions {
		if a.WritesLost != nil {
			now.lost++
		}
	}
	*was = now
}

// copyOf is every host's life as it is now.
func (l *ledger) copyOf() map[string]life {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]life, len(l.hosts))
	for host, h := range l.hosts {
		all[host] = *h
	}
	return all
}

// fences says when each fence was written, by enrollment.
func (l *ledger) fences() map[string]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.fenced)
}

// most is how many relocations ran at once.
func (l *ledger) most() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peak
}

// restart forgets the peak.
func (l *ledger) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.peak = l.moving
}
