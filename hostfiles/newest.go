package hostfiles

import (
	"context"
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/objstore"
)

// Pinned is a manifest with the exact bytes that were read.
type Pinned struct {
	ManifestRef
	Bytes []byte
}

// Newest reads the manifest of the newest generation, of those given newest
// first, that has one: the files pin of an admitted chain. Newest is by the
// order of admission, never by sequence.
//
// One GET for each generation up to the one found. Errors: [ErrNoManifest] only
// where every one was read as absent; one that cannot be read, or is
// [ErrMalformed], is that error and never skipped.
func Newest(ctx context.Context, s objstore.Store, location string, newestFirst []string) (Pinned, error) {
	for _, generation := range newestFirst {
		key := ManifestKey(location, generation)
		m, object, err := readManifest(ctx, s, key, "")
		if errors.Is(err, objstore.ErrNotFound) {
			continue
		}
		if err != nil {
			return Pinned{}, fmt.Errorf("hostfiles: newest manifest of %s: %w", location, err)
		}
		return Pinned{ManifestRef{Key: key, SHA256: digest(object.Body), Seq: m.Seq}, object.Body}, nil
	}
	return Pinned{}, fmt.Errorf("hostfiles: newest manifest of %s, %d generations: %w", location, len(newestFirst), ErrNoManifest)
}

// Read reads the manifest that ref cites. One GET. Errors: [ErrDigest] where the
// key holds other bytes, [ErrMalformed], and the store's.
func Read(ctx context.Context, s objstore.Store, ref ManifestRef) (Manifest, error) {
	m, _, err := readManifest(ctx, s, ref.Key, ref.SHA256)
	if err == nil && m.Seq != ref.Seq {
		err = fmt.Errorf("%s: %w: seq %d, cited as %d", ref.Key, ErrDigest, m.Seq, ref.Seq)
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("hostfiles: %w", err)
	}
	return m, nil
}

// HasInstanceKey reports whether the manifest with these bytes holds a live
// instance key. It needs no other object: platform items are never in a base.
func HasInstanceKey(manifest []byte) (bool, error) {
	m, err := decodeManifest(manifest)
	if err != nil {
		return false, fmt.Errorf("hostfiles: %w", err)
	}
	_, ok := byName(m.Changes)[InstanceKey]
	return ok, nil
}
