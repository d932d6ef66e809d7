package hostdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/objstore"
)

// progressStep is how often progress is told, in bytes.
const progressStep = 4 << 20

// Restore makes the database file at path of exactly the objects of set, and
// returns its digest: the SHA-256 of the SHA-256s of its blocks of 64 KiB, hex.
// Nothing of a database may lie at path
// ([ErrNotFresh]). The file appears complete and durable, or not at all; the
// spool beside it is as large as all objects but the first.
//
// An object that is gone, replaced, damaged or out of place is [ErrBroken];
// other errors say nothing about the set. progress may be nil; it is called
// with bytes of the database.
func Restore(ctx context.Context, s objstore.Store, set RecoverySet, path string, progress func(done, total int64)) (digest string, err error) {
	digest, err = restore(ctx, s, set, path, "", progress)
	if err != nil {
		return "", fmt.Errorf("restore %s: %w", path, err)
	}
	return digest, nil
}

// restore is Restore that refuses a database other than the wanted one, if one
// is wanted.
func restore(ctx context.Context, s objstore.Store, set RecoverySet, path, want string, progress func(done, total int64)) (string, error) {
	if err := set.check(); err != nil {
		return "", err
	}
	if set.Empty {
		return "", errors.New("recovery set: empty, there is nothing to restore")
	}
	db, err := newPlace(path)
	if err != nil {
		return "", err
	}
	defer db.discard()
	f, err := fetch(ctx, s, set, start{}, path+".spool")
	if err != nil {
		return "", err
	}
	defer f.close()
	tell := reporter{total: int64(f.last().Commit) * int64(f.last().PageSize), to: progress}
	err = f.pages(ctx, func(_ uint32, data []byte) error {
		tell.add(len(data))
		_, err := db.out.Write(data)
		return err
	})
	if err != nil {
		return "", err
	}
	got, err := db.finish()
	if err != nil {
		return "", err
	}
	if want != "" && got != want {
		return "", fmt.Errorf("%w: the database has the digest %s, wanted %s", ErrBroken, got, want)
	}
	return got, db.commit()
}

// reporter passes progress on in steps.
type reporter struct {
	done, told, total int64
	to                func(done, total int64)
}

func (r *reporter) add(n int) {
	r.done += int64(n)
	if r.to != nil && (r.done-r.told >= progressStep || r.done == r.total) {
		r.told = r.done
		r.to(r.done, r.total)
	}
}
