package console

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/objstore"
)

// maxHosts bounds a listing.
const maxHosts = 100_000

// Host is what an operator sees of one host.
type Host struct {
	Host    string         `json:"host"`
	State   hostclaim.Kind `json:"state"` // "" where the claim cannot be read
	Box     string         `json:"box"`   // who executes, "none" while nobody may
	Region  string         `json:"region"`
	Status  Status         `json:"status"`
	Problem string         `json:"problem,omitempty"` // what could not be read

	// The rest is only in what [Console.Host] returns.
	Address string             `json:"address,omitempty"` // ingress of the box that executes
	Claim   *hostclaim.Claim   `json:"claim,omitempty"`
	Record  *hostrecord.Record `json:"record,omitempty"`
}

// look is one claim, or why it could not be read.
type look struct {
	hostclaim.Observed
	err error
}

// claims reads every claim: one LIST and a GET each.
func (c *Console) claims(ctx context.Context) ([]look, error) {
	const prefix, suffix = "control/hosts/", ".json"
	var looks []look
	for info, err := range c.Store.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("list the claims: %w", err)
		}
		if len(looks) == maxHosts {
			return nil, fmt.Errorf("list the claims: more than %d", maxHosts)
		}
		host := strings.TrimSuffix(strings.TrimPrefix(info.Key, prefix), suffix)
		looks = append(looks, look{Observed: hostclaim.Observed{Host: host}})
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range looks {
		group.Go(func() error {
			o, err := hostclaim.Read(ctx, c.Store, looks[i].Host)
			if err != nil {
				looks[i].err = err
				return nil
			}
			looks[i].Observed = o
			return nil
		})
	}
	return looks, group.Wait()
}

// Hosts lists every host that is not free, by name. One whose claim cannot be
// read is listed with its problem.
func (c *Console) Hosts(ctx context.Context) ([]Host, error) {
	v, err := c.view(ctx)
	if err != nil {
		return nil, err
	}
	looks, err := c.claims(ctx)
	if err != nil {
		return nil, err
	}
	list := []Host{}
	for _, l := range looks {
		switch {
		case l.err != nil:
			list = append(list, Host{Host: l.Host, Problem: l.err.Error(),
				Status: Status{Doing: "its claim cannot be read", Do: "look at the object " + hostclaim.Key(l.Host)}})
		case l.Claim != nil && l.Claim.Op.Kind != hostclaim.Free:
			list = append(list, v.host(l.Claim, ""))
		}
	}
	return list, nil
}

// Host looks at one host closely. A host without a claim is [ErrNone].
func (c *Console) Host(ctx context.Context, host string) (Host, error) {
	o, err := hostclaim.Read(ctx, c.Store, host)
	switch {
	case errors.Is(err, hostrecord.ErrBadHost):
		return Host{}, &Refusal{What: "no host was looked up", Err: err, Next: "see the hosts with: console host list"}
	case err != nil:
		return Host{}, err
	case o.Claim == nil:
		return Host{}, &Refusal{What: host + " is not a host of this deployment", Err: fmt.Errorf("%w: it never had a claim", ErrNone),
			Next: "see the hosts with: console host list"}
	}
	v, err := c.view(ctx)
	if err != nil {
		return Host{}, err
	}
	rec, problem := c.recordOf(ctx, o.Claim)
	pool := ""
	if rec != nil {
		pool = rec.Pool
	}
	h := v.host(o.Claim, pool)
	h.Claim, h.Record, h.Problem = o.Claim, rec, problem
	h.Address = v.box(h.Box).Address
	return h, nil
}

// host describes a claim. pool is the record's, where it was read: only then
// can it be said whether another box may take the host.
func (v view) host(claim *hostclaim.Claim, pool string) Host {
	k := known{box: v.box}
	h := Host{Host: claim.Host, State: claim.Op.Kind, Box: claim.Op.Exec}
	if claim.Holder != nil {
		h.Region = claim.Holder.Region
		if pool != "" {
			k.eligible = func() string { return v.noneFor(claim, pool) }
		}
	}
	h.Status = describe(claim, k, v.At)
	return h
}

// noneFor says why no box may be given the host that claim is about, or "".
func (v view) noneFor(claim *hostclaim.Claim, pool string) string {
	if _, err := v.choose(claim, pool); err != nil {
		return err.Error()
	}
	return ""
}

// recordOf reads the record that the claim names, and says what is wrong with
// it.
func (c *Console) recordOf(ctx context.Context, claim *hostclaim.Claim) (*hostrecord.Record, string) {
	h := claim.Holder
	if h == nil {
		return nil, ""
	}
	rec, err := hostrecord.Read(ctx, c.Store, h.Account, h.App, claim.Host)
	switch {
	case errors.Is(err, objstore.ErrNotFound):
		return nil, "its record is not there"
	case err != nil:
		return nil, err.Error()
	case rec.Incarnation != h.Incarnation:
		return &rec.Record, fmt.Sprintf("its record is of incarnation %s, its claim of %s", rec.Incarnation, h.Incarnation)
	}
	return &rec.Record, ""
}
