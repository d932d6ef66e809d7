package hostfiles

import (
	"cmp"
	"encoding/base64"
	"math"
	"path"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind says what an entry is.
type Kind string

// The kinds of entries.
const (
	KindFile      Kind = "file"
	KindDir       Kind = "dir"
	KindSymlink   Kind = "symlink"
	KindSpecial   Kind = "special"   // a device, socket or pipe: always skipped
	KindTombstone Kind = "tombstone" // the path was deleted; only among changes
)

// Paths of entries. The app's files directory is FilesRoot and what lies below
// it; the platform's own files are exactly the three others, and never lie in
// the files directory.
const (
	FilesRoot   = "files"
	InstanceKey = "platform/instance.key"
	EnvFile     = "platform/env"
	WakeState   = "platform/wake.json"
)

var platformItems = []string{EnvFile, InstanceKey, WakeState}

const (
	maxPath      = 8 << 10 // bytes
	maxComponent = 255     // bytes
	maxTarget    = 4 << 10 // bytes of a symlink's target
	maxFile      = 5 << 40 // bytes: the largest object that S3 holds
	maxPlatform  = 1 << 20 // bytes of one platform item
	maxReason    = 128     // bytes
)

// Entry is one path of a manifest.
type Entry struct {
	Path    string `json:"path"`     // starts with "files" or "platform/", clean
	PathB64 string `json:"path_b64"` // instead of Path where that is not UTF-8: standard base64
	Kind    Kind   `json:"kind"`

	// Seq numbers the mutation that made the entry, in the generation that
	// recorded it; a copied entry keeps the number of the older one.
	Seq uint64 `json:"seq"`

	Size   int64     `json:"size"`   // bytes of a file
	Mode   uint32    `json:"mode"`   // Unix permission bits, 07777; none for a platform item, which is 0600
	MTime  time.Time `json:"mtime"`  // of a file or directory
	Owner  *Owner    `json:"owner"`  // where the publisher ran as root
	SHA256 string    `json:"sha256"` // of a file's content
	Object string    `json:"object"` // the key that holds it

	Target    string `json:"target"`     // of a symlink, as it stands
	TargetB64 string `json:"target_b64"` // instead of Target where that is not UTF-8

	// Torn: the file never held still; the content is one that was read while
	// it changed.
	Torn bool `json:"torn"`

	// Skipped says why what lies there is not kept. A skipped file that has an
	// Object was kept before, and that is its last kept content; a skipped
	// directory could not be listed, and the entries below it are the last known.
	Skipped string `json:"skipped"`
}

// Owner is the numeric owner of an entry.
type Owner struct {
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
}

// name returns the raw path. The entry was checked, or made by setName.
func (e *Entry) name() string { return plainOrBase64(e.Path, e.PathB64) }

func (e *Entry) setName(raw string) { e.Path, e.PathB64 = split(raw) }

func (e *Entry) target() string { return plainOrBase64(e.Target, e.TargetB64) }

func (e *Entry) setTarget(raw string) { e.Target, e.TargetB64 = split(raw) }

func split(raw string) (plain, b64 string) {
	if utf8.ValidString(raw) {
		return raw, ""
	}
	return "", base64.StdEncoding.EncodeToString([]byte(raw))
}

func plainOrBase64(plain, b64 string) string {
	if b64 == "" {
		return plain
	}
	raw, _ := base64.StdEncoding.DecodeString(b64)
	return string(raw)
}

// same reports whether a scan that found o has nothing to publish over e.
func (e *Entry) same(o *Entry) bool {
	x, y := *e, *o
	x.Seq, y.Seq, x.Object, y.Object = 0, 0, "", ""
	if (x.Owner == nil) != (y.Owner == nil) || x.Owner != nil && *x.Owner != *y.Owner {
		return false
	}
	x.Owner, y.Owner = nil, nil
	sameTime := x.MTime.Equal(y.MTime)
	x.MTime, y.MTime = time.Time{}, time.Time{}
	return sameTime && x == y
}

// below returns where the entry lies in its files directory, "." for the
// directory itself.
func (e *Entry) below() string {
	return cmp.Or(strings.TrimPrefix(strings.TrimPrefix(e.name(), FilesRoot), "/"), ".")
}

func isPlatform(p string) bool { return strings.HasPrefix(p, "platform/") }

func parent(p string) string { return path.Dir(p) }

// clampTime moves a time into the range that system calls take: nanoseconds
// since 1970 in 64 bits. A file may carry any time; a record may not.
func clampTime(t time.Time) time.Time {
	earliest, latest := time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)
	switch {
	case t.IsZero():
		return t
	case t.Before(earliest):
		return earliest.UTC()
	case t.After(latest):
		return latest.UTC()
	}
	return t.UTC()
}
