package boxauth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Derive is a secret of its own for one purpose, which says nothing about the
// others: HMAC-SHA256 of the purpose, in hex.
func (s Secret) Derive(purpose string) string {
	h := hmac.New(sha256.New, s.key[:])
	h.Write([]byte("derive\x00" + purpose))
	return hex.EncodeToString(h.Sum(nil))
}
