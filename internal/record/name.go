package record

import "strings"

// IsName reports whether s may be one part of a key: 1 to most bytes of
// [A-Za-z0-9._-], and neither "." nor "..". That a name is also one that its
// owner knows is said by who compares the two.
func IsName(s string, most int) bool {
	return s != "" && len(s) <= most && s != "." && s != ".." && !strings.ContainsFunc(s, notInName)
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
}
