package boxid

import (
	"crypto/fips140"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/internal/record"
)

// ErrUnverified: a record does not prove that the box is the instance that is
// expected. The message says which rule refused it.
var ErrUnverified = errors.New("identity not verified")

// Verifier checks published records for one deployment. The zero Verifier
// refuses everything.
type Verifier struct {
	Account string                       // the deployment's cloud account
	Certs   map[string]*x509.Certificate // by cloud region; see [EmbeddedCerts]
}

// Expect is what something other than the box says about it.
type Expect struct {
	Box       string
	AWSRegion string // the cloud region of the placement

	// InstanceID is the instance that the operator expects. Empty: nobody said,
	// and the evidence is not [Evidence.Bound].
	InstanceID string

	// Roster is every entry of the roster, whatever its state.
	Roster []Enrolled
}

// Enrolled is one roster entry, as far as identities go. Cloud is zero where
// the entry has no proven cloud yet.
type Enrolled struct {
	Box   string
	Cloud Cloud
}

// Evidence is a verified identity. Only [Verifier.Enroll] makes one; the zero
// value proves nothing and names no box.
type Evidence struct {
	box    string
	cloud  Cloud
	sha256 string
	bound  bool
}

// Box is the reference under which the record was published.
func (e Evidence) Box() string { return e.box }

// Cloud is the instance, complete.
func (e Evidence) Cloud() Cloud { return e.cloud }

// SHA256 is the digest, in hex, of the very bytes that were verified.
func (e Evidence) SHA256() string { return e.sha256 }

// Bound reports whether the operator named the instance. Evidence that is not
// bound says which instance published the record, and not that this reference
// was meant for it.
func (e Evidence) Bound() bool { return e.bound }

// Enroll verifies raw, the bytes stored at [Key], against what is expected. It
// refuses with [ErrUnverified] and the first of these reasons: the reference is
// no label; no region is expected; the record is malformed or of another
// version; it names another box; its document is unreadable or of a region
// without a certificate; the signature is bad; the document names no instance,
// another account, another region, another instance than expected; the
// reference is enrolled as another instance; the instance is enrolled under
// another reference.
func (v Verifier) Enroll(raw []byte, e Expect) (Evidence, error) {
	cloud, err := v.identify(raw, e)
	if err == nil {
		err = v.match(cloud, e)
	}
	if err != nil {
		return Evidence{}, fmt.Errorf("boxid: box %q: %w: %w", e.Box, ErrUnverified, err)
	}
	return Evidence{box: e.Box, cloud: cloud, sha256: record.Digest(raw), bound: e.InstanceID != ""}, nil
}

// identify says which instance signed raw, wherever it runs.
func (v Verifier) identify(raw []byte, e Expect) (Cloud, error) {
	if err := CheckRef(e.Box); err != nil {
		return Cloud{}, err
	}
	if e.AWSRegion == "" {
		return Cloud{}, errors.New("no cloud region is expected")
	}
	rec, err := decodeRecord(raw)
	if err != nil {
		return Cloud{}, err
	}
	if rec.Box != e.Box {
		return Cloud{}, fmt.Errorf("the record names box %q", rec.Box)
	}
	cloud, err := readDocument(rec.IdentityDocument)
	if err != nil {
		return Cloud{}, err
	}
	return cloud, v.checkSignature(cloud.Region, rec)
}

func decodeRecord(raw []byte) (Record, error) {
	rec, err := record.Decode[Record](raw)
	if err == nil && rec.V != version {
		err = fmt.Errorf("record version %d, expected %d", rec.V, version)
	}
	return rec, err
}

// checkSignature uses the certificate as a holder of a public key and nothing
// else. The algorithm is the one of the signature endpoint, whatever the
// certificate itself was signed with.
func (v Verifier) checkSignature(region string, rec Record) error {
	cert := v.Certs[region]
	if region == "" || cert == nil {
		return fmt.Errorf("no certificate for the document's region %q", region)
	}
	err := cert.CheckSignature(x509.SHA256WithRSA, rec.IdentityDocument, rec.IdentitySignature)
	if err != nil && fips140.Enforced() {
		return fmt.Errorf("bad signature: %w (GODEBUG=fips140=only refuses the 1024-bit keys that AWS signs with)", err)
	}
	if err != nil {
		return fmt.Errorf("bad signature: %w", err)
	}
	return nil
}

// match holds a proven instance to what is expected of it.
func (v Verifier) match(c Cloud, e Expect) error {
	switch {
	case c.InstanceID == "":
		return errors.New("the document names no instance")
	case v.Account == "" || c.Account != v.Account:
		return fmt.Errorf("account %q, the deployment's is %q", c.Account, v.Account)
	case c.Region != e.AWSRegion:
		return fmt.Errorf("region %q, the placement's is %q", c.Region, e.AWSRegion)
	case e.InstanceID != "" && c.InstanceID != e.InstanceID:
		return fmt.Errorf("instance %q, the operator expects %q", c.InstanceID, e.InstanceID)
	}
	for _, held := range e.Roster {
		if held.Box == e.Box && held.Cloud.InstanceID != "" && held.Cloud != c {
			return fmt.Errorf("the reference is enrolled as %s, the record is of %s", held.Cloud, c)
		}
	}
	for _, held := range e.Roster {
		if held.Box != e.Box && held.Cloud.InstanceID == c.InstanceID {
			return fmt.Errorf("instance %s is enrolled under %q", c.InstanceID, held.Box)
		}
	}
	return nil
}
