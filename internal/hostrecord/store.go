package hostrecord

import (
	"context"
	"fmt"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// Stored is a record as it lies in the control bucket.
type Stored struct {
	Record
	SHA256 string // of the stored bytes: what a claim cites
	ETag   string
}

// Key is where the record of host lies.
func Key(account, app, host string) string {
	return "apps/" + account + "/" + app + "/instances/" + host + ".json"
}

// Encode checks r and writes it in its one encoding. sha256 is what the claim
// of its create cites before the record is stored.
func Encode(r Record) (body []byte, sha256 string, err error) {
	if err := r.Check(); err != nil {
		return nil, "", err
	}
	body, err = record.Encode(r)
	return body, record.Digest(body), err
}

// Read reads and checks the record of host: one GET. An absent record is
// objstore.ErrNotFound; one that is not in its encoding, does not pass
// [Record.Check] or names another host is an error that says so.
func Read(ctx context.Context, s objstore.Store, account, app, host string) (Stored, error) {
	key := Key(account, app, host)
	o, err := s.Get(ctx, key)
	if err != nil {
		return Stored{}, fmt.Errorf("read the record of %s: %w", host, err)
	}
	r, err := record.Decode[Record](o.Body)
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		return Stored{}, fmt.Errorf("%s: %w", key, err)
	}
	if r.Account != account || r.App != app || r.Host != host {
		return Stored{}, fmt.Errorf("%s: %w: it is the record of %s", key, ErrInvalid, Key(r.Account, r.App, r.Host))
	}
	return Stored{Record: r, SHA256: record.Digest(o.Body), ETag: o.ETag}, nil
}

// Create writes r where no record is. The same bytes again are success; any
// other record there is objstore.ErrConflict.
func Create(ctx context.Context, s objstore.Store, r Record) (Stored, error) {
	return put(ctx, s, r, objstore.IfAbsent())
}

// Replace writes r over exactly old. r.Gen must follow old.Gen, and both must
// be of one host. Errors are those of objstore.PutSettled.
func Replace(ctx context.Context, s objstore.Store, old Stored, r Record) (Stored, error) {
	if r.Gen != old.Gen+1 {
		return Stored{}, invalid("gen", fmt.Sprint(r.Gen), fmt.Sprint(old.Gen+1))
	}
	if was, is := Key(old.Account, old.App, old.Host), Key(r.Account, r.App, r.Host); was != is {
		return Stored{}, invalid("host", is, was)
	}
	return put(ctx, s, r, objstore.IfMatch(old.ETag))
}

func put(ctx context.Context, s objstore.Store, r Record, cond objstore.Condition) (Stored, error) {
	body, sha256, err := Encode(r)
	if err != nil {
		return Stored{}, err
	}
	info, err := objstore.PutSettled(ctx, s, Key(r.Account, r.App, r.Host), body, cond)
	if err != nil {
		return Stored{}, fmt.Errorf("write the record of %s: %w", r.Host, err)
	}
	return Stored{Record: r, SHA256: sha256, ETag: info.ETag}, nil
}
