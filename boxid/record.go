package boxid

import "time"

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

// Key is where the box with this reference publishes its [Record].
func Key(ref string) string { return "control/boxes/" + ref + ".json" }
