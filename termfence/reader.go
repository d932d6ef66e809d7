package termfence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
)

// ErrUnverified: a record, or the citation of one, does not hold. It is neither
// evidence nor the absence of it: a person has to look.
var ErrUnverified = errors.New("evidence not verified")

// Reader turns stored fences and declarations into [Evidence]. Every read costs
// one GET, and one of the roster where there is a record.
type Reader struct {
	Store  objstore.Store
	Roster *roster.Directory
}

// kind is one kind of evidence: where its records are, and what holds one to
// the roster. Of a record that holds, check returns the time.
type kind struct {
	name  string
	key   func(enrollment string) string
	check func(r roster.Roster, box roster.Box, body []byte) (at time.Time, err error)
}

var (
	fences       = kind{"fence", Key, checkFence}
	declarations = kind{"declaration", DeclarationKey, checkDeclaration}
)

// Read returns the evidence that ref cites, of either kind: exactly these
// bytes, at the key of this enrollment, agreeing with the roster. Errors:
// [ErrUnverified], those of [roster.Directory.Read], or a failure of the store,
// which for a citation of nothing is [objstore.ErrNotFound].
func (r Reader) Read(ctx context.Context, ref Ref) (Evidence, error) {
	ev, err := r.read(ctx, ref)
	if err != nil {
		return Evidence{}, fmt.Errorf("termfence: evidence about %q: %w", ref.Enrollment, err)
	}
	return ev, nil
}

func (r Reader) read(ctx context.Context, ref Ref) (Evidence, error) {
	k, err := kindOf(ref)
	if err != nil {
		return Evidence{}, fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	obj, err := r.Store.Get(ctx, ref.Key)
	if err != nil {
		return Evidence{}, err
	}
	if got := record.Digest(obj.Body); got != ref.SHA256 {
		return Evidence{}, fmt.Errorf("%w: digest %q, cited is %q", ErrUnverified, got, ref.SHA256)
	}
	return r.verify(ctx, k, ref.Enrollment, obj.Body)
}

// kindOf tells the kind of what is cited by its key.
func kindOf(ref Ref) (kind, error) {
	if err := roster.CheckEnrollment(ref.Enrollment); err != nil {
		return kind{}, err
	}
	fence, declaration := fences.key(ref.Enrollment), declarations.key(ref.Enrollment)
	switch ref.Key {
	case fence:
		return fences, nil
	case declaration:
		return declarations, nil
	}
	return kind{}, fmt.Errorf("cited is %q, expected %q or %q", ref.Key, fence, declaration)
}

// Fenced returns the fence of an enrollment, and whether there is one. False
// with a nil error is the store's own answer that it holds none. An error, of
// the kinds that [Reader.Read] has, says nothing either way. A declaration
// never counts as a fence.
func (r Reader) Fenced(ctx context.Context, enrollment string) (Evidence, bool, error) {
	return r.find(ctx, fences, enrollment)
}

// Declared is [Reader.Fenced] for an operator's declaration. A fence never
// counts as one.
func (r Reader) Declared(ctx context.Context, enrollment string) (Evidence, bool, error) {
	return r.find(ctx, declarations, enrollment)
}

func (r Reader) find(ctx context.Context, k kind, enrollment string) (Evidence, bool, error) {
	ev, found, err := r.look(ctx, k, enrollment)
	if err != nil {
		return Evidence{}, false, fmt.Errorf("termfence: %s of %q: %w", k.name, enrollment, err)
	}
	return ev, found, nil
}

func (r Reader) look(ctx context.Context, k kind, enrollment string) (Evidence, bool, error) {
	if err := roster.CheckEnrollment(enrollment); err != nil {
		return Evidence{}, false, err
	}
	obj, err := r.Store.Get(ctx, k.key(enrollment))
	if errors.Is(err, objstore.ErrNotFound) {
		return Evidence{}, false, nil
	}
	if err != nil {
		return Evidence{}, false, err
	}
	ev, err := r.verify(ctx, k, enrollment, obj.Body)
	return ev, err == nil, err
}

// verify holds a record, stored or about to be, to the roster. It reads the
// roster after the record, so that the roster is never the older of the two.
func (r Reader) verify(ctx context.Context, k kind, enrollment string, body []byte) (Evidence, error) {
	snap, err := r.Roster.Read(ctx)
	if err != nil {
		return Evidence{}, err
	}
	box, ok := snap.ByEnrollment(enrollment)
	if !ok {
		return Evidence{}, fmt.Errorf("%w: enrollment %q is not in the roster", ErrUnverified, enrollment)
	}
	at, err := k.check(snap.Roster, box, body)
	if err != nil {
		return Evidence{}, fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	return Evidence{
		ref: Ref{Enrollment: enrollment, Key: k.key(enrollment), SHA256: record.Digest(body)},
		box: box.Ref, region: box.Region, observedAt: at,
	}, nil
}
