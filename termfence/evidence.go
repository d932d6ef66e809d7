package termfence

import (
	"strings"
	"time"
)

// Ref cites a stored record of this package: by its key, and by the digest of its
// exact bytes.
type Ref struct {
	Enrollment string
	Key        string
	SHA256     string // hex
}

// Evidence is a verified proof that a box will never write again: a fence, or
// an operator's declaration. It comes only from a [Reader], from [Publish] or
// from [Declare]; the zero value proves nothing, and every accessor of it is
// empty.
type Evidence struct {
	ref        Ref
	box        string
	region     string
	observedAt time.Time
}

// Ref cites the record that was verified.
func (e Evidence) Ref() Ref { return e.ref }

// Box is the reference of the box that is gone.
func (e Evidence) Box() string { return e.box }

// Enrollment is the enrollment of the box that is gone.
func (e Evidence) Enrollment() string { return e.ref.Enrollment }

// Region is the placement code of the box, from its roster entry.
func (e Evidence) Region() string { return e.region }

// ObservedAt is when the termination was read, by the clock of the worker that
// read it: the instance was terminated at that time or before. Of a declaration
// it is when the operator made it, by the console's clock.
func (e Evidence) ObservedAt() time.Time { return e.observedAt }

// Declared reports whether an operator declared the box lost, rather than its
// cloud. A declared box may still run: its disk is never known to be gone.
func (e Evidence) Declared() bool { return strings.HasPrefix(e.ref.Key, declarationPrefix) }
