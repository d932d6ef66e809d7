package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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

// createHost creates the host once every box offers itself, and waits until its
// app answers.
func (r *region) createHost(ctx context.Context) error {
	for _, b := range r.boxes {
		err := until(ctx, startWithin, b.ref+" offers itself", func(ctx context.Context) (bool, error) {
			return r.offers(ctx, b)
		})
		if err != nil {
			return err
		}
	}
	r.say("console host create %s", hostName)
	err := r.console(ctx, "host", "create", hostName, "--account", "demo", "--app", "notes", "--region", regionCode,
		"--command", r.in("bin", "notes"), "--files-snapshot-interval", filesEvery.String(), "--timeout", startWithin.String())
	if err != nil {
		return err
	}
	home, err := r.home(ctx)
	if err != nil {
		return err
	}
	r.say("%s serves %s, session %d", home.box.ref, hostName, home.session)
	return nil
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

// home reads the host's claim and finds its executor.
func (r *region) home(ctx context.Context) (home, error) {
	o, err := hostclaim.Read(ctx, r.store, hostName)
	if err != nil {
		return home{}, err
	}
	if o.Claim == nil || o.Claim.Holder == nil || o.Claim.Op.Kind != hostclaim.Serving {
		return home{}, fmt.Errorf("%s: %w", hostName, errNotServed)
	}
	b := r.box(o.Claim.Op.Exec)
	if b == nil {
		return home{}, fmt.Errorf("%s is served by %q, which is no box of this region", hostName, o.Claim.Op.Exec)
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
