package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/placement"
)

// address is where one of the box's listeners answers, "" until it says so.
func (b *box) address(listener string) string {
	text, err := os.ReadFile(filepath.Join(b.dir, listener+".addr"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// createHosts creates the hosts once every box offers itself, and waits until
// their apps answer.
func (r *region) createHosts(ctx context.Context) error {
	for _, b := range r.boxes {
		err := until(ctx, startWithin, b.ref+" offers itself", func(ctx context.Context) (bool, error) {
			return r.offers(ctx, b)
		})
		if err != nil {
			return err
		}
	}
	if err := r.apart(ctx, "drain"); err != nil {
		return err
	}
	r.say("console host create %s", hostName)
	if err := r.createHost(ctx, hostName); err != nil {
		return err
	}
	home, err := r.home(ctx, hostName)
	if err != nil {
		return err
	}
	r.say("%s serves %s, session %d", home.box.ref, hostName, home.session)
	if err := r.createNeighbours(ctx); err != nil {
		return err
	}
	return r.together(ctx)
}

// together lets the boxes be chosen again that were kept apart, and waits until
// they say so themselves.
func (r *region) together(ctx context.Context) error {
	if err := r.apart(ctx, "undrain"); err != nil {
		return err
	}
	for _, b := range r.boxes {
		err := until(ctx, startWithin, b.ref+" accepts hosts", func(ctx context.Context) (bool, error) {
			file, err := placement.Read(ctx, r.store, b.ref)
			return file.Edges.Accepting && !file.Edges.Draining, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// creations is how many hosts are created at a time.
const creations = 4

// createNeighbours creates the other hosts that were asked for.
func (r *region) createNeighbours(ctx context.Context) error {
	if len(r.hosts) == 1 {
		return nil
	}
	r.say("console host create, for %d more hosts", len(r.hosts)-1)
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(creations)
	for _, host := range r.hosts[1:] {
		group.Go(func() error { return r.createHost(creating, host) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	spread, err := r.spread(ctx)
	if err == nil {
		r.say("%d hosts serve: %s", len(r.hosts), spread)
	}
	return err
}

func (r *region) createHost(ctx context.Context, host string) error {
	return r.console(ctx, "host", "create", host, "--account", "demo", "--app", "notes", "--region", regionCode,
		"--command", r.in("bin", "notes"), "--files-snapshot-interval", filesEvery.String(), "--timeout", startWithin.String())
}

// apart drains every box but the first, or lets them be chosen again, where all
// hosts are to be together.
func (r *region) apart(ctx context.Context, command string) error {
	if !r.opts.together {
		return nil
	}
	for _, b := range r.boxes[1:] {
		if err := r.console(ctx, "box", command, b.ref); err != nil {
			return err
		}
	}
	return nil
}

// spread is how many hosts each box serves.
type spread map[*box]int

func (r *region) spread(ctx context.Context) (spread, error) {
	s := spread{}
	for _, host := range r.hosts {
		h, err := r.home(ctx, host)
		if err != nil {
			return nil, err
		}
		s[h.box]++
	}
	return s, nil
}

// String is the spread in one line, by reference.
func (s spread) String() string {
	var list []string
	for b, n := range s {
		list = append(list, fmt.Sprintf("%s %d", b.ref, n))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// offers reports whether the box has published its edges file.
func (r *region) offers(ctx context.Context, b *box) (bool, error) {
	if err := b.ended(); err != nil {
		return false, err
	}
	_, err := r.store.Get(ctx, placement.Key(b.ref))
	if errors.Is(err, objstore.ErrNotFound) {
		return false, nil
	}
	return err == nil && b.address("ingress") != "", err
}

// errNotServed: the host has no home now.
var errNotServed = errors.New("it is not being served")

// home is who serves the host.
type home struct {
	box     *box
	session uint64
}

// home reads a host's claim and finds its executor.
func (r *region) home(ctx context.Context, host string) (home, error) {
	o, err := hostclaim.Read(ctx, r.store, host)
	if err != nil {
		return home{}, err
	}
	if o.Claim == nil || o.Claim.Holder == nil || o.Claim.Op.Kind != hostclaim.Serving {
		return home{}, fmt.Errorf("%s: %w", host, errNotServed)
	}
	b := r.box(o.Claim.Op.Exec)
	if b == nil {
		return home{}, fmt.Errorf("%s is served by %q, which is no box of this region", host, o.Claim.Op.Exec)
	}
	return home{b, o.Claim.Holder.Session}, nil
}

func (r *region) box(ref string) *box {
	for _, b := range r.boxes {
		if b.ref == ref {
			return b
		}
	}
	return nil
}

// peer is a box other than b.
func (r *region) peer(b *box) *box {
	for _, other := range r.boxes {
		if other != b {
			return other
		}
	}
	return nil
}
