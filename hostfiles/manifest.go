package hostfiles

import (
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/internal/record"
)

const (
	manifestVersion = 1
	maxChanges      = 1000    // entries changed since the base
	maxManifest     = 1 << 20 // bytes beyond which changes are folded before their number asks for it
)

// Sentinels: what the caller does next.
var (
	// ErrFenced: the generation's manifest is another session's, or it moved
	// under this one. Write nothing more under this session's publisher.
	ErrFenced = errors.New("the manifest is not this session's")

	// ErrDigest: what is stored are not the bytes that were cited. Use nothing
	// of them.
	ErrDigest = errors.New("stored bytes are not those cited")

	// ErrMalformed: a manifest or base breaks a rule. Nothing of it is used, and
	// it is never repaired.
	ErrMalformed = errors.New("malformed manifest")

	// ErrNoManifest: every manifest that was looked for was read as absent.
	ErrNoManifest = errors.New("no manifest")
)

// Manifest says what a generation's files are: the entries of its base, with
// its changes over them. It is stored at [ManifestKey].
type Manifest struct {
	V          int    `json:"v"`
	Gen        uint64 `json:"gen"`   // +1 in every write, from 1
	Write      string `json:"write"` // nonce of this write
	Location   string `json:"location"`
	Generation string `json:"generation"`
	Session    uint64 `json:"session"` // who writes it; 0 while prepared and not opened
	Stamp      uint64 `json:"stamp"`

	// Seq numbers the newest mutation in it. 0: prepared. It orders manifests of
	// one generation only.
	Seq uint64 `json:"seq"`

	From    *ManifestRef `json:"from"`   // what this generation began as a copy of
	Opened  string       `json:"opened"` // sha256 of the prepared manifest that its session opened
	Base    *BaseRef     `json:"base"`
	Changes []Entry      `json:"changes,omitempty"` // in byte order of their paths
}

// ManifestRef cites exact bytes of a manifest.
type ManifestRef struct {
	Key    string `json:"key"`
	SHA256 string `json:"sha256"`
	Seq    uint64 `json:"seq"`
}

// BaseRef cites a base: an immutable object, see [Manifest].
type BaseRef struct {
	Key     string `json:"key"`
	SHA256  string `json:"sha256"`
	Size    int64  `json:"size"`    // bytes
	Entries int    `json:"entries"` // how many
}

// decodeManifest reads a manifest and holds it to every rule that needs no
// other object.
func decodeManifest(body []byte) (Manifest, error) {
	m, err := record.Decode[Manifest](body)
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return m, nil
}

func (m *Manifest) check() error {
	if m.V != manifestVersion {
		return fmt.Errorf("v %d: want %d", m.V, manifestVersion)
	}
	if err := (Target{Location: m.Location, Generation: m.Generation}).check(); err != nil {
		return err
	}
	switch {
	case m.Gen == 0 || m.Write == "":
		return fmt.Errorf("gen %d, write %q: every write has both", m.Gen, m.Write)
	case m.Stamp == 0 || m.Session > m.Stamp:
		return fmt.Errorf("session %d under stamp %d: want at least 1 and at most the stamp", m.Session, m.Stamp)
	case (m.Session == 0) != (m.Seq == 0):
		return fmt.Errorf("seq %d of session %d: only a prepared manifest has neither", m.Seq, m.Session)
	case len(m.Changes) > maxChanges:
		return fmt.Errorf("%d changes: at most %d", len(m.Changes), maxChanges)
	}
	if err := m.checkOrigin(); err != nil {
		return fmt.Errorf("origin: %w", err)
	}
	if m.Base != nil {
		if err := m.Base.check(m); err != nil {
			return fmt.Errorf("base: %w", err)
		}
	}
	return m.checkChanges()
}

func (m *Manifest) checkOrigin() error {
	if m.Opened != "" && (!isDigest(m.Opened) || m.Seq == 0) {
		return fmt.Errorf("opened %q at seq %d: want a digest, from seq 1", m.Opened, m.Seq)
	}
	if m.From == nil {
		return nil
	}
	location, _, err := parseManifestKey(m.From.Key)
	if err != nil {
		return err
	}
	if location != m.Location || !isDigest(m.From.SHA256) {
		return fmt.Errorf("%s %q: want a manifest under %s and its digest", m.From.Key, m.From.SHA256, m.Location)
	}
	return nil
}

func (m *Manifest) checkChanges() error {
	last := ""
	for i := range m.Changes {
		e := &m.Changes[i]
		if err := e.check(m.Location); err != nil {
			return fmt.Errorf("change %d: %w", i, err)
		}
		if err := m.checkObject(e.Object); err != nil {
			return fmt.Errorf("change %d: %w", i, err)
		}
		if e.name() <= last {
			return fmt.Errorf("change %d: path %q after %q: each path once, in byte order", i, e.name(), last)
		}
		last = e.name()
	}
	return nil
}

// checkObject refuses an object of this generation that a later mutation than
// the manifest's newest would have made.
func (m *Manifest) checkObject(key string) error {
	if key == "" {
		return nil
	}
	generation, seq, _, err := parseObjectKey(m.Location, key)
	if err == nil && generation == m.Generation && seq > m.Seq {
		err = fmt.Errorf("object %s: later than the manifest's seq %d", key, m.Seq)
	}
	return err
}

func (b *BaseRef) check(m *Manifest) error {
	_, _, sum, err := parseObjectKey(m.Location, b.Key)
	switch {
	case err != nil:
		return err
	case sum != b.SHA256:
		return fmt.Errorf("sha256 %q: the object is %s", b.SHA256, sum)
	case b.Size <= 0 || b.Size > maxBase || b.Entries < 0:
		return fmt.Errorf("%d entries in %d bytes: at most %d bytes", b.Entries, b.Size, maxBase)
	}
	return m.checkObject(b.Key)
}
