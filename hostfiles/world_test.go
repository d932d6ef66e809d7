package hostfiles_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore/memstore"
)

const location = "instances/shop.example/inc1"

func target(generation string, session uint64) hostfiles.Target {
	return hostfiles.Target{Location: location, Generation: generation, Session: session, Stamp: session}
}

// box is one machine's directories for the host.
type box struct{ root, platform string }

// failer is a *testing.T or a *rapid.T.
type failer interface {
	require.TestingT
	Helper()
}

func newBox(t failer, dir string) box {
	t.Helper()
	b := box{filepath.Join(dir, "files"), filepath.Join(dir, "platform")}
	require.NoError(t, os.MkdirAll(b.root, 0o755))
	require.NoError(t, os.MkdirAll(b.platform, 0o700))
	return b
}

func (b box) config(to hostfiles.Target) hostfiles.Config {
	return hostfiles.Config{Root: b.root, Platform: b.platform, Target: to}
}

func (b box) write(t failer, name, body string) {
	t.Helper()
	path := filepath.Join(b.root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(body), 0o644))
}

func open(t failer, s hostfiles.Store, cfg hostfiles.Config) *hostfiles.Publisher {
	t.Helper()
	p, err := hostfiles.New(context.Background(), s, cfg)
	require.NoError(t, err)
	return p
}

// publish publishes b's files with a publisher of its own.
func publish(t failer, s hostfiles.Store, b box, to hostfiles.Target) uint64 {
	t.Helper()
	p := open(t, s, b.config(to))
	seq, err := p.Flush(context.Background())
	require.NoError(t, err)
	require.NoError(t, p.Close())
	return seq
}

// current cites the manifest of a generation as it is now.
func current(t failer, s hostfiles.Store, generation string) hostfiles.ManifestRef {
	t.Helper()
	pinned, err := hostfiles.Newest(context.Background(), s, location, []string{generation})
	require.NoError(t, err)
	return pinned.ManifestRef
}

// restored restores the manifest into a fresh box.
func restored(t failer, s hostfiles.Store, ref hostfiles.ManifestRef, dir string) box {
	t.Helper()
	b := box{filepath.Join(dir, "files"), filepath.Join(dir, "platform")}
	require.NoError(t, hostfiles.Restore(context.Background(), s, ref, b.root, b.platform))
	return b
}

// tree describes everything below dir: kinds, modes, times, contents, links.
func tree(t failer, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, dir)
		if info.Mode()&fs.ModeSymlink != 0 {
			link, err := os.Readlink(path)
			out[name] = "-> " + link
			return err
		}
		out[name] = fmt.Sprint(info.Mode(), " ", info.ModTime().UTC().Format(time.RFC3339Nano))
		if info.Mode().IsRegular() {
			body, err := os.ReadFile(path)
			sum := sha256.Sum256(body)
			out[name] += " " + hex.EncodeToString(sum[:])
			return err
		}
		return nil
	}))
	return out
}

// same requires that both boxes hold the same files.
func same(t failer, want, got box) {
	t.Helper()
	require.Equal(t, tree(t, want.root), tree(t, got.root))
}

func isManifest(key string) bool { return strings.HasSuffix(key, "/manifest.json") }
func isObject(key string) bool   { return strings.Contains(key, "/objects/") }

// puts counts the writes that applied and were of this sort.
func puts(s *memstore.Store, sort func(key string) bool) (n int) {
	for _, w := range s.Log() {
		if sort(w.Key) {
			n++
		}
	}
	return n
}

// put stores m as it is, under the key of its generation.
func put(t failer, s *memstore.Store, m hostfiles.Manifest) hostfiles.ManifestRef {
	t.Helper()
	body, err := record.Encode(m)
	require.NoError(t, err)
	key := hostfiles.ManifestKey(location, m.Generation)
	putBytes(t, s, key, body)
	return hostfiles.ManifestRef{Key: key, SHA256: record.Digest(body), Seq: m.Seq}
}

func entries(t failer, s hostfiles.Store, ref hostfiles.ManifestRef) map[string]hostfiles.Entry {
	t.Helper()
	m, err := hostfiles.Read(context.Background(), s, ref)
	require.NoError(t, err)
	out := map[string]hostfiles.Entry{}
	for _, e := range m.Changes {
		out[e.Path] = e
	}
	return out
}

func textLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
