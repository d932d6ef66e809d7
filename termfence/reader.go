package termfence

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/roster"
)

// ErrUnverified: a stored fence, or the citation of one, does not hold. It is
// neither evidence nor the absence of it: a person has to look.
var ErrUnverified = errors.New("fence not verified")

// Reader turns stored fences into [Evidence]. Every read costs one GET, and one
// of the roster where there is a fence.
type Reader struct {
	Store  objstore.Store
	Roster *roster.Directory
}

// Read returns the evidence that ref cites: exactly these bytes, at the key of
// this enrollment, agreeing with the roster. Errors: [ErrUnverified], those of
// [roster.Directory.Read], or a failure of the store, which for a citation of
// nothing is [objstore.ErrNotFound].
func (r Reader) Read(ctx context.Context, ref Ref) (Evidence, error) {
	ev, err := r.read(ctx, ref)
	if err != nil {
		return Evidence{}, fmt.Errorf("termfence: fence of %q: %w", ref.Enrollment, err)
	}
	return ev, nil
}

func (r Reader) read(ctx context.Context, ref Ref) (Evidence, error) {
	if err := checkKey(ref); err != nil {
		return Evidence{}, err
	}
	obj, err := r.Store.Get(ctx, ref.Key)
	if err != nil {
		return Evidence{}, err
	}
	if got := record.Digest(obj.Body); got != ref.SHA256 {
		return Evidence{}, fmt.Errorf("%w: digest %q, cited is %q", ErrUnverified, got, ref.SHA256)
	}
	return r.verify(ctx, ref.Enrollment, obj.Body)
}

func checkKey(ref Ref) error {
	if err := roster.CheckEnrollment(ref.Enrollment); err != nil {
		return fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	if ref.Key != Key(ref.Enrollment) {
		return fmt.Errorf("%w: cited is %q, its key is %q", ErrUnverified, ref.Key, Key(ref.Enrollment))
	}
	return nil
}

// Fenced returns the evidence about an enrollment, and whether there is any.
// False with a nil error is the store's own answer that it holds no fence. An
// error, of the kinds that [Reader.Read] has, says nothing either way.
func (r Reader) Fenced(ctx context.Context, enrollment string) (Evidence, bool, error) {
	ev, fenced, err := r.fenced(ctx, enrollment)
	if err != nil {
		return Evidence{}, false, fmt.Errorf("termfence: fence of %q: %w", enrollment, err)
	}
	return ev, fenced, nil
}

func (r Reader) fenced(ctx context.Context, enrollment string) (Evidence, bool, error) {
	if err := roster.CheckEnrollment(enrollment); err != nil {
		return Evidence{}, false, err
	}
	obj, err := r.Store.Get(ctx, Key(enrollment))
	if errors.Is(err, objstore.ErrNotFound) {
		return Evidence{}, false, nil
	}
	if err != nil {
		return Evidence{}, false, err
	}
	ev, err := r.verify(ctx, enrollment, obj.Body)
	return ev, err == nil, err
}

// verify reads the roster after the fence, so that the roster is never the
// older of the two.
func (r Reader) verify(ctx context.Context, enrollment string, body []byte) (Evidence, error) {
	rec, err := record.Decode[Record](body)
	if err != nil {
		return Evidence{}, fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	snap, err := r.Roster.Read(ctx)
	if err != nil {
		return Evidence{}, err
	}
	return bind(snap.Roster, enrollment, rec, body)
}

// bind holds a fence, stored or about to be, to the roster.
func bind(r roster.Roster, enrollment string, rec Record, body []byte) (Evidence, error) {
	box, ok := r.ByEnrollment(enrollment)
	if !ok {
		return Evidence{}, fmt.Errorf("%w: enrollment %q is not in the roster", ErrUnverified, enrollment)
	}
	if err := checkRecord(r, box, rec); err != nil {
		return Evidence{}, fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	return Evidence{
		ref: Ref{Enrollment: enrollment, Key: Key(enrollment), SHA256: record.Digest(body)},
		box: box.Ref, region: box.Region, observedAt: rec.ObservedAt,
	}, nil
}

// checkRecord repeats what [Verify] checked, on what is stored: anyone who can
// write to the bucket can write a fence. That its worker was active is not
// repeated, since it may have gone since.
func checkRecord(r roster.Roster, box roster.Box, rec Record) error {
	worker, ok := r.Box(rec.WrittenBy.Box)
	switch {
	case rec.V != version:
		return fmt.Errorf("version %d, expected %d", rec.V, version)
	case rec.Box != box.Ref || rec.Enrollment != box.Enrollment:
		return fmt.Errorf("it names box %q as %q, the roster has %q as %q", rec.Box, rec.Enrollment, box.Ref, box.Enrollment)
	case rec.ObservedAt.IsZero():
		return errors.New("it has no time of observation")
	case !ok || worker.Enrollment != rec.WrittenBy.Enrollment:
		return fmt.Errorf("its writer %q as %q is not in the roster", rec.WrittenBy.Box, rec.WrittenBy.Enrollment)
	}
	if err := checkParties(box, worker); err != nil {
		return err
	}
	if rec.Cloud != box.Cloud {
		return fmt.Errorf("cloud %s, enrolled is %s", rec.Cloud, box.Cloud)
	}
	return checkSource(rec.Via, rec.RequestID, rec.EventID, rec.State)
}

// Publish stores a fence that [Verify] made, and returns its evidence. Where
// another worker was first, the fence that is there counts, if it verifies. A
// record that would not verify is not written: its key can be used only once.
// It costs a GET of the roster and a PUT.
//
// store is where reader reads: a process that only reads evidence does not
// write.
func Publish(ctx context.Context, store objstore.Store, reader Reader, rec Record) (Evidence, error) {
	ev, err := publish(ctx, store, reader, rec)
	if err != nil {
		return Evidence{}, fmt.Errorf("termfence: publish fence of %q: %w", rec.Enrollment, err)
	}
	return ev, nil
}

func publish(ctx context.Context, store objstore.Store, reader Reader, rec Record) (Evidence, error) {
	body, err := record.Encode(rec)
	if err != nil {
		return Evidence{}, err
	}
	ev, err := reader.verify(ctx, rec.Enrollment, body)
	if err != nil {
		return Evidence{}, err
	}
	_, err = objstore.Create(ctx, store, Key(rec.Enrollment), body)
	switch {
	case errors.Is(err, objstore.ErrConflict):
		return first(ctx, store, reader, rec.Enrollment)
	case err != nil:
		return Evidence{}, err
	}
	return ev, nil
}

// first returns the evidence of whoever was first.
func first(ctx context.Context, store objstore.Store, reader Reader, enrollment string) (Evidence, error) {
	obj, err := store.Get(ctx, Key(enrollment))
	if err != nil {
		return Evidence{}, err
	}
	return reader.verify(ctx, enrollment, obj.Body)
}
