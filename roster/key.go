package roster

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
)

// GenerateKey makes the key pair of a new deployment.
func GenerateKey() (ed25519.PublicKey, ed25519.PrivateKey) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic(err) // only a caller's own source of randomness can fail
	}
	return public, private
}

// EncodeKey writes a public or a private key as settings and key files hold
// it: base64 of its 32 or 64 bytes.
func EncodeKey[K ed25519.PublicKey | ed25519.PrivateKey](key K) string {
	return base64.StdEncoding.EncodeToString(key)
}

// ParsePublicKey reads what [EncodeKey] wrote. Surrounding white space is
// ignored.
func ParsePublicKey(text string) (ed25519.PublicKey, error) {
	key, err := decodeKey(text, ed25519.PublicKeySize)
	if err != nil {
		return nil, fmt.Errorf("roster public key: %w", err)
	}
	return ed25519.PublicKey(key), nil
}

// ParsePrivateKey reads what [EncodeKey] wrote, and refuses a key whose public
// half is not its own. No message holds any part of it.
func ParsePrivateKey(text string) (ed25519.PrivateKey, error) {
	b, err := decodeKey(text, ed25519.PrivateKeySize)
	if err != nil {
		return nil, fmt.Errorf("roster private key: %w", err)
	}
	key := ed25519.PrivateKey(b)
	if !ed25519.NewKeyFromSeed(key.Seed()).Equal(key) {
		return nil, fmt.Errorf("roster private key: its public half belongs to another key")
	}
	return key, nil
}

func decodeKey(text string, size int) ([]byte, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("not base64")
	}
	if len(b) != size {
		return nil, fmt.Errorf("%d bytes, expected %d", len(b), size)
	}
	return b, nil
}
