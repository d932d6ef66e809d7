package hostfiles_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

var ctx = context.Background()

func putBytes(t failer, s *memstore.Store, key string, body []byte) {
	t.Helper()
	_, err := s.Put(ctx, key, body, objstore.Always())
	require.NoError(t, err)
}

func TestATreeSurvivesWhole(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	b.write(t, "a", "one")
	b.write(t, "deep/er/b", strings.Repeat("two", hostfiles.BlockSize))
	b.write(t, "empty file", "")
	b.write(t, "odd \n%+?#\"\\ü", "three")
	b.write(t, "not utf-8 \xff", "four")
	b.write(t, strings.Repeat("n", 255), "five")
	require.NoError(t, os.MkdirAll(filepath.Join(b.root, "empty dir"), 0o755))
	require.NoError(t, os.Symlink("a", filepath.Join(b.root, "link")))
	require.NoError(t, os.Symlink("../../nowhere", filepath.Join(b.root, "dangling")))
	require.NoError(t, os.Symlink("/etc/\xfe", filepath.Join(b.root, "absolute")))
	require.NoError(t, os.Chmod(filepath.Join(b.root, "a"), os.ModeSetuid|0o751))
	require.NoError(t, os.Chtimes(filepath.Join(b.root, "a"), time.Time{}, time.Unix(-5, 7)))
	require.NoError(t, os.Chmod(filepath.Join(b.root, "empty dir"), 0o555))

	seq := publish(t, s, b, target("g1", 1))
	got := restored(t, s, current(t, s, "g1"), t.TempDir())
	same(t, b, got)
	require.Equal(t, seq, current(t, s, "g1").Seq)

	require.Equal(t, seq, publish(t, s, got, target("g1", 1)), "what was restored is what is published")
}

func TestAnUnchangedTreeCostsNoRequest(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	b.write(t, "d/a", "one")
	p := open(t, s, b.config(target("g1", 1)))
	first, err := p.SyncDir(ctx)
	require.NoError(t, err)
	before := s.Requests()
	again, err := p.SyncDir(ctx)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Equal(t, before, s.Requests())
	require.NoError(t, p.Close())
}

func TestAContentIsUploadedOnce(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	b.write(t, "d/a", "one")
	b.write(t, "d/twin", "one")
	publish(t, s, b, target("g1", 1))
	require.Equal(t, 1, puts(s, isObject), "two files of one content")

	require.NoError(t, os.Chtimes(filepath.Join(b.root, "d/a"), time.Time{}, time.Unix(1, 0)))
	require.NoError(t, os.Chmod(filepath.Join(b.root, "d/twin"), 0o600))
	publish(t, s, b, target("g1", 1))
	require.NoError(t, os.Rename(filepath.Join(b.root, "d"), filepath.Join(b.root, "e")))
	publish(t, s, b, target("g1", 1))
	require.Equal(t, 1, puts(s, isObject), "touched, changed in mode, renamed, by new publishers")

	_, err := hostfiles.AdmitCopy(ctx, s, current(t, s, "g1"), target("g2", 2))
	require.NoError(t, err)
	publish(t, s, b, target("g2", 2))
	require.Equal(t, 1, puts(s, isObject), "in the next session's generation")
	same(t, b, restored(t, s, current(t, s, "g2"), t.TempDir()))
}

func TestADeleteIsATombstoneOverTheBase(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	b.write(t, "d/a", "one")
	p := open(t, s, b.config(target("g1", 1)))
	hostfiles.FoldAt(p, 0)
	_, err := p.SyncDir(ctx)
	require.NoError(t, err)
	hostfiles.FoldAt(p, hostfiles.MaxChanges)
	require.NoError(t, os.RemoveAll(filepath.Join(b.root, "d")))
	_, err = p.SyncDir(ctx)
	require.NoError(t, err)
	got := entries(t, s, current(t, s, "g1"))
	require.Equal(t, hostfiles.KindTombstone, got["files/d/a"].Kind)
	same(t, b, restored(t, s, current(t, s, "g1"), t.TempDir()))
}

func TestAChangeInALargeTreeWritesKilobytes(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	const files = hostfiles.MaxChanges + 100
	for i := range files {
		b.write(t, fmt.Sprintf("d%d/f%d", i%7, i), fmt.Sprint(i%5))
	}
	p := open(t, s, b.config(target("g1", 1)))
	_, err := p.SyncDir(ctx)
	require.NoError(t, err)
	m, err := hostfiles.Read(ctx, s, current(t, s, "g1"))
	require.NoError(t, err)
	require.Equal(t, files+8, m.Base.Entries)
	require.Empty(t, m.Changes)

	written := len(s.Log())
	b.write(t, "d1/new", "another")
	_, err = p.SyncDir(ctx)
	require.NoError(t, err)
	bytes := 0
	for _, w := range s.Log()[written:] {
		bytes += len(w.Body)
	}
	require.Less(t, bytes, 4096)

	for i := range hostfiles.MaxChanges + 1 {
		require.NoError(t, os.Chmod(filepath.Join(b.root, fmt.Sprintf("d%d/f%d", i%7, i)), 0o600))
	}
	_, err = p.SyncDir(ctx)
	require.NoError(t, err)
	folded, err := hostfiles.Read(ctx, s, current(t, s, "g1"))
	require.NoError(t, err)
	require.NotEqual(t, m.Base, folded.Base)
	require.Empty(t, folded.Changes)
	require.NoError(t, p.Close())
	same(t, b, restored(t, s, current(t, s, "g1"), t.TempDir()))
}

func TestLongPathsAreFoldedBeforeTheManifestOutgrowsARecord(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	deep := strings.Repeat(strings.Repeat("\x01", 200)+"/", 14) // every byte is six in JSON
	for i := range 80 {
		b.write(t, fmt.Sprint(deep, i), "x")
	}
	publish(t, s, b, target("g1", 1))
	m, err := hostfiles.Read(ctx, s, current(t, s, "g1"))
	require.NoError(t, err)
	require.NotNil(t, m.Base)
	same(t, b, restored(t, s, current(t, s, "g1"), t.TempDir()))
}

func TestAnUnknownManifestWriteIsSettledWhenItLandsLate(t *testing.T) {
	for _, when := range []string{"before the next turn", "after the next turn"} {
		t.Run(when, func(t *testing.T) {
			s := memstore.New()
			b := newBox(t, t.TempDir())
			p := open(t, s, b.config(target("g1", 1)))
			_, err := p.SyncDir(ctx)
			require.NoError(t, err)

			b.write(t, "a", "late")
			s.Inject(memstore.Once(memstore.OpPut, hostfiles.ManifestKey(location, "g1"), memstore.Hold))
			_, err = p.SyncDir(ctx)
			require.ErrorIs(t, err, objstore.ErrUnknown)
			b.write(t, "a", "later")
			if when == "before the next turn" {
				_, err = s.Held()[0].Deliver()
				require.NoError(t, err)
			}
			seq, err := p.SyncDir(ctx)
			require.NoError(t, err)
			for _, held := range s.Held() {
				_, err = held.Deliver()
				require.ErrorIs(t, err, objstore.ErrConflict)
			}
			require.Equal(t, seq, current(t, s, "g1").Seq)
			same(t, b, restored(t, s, current(t, s, "g1"), t.TempDir()))
		})
	}
}

func TestALateObjectChangesNothing(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	b.write(t, "a", "stalled")
	s.Inject(memstore.Once(memstore.OpPut, location+"/files/g1/objects/", memstore.Hold))
	p := open(t, s, b.config(target("g1", 1)))
	_, err := p.SyncDir(ctx)
	require.ErrorIs(t, err, objstore.ErrUnknown)
	b.write(t, "a", "what counts")
	_, err = p.SyncDir(ctx)
	require.NoError(t, err)
	_, err = s.Held()[0].Deliver()
	require.NoError(t, err)
	same(t, b, restored(t, s, current(t, s, "g1"), t.TempDir()))
}

func TestAStalledUploadThatLandedIsTakenForWhatItIs(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	b.write(t, "a", "once")
	s.Inject(memstore.Once(memstore.OpPut, location+"/files/g1/objects/", memstore.LoseAnswer))
	publish(t, s, b, target("g1", 1))
	require.Equal(t, 1, puts(s, isObject))
}

func TestAnObjectOfOtherBytesUnderTheKeyIsRefused(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	b.write(t, "a", "mine")
	s.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpPut && isObject(r.Key) {
			s.Inject(nil)
			putBytes(t, s, r.Key, []byte("evil"))
		}
		return memstore.None
	})
	p := open(t, s, b.config(target("g1", 1)))
	_, err := p.SyncDir(ctx)
	require.ErrorIs(t, err, objstore.ErrConflict)
	require.Zero(t, puts(s, isManifest))
	_, err = p.SyncDir(ctx)
	require.NoError(t, err, "the next turn's number makes another key")
	same(t, b, restored(t, s, current(t, s, "g1"), t.TempDir()))
}

func TestAManifestThatMovedFencesForGood(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	zombie := open(t, s, b.config(target("g1", 1)))
	_, err := zombie.SyncDir(ctx)
	require.NoError(t, err)
	b.write(t, "a", "other")
	publish(t, s, b, target("g1", 1))
	moved := current(t, s, "g1")

	b.write(t, "b", "zombie's")
	_, err = zombie.SyncDir(ctx)
	require.ErrorIs(t, err, hostfiles.ErrFenced)
	before := s.Requests()
	_, err = zombie.Flush(ctx)
	require.ErrorIs(t, err, hostfiles.ErrFenced)
	require.ErrorIs(t, zombie.Run(ctx), hostfiles.ErrFenced)
	require.Equal(t, before, s.Requests())
	require.Equal(t, moved, current(t, s, "g1"))
}

func TestAWriteRefusedWithoutAnotherWriterDoesNotFence(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	p := open(t, s, b.config(target("g1", 1)))
	for range 2 { // the creation and a replacement
		s.Inject(memstore.Once(memstore.OpPut, hostfiles.ManifestKey(location, "g1"), memstore.Refuse))
		b.write(t, "a", time.Now().String())
		_, err := p.SyncDir(ctx)
		require.ErrorIs(t, err, objstore.ErrConflict)
		_, err = p.SyncDir(ctx)
		require.NoError(t, err)
	}
}

func TestAPublisherIsBoundToItsSession(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	publish(t, s, b, target("g1", 5))
	for _, other := range []hostfiles.Target{target("g1", 4), target("g1", 6),
		{Location: location, Generation: "g1", Session: 5, Stamp: 6}} {
		_, err := hostfiles.New(ctx, s, b.config(other))
		require.ErrorIs(t, err, hostfiles.ErrFenced)
	}
	_, err := hostfiles.WritePrepared(ctx, s, nil, hostfiles.Target{Location: location, Generation: "p", Stamp: 7})
	require.NoError(t, err)
	_, err = hostfiles.New(ctx, s, b.config(target("p", 7)))
	require.ErrorIs(t, err, hostfiles.ErrFenced, "a prepared generation that was not opened")
}

func TestNewRefusesABadConfig(t *testing.T) {
	b := newBox(t, t.TempDir())
	for name, change := range map[string]func(*hostfiles.Config){
		"location up":       func(c *hostfiles.Config) { c.Target.Location = "instances/../x" },
		"location absolute": func(c *hostfiles.Config) { c.Target.Location = "/instances/x" },
		"location files":    func(c *hostfiles.Config) { c.Target.Location = "instances/files" },
		"no location":       func(c *hostfiles.Config) { c.Target.Location = "" },
		"long location":     func(c *hostfiles.Config) { c.Target.Location = strings.Repeat("a", 600) },
		"no generation":     func(c *hostfiles.Config) { c.Target.Generation = "" },
		"generation path":   func(c *hostfiles.Config) { c.Target.Generation = "a/b" },
		"no session":        func(c *hostfiles.Config) { c.Target.Session = 0 },
		"old stamp":         func(c *hostfiles.Config) { c.Target.Stamp = 0 },
		"durability":        func(c *hostfiles.Config) { c.Durability = "sometimes" },
		"interval":          func(c *hostfiles.Config) { c.Interval = -1 },
		"no root":           func(c *hostfiles.Config) { c.Root += "x" },
		"no platform":       func(c *hostfiles.Config) { c.Platform = "" },
		"platform in root":  func(c *hostfiles.Config) { c.Platform = filepath.Join(c.Root, "platform") },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := b.config(target("g1", 1))
			change(&cfg)
			s := memstore.New()
			_, err := hostfiles.New(ctx, s, cfg)
			require.Error(t, err)
			require.Empty(t, s.Requests())
		})
	}
}

func TestNothingIsWrittenWithoutAuthority(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	b.write(t, "a", "one")
	gone := errors.New("the claim names another box")
	cfg := b.config(target("g1", 1))
	allowed, asked := 0, 0
	cfg.Check = func(context.Context) error {
		asked++
		if asked > allowed {
			return gone
		}
		return nil
	}
	p := open(t, s, cfg)
	for allowed = range 2 { // none, and the object's but not the manifest's
		asked = 0
		_, err := p.SyncDir(ctx)
		require.ErrorIs(t, err, gone)
		require.Zero(t, puts(s, isManifest))
		require.Equal(t, allowed, puts(s, isObject))
	}
	allowed, asked = 10, 0
	_, err := p.SyncDir(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, puts(s, isObject), "the object of the failed turn is used")
}

func TestWhatIsNotAFileIsSkippedLoudly(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	b.write(t, "small", "ok")
	b.write(t, "large", "too large")
	require.NoError(t, syscall.Mkfifo(filepath.Join(b.root, "pipe"), 0o600))
	var log bytes.Buffer
	cfg := b.config(target("g1", 1))
	cfg.MaxFile, cfg.Logger = 5, textLogger(&log)
	p := open(t, s, cfg)
	seq, err := p.SyncDir(ctx)
	require.NoError(t, err)
	got := entries(t, s, current(t, s, "g1"))
	require.Equal(t, "a pipe", got["files/pipe"].Skipped)
	require.Equal(t, "over the size limit", got["files/large"].Skipped)
	require.Contains(t, log.String(), "files/pipe")
	again, err := p.SyncDir(ctx)
	require.NoError(t, err)
	require.Equal(t, seq, again, "said once")

	b.write(t, "small", "grew over the limit")
	_, err = p.SyncDir(ctx)
	require.NoError(t, err)
	require.Greater(t, entries(t, s, current(t, s, "g1"))["files/small"].Seq, seq)
	back := restored(t, s, current(t, s, "g1"), t.TempDir())
	body, err := os.ReadFile(filepath.Join(back.root, "small"))
	require.NoError(t, err)
	require.Equal(t, "ok", string(body), "the last kept content stays")
	require.NoFileExists(t, filepath.Join(back.root, "large"))
	require.NoFileExists(t, filepath.Join(back.root, "pipe"))
}

func TestALostRootIsNotADeletedTree(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	b.write(t, "a", "one")
	p := open(t, s, b.config(target("g1", 1)))
	_, err := p.SyncDir(ctx)
	require.NoError(t, err)
	before := current(t, s, "g1")
	require.NoError(t, os.Rename(b.root, b.root+".old"))
	_, err = p.SyncDir(ctx)
	require.Error(t, err)
	require.NoError(t, os.Mkdir(b.root, 0o755))
	_, err = p.SyncDir(ctx)
	require.ErrorContains(t, err, "another directory")
	require.Equal(t, before, current(t, s, "g1"))
}

// meddler changes a file whenever its content is about to be uploaded. Like a
// real client it does not say that it was the reader that failed.
type meddler struct {
	*memstore.Store
	meddle func(key string)
}

func (m meddler) PutReader(ctx context.Context, key string, r io.ReadSeeker, size int64, cond objstore.Condition) (objstore.Info, error) {
	m.meddle(key)
	info, err := m.Store.PutReader(ctx, key, r, size, cond)
	if err != nil {
		err = objstore.ErrUnknown
	}
	return info, err
}

func TestAFileThatNeverHoldsStillIsTorn(t *testing.T) {
	b := newBox(t, t.TempDir())
	path := filepath.Join(b.root, "busy")
	b.write(t, "busy", strings.Repeat("x", 3*hostfiles.BlockSize))
	writes := 0
	s := meddler{memstore.New(), func(string) {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		require.NoError(t, err)
		writes++
		_, err = file.WriteAt(fmt.Append(nil, writes), 0)
		require.NoError(t, errors.Join(err, file.Close()))
	}}
	p := open(t, s, b.config(target("g1", 1)))
	_, err := p.SyncDir(ctx)
	require.NoError(t, err)
	ref := current(t, s, "g1")
	require.True(t, entries(t, s, ref)["files/busy"].Torn)
	restored(t, s, ref, t.TempDir()) // the object is what its name says

	_, err = p.Flush(ctx)
	require.ErrorIs(t, err, hostfiles.ErrTorn, "something still writes")
	names, err := os.ReadDir(b.platform)
	require.NoError(t, err)
	require.Empty(t, names)

	s.meddle = func(string) {}
	seq := publish(t, s, b, target("g1", 1))
	require.Greater(t, seq, ref.Seq)
	same(t, b, restored(t, s, current(t, s, "g1"), t.TempDir()))
}

func TestAChangeThatLeavesSizeAndTimeAloneIsFound(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	path := filepath.Join(b.root, "a")
	b.write(t, "a", "one")
	info, err := os.Stat(path)
	require.NoError(t, err)
	p := open(t, s, b.config(target("g1", 1)))
	_, err = p.SyncDir(ctx)
	require.NoError(t, err)
	b.write(t, "a", "two")
	require.NoError(t, os.Chtimes(path, time.Time{}, info.ModTime()))
	_, err = p.SyncDir(ctx)
	require.NoError(t, err)
	same(t, b, restored(t, s, current(t, s, "g1"), t.TempDir()))
}

func TestAClosedPublisherWritesNothing(t *testing.T) {
	s := memstore.New()
	b := newBox(t, t.TempDir())
	p := open(t, s, b.config(target("g1", 1)))
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	_, err := p.SyncDir(ctx)
	require.ErrorIs(t, err, hostfiles.ErrClosed)
	require.ErrorIs(t, p.Run(ctx), hostfiles.ErrClosed)
	require.Empty(t, s.Log())
}

func TestRunPublishesItemsAtOnceAndFilesEveryInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		b := newBox(t, t.TempDir())
		p := open(t, s, b.config(target("g1", 1)))
		runCtx, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- p.Run(runCtx) }()
		synctest.Wait()
		require.Equal(t, 1, puts(s, isManifest), "a whole scan at the start")

		b.write(t, "a", "one")
		require.NoError(t, os.WriteFile(filepath.Join(b.platform, "wake.json"), []byte("{}"), 0o600))
		time.Sleep(2 * time.Second)
		got := entries(t, s, current(t, s, "g1"))
		require.Contains(t, got, hostfiles.WakeState)
		require.NotContains(t, got, "files/a")

		time.Sleep(15 * time.Minute)
		require.Contains(t, entries(t, s, current(t, s, "g1")), "files/a")
		stop()
		require.NoError(t, <-done)
		require.NoError(t, p.Close())
	})
}

func TestRunOutlivesAStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		b := newBox(t, t.TempDir())
		cfg := b.config(target("g1", 1))
		cfg.Durability, cfg.Logger = hostfiles.Continuous, textLogger(io.Discard)
		p := open(t, s, cfg)
		s.Inject(func(memstore.Request) memstore.Fault { return memstore.Lose })
		runCtx, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- p.Run(runCtx) }()
		time.Sleep(time.Hour)
		require.Less(t, s.Requests()[memstore.OpPut], 100, "it backs off")
		s.Inject(nil)
		b.write(t, "a", "one")
		time.Sleep(2 * time.Minute)
		same(t, b, restored(t, s, current(t, s, "g1"), t.TempDir()))
		b.write(t, "a", "two")
		time.Sleep(2 * time.Second)
		same(t, b, restored(t, s, current(t, s, "g1"), t.TempDir()))
		stop()
		require.NoError(t, <-done)
		require.NoError(t, p.Close())
	})
}
