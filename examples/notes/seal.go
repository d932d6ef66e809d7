package main

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"strings"
)

// A seal encrypts notes with the instance's key, each bound to its id.
type seal struct{ gcm cipher.AEAD }

// newSeal reads a key of 32 bytes in base64url.
func newSeal(key string) (seal, error) {
	k, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(key, "="))
	if err != nil {
		return seal{}, err
	}
	if len(k) != 32 {
		return seal{}, fmt.Errorf("it has %d bytes, want 32", len(k))
	}
	block, err := aes.NewCipher(k)
	if err != nil {
		return seal{}, err
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	return seal{gcm}, err
}

func (s seal) close(id, body string) []byte {
	return s.gcm.Seal(nil, nil, []byte(body), []byte(id))
}

// open fails for what another key, or another id, sealed.
func (s seal) open(id string, sealed []byte) (string, error) {
	body, err := s.gcm.Open(nil, nil, sealed, []byte(id))
	return string(body), err
}
