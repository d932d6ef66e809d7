package hostfiles

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
)

// AdmitCopy begins the generation of a cold admission, before its app starts,
// with a copy of the files pin at sequence 1. The copy's entries and base keep
// naming the objects where they are, so nothing is uploaded again. The zero from
// is an evidenced empty pin. It is create-only and repeatable: the same copy
// again is success.
//
// One GET (none for the empty pin) and one PUT. Errors: [ErrDigest] where the
// pin's key holds other bytes now, [ErrMalformed], [ErrFenced] where the
// generation has another manifest, and the store's.
func AdmitCopy(ctx context.Context, s Store, from ManifestRef, to Target) (ManifestRef, error) {
	ref, err := admitCopy(ctx, s, from, to)
	if err != nil {
		return ManifestRef{}, fmt.Errorf("hostfiles: admit a copy to %s: %w", to.manifestKey(), err)
	}
	return ref, nil
}

func admitCopy(ctx context.Context, s Store, from ManifestRef, to Target) (ManifestRef, error) {
	if err := to.checkWriter(); err != nil {
		return ManifestRef{}, err
	}
	var pinned []byte
	if from != (ManifestRef{}) {
		m, object, err := readManifest(ctx, s, from.Key, from.SHA256)
		if err != nil {
			return ManifestRef{}, err
		}
		if m.Seq != from.Seq {
			return ManifestRef{}, fmt.Errorf("%s: %w: seq %d, cited as %d", from.Key, ErrDigest, m.Seq, from.Seq)
		}
		pinned = object.Body
	}
	return createCopy(ctx, s, pinned, to, 1)
}

// WritePrepared writes the manifest of a prepared generation, at sequence 0 and
// of no session, from the bytes of the files pin that were retained beside the
// pin: what happened to the source's own manifest since changes nothing. Empty
// bytes are an evidenced empty pin. to.Session is 0, to.Stamp the installation's.
// It is create-only, and a rebuild from the same pin writes the same bytes.
//
// One PUT. Errors: [ErrMalformed], [ErrFenced] where the generation has another
// manifest, and the store's.
func WritePrepared(ctx context.Context, s Store, pinned []byte, to Target) (ManifestRef, error) {
	ref, err := createCopy(ctx, s, pinned, to, 0)
	if err != nil {
		return ManifestRef{}, fmt.Errorf("hostfiles: prepare %s: %w", to.manifestKey(), err)
	}
	return ref, nil
}

// VerifyPrepared reads the manifest of a prepared generation afresh and compares
// it with what [WritePrepared] makes of the retained pin. One GET. Errors:
// [ErrDigest] where it holds other bytes, [ErrNoManifest], and the store's.
func VerifyPrepared(ctx context.Context, s Store, pinned []byte, to Target) (ManifestRef, error) {
	ref, err := verifyPrepared(ctx, s, pinned, to)
	if err != nil {
		return ManifestRef{}, fmt.Errorf("hostfiles: verify %s: %w", to.manifestKey(), err)
	}
	return ref, nil
}

func verifyPrepared(ctx context.Context, s Store, pinned []byte, to Target) (ManifestRef, error) {
	_, ref, err := copyOf(pinned, to, 0)
	if err != nil {
		return ManifestRef{}, err
	}
	_, _, err = readManifest(ctx, s, ref.Key, ref.SHA256)
	if errors.Is(err, objstore.ErrNotFound) {
		err = fmt.Errorf("%w: %w", ErrNoManifest, err)
	}
	if err != nil {
		return ManifestRef{}, err
	}
	return ref, nil
}

// createCopy writes the first manifest of a generation.
func createCopy(ctx context.Context, s Store, pinned []byte, to Target, seq uint64) (ManifestRef, error) {
	body, ref, err := copyOf(pinned, to, seq)
	if err != nil {
		return ManifestRef{}, err
	}
	if _, err := putManifest(ctx, s, ref.Key, body, objstore.IfAbsent()); err != nil {
		return ManifestRef{}, err
	}
	return ref, nil
}

// copyOf builds the manifest with which a generation begins as a copy of the
// pinned bytes. It is a function of its arguments alone, the nonce too: only so
// is a rebuild the same record. That is sound because the copy is create-only.
func copyOf(pinned []byte, to Target, seq uint64) (body []byte, ref ManifestRef, err error) {
	if err := to.check(); err != nil {
		return nil, ManifestRef{}, err
	}
	m := Manifest{
		V: manifestVersion, Gen: 1, Write: digest(pinned)[:32],
		Location: to.Location, Generation: to.Generation, Session: to.Session, Stamp: to.Stamp, Seq: seq,
	}
	if len(pinned) > 0 {
		source, err := decodeManifest(pinned)
		if err != nil {
			return nil, ManifestRef{}, err
		}
		m.From = &ManifestRef{Key: ManifestKey(source.Location, source.Generation), SHA256: digest(pinned), Seq: source.Seq}
		m.Base, m.Changes = source.Base, source.Changes
	}
	if err := m.check(); err != nil {
		return nil, ManifestRef{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if body, err = record.Encode(m); err != nil {
		return nil, ManifestRef{}, err
	}
	return body, ManifestRef{Key: to.manifestKey(), SHA256: digest(body), Seq: seq}, nil
}

// OpenPrepared makes a prepared generation the generation of the session in to:
// it reads the manifest that was journaled and publishes the same entries at
// sequence 1. No copy is made. It is repeatable while the session has published
// nothing more.
//
// One GET and one PUT. Errors: [ErrDigest] where the key holds other bytes,
// [ErrFenced] where another session opened it, [objstore.ErrUnknown] where it
// may yet be opened, and the store's.
func OpenPrepared(ctx context.Context, s Store, prepared ManifestRef, to Target) (ManifestRef, error) {
	ref, err := openPrepared(ctx, s, prepared, to)
	if err != nil {
		return ManifestRef{}, fmt.Errorf("hostfiles: open %s: %w", prepared.Key, err)
	}
	return ref, nil
}

func openPrepared(ctx context.Context, s Store, prepared ManifestRef, to Target) (ManifestRef, error) {
	if err := to.checkWriter(); err != nil {
		return ManifestRef{}, err
	}
	if prepared.Key != to.manifestKey() || prepared.Seq != 0 {
		return ManifestRef{}, fmt.Errorf("%s at seq %d is not the prepared manifest of %s", prepared.Key, prepared.Seq, to.manifestKey())
	}
	m, object, err := readManifest(ctx, s, prepared.Key, "")
	if err != nil {
		return ManifestRef{}, err
	}
	st := &state{manifest: m, body: object.Body, etag: object.ETag, changes: byName(m.Changes)}
	if st.ref() != prepared {
		return opened(st, prepared, to)
	}
	next := st.next(to, 1, m.Base, st.changes)
	next.Opened, next.Write = prepared.SHA256, digest(st.body)[:32] // a repetition sends the same bytes
	body, err := record.Encode(next)
	if err != nil {
		return ManifestRef{}, err
	}
	if _, err := putManifest(ctx, s, prepared.Key, body, st.condition()); err != nil {
		return ManifestRef{}, err
	}
	return ManifestRef{Key: prepared.Key, SHA256: digest(body), Seq: 1}, nil
}

// opened accepts a manifest in place of the prepared one only as this very
// session's opening of it.
func opened(st *state, prepared ManifestRef, to Target) (ManifestRef, error) {
	m := st.manifest
	switch {
	case m.Opened != prepared.SHA256:
		return ManifestRef{}, fmt.Errorf("%w: sha256 %s, journaled as %s", ErrDigest, digest(st.body), prepared.SHA256)
	case m.Session != to.Session || m.Stamp != to.Stamp || m.Seq != 1:
		return ManifestRef{}, fmt.Errorf("%w: session %d opened it and is at seq %d", ErrFenced, m.Session, m.Seq)
	}
	return st.ref(), nil
}
