package boxid

import (
	"crypto/rsa"
	"crypto/x509"
	"embed"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

//go:embed certs/*.pem
var embedded embed.FS

// EmbeddedCerts returns the certificates with which AWS signs instance identity
// documents, by AWS region.
//
// AWS issues new certificates over the same keys now and then, and uses one
// beyond its end. So only the public key of a region counts: neither the
// validity nor the fingerprint of a certificate is ever checked.
func EmbeddedCerts() (map[string]*x509.Certificate, error) {
	dir, err := fs.Sub(embedded, "certs")
	if err != nil {
		return nil, err
	}
	return readCerts(dir)
}

// LoadCerts reads a directory of <aws region>.pem files, for a cloud that
// signs with keys of its own. A directory without one is an error.
func LoadCerts(dir string) (map[string]*x509.Certificate, error) {
	certs, err := readCerts(os.DirFS(dir))
	if err == nil && len(certs) == 0 {
		err = fmt.Errorf("no <region>.pem file")
	}
	if err != nil {
		return nil, fmt.Errorf("identity certificates in %s: %w", dir, err)
	}
	return certs, nil
}

func readCerts(dir fs.FS) (map[string]*x509.Certificate, error) {
	names, err := fs.Glob(dir, "*.pem")
	if err != nil {
		return nil, err
	}
	// Glob ignores a directory that cannot be read, and an absent one.
	if _, err := fs.ReadDir(dir, "."); err != nil {
		return nil, err
	}
	certs := make(map[string]*x509.Certificate, len(names))
	for _, name := range names {
		body, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		cert, err := parseCert(body)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		certs[strings.TrimSuffix(path.Base(name), ".pem")] = cert
	}
	return certs, nil
}

func parseCert(body []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(body)
	if block == nil || block.Type != "CERTIFICATE" || strings.TrimSpace(string(rest)) != "" {
		return nil, fmt.Errorf("not exactly one PEM certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	if _, ok := cert.PublicKey.(*rsa.PublicKey); !ok {
		return nil, fmt.Errorf("key is %s, identity documents are signed with RSA", cert.PublicKeyAlgorithm)
	}
	return cert, nil
}
