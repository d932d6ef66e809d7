package hostdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/superfly/ltx"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// ObjectRef names one exact stored object.
type ObjectRef struct {
	Key       string `json:"key"`
	ETag      string `json:"etag"`       // "" only where SHA256 is known
	VersionID string `json:"version_id"` // "" where the store keeps or lists none
	SHA256    string `json:"sha256"`     // of the body, hex; "" in a set made from a listing
	Size      int64  `json:"size"`       // bytes
}

// RecoverySet names the exact objects that make one database: a full image
// first, then an unbroken chain of transactions. It is the database's half of a
// pin. The zero value is refused everywhere.
type RecoverySet struct {
	Generation string      `json:"generation"`
	Objects    []ObjectRef `json:"objects,omitempty"` // in the order in which they apply
	MaxTXID    uint64      `json:"max_txid"`          // the last transaction
	Gap        string      `json:"gap"`               // what ends the chain although more objects follow; "" if nothing does

	// Empty says that it is proven that there is no database to restore. Only
	// who holds that evidence sets it, and then all else is zero. Select never
	// does: it answers [ErrEmpty].
	Empty bool `json:"empty"`
}

// check refuses a set that does not say what it is.
func (set RecoverySet) check() error {
	switch {
	case set.Empty && (set.Generation != "" || len(set.Objects) > 0 || set.MaxTXID != 0 || set.Gap != ""):
		return errors.New("recovery set: marked empty, but it names objects or a position")
	case set.Empty:
		return nil
	case len(set.Objects) == 0 || set.MaxTXID == 0:
		return errors.New("recovery set: no objects, and not marked empty")
	}
	for _, o := range set.Objects {
		if o.ETag == "" && o.SHA256 == "" {
			return fmt.Errorf("recovery set: object %s has neither ETag nor SHA-256", o.Key)
		}
		if o.Size < 0 {
			return fmt.Errorf("recovery set: object %s has size %d", o.Key, o.Size)
		}
	}
	return nil
}

// digest is how the records of a build cite the set they were built from.
func (set RecoverySet) digest() (string, error) {
	b, err := record.Encode(set)
	if err != nil {
		return "", err
	}
	return record.Digest(b), nil
}

// Link is one generation in the chain that a baseline is looked for in.
type Link struct {
	Generation string

	// StopAt is the last TXID that counts, 0 for the newest generation to its
	// end. An older generation counts up to the baseline that the next newer
	// link's admission named: an upload that came later belongs to nobody.
	StopAt uint64
}

// Select returns the newest complete set of the first link that holds any LTX
// file. It lists one prefix per link that it looks at and reads no bodies.
//
// [ErrEmpty]: no link holds an LTX file. [ErrBroken]: the deciding link holds
// LTX files but no full image, or does not reach its StopAt. A gap is not an
// error: the chain ends before it and Gap says so.
func Select(ctx context.Context, s objstore.Store, location string, newestFirst []Link) (RecoverySet, error) {
	for i, link := range newestFirst {
		if i > 0 && link.StopAt == 0 {
			return RecoverySet{}, fmt.Errorf("select in %s: link %d (%s): StopAt 0: an older generation counts only up to the baseline of the next newer one", location, i, link.Generation)
		}
		files, err := listLTX(ctx, s, location, link.Generation)
		if err != nil {
			return RecoverySet{}, fmt.Errorf("select in %s: %w", location, err)
		}
		if len(files) == 0 {
			continue
		}
		set, err := plan(link, files)
		if err != nil {
			return RecoverySet{}, fmt.Errorf("select in %s: generation %s: %w", location, link.Generation, err)
		}
		return set, nil
	}
	return RecoverySet{}, fmt.Errorf("select in %s: %w: %d generations listed", location, ErrEmpty, len(newestFirst))
}

// ltxFile is one listed LTX object.
type ltxFile struct {
	ltxName
	info objstore.Info
}

// listLTX lists the LTX objects of a generation in the order of their keys.
// Objects with other names are none of Litestream's and are left out.
func listLTX(ctx context.Context, s objstore.Store, location, generation string) ([]ltxFile, error) {
	if err := checkNames(location, generation); err != nil {
		return nil, err
	}
	var files []ltxFile
	under := ltxPrefix(location, generation)
	for info, err := range s.List(ctx, under) {
		if err != nil {
			return nil, err
		}
		name, err := parseLTX(strings.TrimPrefix(info.Key, under))
		if err != nil {
			continue
		}
		files = append(files, ltxFile{name, info})
	}
	return files, nil
}

// plan picks the fewest files that cover TXID 1 to the link's end: from each
// position it takes the file that reaches furthest, and of equals the widest.
func plan(link Link, files []ltxFile) (RecoverySet, error) {
	stop := ltx.TXID(link.StopAt)
	if stop != 0 {
		files = slices.DeleteFunc(slices.Clone(files), func(f ltxFile) bool { return f.max > stop })
	}
	slices.SortStableFunc(files, func(a, b ltxFile) int { return cmp.Compare(a.min, b.min) })
	set := RecoverySet{Generation: link.Generation}
	var at ltx.TXID
	var best *ltxFile
	for rest := files; ; {
		for ; len(rest) > 0 && rest[0].min <= at+1; rest = rest[1:] {
			if best == nil || rest[0].better(best.ltxName) {
				best = &rest[0]
			}
		}
		if best == nil || best.max <= at {
			if len(rest) > 0 {
				set.Gap = fmt.Sprintf("the chain ends at TXID %d; the next file is %s", at, rest[0].ltxName)
			}
			break
		}
		set.Objects = append(set.Objects, ObjectRef{
			Key: best.info.Key, ETag: best.info.ETag, VersionID: best.info.VersionID, Size: best.info.Size,
		})
		at = best.max
	}
	set.MaxTXID = uint64(at)
	switch {
	case at == 0:
		return RecoverySet{}, fmt.Errorf("%w: %d LTX files, none of them a full image", ErrBroken, len(files))
	case stop != 0 && at != stop:
		return RecoverySet{}, fmt.Errorf("%w: the chain ends at TXID %d, the baseline named is %d", ErrBroken, at, stop)
	}
	return set, set.check()
}

// better prefers the file that reaches further, then the wider one, then the
// higher level.
func (n ltxName) better(than ltxName) bool {
	return cmp.Or(cmp.Compare(n.max, than.max), cmp.Compare(than.min, n.min), cmp.Compare(n.level, than.level)) > 0
}
