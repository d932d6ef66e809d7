package hostguard

import (
	"fmt"
	"strings"

	"github.com/carlosframework/regionha/internal/record"
)

const (
	version = 1

	guardFile   = "guard.json"
	installFile = "install/install.json"
	sessionFile = "install/session.json"
	releaseFile = "install/release.json"

	// maxHost and maxOp keep <host>_<op>.json.tmp inside a file name.
	maxHost = 200
	maxOp   = 45
)

// header begins every record: whose it is, and which write of it.
type header struct {
	V          int    `json:"v"`
	Gen        uint64 `json:"gen"`
	Write      string `json:"write"`
	Host       string `json:"host"`
	Box        string `json:"box"`
	Enrollment string `json:"enrollment"`
}

// next is the header of the record's next version.
func (h header) next(g *Guard) header {
	return header{V: version, Gen: h.Gen + 1, Write: record.Nonce(), Host: g.host, Box: g.me.Box, Enrollment: g.me.Enrollment}
}

// check tells a record of this host and enrollment from a damaged or a foreign
// one.
func (h header) check(g *Guard) error {
	switch {
	case h.V != version:
		return fmt.Errorf("%w: version %d, want %d", ErrMalformed, h.V, version)
	case h.Gen == 0 || h.Write == "":
		return fmt.Errorf("%w: gen %d, write %q: neither may be empty", ErrMalformed, h.Gen, h.Write)
	case h.Host != g.host:
		return fmt.Errorf("%w: it is of host %q, want %q", ErrMalformed, h.Host, g.host)
	case h.Box != g.me.Box || h.Enrollment != g.me.Enrollment:
		return fmt.Errorf("%w: it is of box %q, enrollment %q; this is box %q, enrollment %q",
			ErrForeign, h.Box, h.Enrollment, g.me.Box, g.me.Enrollment)
	}
	return nil
}

// read loads a record of the guard's directory and checks it. The zero value
// with found false means that there is none.
func read[T interface{ check(*Guard) error }](g *Guard, name string) (v T, found bool, err error) {
	return readAt[T](g, g.path(name))
}

func readAt[T interface{ check(*Guard) error }](g *Guard, path string) (v T, found bool, err error) {
	v, found, err = load[T](path)
	if err != nil || !found {
		return v, false, err
	}
	if err := v.check(g); err != nil {
		var none T
		return none, false, fmt.Errorf("%s: %w", path, err)
	}
	return v, true, nil
}

// checkName refuses a name that cannot be one plain file name.
func checkName(what, name string, limit int) error {
	ok := name != "" && len(name) <= limit && name[0] != '.'
	for _, r := range name {
		ok = ok && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-')
	}
	if !ok {
		return fmt.Errorf("%s %q: want 1 to %d letters, digits, dots and hyphens, and no dot first", what, name, limit)
	}
	return nil
}

// splitName undoes the joining of two checked names by an underscore, which
// neither holds.
func splitName(file string) (host, op string, ok bool) {
	base, ok := strings.CutSuffix(file, ".json")
	if !ok {
		return "", "", false
	}
	host, op, ok = strings.Cut(base, "_")
	return host, op, ok && checkName("host", host, maxHost) == nil && checkName("op", op, maxOp) == nil
}
