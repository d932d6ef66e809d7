package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
)

// Evidence is a verified confirmation. It comes only from a [Reader] or from
// [Publish]; the zero value confirms nothing, and every accessor of it is empty.
// It is a [roster.Binding].
type Evidence struct {
	key    string
	sha256 string
	rec    Record
}

// Key is where the confirmation is.
func (e Evidence) Key() string { return e.key }

// SHA256 is the digest, in hex, of the very bytes that were verified.
func (e Evidence) SHA256() string { return e.sha256 }

// Record returns what was verified. Its lists are the caller's to read only.
func (e Evidence) Record() Record { return e.rec }

// MaxAge is how long a confirmation binds after its worker looked. The cloud
// forgets an instance about an hour after it ended, and says nothing of it from
// then on: one that is enrolled so late could never be fenced.
const MaxAge = 30 * time.Minute

// Binds reports, as an error, whether the confirmation fails to bind an
// identity to its reference in a region, by the roster r that the enrollment is
// written into at now. The roster that it was verified by may be older than r.
func (e Evidence) Binds(r roster.Roster, identity boxid.Evidence, region string, now time.Time) error {
	cloud := identity.Cloud()
	switch {
	case e.rec.Box == "" || e.rec.Box != identity.Box():
		return fmt.Errorf("%w: it is about box %q", ErrUnverified, e.rec.Box)
	case e.rec.InstanceID != cloud.InstanceID:
		return fmt.Errorf("%w: it confirms instance %q, the box is %q", ErrUnverified, e.rec.InstanceID, cloud.InstanceID)
	case e.rec.AWSRegion != cloud.Region:
		return fmt.Errorf("%w: it is of cloud region %q, the box's is %q", ErrUnverified, e.rec.AWSRegion, cloud.Region)
	case e.rec.TargetPlacement != region:
		return fmt.Errorf("%w: it is for placement %q", ErrUnverified, e.rec.TargetPlacement)
	case now.Sub(e.rec.ObservedAt) > MaxAge:
		return fmt.Errorf("%w: it is of %s, %s ago: at most %s", ErrUnverified, e.rec.ObservedAt.Format(time.RFC3339),
			now.Sub(e.rec.ObservedAt).Round(time.Second), MaxAge)
	}
	if err := check(r, e.rec); err != nil {
		return fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	return nil
}

// Publish stores a confirmation that [Verify] made, and returns its evidence. A
// confirmation that is there at its key counts, if it verifies. It costs a GET
// of the roster and a PUT.
//
// store is where reader reads: a process that only reads evidence does not
// write.
func Publish(ctx context.Context, store objstore.Store, reader Reader, rec Record) (Evidence, error) {
	ev, err := publish(ctx, store, reader, rec)
	if err != nil {
		return Evidence{}, fmt.Errorf("membership: publish confirmation of %q: %w", rec.Box, err)
	}
	return ev, nil
}

func publish(ctx context.Context, store objstore.Store, reader Reader, rec Record) (Evidence, error) {
	body, err := record.Encode(rec)
	if err != nil {
		return Evidence{}, err
	}
	key := Key(rec.Box, rec.ObservedAt)
	ev, err := reader.verify(ctx, rec.Box, key, body)
	if err != nil {
		return Evidence{}, err
	}
	_, err = objstore.Create(ctx, store, key, body)
	if errors.Is(err, objstore.ErrConflict) {
		return reader.get(ctx, rec.Box, key)
	}
	if err != nil {
		return Evidence{}, err
	}
	return ev, nil
}
