package boxid_test

import (
	"crypto/fips140"
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/internal/record"
)

const (
	ref       = "box-1"
	account   = "123456789012"
	awsRegion = "eu-west-1"
	instance  = "i-0abc"
)

var self = boxid.Cloud{Provider: boxid.AWS, Account: account, Region: awsRegion, InstanceID: instance}

// attempt is one try to enroll; a fault of the table changes it in one place.
type attempt struct {
	verifier boxid.Verifier
	expect   boxid.Expect
	record   boxid.Record
	cloud    boxid.Cloud
	garbled  bool // the document is not JSON
	tampered bool // the signature is not the document's
	unstrict bool // the record has one field more
}

func newAttempt() *attempt {
	certs := map[string]*x509.Certificate{awsRegion: boxidtest.Cert(), "eu-west-2": boxidtest.Cert()}
	return &attempt{
		verifier: boxid.Verifier{Account: account, Certs: certs},
		expect:   boxid.Expect{Box: ref, AWSRegion: awsRegion, InstanceID: instance},
		record:   boxid.Record{V: 1, Box: ref, WrittenAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		cloud:    self,
	}
}

func (a *attempt) raw(tb testing.TB) []byte {
	tb.Helper()
	rec := a.record
	rec.IdentityDocument = boxidtest.Document(a.cloud)
	if a.garbled {
		rec.IdentityDocument = []byte("not a document")
	}
	fips140.WithoutEnforcement(func() { rec.IdentitySignature = boxidtest.Sign(rec.IdentityDocument) })
	if a.tampered {
		rec.IdentitySignature[0] ^= 1
	}
	raw, err := record.Encode(rec)
	require.NoError(tb, err)
	if a.unstrict {
		raw = append(raw[:len(raw)-2], ",\"role\":\"worker\"}\n"...)
	}
	return raw
}

func (a *attempt) enroll(tb testing.TB) (boxid.Evidence, error) {
	tb.Helper()
	return a.verifier.Enroll(a.raw(tb), a.expect)
}
