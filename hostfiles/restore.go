package hostfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

const (
	restoreParallel = 8            // files fetched at a time
	stagingSuffix   = ".restoring" // of the directory beside root where the tree is built
)

// ErrNotEmpty: the directory to restore into holds something. Its owner retires
// it first; a restore deletes nothing.
var ErrNotEmpty = errors.New("directory is not empty")

// Restore puts the tree of exactly the manifest that ref cites into root, which
// is absent or empty, and its platform items into the directory platform.
// Everything is fetched and checked in a directory beside root first; one rename
// then makes it root. A crash leaves no part of the tree in root, and the next
// call starts again. Modes and times are restored, and owners where the manifest
// has them and the caller is root. Symlinks are made as they stand and never
// followed. What was skipped and never kept is left out.
//
// One GET for the manifest, one for its base if it has one, and one for each
// file and platform item. Errors: [ErrDigest], [ErrMalformed] (nothing was
// written), [ErrNotEmpty], [ErrOtherKey], the store's and the system's.
func Restore(ctx context.Context, s Store, ref ManifestRef, root, platform string) error {
	if err := restore(ctx, s, ref, root, platform); err != nil {
		return fmt.Errorf("hostfiles: restore %s: %w", ref.Key, err)
	}
	return nil
}

func restore(ctx context.Context, s Store, ref ManifestRef, root, platform string) error {
	files, items, err := readTree(ctx, s, ref)
	if err != nil {
		return err
	}
	if err := checkEmpty(root); err != nil {
		return err
	}
	staging := root + stagingSuffix
	if err := errors.Join(removeTree(staging), os.MkdirAll(staging, 0o700)); err != nil {
		return err
	}
	if err := buildTree(ctx, s, files, staging); err != nil {
		return errors.Join(err, removeTree(staging))
	}
	if err := restoreItems(ctx, s, items, platform); err != nil {
		return errors.Join(err, removeTree(staging))
	}
	if err := os.Remove(root); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(staging, root); err != nil {
		return err
	}
	return syncDir(filepath.Dir(root))
}

// readTree reads the manifest and its base, and returns the entries that are to
// be restored, parents first, and the platform items.
func readTree(ctx context.Context, s Store, ref ManifestRef) (files, items []Entry, err error) {
	m, err := Read(ctx, s, ref)
	if err != nil {
		return nil, nil, err
	}
	base, err := readBase(ctx, s, m)
	if err != nil {
		return nil, nil, err
	}
	st := &state{manifest: m, base: base, changes: byName(m.Changes)}
	if err := checkTree(st.live()); err != nil {
		return nil, nil, err
	}
	for name, e := range st.live() {
		switch {
		case e.Kind == KindSpecial, e.Kind == KindFile && e.Object == "": // skipped, never kept
		case isPlatform(name):
			items = append(items, e)
		default:
			files = append(files, e)
		}
	}
	byPath := func(a, b Entry) int { return strings.Compare(a.name(), b.name()) }
	slices.SortFunc(files, byPath)
	slices.SortFunc(items, byPath)
	return files, items, nil
}

// checkEmpty accepts a directory that is absent or empty.
func checkEmpty(root string) error {
	names, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("%s: %w: %d entries", root, ErrNotEmpty, len(names))
	}
	return err
}

// removeTree removes a tree that an interrupted restore left, directories that
// are not writable included.
func removeTree(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}

// buildTree makes the tree in dir. Every path is resolved inside it by os.Root,
// and symlinks are made last: there is never one to follow.
func buildTree(ctx context.Context, s Store, entries []Entry, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for i := range entries {
		if e := &entries[i]; e.Kind == KindDir && e.name() != FilesRoot {
			if err := root.Mkdir(e.below(), 0o700); err != nil {
				return err
			}
		}
	}
	if err := fetchFiles(ctx, s, entries, root); err != nil {
		return err
	}
	for i := range entries {
		if e := &entries[i]; e.Kind == KindSymlink {
			if err := errors.Join(root.Symlink(e.target(), e.below()), chown(root, e)); err != nil {
				return err
			}
		}
	}
	for i := range slices.Backward(entries) { // what lies in a directory before its mode closes it
		if e := &entries[i]; e.Kind == KindDir {
			if err := dress(root, e); err != nil {
				return err
			}
		}
	}
	return syncTree(dir)
}

func fetchFiles(ctx context.Context, s Store, entries []Entry, root *os.Root) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(restoreParallel)
	for i := range entries {
		if e := &entries[i]; e.Kind == KindFile {
			group.Go(func() error { return fetchFile(ctx, s, e, root) })
		}
	}
	return group.Wait()
}

func fetchFile(ctx context.Context, s Store, e *Entry, root *os.Root) error {
	file, err := root.OpenFile(e.below(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = readObject(ctx, s, e.Object, e.SHA256, e.Size, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%s: %w", e.name(), err)
	}
	return dress(root, e)
}

// dress gives a file or directory its owner, mode and times, in this order: a
// change of owner clears mode bits, and both are changes.
func dress(root *os.Root, e *Entry) error {
	if err := chown(root, e); err != nil {
		return err
	}
	if err := root.Chmod(e.below(), fileMode(e.Mode)); err != nil {
		return err
	}
	return root.Chtimes(e.below(), e.MTime, e.MTime)
}

func chown(root *os.Root, e *Entry) error {
	if e.Owner == nil || os.Geteuid() != 0 {
		return nil
	}
	return root.Lchown(e.below(), int(e.Owner.UID), int(e.Owner.GID))
}

// restoreItems puts the platform items into dir, each whole or not at all. They
// hold secrets: mode 0600 from the first byte.
func restoreItems(ctx context.Context, s Store, items []Entry, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, e := range items {
		body, err := readSmall(ctx, s, e)
		if err != nil {
			return err
		}
		put := replaceSmall
		if e.name() == InstanceKey {
			put = createSmall
		}
		if err := put(filepath.Join(dir, filepath.Base(e.name())), body); err != nil {
			return err
		}
	}
	return nil
}
