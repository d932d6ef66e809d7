package boxid

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// MaxBody is the longest document or signature, in bytes, that is accepted
// from a [Source].
const MaxBody = 64 << 10

// ErrTaken: the box's key holds a record that is another instance's, or that
// cannot be read. It is never rewritten, and trying again changes nothing: a
// person decides whether this box needs another reference.
var ErrTaken = errors.New("identity record is not this box's")

// Source is the instance metadata service of the machine that this process
// runs on.
type Source interface {
	// Document returns the identity document exactly as it is served.
	Document(ctx context.Context) ([]byte, error)
	// Signature returns the base64 signature of the document. It may be
	// wrapped.
	Signature(ctx context.Context) ([]byte, error)
}

// Publish makes sure that the [Record] of this machine is at the key of ref: it
// writes one where none is, and otherwise accepts one of the same instance as
// it stands. It costs one GET, and one PUT the first time.
//
// [ErrBadRef] and [ErrTaken] are final. Any other error, of the store or the
// source, says nothing, and the caller tries again later.
func Publish(ctx context.Context, store objstore.Store, ref string, source Source, now time.Time) error {
	if err := publish(ctx, store, ref, source, now); err != nil {
		return fmt.Errorf("boxid: publish box %q: %w", ref, err)
	}
	return nil
}

func publish(ctx context.Context, store objstore.Store, ref string, source Source, now time.Time) error {
	if err := CheckRef(ref); err != nil {
		return err
	}
	stored, err := store.Get(ctx, Key(ref))
	absent := errors.Is(err, objstore.ErrNotFound)
	if err != nil && !absent {
		return err
	}
	doc, err := source.Document(ctx)
	if err != nil {
		return fmt.Errorf("identity document: %w", err)
	}
	self, err := ownCloud(doc)
	if err != nil {
		return err
	}
	if !absent {
		return checkStored(stored.Body, ref, self)
	}
	signature, err := readSignature(ctx, source)
	if err != nil {
		return err
	}
	return create(ctx, store, self, Record{V: version, Box: ref,
		IdentityDocument: doc, IdentitySignature: signature, WrittenAt: now.UTC()})
}

// create settles a lost race by reading: two processes of one instance write
// different times into records that are equally good.
func create(ctx context.Context, store objstore.Store, self Cloud, rec Record) error {
	body, err := record.Encode(rec)
	if err != nil {
		return err
	}
	_, err = objstore.Create(ctx, store, Key(rec.Box), body)
	if !errors.Is(err, objstore.ErrConflict) {
		return err
	}
	stored, err := store.Get(ctx, Key(rec.Box))
	if err != nil {
		return err
	}
	return checkStored(stored.Body, rec.Box, self)
}

func checkStored(body []byte, ref string, self Cloud) error {
	rec, err := decodeRecord(body)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTaken, err)
	}
	cloud, err := ParseDocument(rec.IdentityDocument)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrTaken, err)
	case rec.Box != ref:
		return fmt.Errorf("%w: it names box %q", ErrTaken, rec.Box)
	case cloud != self:
		return fmt.Errorf("%w: it is of %s, this machine is %s", ErrTaken, cloud, self)
	}
	return nil
}

func ownCloud(doc []byte) (Cloud, error) {
	if len(doc) > MaxBody {
		return Cloud{}, fmt.Errorf("identity document: %d bytes, at most %d", len(doc), MaxBody)
	}
	return ParseDocument(doc)
}

func readSignature(ctx context.Context, source Source) ([]byte, error) {
	text, err := source.Signature(ctx)
	if err != nil {
		return nil, fmt.Errorf("identity signature: %w", err)
	}
	if len(text) > MaxBody {
		return nil, fmt.Errorf("identity signature: %d bytes, at most %d", len(text), MaxBody)
	}
	joined := bytes.Join(bytes.Fields(text), nil)
	signature, err := base64.StdEncoding.Strict().DecodeString(string(joined))
	if err != nil {
		return nil, fmt.Errorf("identity signature: %w", err)
	}
	if len(signature) == 0 {
		return nil, errors.New("identity signature: empty")
	}
	return signature, nil
}
