// Package claimlist finds the claims that changed: one LIST of all of them, and
// one GET of each whose version is new.
package claimlist

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore"
)

const (
	prefix   = "control/hosts/"
	parallel = 16
)

// Reader remembers the version of each claim that it has read. It is for one
// goroutine.
type Reader struct {
	Store objstore.Store

	seen map[string]string // etag by host
}

// Changed returns the claims whose version is new since the last call. It costs
// one LIST, and one GET for each. A claim that cannot be read is part of the
// error, hides no other, and is read again at the next call; a listing that
// failed returns nothing. Every Observed has a claim.
func (r *Reader) Changed(ctx context.Context) ([]hostclaim.Observed, error) {
	listed := map[string]string{}
	for info, err := range r.Store.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("list the claims: %w", err)
		}
		host, ok := strings.CutSuffix(strings.TrimPrefix(info.Key, prefix), ".json")
		if ok && hostclaim.CheckHost(host) == nil {
			listed[host] = info.ETag
		}
	}
	var mu sync.Mutex
	var changed []hostclaim.Observed
	var failed []error
	seen := make(map[string]string, len(listed))
	var group errgroup.Group
	group.SetLimit(parallel)
	for host, etag := range listed {
		if r.seen[host] == etag {
			seen[host] = etag
			continue
		}
		group.Go(func() error {
			o, err := hostclaim.Read(ctx, r.Store, host)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, err)
				return nil
			}
			if o.Claim == nil {
				return nil // it went since it was listed
			}
			changed, seen[host] = append(changed, o), o.ETag
			return nil
		})
	}
	_ = group.Wait() // the errors are in failed
	r.seen = seen
	return changed, errors.Join(failed...)
}
