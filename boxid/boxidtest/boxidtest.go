// Package boxidtest is a cloud that signs instance identity documents, for the
// tests of packages that take a verified identity. Its one certificate stands
// for every region.
package boxidtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/record"
)

// key is of the size that AWS uses.
var key = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		panic(err)
	}
	return k
})

// Cert returns the certificate with which documents verify. It ended long ago,
// like some of AWS's will, which must not matter to anyone.
var Cert = sync.OnceValue(func() *x509.Certificate {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key().PublicKey, key())
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return cert
})

// Document returns an identity document in the form that AWS serves.
func Document(c boxid.Cloud) []byte {
	return fmt.Appendf(nil, "{\n  \"accountId\" : %q,\n  \"pendingTime\" : \"2026-01-02T03:04:05Z\",\n"+
		"  \"region\" : %q,\n  \"instanceId\" : %q\n}", c.Account, c.Region, c.InstanceID)
}

// Sign returns the signature over a document.
func Sign(doc []byte) []byte {
	sum := sha256.Sum256(doc)
	signature, err := rsa.SignPKCS1v15(nil, key(), crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return signature
}

// Evidence returns the verified identity of a box, with the operator's word for
// its instance.
func Evidence(tb testing.TB, box string, c boxid.Cloud) boxid.Evidence {
	tb.Helper()
	return enroll(tb, c, boxid.Expect{Box: box, AWSRegion: c.Region, InstanceID: c.InstanceID})
}

// Unbound returns a verified identity for which nobody but the box speaks.
func Unbound(tb testing.TB, box string, c boxid.Cloud) boxid.Evidence {
	tb.Helper()
	return enroll(tb, c, boxid.Expect{Box: box, AWSRegion: c.Region})
}

func enroll(tb testing.TB, c boxid.Cloud, expect boxid.Expect) boxid.Evidence {
	tb.Helper()
	doc := Document(c)
	raw, err := record.Encode(boxid.Record{V: 1, Box: expect.Box, IdentityDocument: doc, IdentitySignature: Sign(doc),
		WrittenAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	require.NoError(tb, err)
	verifier := boxid.Verifier{Account: c.Account, Certs: map[string]*x509.Certificate{c.Region: Cert()}}
	evidence, err := verifier.Enroll(raw, expect)
	require.NoError(tb, err)
	return evidence
}
