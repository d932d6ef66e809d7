package hostfiles_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/objstore/memstore"
)

func localKey(t *testing.T, b box) string {
	t.Helper()
	path := filepath.Join(b.platform, "instance.key")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	body, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(body)
}

func TestAnInstanceKeyIsMadeOnce(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	key, err := hostfiles.EnsureInstanceKey(ctx, s, target("g1", 1), b.platform)
	require.NoError(t, err)
	raw, err := base64.RawURLEncoding.DecodeString(string(key))
	require.NoError(t, err)
	require.Len(t, raw, 32)
	require.Equal(t, string(key), localKey(t, b))

	again, err := hostfiles.EnsureInstanceKey(ctx, s, target("g1", 1), b.platform)
	require.NoError(t, err)
	require.Equal(t, key, again)

	b.write(t, "a", "one")
	publish(t, s, b, target("g1", 1))
	pinned, err := hostfiles.Newest(ctx, s, location, []string{"g1"})
	require.NoError(t, err)
	has, err := hostfiles.HasInstanceKey(pinned.Bytes)
	require.NoError(t, err)
	require.True(t, has)

	_, err = hostfiles.AdmitCopy(ctx, s, pinned.ManifestRef, target("g2", 2))
	require.NoError(t, err)
	other := newBox(t, t.TempDir())
	moved, err := hostfiles.EnsureInstanceKey(ctx, s, target("g2", 2), other.platform)
	require.NoError(t, err)
	require.Equal(t, key, moved)
	require.Equal(t, string(key), localKey(t, other))
}

func TestAKeyIsInTheManifestBeforeItIsAnywhere(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	s.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpPut {
			require.NoFileExists(t, filepath.Join(b.platform, "instance.key"))
		}
		return memstore.None
	})
	_, err := hostfiles.EnsureInstanceKey(ctx, s, target("g1", 1), b.platform)
	require.NoError(t, err)
}

func TestAKeyInterruptedAnywhereIsOneKey(t *testing.T) {
	for _, fault := range []memstore.Fault{memstore.Lose, memstore.LoseAnswer, memstore.Hold, memstore.Replay, memstore.Refuse} {
		for n := range 4 {
			s := memstore.New()
			b := newBox(t, t.TempDir())
			count := 0
			s.Inject(func(memstore.Request) memstore.Fault {
				count++
				if count == n+1 {
					return fault
				}
				return memstore.None
			})
			first, err := hostfiles.EnsureInstanceKey(ctx, s, target("g1", 1), b.platform)
			s.Inject(nil)
			for _, held := range s.Held() {
				_, _ = held.Deliver()
			}
			second, secondErr := hostfiles.EnsureInstanceKey(ctx, s, target("g1", 1), b.platform)
			require.NoError(t, secondErr)
			if err == nil {
				require.Equal(t, first, second)
			}
			require.Equal(t, string(second), localKey(t, b))
			back := restored(t, s, current(t, s, "g1"), t.TempDir())
			require.Equal(t, string(second), localKey(t, back))
		}
	}
}

func TestALateKeyIsFoundBySecondCall(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	manifest := hostfiles.ManifestKey(location, "g1")
	s.Inject(memstore.Once(memstore.OpPut, manifest, memstore.Hold))
	_, err := hostfiles.EnsureInstanceKey(ctx, s, target("g1", 1), b.platform)
	require.Error(t, err)
	s.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpPut && r.Key == manifest { // it lands just before the second call's own
			s.Inject(nil)
			_, err := s.Held()[0].Deliver()
			require.NoError(t, err)
		}
		return memstore.None
	})
	key, err := hostfiles.EnsureInstanceKey(ctx, s, target("g1", 1), b.platform)
	require.NoError(t, err)
	back := restored(t, s, current(t, s, "g1"), t.TempDir())
	require.Equal(t, string(key), localKey(t, back))
}

func TestAnotherKeyIsNeverOverwritten(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	_, err := hostfiles.EnsureInstanceKey(ctx, s, target("g1", 1), b.platform)
	require.NoError(t, err)
	publish(t, s, b, target("g1", 1))
	before := current(t, s, "g1")

	path := filepath.Join(b.platform, "instance.key")
	other := base64.RawURLEncoding.EncodeToString(make([]byte, 32))
	require.NoError(t, os.WriteFile(path, []byte(other), 0o600))
	_, err = hostfiles.EnsureInstanceKey(ctx, s, target("g1", 1), b.platform)
	require.ErrorIs(t, err, hostfiles.ErrOtherKey)
	require.ErrorIs(t, hostfiles.Restore(ctx, s, before, filepath.Join(t.TempDir(), "f"), b.platform), hostfiles.ErrOtherKey)
	p := open(t, s, b.config(target("g1", 1)))
	_, err = p.SyncDir(ctx)
	require.ErrorIs(t, err, hostfiles.ErrOtherKey)
	require.NoError(t, os.Remove(path))
	_, err = p.SyncDir(ctx)
	require.NoError(t, err)
	require.Equal(t, before, current(t, s, "g1"), "a missing item is not a deleted one")
}

func TestAKeyThatAnOperatorBroughtIsPublished(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	path := filepath.Join(b.platform, "instance.key")
	require.NoError(t, os.WriteFile(path, []byte("too short"), 0o600))
	_, err := hostfiles.EnsureInstanceKey(ctx, s, target("g1", 1), b.platform)
	require.ErrorContains(t, err, "32 bytes")
	require.Empty(t, s.Log())

	brought := base64.RawURLEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
	require.NoError(t, os.WriteFile(path, []byte(brought), 0o600))
	key, err := hostfiles.EnsureInstanceKey(ctx, s, target("g1", 1), b.platform)
	require.NoError(t, err)
	require.Equal(t, brought, string(key))
}

func TestAKeyThatCannotBeReadIsNotAbsent(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	require.NoError(t, os.Mkdir(filepath.Join(b.platform, "instance.key"), 0o700))
	_, err := hostfiles.EnsureInstanceKey(ctx, s, target("g1", 1), b.platform)
	require.Error(t, err)
	require.Empty(t, s.Log())
}

func TestAKeyStaysOutOfTheBase(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	key, err := hostfiles.EnsureInstanceKey(ctx, s, target("g1", 1), b.platform)
	require.NoError(t, err)
	b.write(t, "a", "one")
	p := open(t, s, b.config(target("g1", 1)))
	hostfiles.FoldAt(p, 0)
	_, err = p.SyncDir(ctx)
	require.NoError(t, err)
	pinned, err := hostfiles.Newest(ctx, s, location, []string{"g1"})
	require.NoError(t, err)
	has, err := hostfiles.HasInstanceKey(pinned.Bytes)
	require.NoError(t, err)
	require.True(t, has)
	back := restored(t, s, pinned.ManifestRef, t.TempDir())
	require.Equal(t, string(key), localKey(t, back))
	same(t, b, back)
	_, err = hostfiles.HasInstanceKey([]byte("{}\n"))
	require.ErrorIs(t, err, hostfiles.ErrMalformed)
}
