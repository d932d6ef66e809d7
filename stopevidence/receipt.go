package stopevidence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// ErrUnverified: a stored receipt, or the citation of one, does not hold. It is
// neither evidence of a stop nor of a running writer: a person has to look.
var ErrUnverified = errors.New("stop receipt not verified")

// Ref cites a stored receipt: by its key, and by the digest of its exact bytes.
type Ref struct {
	Key    string
	SHA256 string // hex
}

// Receipt is verified evidence that a writer has stopped. It comes only from
// [Read] and [Publish]; the zero value is evidence of nothing, and every accessor of it is
// empty.
type Receipt struct {
	ref         Ref
	host        string
	op          string
	obligation  Obligation
	box         string
	enrollment  string
	incarnation string
	stamp       uint64
	session     uint64
	evidenceAt  time.Time
}

// Ref cites the record that was verified.
func (r Receipt) Ref() Ref { return r.ref }

// Host is the host whose writer stopped.
func (r Receipt) Host() string { return r.host }

// Op is the operation that asked for the stop.
func (r Receipt) Op() string { return r.op }

// Obligation is what the stop is for. A consumer takes only its own.
func (r Receipt) Obligation() Obligation { return r.obligation }

// Box is the reference of the box that stopped.
func (r Receipt) Box() string { return r.box }

// Enrollment is the enrollment of the box that stopped.
func (r Receipt) Enrollment() string { return r.enrollment }

// Incarnation is the incarnation of the host.
func (r Receipt) Incarnation() string { return r.incarnation }

// Stamp is the installation that stopped.
func (r Receipt) Stamp() uint64 { return r.stamp }

// Session is the writer session that stopped; 0: the box had none.
func (r Receipt) Session() uint64 { return r.session }

// EvidenceAt is when the stop was seen, by the clock of the box. The writer had
// stopped at that time or before.
func (r Receipt) EvidenceAt() time.Time { return r.evidenceAt }

// Read returns the receipt that ref cites: exactly these bytes, at the key that
// they name, whole and passed. It costs one GET. Errors: [ErrUnverified], or a
// failure of the store, which for a citation of nothing is
// [objstore.ErrNotFound].
func Read(ctx context.Context, store objstore.Store, ref Ref) (Receipt, error) {
	receipt, err := read(ctx, store, ref)
	if err != nil {
		return Receipt{}, fmt.Errorf("stopevidence: receipt %q: %w", ref.Key, err)
	}
	return receipt, nil
}

func read(ctx context.Context, store objstore.Store, ref Ref) (Receipt, error) {
	if !strings.HasPrefix(ref.Key, prefix) {
		return Receipt{}, fmt.Errorf("%w: a receipt's key starts with %q", ErrUnverified, prefix)
	}
	obj, err := store.Get(ctx, ref.Key)
	if err != nil {
		return Receipt{}, err
	}
	return verify(ref, obj.Body)
}

// verify holds stored bytes to what cites them and to the form of a receipt.
func verify(ref Ref, body []byte) (Receipt, error) {
	if got := record.Digest(body); got != ref.SHA256 {
		return Receipt{}, fmt.Errorf("%w: digest %q, cited is %q", ErrUnverified, got, ref.SHA256)
	}
	rec, err := record.Decode[Record](body)
	if err != nil {
		return Receipt{}, fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	if err := rec.check(ref.Key); err != nil {
		return Receipt{}, fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	return Receipt{
		ref: ref, host: rec.Host, op: rec.Op, obligation: rec.Obligation, box: rec.Box, enrollment: rec.Enrollment,
		incarnation: rec.Incarnation, stamp: rec.Stamp, session: rec.Session, evidenceAt: rec.EvidenceAt,
	}, nil
}
