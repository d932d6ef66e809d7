// Package record is the one encoding of every JSON object that regionha
// stores.
//
// [Decode] accepts exactly what [Encode] writes: it decodes strictly, encodes
// again and compares the bytes. That one comparison refuses duplicate and
// unknown names, case variants, another order, other number or time formats,
// white space and trailing data. A record struct names its members in
// snake_case, has V first, tags lists and maps `omitempty`, and holds times in
// UTC; durations are written like "1m30s", zero values are omitted and map keys
// are sorted.
package record

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxSize is the longest record, in bytes, that is decoded.
const MaxSize = 4 << 20

// ErrMalformed: the bytes are not a record of the wanted type in its one
// encoding.
var ErrMalformed = errors.New("malformed record")

var options = json.JoinOptions(
	json.OmitZeroStructFields(true),
	json.Deterministic(true),
	json.RejectUnknownMembers(true),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
	json.WithMarshalers(json.JoinMarshalers(json.MarshalToFunc(writeTime), json.MarshalToFunc(writeDuration))),
	json.WithUnmarshalers(json.UnmarshalFromFunc(readDuration)),
)

func writeTime(e *jsontext.Encoder, t time.Time) error {
	return e.WriteToken(jsontext.String(t.UTC().Format(time.RFC3339Nano)))
}

func writeDuration(e *jsontext.Encoder, d time.Duration) error {
	return e.WriteToken(jsontext.String(d.String()))
}

func readDuration(dec *jsontext.Decoder, d *time.Duration) error {
	var s string
	if err := json.UnmarshalDecode(dec, &s); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(s)
	*d = parsed
	return err
}

// Encode writes v in its one encoding: members in the order of the struct, and
// one trailing newline. It fails for a value that JSON cannot hold, such as a
// string that is not UTF-8.
func Encode(v any) ([]byte, error) {
	b, err := json.Marshal(v, options)
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	return append(b, '\n'), nil
}

// Decode reads a record of type T. Anything but the bytes that [Encode] would
// write for the same value is [ErrMalformed].
func Decode[T any](b []byte) (T, error) {
	var v, zero T
	if len(b) > MaxSize {
		return zero, fmt.Errorf("%w: %d bytes, at most %d", ErrMalformed, len(b), MaxSize)
	}
	if err := json.Unmarshal(b, &v, options); err != nil {
		return zero, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	again := compared{with: b}
	if err := json.MarshalWrite(&again, &v, options); err != nil {
		return zero, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if string(again.with[again.same:]) != "\n" {
		return zero, fmt.Errorf("%w: not in its one encoding, from byte %d", ErrMalformed, again.same)
	}
	return v, nil
}

// compared is a writer that takes only the bytes that it is compared with.
type compared struct {
	with []byte
	same int // how many were written
}

func (c *compared) Write(p []byte) (int, error) {
	n := commonPrefix(p, c.with[c.same:])
	c.same += n
	if n < len(p) {
		return n, fmt.Errorf("not in its one encoding, from byte %d", c.same)
	}
	return n, nil
}

// commonPrefix is how many bytes a and b begin with in common.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	if bytes.Equal(a[:n], b[:n]) {
		return n
	}
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// Digest is the SHA-256 of b in lower-case hex, the form in which records cite
// each other.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Nonce returns 128 random bits in hex: the write nonce of a mutable record,
// and the source of fresh ids.
func Nonce() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}
