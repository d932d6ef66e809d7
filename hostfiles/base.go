package hostfiles

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/carlosframework/regionha/internal/record"
)

const (
	maxBase = 1 << 30   // bytes: some two million entries
	maxLine = 128 << 10 // bytes of one entry: the longest path, every byte escaped
)

// baseHeader is the first line of a base. Each line after it is one [Entry], in
// byte order of the paths, none a tombstone and none a platform item: those stay
// among the changes, so that a manifest alone says whether it has a key.
type baseHeader struct {
	V        int    `json:"v"`
	Location string `json:"location"`
	Entries  int    `json:"entries"`
}

// encodeBase writes entries, which are in order, as a base.
func encodeBase(location string, entries []Entry) ([]byte, error) {
	var out bytes.Buffer
	line, err := record.Encode(baseHeader{V: manifestVersion, Location: location, Entries: len(entries)})
	if err != nil {
		return nil, err
	}
	out.Write(line)
	for i := range entries {
		if line, err = record.Encode(entries[i]); err != nil {
			return nil, err
		}
		out.Write(line)
		if out.Len() > maxBase {
			return nil, fmt.Errorf("base of %d entries: over %d bytes", len(entries), maxBase)
		}
	}
	return out.Bytes(), nil
}

// decodeBase reads the base that ref cites. Anything but those bytes is
// [ErrDigest]; those bytes breaking a rule are [ErrMalformed].
func decodeBase(r io.Reader, location string, ref BaseRef) (map[string]Entry, error) {
	sum := sha256.New()
	in := bufio.NewReaderSize(io.TeeReader(io.LimitReader(r, ref.Size+1), sum), maxLine)
	entries, err := decodeLines(in, location, ref.Entries)
	var broken lineError
	if err != nil && !errors.As(err, &broken) {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return nil, err
	}
	// The digest is judged first: other bytes are other bytes, however they read.
	if got := hex.EncodeToString(sum.Sum(nil)); got != ref.SHA256 {
		return nil, fmt.Errorf("base %s: %w: sha256 %s", ref.Key, ErrDigest, got)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: base %s: %w", ErrMalformed, ref.Key, err)
	}
	return entries, nil
}

// lineError says which line of a base breaks which rule.
type lineError struct {
	line int
	err  error
}

func (e lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e lineError) Unwrap() error { return e.err }

func decodeLines(in *bufio.Reader, location string, count int) (map[string]Entry, error) {
	header, err := decodeLine[baseHeader](in, 1)
	if err != nil {
		return nil, err
	}
	if want := (baseHeader{manifestVersion, location, count}); header != want {
		return nil, lineError{1, fmt.Errorf("header %+v: want %+v", header, want)}
	}
	entries := make(map[string]Entry)
	last := ""
	for line := 2; line < count+2; line++ {
		e, err := decodeLine[Entry](in, line)
		if err != nil {
			return nil, err
		}
		if err := checkBaseEntry(&e, location, last); err != nil {
			return nil, lineError{line, err}
		}
		last = e.name()
		entries[last] = e
	}
	if _, err := in.ReadByte(); err == nil {
		return nil, lineError{count + 2, errors.New("data after the last entry")}
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return entries, nil
}

func checkBaseEntry(e *Entry, location, last string) error {
	if err := e.check(location); err != nil {
		return err
	}
	switch {
	case e.Kind == KindTombstone, isPlatform(e.name()):
		return fmt.Errorf("%q: a base holds neither tombstones nor platform items", e.name())
	case e.name() <= last:
		return fmt.Errorf("path %q after %q: each path once, in byte order", e.name(), last)
	}
	return nil
}

func decodeLine[T any](in *bufio.Reader, number int) (v T, err error) {
	line, err := in.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF):
		return v, lineError{number, errors.New("the base ends before it")}
	case errors.Is(err, bufio.ErrBufferFull):
		return v, lineError{number, fmt.Errorf("over %d bytes", maxLine)}
	case err != nil:
		return v, err
	}
	if v, err = record.Decode[T](line); err != nil {
		return v, lineError{number, err}
	}
	return v, nil
}
