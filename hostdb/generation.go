package hostdb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/benbjohnson/litestream"
	"github.com/superfly/ltx"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// Sentinels. Everything else is a failure that says nothing: try again.
var (
	// ErrEmpty: complete listings of every generation held no LTX file. Whether
	// an empty database is the truth needs evidence from elsewhere.
	ErrEmpty = errors.New("no generation holds an LTX file")

	// ErrBroken: what the store holds is not the complete and sound database
	// that it should be. Trying again does not help; an operator decides.
	ErrBroken = errors.New("not a complete and sound database")

	// ErrFenced: the generation holds something that this session did not
	// write. This replicator uploads nothing more; the session is over.
	ErrFenced = errors.New("generation is fenced")

	// ErrNotFresh: the local files are left from something else, or are not the
	// database that they should be. Purge them and restore.
	ErrNotFresh = errors.New("local files are not the expected ones")

	// ErrClosed: the replicator was closed.
	ErrClosed = errors.New("replicator is closed")
)

// errBadName: a location, generation or key has a form that no writer gives it.
var errBadName = errors.New("bad name")

// Generation names one replication lineage and the session that writes it.
type Generation struct {
	Location string // prefix of the host's incarnation, instances/<host>/<incarnation>
	ID       string // one path segment, unique for ever
	Session  uint64 // the admitted writer's number, at least 1
}

// check refuses a generation whose keys could leave its own prefix.
func (g Generation) check() error {
	if err := checkNames(g.Location, g.ID); err != nil {
		return err
	}
	if g.Session == 0 {
		return fmt.Errorf("session: %w: 0, no writer was admitted under it", errBadName)
	}
	return nil
}

func checkNames(location, generation string) error {
	for segment := range strings.SplitSeq(location, "/") {
		if !isSegment(segment) {
			return fmt.Errorf("location %q: %w: segment %q", location, errBadName, segment)
		}
	}
	if !isSegment(generation) {
		return fmt.Errorf("generation %q: %w: want one segment of [A-Za-z0-9._-]", generation, errBadName)
	}
	return nil
}

func isSegment(s string) bool {
	outside := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}
	return s != "" && s != "." && s != ".." && !strings.ContainsFunc(s, outside)
}

// prefix is what every key of a generation starts with.
func prefix(location, generation string) string { return location + "/db/" + generation + "/" }

func ltxPrefix(location, generation string) string { return prefix(location, generation) + "ltx/" }

// ltxName is the place of one LTX file in a generation.
type ltxName struct {
	level    int // 0 single transactions, 1 to 8 compactions, 9 snapshots
	min, max ltx.TXID
}

// String is the name below ltx/, in Litestream's layout.
func (n ltxName) String() string {
	return fmt.Sprintf("%04x/%s", n.level, ltx.FormatFilename(n.min, n.max))
}

// check refuses ranges that no writer makes.
func (n ltxName) check() error {
	switch {
	case n.level < 0 || n.level > litestream.SnapshotLevel:
		return fmt.Errorf("%w: level %d, want 0 to %d", errBadName, n.level, litestream.SnapshotLevel)
	case n.min < 1 || n.max < n.min:
		return fmt.Errorf("%w: TXIDs %s to %s", errBadName, n.min, n.max)
	case n.level == 0 && n.min != n.max:
		return fmt.Errorf("%w: level 0 holds single transactions, not %s to %s", errBadName, n.min, n.max)
	case n.level == litestream.SnapshotLevel && n.min != 1:
		return fmt.Errorf("%w: a snapshot starts at TXID 1, not %s", errBadName, n.min)
	}
	return nil
}

// parseLTX reads the name below ltx/; only what String writes is one.
func parseLTX(name string) (ltxName, error) {
	dir, file, _ := strings.Cut(name, "/")
	level, err := strconv.ParseUint(dir, 16, 16)
	if err != nil {
		return ltxName{}, fmt.Errorf("%w: LTX level %q", errBadName, dir)
	}
	low, high, err := ltx.ParseFilename(file)
	if err != nil {
		return ltxName{}, fmt.Errorf("%w: LTX file %q", errBadName, file)
	}
	n := ltxName{level: int(level), min: low, max: high}
	if n.String() != name {
		return ltxName{}, fmt.Errorf("%w: LTX name %q, want %q", errBadName, name, n)
	}
	return n, n.check()
}

// nameOf is the LTX name at the end of a key.
func nameOf(key string) (ltxName, error) {
	dir := strings.LastIndexByte(key, '/')
	if dir > 0 {
		dir = strings.LastIndexByte(key[:dir], '/')
	}
	return parseLTX(key[dir+1:])
}

// published is generation.json: the generation had its first durable root and
// its app was ready.
type published struct {
	V          int    `json:"v"` // 1
	Location   string `json:"location"`
	Generation string `json:"generation"`
}

// MarkPublished creates the generation's generation.json. It is for the step
// that publishes a generation, never for a build; doing it again is nil. It
// costs one PUT.
func MarkPublished(ctx context.Context, s objstore.Store, location, generation string) error {
	if err := checkNames(location, generation); err != nil {
		return fmt.Errorf("mark published: %w", err)
	}
	body, err := record.Encode(published{V: 1, Location: location, Generation: generation})
	if err != nil {
		return fmt.Errorf("mark published: %w", err)
	}
	if _, err := objstore.Create(ctx, s, prefix(location, generation)+"generation.json", body); err != nil {
		return fmt.Errorf("mark %s published: %w", generation, err)
	}
	return nil
}
