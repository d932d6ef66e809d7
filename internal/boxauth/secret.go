package boxauth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
)

// secretSize is the length of the secret in bytes.
const secretSize = 32

// ErrBadSecret: the text is not a secret.
var ErrBadSecret = errors.New("bad secret")

// Secret is what every box of one deployment knows. The zero value signs and
// verifies nothing.
type Secret struct{ key [secretSize]byte }

// NewSecret makes a random one.
func NewSecret() Secret {
	var s Secret
	rand.Read(s.key[:]) // never fails: crypto/rand ends the process instead
	return s
}

// ParseSecret reads a secret: exactly 32 bytes, or their base64 (standard or
// URL alphabet, padded or not) with white space around it. Anything else, and
// 32 zero bytes, is [ErrBadSecret]; the error does not show what came.
func ParseSecret(text []byte) (Secret, error) {
	raw := text
	if len(raw) != secretSize {
		s := strings.TrimRight(strings.TrimSpace(string(text)), "=")
		s = strings.NewReplacer("-", "+", "_", "/").Replace(s)
		var err error
		if raw, err = base64.RawStdEncoding.DecodeString(s); err != nil {
			return Secret{}, fmt.Errorf("%w: got %d bytes that are not base64, want 32 bytes or their base64", ErrBadSecret, len(text))
		}
	}
	if len(raw) != secretSize {
		return Secret{}, fmt.Errorf("%w: got %d bytes, want %d", ErrBadSecret, len(raw), secretSize)
	}
	s := Secret{key: [secretSize]byte(raw)}
	if s.zero() {
		return Secret{}, fmt.Errorf("%w: it is all zero", ErrBadSecret)
	}
	return s, nil
}

// LoadSecret reads a secret file. One that others may read is used, with a
// warning to log (nil: slog.Default).
func LoadSecret(path string, log *slog.Logger) (Secret, error) {
	if log == nil {
		log = slog.Default()
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Secret{}, fmt.Errorf("secret file: %w", err)
	}
	s, err := ParseSecret(text)
	if err != nil {
		return Secret{}, fmt.Errorf("secret file %s: %w", path, err)
	}
	if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		log.Warn("the secret file may be read by others: chmod 600 it", "path", path, "mode", info.Mode().Perm())
	}
	return s, nil
}

// Text is the secret in base64, as LoadSecret reads it.
func (s Secret) Text() string { return base64.StdEncoding.EncodeToString(s.key[:]) }

// Fingerprint is the first 16 hex digits of the secret's SHA-256. It may be
// published: boxes whose fingerprints differ do not understand each other.
func (s Secret) Fingerprint() string {
	sum := sha256.Sum256(s.key[:])
	return hex.EncodeToString(sum[:8])
}

// String shows the fingerprint, so that no log holds a secret.
func (s Secret) String() string { return "secret " + s.Fingerprint() }

// GoString is String, for %#v.
func (s Secret) GoString() string { return s.String() }

func (s Secret) zero() bool { return s == Secret{} }
