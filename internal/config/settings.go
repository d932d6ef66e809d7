package config

import (
	"crypto/ed25519"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/alecthomas/kong"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/roster"
)

// Base is what every binary takes.
type Base struct {
	Config      File             `help:"Settings file: YAML, each key the name of a flag (${default}, if there)." placeholder:"FILE" default:"${config_file}"`
	CheckConfig bool             `help:"Check flags, environment and settings file, say what is wrong, and end." env:"-"`
	Version     kong.VersionFlag `help:"Print the version and end." env:"-"`
	LogLevel    slog.Level       `help:"Least level that is logged: debug, info, warn or error (${default})." placeholder:"LEVEL" default:"info"`
	LogFormat   string           `help:"Form of a log line: text or json." enum:"text,json" default:"text"`
}

// Logger logs to w as the settings say.
func (b Base) Logger(w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: b.LogLevel}
	if b.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// Deployment says which deployment a binary belongs to.
type Deployment struct {
	Control       string    `help:"Store URL of the control bucket, such as s3://bucket/prefix or dir:///path." placeholder:"URL" required:""`
	RosterKey     PublicKey `help:"The ed25519 key that the roster is signed for: base64, or a file that holds it." placeholder:"KEY" required:""`
	IdentityCerts string    `help:"Directory of <aws region>.pem in place of AWS's own certificates." placeholder:"DIR"`
}

// Admin says where a binary answers its operator.
type Admin struct {
	Admin string `help:"Address of /healthz, /readyz and /metrics. Keep it on loopback (${default})." placeholder:"ADDR" default:"127.0.0.1:0"`
}

// SecretFile names the deployment's secret.
type SecretFile struct {
	SecretFile string `help:"File that holds the deployment's secret." placeholder:"FILE" required:""`
}

// Certs is what identity documents are verified with: AWS's own certificates,
// or those of the directory, which is logged.
func (d Deployment) Certs(log *slog.Logger) (map[string]*x509.Certificate, error) {
	if d.IdentityCerts == "" {
		return boxid.EmbeddedCerts()
	}
	log.Warn("identities are verified with certificates that are not AWS's own", "identity-certs", d.IdentityCerts)
	return boxid.LoadCerts(d.IdentityCerts)
}

// PublicKey is the roster's public key, read from its base64 or from a file
// that holds it.
type PublicKey struct{ ed25519.PublicKey }

// UnmarshalText reads the key. Text that is not a key is taken for a path.
func (k *PublicKey) UnmarshalText(text []byte) error {
	key, err := roster.ParsePublicKey(string(text))
	if err == nil {
		k.PublicKey = key
		return nil
	}
	body, ferr := os.ReadFile(string(text))
	if ferr != nil {
		return fmt.Errorf("%w; nor is it a file that can be read: %w", err, ferr)
	}
	if k.PublicKey, err = roster.ParsePublicKey(string(body)); err != nil {
		return fmt.Errorf("file %s: %w", text, err)
	}
	return nil
}

// LoadPrivateKey reads the roster's private key from its file.
func LoadPrivateKey(path string) (ed25519.PrivateKey, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("roster private key: %w", err)
	}
	key, err := roster.ParsePrivateKey(string(body))
	if err != nil {
		return nil, fmt.Errorf("file %s: %w", path, err)
	}
	return key, nil
}
