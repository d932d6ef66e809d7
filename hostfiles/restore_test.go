package hostfiles_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// attack is a manifest that its publisher would never write, and an object for
// its entries to name.
func attack(t *testing.T, s *memstore.Store) (hostfiles.Manifest, func(path string) hostfiles.Entry) {
	t.Helper()
	sum := record.Digest([]byte("evil"))
	key := location + "/files/g1/objects/1-" + sum
	putBytes(t, s, key, []byte("evil"))
	m := hostfiles.Manifest{V: 1, Gen: 1, Write: record.Nonce(), Location: location, Generation: "g1",
		Session: 1, Stamp: 1, Seq: 9}
	return m, func(path string) hostfiles.Entry {
		return hostfiles.Entry{Path: path, Kind: hostfiles.KindFile, Seq: 1, Size: 4, Mode: 0o644, SHA256: sum, Object: key}
	}
}

func dir(path string) hostfiles.Entry {
	return hostfiles.Entry{Path: path, Kind: hostfiles.KindDir, Seq: 1, Mode: 0o755}
}

func link(path, target string) hostfiles.Entry {
	return hostfiles.Entry{Path: path, Kind: hostfiles.KindSymlink, Seq: 1, Target: target}
}

func TestAnAttackersManifestWritesNothing(t *testing.T) {
	type build func(file func(string) hostfiles.Entry) []hostfiles.Entry
	one := func(change func(e *hostfiles.Entry)) build {
		return func(file func(string) hostfiles.Entry) []hostfiles.Entry {
			e := file("files/a")
			change(&e)
			return []hostfiles.Entry{dir("files"), e}
		}
	}
	at := func(path string) build { return one(func(e *hostfiles.Entry) { e.Path = path }) }
	for name, test := range map[string]struct {
		entries build
		says    string
	}{
		"parent":           {at("files/../a"), "leads elsewhere"},
		"parent of root":   {at("../a"), "below files/"},
		"parent at end":    {at("files/a/.."), "leads elsewhere"},
		"dot":              {at("files/./a"), "leads elsewhere"},
		"double slash":     {at("files//a"), "leads elsewhere"},
		"trailing slash":   {at("files/a/"), "leads elsewhere"},
		"absolute":         {at("/etc/passwd"), "below files/"},
		"elsewhere":        {at("guard.json"), "below files/"},
		"platform":         {at("platform/other"), "below files/"},
		"platform up":      {at("platform/../guard.json"), "below files/"},
		"NUL":              {at("files/a\x00b"), "leads elsewhere"},
		"long component":   {at("files/" + strings.Repeat("a", 256)), "leads elsewhere"},
		"long path":        {at("files/" + strings.Repeat("a/", 5000) + "a"), "at most"},
		"no path":          {at(""), "exactly one"},
		"two paths":        {one(func(e *hostfiles.Entry) { e.PathB64 = "/w==" }), "exactly one"},
		"base64 of UTF-8":  {one(func(e *hostfiles.Entry) { e.Path, e.PathB64 = "", "ZmlsZXMvYQ==" }), "not UTF-8"},
		"base64 up":        {one(func(e *hostfiles.Entry) { e.Path, e.PathB64 = "", "ZmlsZXMvLi4v/w==" }), "leads elsewhere"},
		"huge":             {one(func(e *hostfiles.Entry) { e.Size = 1 << 62 }), "size"},
		"negative":         {one(func(e *hostfiles.Entry) { e.Size = -1 }), "size"},
		"mode":             {one(func(e *hostfiles.Entry) { e.Mode = 0o100644 }), "mode"},
		"unknown kind":     {one(func(e *hostfiles.Entry) { e.Kind = "device" }), "unknown"},
		"no object":        {one(func(e *hostfiles.Entry) { e.Object = "" }), "neither content nor a reason"},
		"other digest":     {one(func(e *hostfiles.Entry) { e.SHA256 = record.Digest(nil) }), "the object is"},
		"file with target": {one(func(e *hostfiles.Entry) { e.Target = "b" }), "a file with a target"},
		"later object": {one(func(e *hostfiles.Entry) {
			e.Object = strings.Replace(e.Object, "/1-", "/10-", 1)
		}), "later than"},
		"another host's object": {one(func(e *hostfiles.Entry) {
			e.Object = strings.Replace(e.Object, "shop", "bank", 1)
		}), "not under the location"},
		"another incarnation's object": {one(func(e *hostfiles.Entry) {
			e.Object = strings.Replace(e.Object, "inc1", "inc2", 1)
		}), "not under the location"},
		"object up": {one(func(e *hostfiles.Entry) {
			e.Object = location + "/files/../../inc2/files/g1/objects/1-" + e.SHA256
		}), "want"},
		"skipped but kept whole": {one(func(e *hostfiles.Entry) { e.Kind, e.Skipped = hostfiles.KindSpecial, "pipe" }), "cannot have"},
		"two entries for one path": {func(file func(string) hostfiles.Entry) []hostfiles.Entry {
			return []hostfiles.Entry{dir("files"), file("files/a"), file("files/a")}
		}, "each path once"},
		"a file and a directory of one name": {func(file func(string) hostfiles.Entry) []hostfiles.Entry {
			return []hostfiles.Entry{dir("files"), dir("files/a"), file("files/a")}
		}, "each path once"},
		"a path through a file": {func(file func(string) hostfiles.Entry) []hostfiles.Entry {
			return []hostfiles.Entry{dir("files"), file("files/a"), file("files/a/b")}
		}, "which is file"},
		"a path through a symlink": {func(file func(string) hostfiles.Entry) []hostfiles.Entry {
			return []hostfiles.Entry{dir("files"), link("files/a", "/etc"), file("files/a/b")}
		}, "which is symlink"},
		"a path through nothing": {func(file func(string) hostfiles.Entry) []hostfiles.Entry {
			return []hostfiles.Entry{dir("files"), file("files/a/b")}
		}, "which is not there"},
		"the root a symlink": {func(func(string) hostfiles.Entry) []hostfiles.Entry {
			return []hostfiles.Entry{link("files", "/etc")}
		}, "want a directory"},
		"the key a symlink": {func(func(string) hostfiles.Entry) []hostfiles.Entry {
			return []hostfiles.Entry{link("platform/instance.key", "/etc/passwd")}
		}, "always a file"},
		"a readable key": {func(file func(string) hostfiles.Entry) []hostfiles.Entry {
			return []hostfiles.Entry{file("platform/instance.key")}
		}, "mode 0600"},
		"out of order": {func(file func(string) hostfiles.Entry) []hostfiles.Entry {
			return []hostfiles.Entry{dir("files"), file("files/b"), file("files/a")}
		}, "byte order"},
		"empty target": {func(func(string) hostfiles.Entry) []hostfiles.Entry {
			return []hostfiles.Entry{dir("files"), link("files/a", "")}
		}, "exactly one"},
		"long target": {func(func(string) hostfiles.Entry) []hostfiles.Entry {
			return []hostfiles.Entry{dir("files"), link("files/a", strings.Repeat("a", 5000))}
		}, "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			s := memstore.New()
			m, file := attack(t, s)
			m.Changes = test.entries(file)
			ref := put(t, s, m)
			above := t.TempDir()
			err := hostfiles.Restore(ctx, s, ref, filepath.Join(above, "files"), filepath.Join(above, "platform"))
			require.ErrorIs(t, err, hostfiles.ErrMalformed)
			require.ErrorContains(t, err, test.says)
			require.Len(t, tree(t, above), 1, "nothing was written")

			_, err = hostfiles.WritePrepared(ctx, s, mustEncode(t, m), prepared("p1", 2))
			if !strings.HasPrefix(test.says, "which is") && test.says != "want a directory" { // those need the base to tell
				require.ErrorIs(t, err, hostfiles.ErrMalformed)
			}
		})
	}
}

func mustEncode(t *testing.T, v any) []byte {
	t.Helper()
	body, err := record.Encode(v)
	require.NoError(t, err)
	return body
}

func TestAManifestThatBreaksARuleIsRefused(t *testing.T) {
	for name, change := range map[string]func(m *hostfiles.Manifest){
		"version":             func(m *hostfiles.Manifest) { m.V = 2 },
		"no gen":              func(m *hostfiles.Manifest) { m.Gen = 0 },
		"no write":            func(m *hostfiles.Manifest) { m.Write = "" },
		"no stamp":            func(m *hostfiles.Manifest) { m.Stamp = 0 },
		"session over stamp":  func(m *hostfiles.Manifest) { m.Session = 2 },
		"seq of no session":   func(m *hostfiles.Manifest) { m.Session = 0 },
		"session without seq": func(m *hostfiles.Manifest) { m.Seq = 0 },
		"another location":    func(m *hostfiles.Manifest) { m.Location = "instances/bank.example/inc1" },
		"location up":         func(m *hostfiles.Manifest) { m.Location = "../x" },
		"from elsewhere": func(m *hostfiles.Manifest) {
			m.From = &hostfiles.ManifestRef{Key: "instances/b/i/files/g/manifest.json", SHA256: record.Digest(nil)}
		},
		"from no manifest": func(m *hostfiles.Manifest) { m.From = &hostfiles.ManifestRef{Key: "x"} },
		"opened":           func(m *hostfiles.Manifest) { m.Opened = "x" },
		"base elsewhere": func(m *hostfiles.Manifest) {
			m.Base = &hostfiles.BaseRef{Key: "control/x", SHA256: record.Digest(nil), Size: 1}
		},
		"base of another digest": func(m *hostfiles.Manifest) {
			m.Base = &hostfiles.BaseRef{Key: location + "/files/g1/objects/1-" + record.Digest(nil), SHA256: "x", Size: 1}
		},
		"base too large": func(m *hostfiles.Manifest) {
			m.Base = &hostfiles.BaseRef{Key: location + "/files/g1/objects/1-" + record.Digest(nil), SHA256: record.Digest(nil), Size: 1 << 40}
		},
		"too many changes": func(m *hostfiles.Manifest) { m.Changes = make([]hostfiles.Entry, hostfiles.MaxChanges+1) },
	} {
		t.Run(name, func(t *testing.T) {
			s := memstore.New()
			m, _ := attack(t, s)
			change(&m)
			body := mustEncode(t, m)
			ref := hostfiles.ManifestRef{Key: hostfiles.ManifestKey(location, "g1"), SHA256: record.Digest(body), Seq: m.Seq}
			putBytes(t, s, ref.Key, body)
			_, err := hostfiles.Read(ctx, s, ref)
			require.ErrorIs(t, err, hostfiles.ErrMalformed)
		})
	}
}

func TestRestoreBelievesNoObject(t *testing.T) {
	for name, body := range map[string]string{"other bytes": "EVIL", "shorter": "ev", "longer": "evil!"} {
		t.Run(name, func(t *testing.T) {
			s := memstore.New()
			m, file := attack(t, s)
			item := file("platform/env")
			item.Mode = 0
			m.Changes = []hostfiles.Entry{dir("files"), file("files/a"), item}
			ref := put(t, s, m)
			putBytes(t, s, m.Changes[1].Object, []byte(body))
			above := t.TempDir()
			err := hostfiles.Restore(ctx, s, ref, filepath.Join(above, "files"), filepath.Join(above, "platform"))
			require.ErrorIs(t, err, hostfiles.ErrDigest)
			require.Len(t, tree(t, above), 1, "half a tree is no tree")
		})
	}
	t.Run("absent", func(t *testing.T) {
		s := memstore.New()
		m, file := attack(t, s)
		e := file("files/a")
		e.Object = strings.Replace(e.Object, "/1-", "/2-", 1)
		m.Changes = []hostfiles.Entry{dir("files"), e}
		err := hostfiles.Restore(ctx, s, put(t, s, m), filepath.Join(t.TempDir(), "files"), t.TempDir())
		require.ErrorIs(t, err, hostfiles.ErrDigest, "what a manifest cites is not merely absent")
	})
}

func TestRestoreDeletesNothing(t *testing.T) {
	s, b, pinned := published(t)
	before := tree(t, b.root)
	require.ErrorIs(t, hostfiles.Restore(ctx, s, pinned.ManifestRef, b.root, b.platform), hostfiles.ErrNotEmpty)
	require.Equal(t, before, tree(t, b.root))
	require.NoError(t, os.Symlink(b.root, b.root+".link"))
	require.Error(t, hostfiles.Restore(ctx, s, pinned.ManifestRef, b.root+".link", b.platform))
	empty := newBox(t, t.TempDir())
	require.NoError(t, hostfiles.Restore(ctx, s, pinned.ManifestRef, empty.root, empty.platform))
	same(t, b, empty)
}

func TestARestoreStartsAgainAfterACrash(t *testing.T) {
	s, b, pinned := published(t)
	above := t.TempDir()
	left := filepath.Join(above, "files.restoring", "sealed", "half")
	require.NoError(t, os.MkdirAll(left, 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(left), 0o500))
	got := restored(t, s, pinned.ManifestRef, above)
	same(t, b, got)
	require.NoDirExists(t, filepath.Join(above, "files.restoring"))
}
