package console

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/membership"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
)

// Waiting is the [Box.State] of a machine that published its identity and is
// not enrolled. The roster has no such state.
const Waiting roster.State = "waiting"

const (
	// maxIdentities bounds a listing of published identities.
	maxIdentities = 100_000

	// maxWaiting is how many machines that wait are shown: those that published
	// last. Identities are never deleted, so the oldest are of machines that are
	// gone.
	maxWaiting = 50

	// confirmedWithin is how long workers try to confirm a machine.
	confirmedWithin = 24 * time.Hour
)

// waiting looks at the machines that published an identity and are not enrolled:
// a LIST, and where there is one, a LIST of the confirmations and a few GETs for
// each.
func (c *Console) waiting(ctx context.Context, v view) ([]Box, error) {
	infos, err := c.unenrolled(ctx, v)
	if err != nil || len(infos) == 0 {
		return nil, err
	}
	reader := membership.Reader{Store: c.Store, Roster: c.Roster}
	keys, err := reader.List(ctx)
	if err != nil {
		return nil, err
	}
	boxes := make([]Box, len(infos))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, info := range infos {
		group.Go(func() error {
			ref, _ := boxid.ParseKey(info.Key)
			obj, err := c.Store.Get(ctx, info.Key)
			boxes[i] = v.waits(ref, obj, err, func() (membership.Evidence, bool, error) {
				if len(keys[ref]) == 0 {
					return membership.Evidence{}, false, nil
				}
				by, err := reader.Read(ctx, ref, keys[ref])
				return by, err == nil, err
			})
			return nil
		})
	}
	_ = group.Wait() // each says itself what could not be read
	slices.SortFunc(boxes, func(a, b Box) int { return strings.Compare(a.Ref, b.Ref) })
	return boxes, nil
}

// waitingBox is [Console.waiting] for one reference.
func (c *Console) waitingBox(ctx context.Context, v view, ref string) (Box, error) {
	if boxid.CheckRef(ref) != nil {
		return Box{}, notEnrolled(ref)
	}
	obj, err := c.Store.Get(ctx, boxid.Key(ref))
	if errors.Is(err, objstore.ErrNotFound) {
		return Box{}, notEnrolled(ref)
	}
	return v.waits(ref, obj, err, func() (membership.Evidence, bool, error) {
		return membership.Reader{Store: c.Store, Roster: c.Roster}.Find(ctx, ref)
	}), nil
}

// unenrolled lists the newest identities of references that the roster does not
// hold.
func (c *Console) unenrolled(ctx context.Context, v view) ([]objstore.Info, error) {
	var infos []objstore.Info
	for info, err := range c.Store.List(ctx, boxid.Prefix) {
		if err != nil {
			return nil, fmt.Errorf("list the identities: %w", err)
		}
		ref, ok := boxid.ParseKey(info.Key)
		if _, enrolled := v.Box(ref); enrolled || !ok {
			continue
		}
		if infos = append(infos, info); len(infos) > maxIdentities {
			return nil, fmt.Errorf("list the identities: more than %d are not enrolled", maxIdentities)
		}
	}
	slices.SortStableFunc(infos, func(a, b objstore.Info) int { return b.ModTime.Compare(a.ModTime) })
	return infos[:min(len(infos), maxWaiting)], nil
}

// waits says what a machine that is not enrolled waits for, from its identity,
// or the error of reading it, and its confirmation. It decides nothing: who
// enrolls it verifies all of it.
func (v view) waits(ref string, identity objstore.Object, err error, find func() (membership.Evidence, bool, error)) Box {
	b := Box{Ref: ref, State: Waiting, HeardAt: identity.ModTime, silent: true}
	var cloud boxid.Cloud
	if err == nil {
		cloud, err = claimed(identity.Body)
	}
	if err != nil {
		b.Status = fmt.Sprintf("not enrolled: its identity cannot be read: %v", err)
		return b
	}
	b.Instance = cloud.InstanceID
	if b.Region = v.placement(cloud); b.Region == "" {
		b.Status = fmt.Sprintf("not enrolled: no region of this deployment is %s in account %s", cloud.Region, cloud.Account)
		return b
	}
	b.Next = fmt.Sprintf("console box enroll %s --region %s --instance-id %s", ref, b.Region, cloud.InstanceID)
	group := v.Regions[b.Region].GroupName
	if group == "" {
		b.Status = "waits to be enrolled by you: the roster names no group for region " + b.Region
		return b
	}
	switch by, found, err := find(); {
	case found:
		b.Region = by.Record().TargetPlacement
		b.Status = fmt.Sprintf("waits for console serve: confirmed by %s at %s", by.Record().Confirmer.Box, clock(by.Record().ObservedAt))
	case errors.Is(err, membership.ErrUnverified):
		b.Status = fmt.Sprintf("waits for another confirmation by a worker, or for you: %v", err)
	case err != nil:
		b.Status = fmt.Sprintf("waits; its confirmation cannot be read: %v", err)
	case v.At.Sub(b.HeardAt) > confirmedWithin:
		b.Status = "waits for you: no worker confirmed it within " + hostrecord.Duration(confirmedWithin).String()
	default:
		b.Status = fmt.Sprintf("waits for a worker to confirm that group %s launched it, or for you", group)
	}
	return b
}

// claimed is the instance that a machine says it is.
func claimed(identity []byte) (boxid.Cloud, error) {
	rec, err := record.Decode[boxid.Record](identity)
	if err != nil {
		return boxid.Cloud{}, err
	}
	return boxid.ParseDocument(rec.IdentityDocument)
}

// placement finds the region that an instance is of; "": none.
func (v view) placement(cloud boxid.Cloud) string {
	for _, code := range slices.Sorted(maps.Keys(v.Regions)) {
		if r := v.Regions[code]; r.Account == cloud.Account && r.AWSRegion == cloud.Region {
			return code
		}
	}
	return ""
}
