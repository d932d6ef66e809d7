package objstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxGet is the largest body, in bytes, that [Store.Get] returns. A larger
// object is [ErrTooLarge] there and is read with [Streamer.GetReader].
const MaxGet = 8 << 20

// MaxKey is the longest key in bytes.
const MaxKey = 1024

// Sentinels of every store. Wrapped errors satisfy errors.Is.
var (
	// ErrNotFound: a completed read saw that the key, or the named version,
	// does not exist. A read that failed is never ErrNotFound.
	ErrNotFound = errors.New("object not found")

	// ErrConflict: the condition did not hold. The write did not apply and
	// never will.
	ErrConflict = errors.New("condition not met")

	// ErrUnknown: the write may have applied, or may still.
	ErrUnknown = errors.New("outcome unknown")

	// ErrSuperseded: the key moved on, so the write can no longer land. It may
	// have landed and been overwritten since: read, and let the record say.
	ErrSuperseded = errors.New("superseded")

	// ErrTooLarge: the body is over [MaxGet]; stream it.
	ErrTooLarge = errors.New("object too large to hold in memory")

	// ErrBadKey: the key is empty, longer than [MaxKey], not UTF-8, or holds a
	// NUL byte. Nothing was sent.
	ErrBadKey = errors.New("bad key")

	// ErrBadCondition: the zero Condition, or IfMatch of no ETag. Nothing was
	// sent.
	ErrBadCondition = errors.New("bad condition")
)

// Info describes one stored object.
type Info struct {
	Key       string
	ETag      string    // opaque, compared by equality
	VersionID string    // "" where the store keeps no versions
	Size      int64     // bytes
	ModTime   time.Time // the store's clock, when it accepted the write
}

// Object is a stored object with its body.
type Object struct {
	Info
	Body []byte
}

// Store is what regionha needs of an object store. It is safe for concurrent
// use. A context bounds the waiting, never the outcome: a write whose context
// ended is [ErrUnknown].
type Store interface {
	// Get reads the newest version of key. Errors: [ErrNotFound],
	// [ErrTooLarge], [ErrBadKey], or a failure that says nothing.
	Get(ctx context.Context, key string) (Object, error)

	// Put writes body under cond, once. The Info of an applied write holds the
	// new ETag, and the version where versions are kept. Errors: [ErrConflict],
	// [ErrUnknown], [ErrBadKey], [ErrBadCondition].
	Put(ctx context.Context, key string, body []byte, cond Condition) (Info, error)

	// List yields every object whose key starts with prefix, in byte order of
	// the keys, reading page by page. An error ends the sequence: what came
	// before it is not the whole list.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
}

// Streamer moves bodies that should not be held in memory.
type Streamer interface {
	// PutReader writes size bytes of r under cond, with the outcomes of
	// [Store.Put]. r is read from its start and may be read more than once.
	PutReader(ctx context.Context, key string, r io.ReadSeeker, size int64, cond Condition) (Info, error)

	// GetReader reads key from offset (bytes) to its end. A non-empty ifMatch
	// makes any other ETag [ErrConflict]. The caller closes the reader; a body
	// that ends early is an error from Read, never a short EOF.
	GetReader(ctx context.Context, key, ifMatch string, offset int64) (io.ReadCloser, Info, error)
}

// Versioned is what retiring old copies needs: exact versions of a key.
type Versioned interface {
	// ListVersions yields every stored version under prefix, keys in byte
	// order, newest first within a key. Errors end it, as for [Store.List].
	ListVersions(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// GetVersion reads exactly one version. The caller closes the reader.
	GetVersion(ctx context.Context, key, version string) (io.ReadCloser, Info, error)

	// DeleteVersion removes exactly one version. Removing one that is not
	// there is nil. It is never used on an object that carries authority.
	DeleteVersion(ctx context.Context, key, version string) error

	// CopyVersion copies one version of src to dst unconditionally, inside the
	// store.
	CopyVersion(ctx context.Context, src, version, dst string) (Info, error)
}

// Copier copies inside the store, so that a body need not travel. A store has it
// beside its own methods; that it does not is no fault.
type Copier interface {
	// Copy makes dst hold the body that src.Key has as the version src.ETag,
	// and src.VersionID where that is not empty, over anything that dst holds:
	// it is for keys that only one writer can have. src.Size is the body's. The
	// copy may have another ETag and an older ModTime than a new write. Errors:
	// [ErrNotFound] and [ErrConflict], where src is absent or another version:
	// nothing was written; else [ErrUnknown], [ErrBadKey].
	Copy(ctx context.Context, src Info, dst string) (Info, error)
}

// Condition says when a write may apply. Build one with [IfAbsent], [IfMatch]
// or [Always].
type Condition struct {
	kind conditionKind
	etag string
}

type conditionKind uint8

const (
	condNone conditionKind = iota
	condAbsent
	condMatch
	condAlways
)

// IfAbsent lets a write apply only where no object has the key.
func IfAbsent() Condition { return Condition{kind: condAbsent} }

// IfMatch lets a write apply only over the object with exactly this ETag.
func IfMatch(etag string) Condition { return Condition{kind: condMatch, etag: etag} }

// Always lets a write apply over anything. It is for content-addressed objects
// and for keys that only one writer can have.
func Always() Condition { return Condition{kind: condAlways} }

// IsAbsent reports whether c is [IfAbsent].
func (c Condition) IsAbsent() bool { return c.kind == condAbsent }

// ETag returns the version that an [IfMatch] names; ok is false for others.
func (c Condition) ETag() (etag string, ok bool) { return c.etag, c.kind == condMatch }

// Check refuses the zero Condition and an IfMatch without an ETag with
// [ErrBadCondition].
func (c Condition) Check() error {
	switch {
	case c.kind == condNone:
		return fmt.Errorf("%w: the zero Condition: use IfAbsent, IfMatch or Always", ErrBadCondition)
	case c.kind == condMatch && c.etag == "":
		return fmt.Errorf("%w: IfMatch of an empty ETag", ErrBadCondition)
	}
	return nil
}

// String names the condition, for error messages.
func (c Condition) String() string {
	switch c.kind {
	case condAbsent:
		return "if absent"
	case condMatch:
		return "if " + c.etag
	case condAlways:
		return "always"
	}
	return "no condition"
}

// CheckKey refuses a key that no store may be asked for, with [ErrBadKey].
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: empty", ErrBadKey)
	case len(key) > MaxKey:
		return fmt.Errorf("%w: %d bytes, at most %d", ErrBadKey, len(key), MaxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: %q is not UTF-8", ErrBadKey, key)
	case strings.IndexByte(key, 0) >= 0:
		return fmt.Errorf("%w: %q holds a NUL byte", ErrBadKey, key)
	}
	return nil
}
