package regionfile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// Keep is how many bumps the file holds.
const Keep = 256

// File is the stored record, version 1.
type File struct {
	V      int      `json:"v"`
	Gen    uint64   `json:"gen"`
	Write  string   `json:"write"`
	Serial uint64   `json:"serial"`           // of the newest bump
	Recent []Change `json:"recent,omitempty"` // oldest first, serials without a gap
}

// Change is one bump of one host.
type Change struct {
	Serial uint64   `json:"serial"`
	Host   string   `json:"host"`
	Boxes  []string `json:"boxes,omitempty"` // that have to look; none: everybody
}

// Key is where the file of region lies in the control bucket.
func Key(region string) string { return "control/regions/" + region + ".json" }

// check holds the rule that [Watcher] rests on: the newest change carries
// Serial and each one before it carries one less.
func (f File) check() error {
	if f.V != 1 {
		return fmt.Errorf("%w: v: got %d, want 1", record.ErrMalformed, f.V)
	}
	if n := len(f.Recent); n > Keep || uint64(n) > f.Serial {
		return fmt.Errorf("%w: recent: got %d entries at serial %d, want at most %d", record.ErrMalformed, n, f.Serial, Keep)
	}
	for i, c := range f.Recent {
		if want := f.oldest() + uint64(i); c.Serial != want {
			return fmt.Errorf("%w: recent: got serial %d, want %d", record.ErrMalformed, c.Serial, want)
		}
	}
	return nil
}

// oldest is the serial of the oldest change that is kept; Serial+1 for none.
func (f File) oldest() uint64 { return f.Serial - uint64(len(f.Recent)) + 1 }

// read returns the region's file; an absent one is the zero File with no ETag.
func read(ctx context.Context, s objstore.Store, region string) (File, string, error) {
	o, err := s.Get(ctx, Key(region))
	if errors.Is(err, objstore.ErrNotFound) {
		return File{V: 1}, "", nil
	}
	if err != nil {
		return File{}, "", err
	}
	f, err := record.Decode[File](o.Body)
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return File{}, "", fmt.Errorf("%s: %w", Key(region), err)
	}
	return f, o.ETag, nil
}

const attempts = 4

// Bump says to everybody that hosts of region changed. It is [Tell].
func Bump(ctx context.Context, s objstore.Store, region string, hosts ...string) error {
	changes := make([]Change, len(hosts))
	for i, host := range hosts {
		changes[i].Host = host
	}
	return Tell(ctx, s, region, changes...)
}

// Tell says which hosts of region changed, and to whom: one GET and one PUT for
// all of them, tried again a few times where another came first. Serials are set
// here. Its error is for a log: the change itself stands, and the others find it
// on their sweep.
func Tell(ctx context.Context, s objstore.Store, region string, changes ...Change) error {
	if len(changes) == 0 {
		return nil
	}
	var err error
	for attempt := range attempts {
		if attempt > 0 && !pause(ctx, attempt) {
			break
		}
		if err = bump(ctx, s, region, changes); err == nil {
			return nil
		}
	}
	return fmt.Errorf("bump region %s: %w", region, err)
}

func bump(ctx context.Context, s objstore.Store, region string, changes []Change) error {
	f, etag, err := read(ctx, s, region)
	if err != nil {
		return err
	}
	body, err := record.Encode(f.with(changes))
	if err != nil {
		return err
	}
	cond := objstore.IfAbsent()
	if etag != "" {
		cond = objstore.IfMatch(etag)
	}
	_, err = objstore.PutSettled(ctx, s, Key(region), body, cond)
	return err
}

func (f File) with(changes []Change) File {
	recent := append([]Change(nil), f.Recent...)
	for _, c := range changes {
		f.Serial++
		c.Serial = f.Serial
		recent = append(recent, c)
	}
	f.Recent = recent[max(0, len(recent)-Keep):]
	f.Gen++
	f.Write = record.Nonce()
	return f
}

// pause waits 10 to 20 ms times the attempt, unless ctx ends.
func pause(ctx context.Context, attempt int) bool {
	base := time.Duration(attempt) * 10 * time.Millisecond
	select {
	case <-ctx.Done():
		return false
	case <-time.After(base + rand.N(base)):
		return true
	}
}

// Watcher remembers up to which bump its owner has seen the region's file. One
// goroutine uses it.
type Watcher struct {
	Store  objstore.Store
	Region string
	For    string // a box, which hears only of changes that it has to look at; "": of all

	started bool
	seen    uint64
}

// Poll reads the file, one GET, and returns the hosts that were bumped since
// the last successful poll, each once. A hole means that there may be others:
// the first poll always has one, for nothing was seen before it.
func (w *Watcher) Poll(ctx context.Context) (changed []string, hole bool, err error) {
	f, _, err := read(ctx, w.Store, w.Region)
	if err != nil {
		return nil, false, fmt.Errorf("poll region %s: %w", w.Region, err)
	}
	hole = !w.started || f.Serial < w.seen || f.oldest() > w.seen+1
	known := map[string]bool{}
	for _, c := range f.Recent {
		if (hole || c.Serial > w.seen) && !known[c.Host] && w.concerns(c) {
			known[c.Host] = true
			changed = append(changed, c.Host)
		}
	}
	w.started, w.seen = true, f.Serial
	return changed, hole, nil
}

func (w *Watcher) concerns(c Change) bool {
	return w.For == "" || len(c.Boxes) == 0 || slices.Contains(c.Boxes, w.For)
}
