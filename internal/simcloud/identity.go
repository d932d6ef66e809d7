package simcloud

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// keyBits is the size of the keys with which AWS signs identity documents.
const keyBits = 1024

// signer signs the identity documents of one region.
type signer struct {
	key *rsa.PrivateKey
}

// newSigner makes a key for region and writes its certificate into dir.
func newSigner(region, dir string, now time.Time) (*signer, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, fmt.Errorf("key of region %s: %w", region, err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{Organization: []string{"simcloud"}, CommonName: region},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(10, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("certificate of region %s: %w", region, err)
	}
	body := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(filepath.Join(dir, region+".pem"), body, 0o644); err != nil {
		return nil, fmt.Errorf("certificate of region %s: %w", region, err)
	}
	return &signer{key}, nil
}

// sign returns the base64 of the RSA-SHA256 signature of exactly document, in
// lines of at most 76 characters.
func (s *signer) sign(document []byte) (string, error) {
	sum := sha256.Sum256(document)
	raw, err := rsa.SignPKCS1v15(nil, s.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return wrap(base64.StdEncoding.EncodeToString(raw), 76), nil
}

func wrap(s string, width int) string {
	var lines []string
	for len(s) > width {
		lines, s = append(lines, s[:width]), s[width:]
	}
	return strings.Join(append(lines, s), "\n")
}

// document is the instance identity document with AWS's members, order and
// spacing, and no line feed at its end.
func (i *instance) document() []byte {
	return fmt.Appendf(nil, `{
  "accountId" : %q,
  "architecture" : "x86_64",
  "availabilityZone" : %q,
  "billingProducts" : null,
  "devpayProductCodes" : null,
  "marketplaceProductCodes" : null,
  "imageId" : %q,
  "instanceId" : %q,
  "instanceType" : %q,
  "kernelId" : null,
  "pendingTime" : %q,
  "privateIp" : %q,
  "ramdiskId" : null,
  "region" : %q,
  "version" : "2017-09-30"
}`, i.account, i.zone(), imageID, i.id, instanceType,
		i.launched.UTC().Format(time.RFC3339), i.address, i.region)
}
