package boxid

import (
	"strings"
	"time"
)

// Record is what a box publishes of itself, at [Key], once. It is immutable and
// grants nothing.
type Record struct {
	V   int    `json:"v"`
	Box string `json:"box"` // not signed: see the package comment

	// IdentityDocument is the document exactly as it was served, since it is
	// signed byte for byte. IdentitySignature is the signature over it. JSON
	// holds both in base64.
	IdentityDocument  []byte `json:"identity_document,omitempty"`
	IdentitySignature []byte `json:"identity_signature,omitempty"`

	WrittenAt time.Time `json:"written_at"`
}

// version is the only value of [Record.V].
const version = 1

// Prefix is what every key of a published [Record] begins with.
const Prefix = "control/boxes/"

// Key is where the box with this reference publishes its [Record].
func Key(ref string) string { return Prefix + ref + ".json" }

// ParseKey returns the reference whose [Key] this is; ok is false where it is
// none's.
func ParseKey(key string) (ref string, ok bool) {
	ref, ok = strings.CutSuffix(strings.TrimPrefix(key, Prefix), ".json")
	if !ok || key != Key(ref) || CheckRef(ref) != nil {
		return "", false
	}
	return ref, true
}
