package boxid_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/internal/record"
)

// The table says what AWS publishes: one certificate per region, and the
// digest of its public key, which is all that verification takes of it.
func TestEmbeddedCertsAreTheOnesOfTheTable(t *testing.T) {
	certs, err := boxid.EmbeddedCerts()
	require.NoError(t, err)
	table, err := os.ReadFile("testdata/aws-certs.tsv")
	require.NoError(t, err)
	rows := strings.Split(strings.TrimSpace(string(table)), "\n")[1:]
	require.Len(t, certs, len(rows))
	for _, row := range rows {
		column := strings.Split(row, "\t")
		region, fingerprint, spki := column[0], column[1], column[6]
		cert := certs[region]
		require.NotNil(t, cert, region)
		require.Equal(t, fingerprint, record.Digest(cert.Raw), region)
		require.Equal(t, spki, record.Digest(cert.RawSubjectPublicKeyInfo), region)
		require.Equal(t, 1024, cert.PublicKey.(*rsa.PublicKey).N.BitLen(), region)
	}
}

func TestLoadCerts(t *testing.T) {
	dir := t.TempDir()
	body := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: boxidtest.Cert().Raw})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sim-1.pem"), body, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README"), []byte("not a certificate"), 0o600))
	certs, err := boxid.LoadCerts(dir)
	require.NoError(t, err)
	require.Len(t, certs, 1)
	require.True(t, certs["sim-1"].Equal(boxidtest.Cert()))

	for name, bad := range map[string][]byte{
		"not PEM":          []byte("hello"),
		"empty":            nil,
		"two certificates": bytes.Repeat(body, 2),
		"a key":            bytes.ReplaceAll(body, []byte("CERTIFICATE"), []byte("PRIVATE KEY")),
		"not DER":          pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bad-1.pem"), bad, 0o600))
		_, err := boxid.LoadCerts(dir)
		require.ErrorContains(t, err, "bad-1.pem", name)
	}
}

func TestLoadCertsRefusesAnotherKindOfKey(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	dir, body := t.TempDir(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sim-1.pem"), body, 0o600))
	_, err = boxid.LoadCerts(dir)
	require.ErrorContains(t, err, "ECDSA")
}

func TestLoadCertsRefusesADirectoryWithoutOne(t *testing.T) {
	_, err := boxid.LoadCerts(t.TempDir())
	require.ErrorContains(t, err, "no <region>.pem file")
	_, err = boxid.LoadCerts(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
