package hostfiles

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Reasons why something is skipped.
const (
	skipDevice     = "a device"
	skipSocket     = "a socket"
	skipPipe       = "a pipe"
	skipOther      = "not a file"
	skipUnreadable = "cannot be read"
	skipTooLarge   = "over the size limit"
	skipName       = "a path or target in it is too long"
)

// stat is what tells one content of a file from the next without reading it.
type stat struct {
	size          int64
	modified      int64 // ns since 1970, clamped
	changed       int64 // ctime, ns; 0 where it is not known
	device, inode uint64
	mode          uint32
	owned         bool
	owner         Owner
}

func statOf(info fs.FileInfo) stat {
	st := stat{size: info.Size(), modified: clampTime(info.ModTime()).UnixNano(), mode: unixMode(info.Mode())}
	st.identify(info)
	return st
}

// unixMode turns Go's mode into the twelve permission bits of Unix.
func unixMode(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	for flag, bit := range specialBits {
		if m&flag != 0 {
			bits |= bit
		}
	}
	return bits
}

func fileMode(bits uint32) fs.FileMode {
	m := fs.FileMode(bits & 0o777)
	for flag, bit := range specialBits {
		if bits&bit != 0 {
			m |= flag
		}
	}
	return m
}

var specialBits = map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000}

// found is one path that a scan met.
type found struct {
	name    string // as in an entry, raw
	kind    Kind
	stat    stat
	target  string // of a symlink
	skipped string
}

// entry is what found says on its own: everything but a file's content.
func (f *found) entry() Entry {
	e := Entry{Kind: f.kind, Skipped: f.skipped}
	e.setName(f.name)
	if f.kind == KindSpecial || isPlatform(f.name) {
		return e // a socket is made again at every start; a platform item is always private, whatever its time
	}
	if f.stat.owned {
		owner := f.stat.owner
		e.Owner = &owner
	}
	if f.kind == KindSymlink {
		e.setTarget(f.target)
		return e
	}
	e.Mode, e.MTime = f.stat.mode, time.Unix(0, f.stat.modified).UTC()
	return e
}

// view is what a scan found, in byte order of the names within each directory,
// directories before what lies in them.
type view struct {
	found  []found
	whole  bool     // what is not found is gone
	opaque []string // directories that could not be listed: nothing is known below
}

// scanTree reads the whole tree below root without reading a content. Symlinks
// are read, never followed. Only a root that cannot be read is an error; a
// directory below it that cannot be is skipped, and hides what lies in it.
func scanTree(root *os.Root) (view, error) {
	info, err := root.Stat(".")
	if err != nil {
		return view{}, err
	}
	v := view{found: []found{{name: FilesRoot, kind: KindDir, stat: statOf(info)}}}
	return v, v.walk(root, 0)
}

// walk finds what lies in the directory found at index.
func (v *view) walk(dir *os.Root, index int) error {
	names, err := list(dir)
	if err != nil {
		return err
	}
	for _, base := range names {
		name := v.found[index].name + "/" + base
		if checkPath(name) != nil {
			v.found[index].skipped = skipName // no entry can name it: its directory says so
			continue
		}
		info, err := dir.Lstat(base)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted since the listing
		}
		if err != nil {
			return err
		}
		v.found = append(v.found, describe(dir, name, info))
		if info.IsDir() {
			v.descend(dir, len(v.found)-1, info)
		}
	}
	return nil
}

// descend walks the directory found at index. One that cannot be read whole is
// as if not read at all: a part of it would say that the rest was deleted.
func (v *view) descend(dir *os.Root, index int, info fs.FileInfo) {
	name := v.found[index].name
	sub, err := dir.OpenRoot(path.Base(name))
	if err == nil {
		defer sub.Close()
		err = v.enter(sub, index, info)
	}
	if err != nil {
		v.found = v.found[:index+1]
		v.found[index].skipped = skipUnreadable
		v.opaque = append(v.opaque, name)
	}
}

// enter walks sub if it is the directory of info. What took its place since is
// not entered: a link there would lead elsewhere in the tree.
func (v *view) enter(sub *os.Root, index int, info fs.FileInfo) error {
	now, err := sub.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(info, now) {
		return errChanged
	}
	return v.walk(sub, index)
}

// describe tells what info says is there.
func describe(dir *os.Root, name string, info fs.FileInfo) found {
	f := found{name: name, stat: statOf(info)}
	switch info.Mode().Type() {
	case 0:
		f.kind = KindFile
	case fs.ModeDir:
		f.kind = KindDir
	case fs.ModeSymlink:
		f.kind = KindSymlink
		target, err := dir.Readlink(path.Base(name))
		if f.target = target; err != nil || target == "" {
			f.kind, f.skipped = KindSpecial, skipUnreadable
		} else if len(target) > maxTarget {
			f.kind, f.skipped = KindSpecial, skipName
		}
	case fs.ModeSocket:
		f.kind, f.skipped = KindSpecial, skipSocket
	case fs.ModeNamedPipe:
		f.kind, f.skipped = KindSpecial, skipPipe
	case fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice:
		f.kind, f.skipped = KindSpecial, skipDevice
	default:
		f.kind, f.skipped = KindSpecial, skipOther
	}
	return f
}

func list(dir *os.Root) ([]string, error) {
	file, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	names, err := file.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// missing returns the live names of the files tree in st that v neither found
// nor could not have found.
func (v *view) missing(st *state) []string {
	seen := make(map[string]bool, len(v.found))
	for i := range v.found {
		seen[v.found[i].name] = true
	}
	var out []string
	for name := range st.live() {
		if !seen[name] && !isPlatform(name) && !v.hides(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (v *view) hides(name string) bool {
	return slices.ContainsFunc(v.opaque, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
}

// scanPlatform finds the platform items. One that is not there is not found: no
// platform item is ever deleted.
func scanPlatform(dir *os.Root) (view, error) {
	var v view
	for _, name := range platformItems {
		info, err := dir.Lstat(path.Base(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return view{}, err
		}
		f := describe(dir, name, info)
		if f.kind != KindFile || info.Size() > maxPlatform {
			return view{}, &fs.PathError{Op: "scan", Path: name, Err: errors.New("want a file of at most 1 MiB")}
		}
		v.found = append(v.found, f)
	}
	return v, nil
}
