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

// Destruction is an operator's word that the disks of a box which is gone are
// destroyed, so that nothing of it is left to be cleaned up. It is at
// [DestructionKey], immutable, and never deleted. Its texts are as those of a
// [Declaration].
type Destruction struct {
	V            int       `json:"v"`
	Box          string    `json:"box"`
	Enrollment   string    `json:"enrollment"`
	Who          string    `json:"who"`          // the person; up to 128 bytes
	Why          string    `json:"why"`          // up to 2048 bytes
	How          string    `json:"how"`          // how the disks were destroyed; up to 2048 bytes
	Confirmation string    `json:"confirmation"` // the box's reference, as the person typed it
	DeclaredAt   time.Time `json:"declared_at"`
}

// DestructionKey is where the destruction of an enrollment's disks is declared.
func DestructionKey(enrollment string) string { return "control/destructions/" + enrollment + ".json" }

// Check refuses a statement that says too little or too much, or whose
// confirmation is not its box. [DeclareDestroyed] checks the same, and that the
// box is gone.
func (d Destruction) Check() error {
	if err := checkPerson(d.Box, d.Who, d.Why, d.Confirmation, d.DeclaredAt); err != nil {
		return err
	}
	return checkText("how", d.How, maxText)
}

// Destroyed is a verified statement that the disks of a box are destroyed. It
// comes only from [Reader.Destroyed] and from [DeclareDestroyed]; the zero
// value says nothing, and every accessor of it is empty. It never gates a
// fence, an admission or a recovery: it only discharges clean-up.
type Destroyed struct {
	ref Ref
	box string
}

// Ref cites the record that was verified.
func (d Destroyed) Ref() Ref { return d.ref }

// Box is the reference of the box whose disks are destroyed.
func (d Destroyed) Box() string { return d.box }

// Enrollment is the enrollment of that box.
func (d Destroyed) Enrollment() string { return d.ref.Enrollment }

// DeclareDestroyed stores an operator's statement that the disks of a box are
// destroyed. It is legal only about an enrollment whose fence or declaration
// verifies. Where the same was said already, the record that is there counts,
// if it verifies. One that would not verify is not written: its key can be used
// only once. The version is set here. It costs up to two GETs of evidence, one
// of the roster and a PUT.
//
// store is where reader reads.
func DeclareDestroyed(ctx context.Context, store objstore.Store, reader Reader, d Destruction) (Destroyed, error) {
	d.V = version
	destroyed, err := publish(ctx, store, DestructionKey(d.Enrollment), d, func(ctx context.Context, body []byte) (Destroyed, error) {
		return reader.verifyDestroyed(ctx, d.Enrollment, body)
	})
	if err != nil {
		return Destroyed{}, fmt.Errorf("termfence: declare the disks of %q destroyed: %w", d.Enrollment, err)
	}
	return destroyed, nil
}

// Destroyed says whether the disks of an enrollment were declared destroyed.
// False with a nil error is the store's own answer that it holds no such
// record. An error, of the kinds that [Reader.Read] has, says nothing either
// way.
func (r Reader) Destroyed(ctx context.Context, enrollment string) (Destroyed, bool, error) {
	d, found, err := r.destroyed(ctx, enrollment)
	if err != nil {
		return Destroyed{}, false, fmt.Errorf("termfence: destruction of %q: %w", enrollment, err)
	}
	return d, found, nil
}

func (r Reader) destroyed(ctx context.Context, enrollment string) (Destroyed, bool, error) {
	if err := roster.CheckEnrollment(enrollment); err != nil {
		return Destroyed{}, false, err
	}
	obj, err := r.Store.Get(ctx, DestructionKey(enrollment))
	if errors.Is(err, objstore.ErrNotFound) {
		return Destroyed{}, false, nil
	}
	if err != nil {
		return Destroyed{}, false, err
	}
	d, err := r.verifyDestroyed(ctx, enrollment, obj.Body)
	return d, err == nil, err
}

// verifyDestroyed holds the record to the evidence that its box is gone, which
// holds to the roster.
func (r Reader) verifyDestroyed(ctx context.Context, enrollment string, body []byte) (Destroyed, error) {
	d, err := record.Decode[Destruction](body)
	if err == nil {
		err = d.Check()
	}
	if err != nil {
		return Destroyed{}, fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	if d.V != version {
		return Destroyed{}, fmt.Errorf("%w: version %d, expected %d", ErrUnverified, d.V, version)
	}
	ev, err := r.gone(ctx, enrollment)
	if err != nil {
		return Destroyed{}, err
	}
	if d.Box != ev.Box() || d.Enrollment != ev.Enrollment() {
		return Destroyed{}, fmt.Errorf("%w: it names box %q as %q, the evidence %q as %q",
			ErrUnverified, d.Box, d.Enrollment, ev.Box(), ev.Enrollment())
	}
	return Destroyed{ref: Ref{Enrollment: enrollment, Key: DestructionKey(enrollment), SHA256: record.Digest(body)}, box: ev.Box()}, nil
}

// gone returns the fence of an enrollment or, if it has none, its declaration.
// Evidence that cannot be read is never passed over for the other.
func (r Reader) gone(ctx context.Context, enrollment string) (Evidence, error) {
	for _, k := range []kind{fences, declarations} {
		ev, found, err := r.look(ctx, k, enrollment)
		if err != nil {
			return Evidence{}, fmt.Errorf("%s: %w", k.name, err)
		}
		if found {
			return ev, nil
		}
	}
	return Evidence{}, fmt.Errorf("%w: %q is neither fenced nor declared lost", ErrUnverified, enrollment)
}
