package roster

import (
	"bytes"
	"crypto/ed25519"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/carlosframework/regionha/internal/record"
)

// Envelope is the stored object: a roster, and the ed25519 signature over
// exactly its bytes as they stand in the envelope.
type Envelope struct {
	V         int            `json:"v"`
	Roster    jsontext.Value `json:"roster,omitempty"`
	SignedBy  string         `json:"signed_by"` // the public key; only for messages, never trusted
	Signature []byte         `json:"signature,omitempty"`
}

// seal signs a valid roster.
func seal(r Roster, private ed25519.PrivateKey) ([]byte, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	body, err := record.Encode(r)
	if err != nil {
		return nil, err
	}
	signed := bytes.TrimSuffix(body, []byte("\n"))
	return record.Encode(Envelope{
		V:         version,
		Roster:    signed,
		SignedBy:  EncodeKey(private.Public().(ed25519.PublicKey)),
		Signature: ed25519.Sign(private, signed),
	})
}

// open returns the roster in raw. Nothing of it is looked at before its
// signature holds.
func open(raw []byte, key ed25519.PublicKey) (Roster, error) {
	e, err := record.Decode[Envelope](raw)
	switch {
	case err != nil:
		return Roster{}, err
	case e.V != version:
		return Roster{}, fmt.Errorf("envelope version %d, expected %d", e.V, version)
	case len(e.Signature) == 0:
		return Roster{}, fmt.Errorf("not signed")
	case len(key) != ed25519.PublicKeySize:
		return Roster{}, fmt.Errorf("no public key to verify with")
	case e.SignedBy != EncodeKey(key):
		return Roster{}, fmt.Errorf("signed by key %q, the deployment's is %q", e.SignedBy, EncodeKey(key))
	case !ed25519.Verify(key, e.Roster, e.Signature):
		return Roster{}, fmt.Errorf("bad signature")
	}
	r, err := record.Decode[Roster](append(bytes.Clone(e.Roster), '\n'))
	if err != nil {
		return Roster{}, err
	}
	for ref, b := range r.Boxes {
		b.Ref = ref
		r.Boxes[ref] = b
	}
	return r, check(r)
}
