package hostfiles_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// published returns a store with one generation, g1 of session 1, and its pin.
func published(t *testing.T) (*memstore.Store, box, hostfiles.Pinned) {
	t.Helper()
	s := memstore.New()
	b := newBox(t, t.TempDir())
	b.write(t, "d/a", "one")
	publish(t, s, b, target("g1", 1))
	pinned, err := hostfiles.Newest(ctx, s, location, []string{"g1"})
	require.NoError(t, err)
	return s, b, pinned
}

func prepared(generation string, stamp uint64) hostfiles.Target {
	return hostfiles.Target{Location: location, Generation: generation, Stamp: stamp}
}

func TestACopyNamesTheObjectsWhereTheyAre(t *testing.T) {
	s, b, pinned := published(t)
	before := s.Requests()
	ref, err := hostfiles.AdmitCopy(ctx, s, pinned.ManifestRef, target("g2", 2))
	require.NoError(t, err)
	require.Equal(t, before[memstore.OpGet]+1, s.Requests()[memstore.OpGet])
	require.Equal(t, before[memstore.OpPut]+1, s.Requests()[memstore.OpPut])

	m, err := hostfiles.Read(ctx, s, ref)
	require.NoError(t, err)
	require.Equal(t, uint64(1), m.Seq)
	require.Equal(t, &pinned.ManifestRef, m.From)
	require.Equal(t, entries(t, s, pinned.ManifestRef), entries(t, s, ref))
	same(t, b, restored(t, s, ref, t.TempDir()))

	again, err := hostfiles.AdmitCopy(ctx, s, pinned.ManifestRef, target("g2", 2))
	require.NoError(t, err)
	require.Equal(t, ref, again)
	_, err = hostfiles.AdmitCopy(ctx, s, pinned.ManifestRef, target("g2", 3))
	require.ErrorIs(t, err, hostfiles.ErrFenced, "the generation is another session's")
}

func TestAnEmptyPinBeginsAnEmptyGeneration(t *testing.T) {
	s := memstore.New()
	ref, err := hostfiles.AdmitCopy(ctx, s, hostfiles.ManifestRef{}, target("g1", 1))
	require.NoError(t, err)
	require.Empty(t, entries(t, s, ref))
	ref, err = hostfiles.WritePrepared(ctx, s, nil, prepared("p1", 2))
	require.NoError(t, err)
	require.Empty(t, entries(t, s, ref))
	got := restored(t, s, ref, t.TempDir())
	require.Len(t, tree(t, got.root), 1)
}

func TestACopyRefusesAPinThatIsNotWhatWasCited(t *testing.T) {
	s, b, pinned := published(t)
	stale := pinned.ManifestRef
	b.write(t, "b", "moves the manifest")
	publish(t, s, b, target("g1", 1))
	wrongSeq := current(t, s, "g1")
	wrongSeq.Seq++
	for name, ref := range map[string]hostfiles.ManifestRef{"other bytes": stale, "other sequence": wrongSeq} {
		t.Run(name, func(t *testing.T) {
			_, err := hostfiles.AdmitCopy(ctx, s, ref, target("g2", 2))
			require.ErrorIs(t, err, hostfiles.ErrDigest)
			require.ErrorIs(t, hostfiles.Restore(ctx, s, ref, filepath.Join(t.TempDir(), "f"), t.TempDir()), hostfiles.ErrDigest)
		})
	}
	_, err := hostfiles.AdmitCopy(ctx, s, current(t, s, "g1"),
		hostfiles.Target{Location: "instances/shop.example/inc2", Generation: "g2", Session: 2, Stamp: 2})
	require.ErrorIs(t, err, hostfiles.ErrMalformed, "another incarnation's files")
	_, err = hostfiles.AdmitCopy(ctx, s, current(t, s, "g1"), target("g1", 2))
	require.ErrorIs(t, err, hostfiles.ErrMalformed, "a copy of itself")
	require.Equal(t, 2, puts(s, isManifest))
}

func TestALateSourceManifestChangesNothingInP(t *testing.T) {
	s, b, pinned := published(t)
	p1, err := hostfiles.WritePrepared(ctx, s, pinned.Bytes, prepared("p1", 2))
	require.NoError(t, err)

	b.write(t, "d/a", "a zombie's")
	publish(t, s, b, target("g1", 1))

	again, err := hostfiles.WritePrepared(ctx, s, pinned.Bytes, prepared("p1", 2))
	require.NoError(t, err)
	require.Equal(t, p1, again, "a rebuild writes the same bytes")
	verified, err := hostfiles.VerifyPrepared(ctx, s, pinned.Bytes, prepared("p1", 2))
	require.NoError(t, err)
	require.Equal(t, p1, verified)
	got := restored(t, s, p1, t.TempDir())
	body, err := os.ReadFile(filepath.Join(got.root, "d/a"))
	require.NoError(t, err)
	require.Equal(t, "one", string(body))
}

func TestVerifyPreparedBelievesOnlyThePin(t *testing.T) {
	s, b, pinned := published(t)
	_, err := hostfiles.VerifyPrepared(ctx, s, pinned.Bytes, prepared("p1", 2))
	require.ErrorIs(t, err, hostfiles.ErrNoManifest)
	b.write(t, "d/a", "other bytes at another sequence")
	publish(t, s, b, target("g1", 1))
	other, err := hostfiles.Newest(ctx, s, location, []string{"g1"})
	require.NoError(t, err)
	_, err = hostfiles.WritePrepared(ctx, s, other.Bytes, prepared("p1", 2))
	require.NoError(t, err)
	_, err = hostfiles.VerifyPrepared(ctx, s, pinned.Bytes, prepared("p1", 2))
	require.ErrorIs(t, err, hostfiles.ErrDigest)
	_, err = hostfiles.VerifyPrepared(ctx, s, other.Bytes, prepared("p1", 3))
	require.ErrorIs(t, err, hostfiles.ErrDigest, "built under another stamp")
	_, err = hostfiles.WritePrepared(ctx, s, pinned.Bytes, prepared("p1", 2))
	require.ErrorIs(t, err, hostfiles.ErrFenced)
}

func TestPIsOpenedByItsJournaledDigest(t *testing.T) {
	s, b, pinned := published(t)
	p1, err := hostfiles.WritePrepared(ctx, s, pinned.Bytes, prepared("p1", 2))
	require.NoError(t, err)

	other := p1
	other.SHA256 = record.Digest([]byte("other"))
	_, err = hostfiles.OpenPrepared(ctx, s, other, target("p1", 3))
	require.ErrorIs(t, err, hostfiles.ErrDigest)
	_, err = hostfiles.OpenPrepared(ctx, s, p1, target("p2", 3))
	require.Error(t, err, "another generation")

	opened, err := hostfiles.OpenPrepared(ctx, s, p1, target("p1", 3))
	require.NoError(t, err)
	m, err := hostfiles.Read(ctx, s, opened)
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 3, 3}, []uint64{m.Seq, m.Session, m.Stamp})
	require.Equal(t, p1.SHA256, m.Opened)
	require.Equal(t, &pinned.ManifestRef, m.From)
	again, err := hostfiles.OpenPrepared(ctx, s, p1, target("p1", 3))
	require.NoError(t, err)
	require.Equal(t, opened, again)

	_, err = hostfiles.OpenPrepared(ctx, s, p1, target("p1", 4))
	require.ErrorIs(t, err, hostfiles.ErrFenced, "P is opened once")
	b.write(t, "b", "more")
	publish(t, s, b, target("p1", 3))
	_, err = hostfiles.OpenPrepared(ctx, s, p1, target("p1", 3))
	require.ErrorIs(t, err, hostfiles.ErrFenced, "the session went on")
	_, err = hostfiles.WritePrepared(ctx, s, pinned.Bytes, prepared("p1", 2))
	require.ErrorIs(t, err, hostfiles.ErrFenced, "nobody builds P again")
}

func TestAnOpeningWhoseAnswerWasLostIsRepeatable(t *testing.T) {
	for _, fault := range []memstore.Fault{memstore.Lose, memstore.LoseAnswer, memstore.Hold, memstore.Replay, memstore.Refuse} {
		s, _, pinned := published(t)
		p1, err := hostfiles.WritePrepared(ctx, s, pinned.Bytes, prepared("p1", 2))
		require.NoError(t, err)
		s.Inject(memstore.Once(memstore.OpPut, p1.Key, fault))
		_, err = hostfiles.OpenPrepared(ctx, s, p1, target("p1", 3))
		if err != nil {
			require.NotErrorIs(t, err, hostfiles.ErrFenced)
		}
		for _, held := range s.Held() {
			_, _ = held.Deliver()
		}
		opened, err := hostfiles.OpenPrepared(ctx, s, p1, target("p1", 3))
		require.NoError(t, err)
		require.Equal(t, current(t, s, "p1"), opened)
	}
}

func TestAnOpeningThatLandsLateIsTheSameOpening(t *testing.T) {
	s, _, pinned := published(t)
	p1, err := hostfiles.WritePrepared(ctx, s, pinned.Bytes, prepared("p1", 2))
	require.NoError(t, err)
	s.Inject(memstore.Once(memstore.OpPut, p1.Key, memstore.Hold))
	_, err = hostfiles.OpenPrepared(ctx, s, p1, target("p1", 3))
	require.ErrorIs(t, err, objstore.ErrUnknown)
	s.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpPut { // the first lands just before the second
			s.Inject(nil)
			_, err := s.Held()[0].Deliver()
			require.NoError(t, err)
		}
		return memstore.None
	})
	opened, err := hostfiles.OpenPrepared(ctx, s, p1, target("p1", 3))
	require.NoError(t, err)
	require.Equal(t, current(t, s, "p1"), opened)
}

func TestTheFilesPinIsTheNewestByAdmission(t *testing.T) {
	s, _, pinned := published(t)
	chain := []string{"g3", "g2", "g1"}
	got, err := hostfiles.Newest(ctx, s, location, chain)
	require.NoError(t, err)
	require.Equal(t, pinned, got, "absent ones are passed")

	_, err = hostfiles.AdmitCopy(ctx, s, pinned.ManifestRef, target("g2", 2))
	require.NoError(t, err)
	got, err = hostfiles.Newest(ctx, s, location, chain)
	require.NoError(t, err)
	require.Equal(t, current(t, s, "g2"), got.ManifestRef, "though its sequence is lower")

	s.Inject(func(r memstore.Request) memstore.Fault {
		if r.Key == hostfiles.ManifestKey(location, "g3") {
			return memstore.Lose
		}
		return memstore.None
	})
	_, err = hostfiles.Newest(ctx, s, location, chain)
	require.ErrorIs(t, err, memstore.ErrInjected, "a failed read is not an absence")
	s.Inject(nil)
	putBytes(t, s, hostfiles.ManifestKey(location, "g3"), []byte("{}\n"))
	_, err = hostfiles.Newest(ctx, s, location, chain)
	require.ErrorIs(t, err, hostfiles.ErrMalformed)
	_, err = hostfiles.Newest(ctx, s, location, []string{"g8", "g9"})
	require.ErrorIs(t, err, hostfiles.ErrNoManifest)
	require.NotErrorIs(t, err, objstore.ErrNotFound)
}

func TestFilesPinAndCopyAfterTheirGenerationIsForgotten(t *testing.T) {
	s, b, pinned := published(t)
	from := pinned.ManifestRef
	for session := uint64(2); session < 6; session++ {
		to := target(string(rune('a'+session)), session)
		var err error
		from, err = hostfiles.AdmitCopy(ctx, s, from, to)
		require.NoError(t, err)
	}
	same(t, b, restored(t, s, from, t.TempDir()))
	require.Equal(t, 1, puts(s, isObject))
}
