package dirstore

import (
	"cmp"
	"net/url"
	"path/filepath"
	"strings"
)

// Names on disk. A component of a key is escaped to a-z 0-9 - _ . and %XX, so
// the marks below are in no escaped component:
//
//	NAME        the directory of the keys below this component
//	NAME@1      an object's first version
//	NAME@       the directory of its later versions
//	PART+       the directory of all components that begin with PART, which
//	            is as long as a name may be
//	%           the empty component
const (
	firstMark    = "@1"
	versionsMark = "@"
	partMark     = "+"
	emptyName    = "%"
)

// splitAt is the escaped length, in bytes, from which a component is split. A
// name grows to at most splitAt+2 before it is, and takes a mark of two more.
const splitAt = 200

// objectPath returns the path of key under root, without a mark.
func objectPath(root, key string) string {
	path := []string{root}
	for component := range strings.SplitSeq(key, "/") {
		parts := split(component)
		last := len(parts) - 1
		for _, part := range parts[:last] {
			path = append(path, part+partMark)
		}
		path = append(path, cmp.Or(parts[last], emptyName))
	}
	return filepath.Join(path...)
}

// split escapes a component and cuts it into parts that fit a name. All
// components that begin with one part share that cut, also the one that ends
// there, so that a part's directory holds an unbroken range of keys.
func split(component string) []string {
	var parts []string
	var b []byte
	for i := range len(component) {
		b = appendEscaped(b, component[i])
		if len(b) >= splitAt {
			parts = append(parts, string(b))
			b = nil
		}
	}
	return append(parts, string(b))
}

// appendEscaped writes one byte of a component. A leading dot is escaped, so
// that no name is hidden, or "..", or the store's own .tmp.
func appendEscaped(name []byte, c byte) []byte {
	const hex = "0123456789ABCDEF"
	switch {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_', c == '.' && len(name) > 0:
		return append(name, c)
	}
	return append(name, '%', hex[c>>4], hex[c&15])
}

// kind says what a name on disk stands for.
type kind uint8

const (
	foreign kind = iota
	inner
	first
	versions
	part
)

// parseName reads a name on disk: what it stands for, and the bytes of the
// component, or of its part. Exactly the names that objectPath makes are the
// store's; any other is foreign.
func parseName(name string) (kind, string) {
	base, k := name, inner
	if b, ok := strings.CutSuffix(name, firstMark); ok {
		base, k = b, first
	} else if b, ok := strings.CutSuffix(name, versionsMark); ok {
		base, k = b, versions
	} else if b, ok := strings.CutSuffix(name, partMark); ok {
		base, k = b, part
	}
	if base == emptyName && k != part {
		return k, ""
	}
	raw, err := url.PathUnescape(base)
	if err != nil || raw == "" {
		return foreign, ""
	}
	parts := split(raw)
	if parts[0] != base || (len(parts) > 1) != (k == part) {
		return foreign, ""
	}
	return k, raw
}
