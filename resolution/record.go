package resolution

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/carlosframework/regionha/internal/record"
)

// ErrInvalid: a field of a resolution is not what it must be. The message names
// the field, what came and what was expected.
var ErrInvalid = errors.New("invalid resolution")

// Record is what an operator decided about a stuck operation, at [Key]. It is
// immutable, and never deleted.
type Record struct {
	V    int    `json:"v"`
	Host string `json:"host"`
	Op   string `json:"op"`
	N    int    `json:"n"`   // number within the operation, from 1
	Gen  uint64 `json:"gen"` // of the claim that the operator saw

	// Box is the box that shall go on, under this enrollment.
	Box        string `json:"box"`
	Enrollment string `json:"enrollment"`

	// AcceptEmpty says that the operator accepts that nothing of the host's
	// data is left.
	AcceptEmpty bool `json:"accept_empty"`

	// Each text is one line of UTF-8 without control characters.
	Who          string    `json:"who"`          // the person; up to 128 bytes
	Why          string    `json:"why"`          // up to 2048 bytes
	Confirmation string    `json:"confirmation"` // the host's name, typed out
	DecidedAt    time.Time `json:"decided_at"`
}

// version is the only value of [Record.V].
const version = 1

// The longest text of each kind, in bytes.
const (
	maxName = 200
	maxWho  = 128
	maxWhy  = 2048
)

// prefix is where all resolutions are.
const prefix = "control/resolutions/"

// Key is where the n-th resolution of an operation is.
func Key(op string, n int) string { return fmt.Sprintf("%s%s/%d.json", prefix, op, n) }

// check holds a record to its form, with [ErrInvalid].
func (r Record) check() error {
	for _, f := range []struct{ field, name string }{
		{"host", r.Host}, {"op", r.Op}, {"box", r.Box}, {"enrollment", r.Enrollment},
	} {
		if err := checkName(f.field, f.name); err != nil {
			return err
		}
	}
	if err := checkText("who", r.Who, maxWho); err != nil {
		return err
	}
	if err := checkText("why", r.Why, maxWhy); err != nil {
		return err
	}
	switch {
	case r.V != version:
		return fmt.Errorf("%w: v is %d, expected %d", ErrInvalid, r.V, version)
	case r.N < 1:
		return fmt.Errorf("%w: n is %d, expected 1 or more", ErrInvalid, r.N)
	case r.Gen == 0:
		return fmt.Errorf("%w: gen is 0, expected that of the claim that was looked at", ErrInvalid)
	case r.Confirmation != r.Host:
		return fmt.Errorf("%w: confirmation is %.220q, expected the host's name %q", ErrInvalid, r.Confirmation, r.Host)
	case r.DecidedAt.IsZero():
		return fmt.Errorf("%w: decided_at is missing", ErrInvalid)
	}
	return nil
}

// checkName refuses what may not be one part of a key. That a name is also one
// that the roster or the claim knows is said by who compares it with theirs.
func checkName(field, name string) error {
	if !record.IsName(name, maxName) {
		return fmt.Errorf("%w: %s is %.220q, expected 1 to %d of [A-Za-z0-9._-]", ErrInvalid, field, name, maxName)
	}
	return nil
}

func checkText(field, text string, most int) error {
	switch {
	case text == "" || len(text) > most:
		return fmt.Errorf("%w: %s is %d bytes, expected 1 to %d", ErrInvalid, field, len(text), most)
	case text != strings.TrimSpace(text):
		return fmt.Errorf("%w: %s is %q, expected no white space around it", ErrInvalid, field, text)
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%w: %s is %q, expected one line without control characters", ErrInvalid, field, text)
	}
	return nil
}
