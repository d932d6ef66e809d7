// Package claimlist finds the claims that changed: one LIST of all of them, and
// one GET of each whose version is new.
//
// It holds no claim: of each it remembers the version that it has read, and each
// one that changed is handed over as soon as it is there. So a deployment with
// many hosts costs the names of its hosts, and a page of a listing.
package claimlist

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore"
)

const (
	prefix   = "control/hosts/"
	parallel = 16

	// maxFailed bounds the errors that are told of one pass: of a store that
	// fails, a few say it all.
	maxFailed = 16
)

// UnreadError: the listing was complete, and these claims could not be read.
// They are read again at the next call.
type UnreadError struct {
	Hosts []string
	errs  []error // of some of them
}

// Error names the failures, of many a few.
func (e *UnreadError) Error() string { return errors.Join(e.errs...).Error() }

// Unwrap is those failures.
func (e *UnreadError) Unwrap() []error { return e.errs }

// Reader remembers the version of each claim that it has read. It is for one
// goroutine.
type Reader struct {
	Store objstore.Store
	Skip  func(host string) bool // claims whose change is of no use now: they are asked of again at the next call; nil: none

	seen   map[string]string // etag by host
	listed map[string]string // etag by host, as of the last complete listing
}

// Listed is the version of every claim that the last complete listing showed, by
// host, read or not; nil before one. The caller changes nothing in it.
func (r *Reader) Listed() map[string]string { return r.listed }

// Changed returns the claims whose version is new since the last call. For whom
// they need not all be there at once, [Reader.Each] is the same.
func (r *Reader) Changed(ctx context.Context) ([]hostclaim.Observed, error) {
	var changed []hostclaim.Observed
	err := r.Each(ctx, func(o hostclaim.Observed, _ time.Time) { changed = append(changed, o) })
	return changed, err
}

// Each tells visit of every claim whose version is new since the last call, with
// the store's time of that version, in no order and one at a time. It costs one
// LIST, and one GET for each. Claims that cannot be read are an [UnreadError] and
// hide no other. Any other error is of the listing: what follows in it is read at
// the next call. Every Observed has a claim.
func (r *Reader) Each(ctx context.Context, visit func(o hostclaim.Observed, changed time.Time)) error {
	p := pass{Reader: r, visit: visit, seen: make(map[string]string, len(r.seen)), listed: make(map[string]string, len(r.seen))}
	p.group.SetLimit(parallel)
	err := p.list(ctx)
	_ = p.group.Wait() // the errors are in failed
	if err == nil {
		r.listed = p.listed
	} else {
		for host, etag := range r.seen { // what was not listed is as it was
			if _, listed := p.seen[host]; !listed {
				p.seen[host] = etag
			}
		}
	}
	r.seen = p.seen
	switch {
	case err != nil:
		return errors.Join(append(p.failed, fmt.Errorf("list the claims: %w", err))...)
	case len(p.unread) > 0:
		return &UnreadError{Hosts: p.unread, errs: p.failed}
	}
	return nil
}

// pass is one call of [Reader.Each].
type pass struct {
	*Reader
	visit  func(hostclaim.Observed, time.Time)
	group  errgroup.Group
	listed map[string]string

	mu     sync.Mutex
	seen   map[string]string // what r.seen will be
	unread []string
	failed []error
}

func (p *pass) list(ctx context.Context) error {
	for info, err := range p.Store.List(ctx, prefix) {
		if err != nil {
			return err
		}
		host, ok := strings.CutSuffix(strings.TrimPrefix(info.Key, prefix), ".json")
		if !ok || hostclaim.CheckHost(host) != nil {
			continue
		}
		p.listed[host] = info.ETag
		if p.Reader.seen[host] == info.ETag {
			p.saw(host, info.ETag)
			continue
		}
		if p.Skip != nil && p.Skip(host) {
			p.saw(host, "") // it is there, and was not read
			continue
		}
		p.group.Go(func() error { p.read(ctx, host, info.ModTime); return nil })
	}
	return nil
}

func (p *pass) saw(host, etag string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[host] = etag
}

func (p *pass) read(ctx context.Context, host string, changed time.Time) {
	o, err := hostclaim.Read(ctx, p.Store, host)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.seen[host] = "" // it is there, and is read again
		p.unread = append(p.unread, host)
		if len(p.failed) < maxFailed {
			p.failed = append(p.failed, err)
		}
	case o.Claim != nil: // else it went since it was listed
		p.seen[host] = o.ETag
		p.visit(o, changed)
	}
}
