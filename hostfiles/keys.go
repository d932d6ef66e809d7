package hostfiles

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	maxLocation   = 512 // bytes
	maxGeneration = 64  // bytes
	manifestName  = "/manifest.json"
)

// Target is the generation that a writer is bound to.
type Target struct {
	Location   string // the holder's location, instances/<host>/<incarnation>
	Generation string // one key component
	Session    uint64 // the admitted session; 0 only in [WritePrepared]
	Stamp      uint64 // the stamp it runs under; of the installation in [WritePrepared]
}

// ManifestKey is the key of the one manifest of a generation.
func ManifestKey(location, generation string) string {
	return location + "/files/" + generation + manifestName
}

func (t Target) manifestKey() string { return ManifestKey(t.Location, t.Generation) }

// objectKey is where the content with this digest goes when the mutation seq
// uploads it. Both in the name: no two uploads of different bytes ever share a
// key, so one that lands late harms nothing.
func (t Target) objectKey(seq uint64, sha256 string) string {
	return t.Location + "/files/" + t.Generation + "/objects/" + strconv.FormatUint(seq, 10) + "-" + sha256
}

// check refuses a target from which a key could be built that lies elsewhere.
func (t Target) check() error {
	if err := checkLocation(t.Location); err != nil {
		return err
	}
	return checkGeneration(t.Generation)
}

// checkWriter refuses a target without an admitted session.
func (t Target) checkWriter() error {
	if err := t.check(); err != nil {
		return err
	}
	if t.Session == 0 || t.Stamp < t.Session {
		return fmt.Errorf("session %d under stamp %d: a writer has a session of at least 1 and at most its stamp", t.Session, t.Stamp)
	}
	return nil
}

func checkLocation(location string) error {
	if len(location) > maxLocation {
		return fmt.Errorf("location: %d bytes, at most %d", len(location), maxLocation)
	}
	for part := range strings.SplitSeq(location, "/") {
		if !plainComponent(part) || part == "files" {
			return fmt.Errorf("location %q: %q is not a component of a location", location, part)
		}
	}
	return nil
}

func checkGeneration(generation string) error {
	if len(generation) > maxGeneration || !plainComponent(generation) {
		return fmt.Errorf("generation %q: want 1 to %d of [A-Za-z0-9._-], not starting with a dot", generation, maxGeneration)
	}
	return nil
}

func plainComponent(s string) bool {
	if s == "" || s[0] == '.' {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// parseManifestKey is the inverse of [ManifestKey].
func parseManifestKey(key string) (location, generation string, err error) {
	rest, isManifest := strings.CutSuffix(key, manifestName)
	at := strings.LastIndex(rest, "/files/")
	if !isManifest || at < 0 {
		return "", "", fmt.Errorf("key %q: want <location>/files/<generation>%s", key, manifestName)
	}
	location, generation = rest[:at], rest[at+len("/files/"):]
	if err := checkLocation(location); err != nil {
		return "", "", fmt.Errorf("key %q: %w", key, err)
	}
	if err := checkGeneration(generation); err != nil {
		return "", "", fmt.Errorf("key %q: %w", key, err)
	}
	return location, generation, nil
}

// parseObjectKey takes apart the key of an object under location: any other key,
// one under another location above all, is an error.
func parseObjectKey(location, key string) (generation string, seq uint64, sha256 string, err error) {
	rest, under := strings.CutPrefix(key, location+"/files/")
	if !under {
		return "", 0, "", fmt.Errorf("object %q: not under the location %s", key, location)
	}
	generation, rest, _ = strings.Cut(rest, "/objects/")
	number, sha256, _ := strings.Cut(rest, "-")
	seq, err = strconv.ParseUint(number, 10, 64)
	if err != nil || checkGeneration(generation) != nil || !isDigest(sha256) ||
		(Target{Location: location, Generation: generation}).objectKey(seq, sha256) != key {
		return "", 0, "", fmt.Errorf("object %q: want %s/files/<generation>/objects/<seq>-<sha256>", key, location)
	}
	return generation, seq, sha256, nil
}

func isDigest(s string) bool {
	if len(s) != 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
