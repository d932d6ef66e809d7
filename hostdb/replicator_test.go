package hostdb_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

func digestOf(b []byte) string { return record.Digest(b) }

// A prefix with only an image makes Litestream begin again at TXID 1, with every
// error nil; so nothing opens it.
func TestAnImageWithoutAnAnchorIsNeverOpened(t *testing.T) {
	s := memstore.New()
	source(t, s, "g")
	b := newBox(t, s)
	set := b.selected(hostdb.Link{Generation: "g"})
	built, cfg := b.prepare(set, "p")
	anchor := built.Objects[len(built.Objects)-1]
	for v, err := range s.ListVersions(t.Context(), anchor.Key) {
		require.NoError(t, err)
		require.NoError(t, s.DeleteVersion(t.Context(), anchor.Key, v.VersionID))
	}
	_, err := hostdb.Open(t.Context(), s, cfg)
	require.ErrorIs(t, err, hostdb.ErrBroken)
	cfg.Base, cfg.BaseSHA256 = 0, ""
	_, err = hostdb.Open(t.Context(), s, cfg)
	require.ErrorIs(t, err, hostdb.ErrFenced)
}

// After the opening of P the levels above grow from the anchor on, and every
// position can be restored, from level 0 and from compacted files.
func TestAnOpenedPCompactsFromItsAnchor(t *testing.T) {
	for _, rows := range []int{0, 4} { // N = 1 and more
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			s := memstore.New()
			b := newBox(t, s)
			r := b.bootstrap("g")
			if rows > 0 {
				a := localApp(t, b.path())
				a.exec(createNotes)
				for i := range rows {
					a.insert(fmt.Sprint(i))
					durable(t, r)
				}
				a.end()
			}
			n := durable(t, r)
			b = newBox(t, s)
			_, cfg := b.prepare(b.selected(hostdb.Link{Generation: "g", StopAt: n}), "p")
			r = b.open(cfg)
			a := localApp(t, b.path())
			a.exec(createNotes)
			var want []string
			for i := range rows {
				want = append(want, fmt.Sprint(i))
			}
			positions := map[uint64]int{}
			for i := range 12 {
				want = append(want, fmt.Sprintf("p%d", i))
				a.insert(want[len(want)-1])
				positions[durable(t, r)] = len(want)
				if i%3 == 2 {
					require.NoError(t, r.Compact(t.Context(), 1))
				}
				if i%6 == 5 {
					require.NoError(t, r.Compact(t.Context(), 2))
				}
				if i == 9 {
					require.NoError(t, r.Compact(t.Context(), 9))
				}
			}
			for txid, rows := range positions {
				path := filepath.Join(t.TempDir(), "cut.db")
				set := b.selected(hostdb.Link{Generation: "p", StopAt: txid})
				require.Empty(t, set.Gap)
				_, err := hostdb.Restore(t.Context(), s, set, path, nil)
				require.NoError(t, err)
				require.Equal(t, want[:rows], notes(t, path))
			}
			local, err := os.ReadDir(filepath.Join(cfg.MetaDir, "ltx", "0"))
			require.NoError(t, err)
			require.Less(t, len(local), 5, "what was compacted is gone from the disk")
			require.LessOrEqual(t, len(b.selected(hostdb.Link{Generation: "p"}).Objects), 3)
		})
	}
}

func TestTheFirstUploadOfPHoldsOnlyWhatChanged(t *testing.T) {
	s := memstore.New()
	source(t, s, "g")
	b := newBox(t, s)
	set := b.selected(hostdb.Link{Generation: "g"})
	built, cfg := b.prepare(set, "p")
	r := b.open(cfg)
	before := len(s.Log())
	require.Equal(t, built.SnapshotTXID+1, durable(t, r))
	require.Len(t, s.Log(), before+1)
	require.Less(t, s.Log()[before].Size, int64(100_000), "the image is %d bytes", built.Objects[0].Size)
	require.Equal(t, []string{"one", "two", "three", "four", "five"}, b.restored("p"))
}

func TestPIsOpenedOnlyOverItsOwnDatabase(t *testing.T) {
	s := memstore.New()
	source(t, s, "g")
	b := newBox(t, s)
	_, cfg := b.prepare(b.selected(hostdb.Link{Generation: "g"}), "p")
	for _, digest := range []string{"", strings.Repeat("0", 64)} {
		other := cfg
		other.BaseSHA256 = digest
		_, err := hostdb.Open(t.Context(), s, other)
		require.ErrorIs(t, err, hostdb.ErrNotFresh)
	}

	a := localApp(t, b.path()) // somebody wrote before the replicator was open
	a.insert("unseen")
	a.stop()
	_, err := hostdb.Open(t.Context(), s, cfg)
	require.ErrorIs(t, err, hostdb.ErrNotFresh)

	require.NoError(t, os.Remove(b.path()))
	_, err = hostdb.Open(t.Context(), s, cfg)
	require.ErrorIs(t, err, hostdb.ErrNotFresh)
}

func TestADatabaseIsNeverCreatedUnasked(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	_, err := hostdb.Open(t.Context(), s, b.config("g"))
	require.ErrorIs(t, err, hostdb.ErrNotFresh)
	require.NoFileExists(t, b.path())

	require.NoError(t, os.WriteFile(b.path(), []byte("an old database lying there"), 0o600))
	cfg := b.config("g")
	cfg.Empty = true
	_, err = hostdb.Open(t.Context(), s, cfg)
	require.ErrorIs(t, err, hostdb.ErrNotFresh)
}

// Commits that no replicator saw, in a WAL that was restarted since: its old
// frames still lie where the last upload ended, so Litestream alone goes on from
// there and misses the pages in between. The next open uploads a full image.
func TestCommitsMadeWhileClosedAreFound(t *testing.T) {
	for _, checkpoint := range []string{"TRUNCATE", "RESTART", "PASSIVE"} {
		t.Run(checkpoint, func(t *testing.T) {
			s := memstore.New()
			b := newBox(t, s)
			r := b.bootstrap("g")
			a := startApp(t, b.path())
			a.exec(createNotes)
			a.insert(strings.Repeat("a", 40_000)) // pages of its own
			a.insert("seen")
			durable(t, r)
			require.NoError(t, r.Close())

			unseen := strings.Repeat("b", 40_000)
			a.exec("UPDATE notes SET body = '" + unseen + "' WHERE id = 1")
			a.exec("PRAGMA wal_checkpoint(" + checkpoint + ")")
			a.insert("unseen")
			a.end()

			r = b.open(b.config("g"))
			a = startApp(t, b.path())
			a.insert("seen again")
			durable(t, r)
			require.Equal(t, []string{unseen, "seen", "unseen", "seen again"}, b.restored("g"))
		})
	}
}

// image copies what a crash of the process would leave, while nobody writes.
func (b box) image(generation string) box {
	b.t.Helper()
	crashed := newBox(b.t, b.store)
	require.NoError(b.t, os.CopyFS(filepath.Join(crashed.dir, "meta-"+generation), os.DirFS(filepath.Join(b.dir, "meta-"+generation))))
	for _, suffix := range []string{"", "-wal"} {
		body, err := os.ReadFile(b.path() + suffix)
		require.NoError(b.t, err)
		require.NoError(b.t, os.WriteFile(crashed.path()+suffix, body, 0o600))
	}
	return crashed
}

// A box whose agent died finishes its own session: the tail that was committed
// and not uploaded is flushed to its generation.
func TestACrashedSessionFlushesItsTail(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	r := b.bootstrap("g")
	a := startApp(t, b.path())
	a.exec(createNotes)
	a.insert("uploaded")
	durable(t, r)
	s.Inject(func(memstore.Request) memstore.Fault { return memstore.Lose })
	a.insert("only in a local file")
	_, err := r.Durable(t.Context())
	require.ErrorIs(t, err, memstore.ErrInjected)
	a.insert("only in the WAL")
	a.end()
	crashed := b.image("g")
	s.Inject(nil)

	r = crashed.open(crashed.config("g"))
	n, err := r.FlushFinal(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, n, crashed.selected(hostdb.Link{Generation: "g"}).MaxTXID)
	require.Equal(t, []string{"uploaded", "only in a local file", "only in the WAL"}, crashed.restored("g"))
}

// The last upload before a crash is still under way when the session opens again
// over a WAL that was restarted, and lands just before the next one. So the file
// goes up as it was written, before it loses its place in the WAL.
func TestALateUploadOfTheSameSessionDoesNotFenceIt(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	r := b.bootstrap("g")
	a := localApp(t, b.path())
	a.exec(createNotes)
	durable(t, r)
	a.insert("late")
	s.Inject(memstore.Once(memstore.OpPut, location, memstore.Hold))
	_, err := r.Durable(t.Context())
	require.Error(t, err)
	crashed := b.image("g")
	a = startApp(t, crashed.path())
	a.exec("PRAGMA wal_checkpoint(RESTART)")
	a.insert("unseen")
	a.end()
	late := s.Held()[0]
	s.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpPut {
			_, _ = late.Deliver() // at first it lands, later it is a duplicate
		}
		return memstore.None
	})
	durable(t, crashed.open(crashed.config("g")))
	require.Equal(t, []string{"late", "unseen"}, crashed.restored("g"))
}

func TestACrashedSessionOfPNeedsNoDigestToFlush(t *testing.T) {
	s := memstore.New()
	source(t, s, "g")
	b := newBox(t, s)
	_, cfg := b.prepare(b.selected(hostdb.Link{Generation: "g"}), "p")
	b.open(cfg)
	a := localApp(t, b.path())
	a.insert("only in the WAL")
	crashed := b.image("p")
	again := crashed.config("p")
	again.Base = cfg.Base
	r := crashed.open(again)
	_, err := r.FlushFinal(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two", "three", "four", "five", "only in the WAL"}, crashed.restored("p"))
}

func TestAMetaDirectoryServesOneSessionOnly(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	r := b.bootstrap("g")
	durable(t, r)
	require.NoError(t, r.Close())
	for rule, change := range map[string]func(*hostdb.Config){
		"generation": func(c *hostdb.Config) { c.Generation.ID = "g2" },
		"session":    func(c *hostdb.Config) { c.Generation.Session++ },
		"location":   func(c *hostdb.Config) { c.Generation.Location += "x" },
		"base":       func(c *hostdb.Config) { c.Base, c.BaseSHA256 = 1, digestOf(nil) },
	} {
		cfg := b.config("g")
		change(&cfg)
		_, err := hostdb.Open(t.Context(), s, cfg)
		require.ErrorIs(t, err, hostdb.ErrNotFresh, rule)
	}
	cfg := b.config("g")
	cfg.MetaDir = t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(cfg.MetaDir, "ltx", "0"), 0o700))
	_, err := hostdb.Open(t.Context(), s, cfg)
	require.ErrorIs(t, err, hostdb.ErrNotFresh, "state of nobody knows whom")

	cfg.MetaDir = t.TempDir()
	_, err = hostdb.Open(t.Context(), s, cfg)
	require.ErrorIs(t, err, hostdb.ErrFenced, "the generation was written, and this is not the state it was written from")
}

// A second writer of the generation is found by its bytes, and that is final:
// the position is never taken from an object that somebody else put there.
func TestAForeignObjectFencesForGood(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	r := b.bootstrap("g")
	a := localApp(t, b.path())
	a.exec(createNotes)
	n := durable(t, r)
	put(t, s, file{0, n + 1, n + 1}.key("g"))
	a.insert("mine")
	before := len(s.Log())
	for range 3 {
		_, err := r.Durable(t.Context())
		require.ErrorIs(t, err, hostdb.ErrFenced)
		_, err = r.FlushFinal(t.Context())
		require.ErrorIs(t, err, hostdb.ErrFenced)
		a.insert("mine")
	}
	require.ErrorIs(t, r.Run(t.Context()), hostdb.ErrFenced)
	require.Equal(t, n, r.Status().Durable)
	require.ErrorIs(t, r.Close(), hostdb.ErrFenced)
	require.Len(t, s.Log(), before, "nothing more was written")
}

func TestAnUnknownUploadIsSettledByItsBytes(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	r := b.bootstrap("g")
	a := localApp(t, b.path())
	a.exec(createNotes)
	for _, fault := range []memstore.Fault{memstore.LoseAnswer, memstore.Replay} {
		s.Inject(memstore.Once(memstore.OpPut, location, fault))
		a.insert(fmt.Sprint(fault))
		durable(t, r)
	}
	for i, fault := range []memstore.Fault{memstore.Lose, memstore.Hold, memstore.Refuse} {
		s.Inject(memstore.Once(memstore.OpPut, location, fault))
		a.insert(fmt.Sprint(fault))
		_, err := r.Durable(t.Context())
		require.Error(t, err)
		require.NotErrorIs(t, err, hostdb.ErrFenced)
		require.Equal(t, err != nil, r.Status().Err != nil)
		if i == 1 {
			_, err := s.Held()[0].Deliver() // it lands late, before the next attempt
			require.NoError(t, err)
		}
		durable(t, r)
		require.NoError(t, r.Status().Err)
	}
	require.Len(t, b.restored("g"), 5)
}

func TestCheckComesBeforeEachUpload(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	errNot := errors.New("not the executor")
	var verdict error
	cfg := b.config("g")
	cfg.Empty, cfg.Check = true, func() error { return verdict }
	r := b.open(cfg)
	durable(t, r)
	a := localApp(t, b.path())
	a.exec(createNotes)
	before := len(s.Log())
	verdict = errNot
	_, err := r.Durable(t.Context())
	require.ErrorIs(t, err, errNot)
	require.Len(t, s.Log(), before)
	verdict = nil
	durable(t, r)
	require.Greater(t, len(s.Log()), before)
}

func TestFlushFinalIsTheStoppedDatabasesOwnPosition(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	r := b.bootstrap("g")
	a := localApp(t, b.path())
	a.exec(createNotes)
	a.exec(".load 50")
	a.stop()
	s.Inject(memstore.Once(memstore.OpList, location, memstore.Stale))
	_, err := r.FlushFinal(t.Context())
	require.ErrorContains(t, err, "does not end at", "a listing that does not show it proves nothing")
	n, err := r.FlushFinal(t.Context())
	require.NoError(t, err)
	again, err := r.FlushFinal(t.Context())
	require.NoError(t, err)
	require.Equal(t, n, again)
	writes := len(s.Log())
	require.NoError(t, r.Close())
	require.Len(t, s.Log(), writes, "closing adds nothing")
	require.Equal(t, n, b.selected(hostdb.Link{Generation: "g"}).MaxTXID)
	require.Equal(t, notes(t, b.path()), b.restored("g"))

	_, err = r.Durable(t.Context())
	require.ErrorIs(t, err, hostdb.ErrClosed)
	_, err = r.FlushFinal(t.Context())
	require.ErrorIs(t, err, hostdb.ErrClosed)
	require.ErrorIs(t, r.Run(t.Context()), hostdb.ErrClosed)
}

func TestFlushFinalSeesAForeignSuccessor(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	r := b.bootstrap("g")
	n := durable(t, r)
	put(t, s, file{0, n + 1, n + 1}.key("g"))
	_, err := r.FlushFinal(t.Context())
	require.ErrorContains(t, err, "does not end at")
}

func TestCloseSaysWhatItCouldNotUpload(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	r := b.bootstrap("g")
	durable(t, r)
	a := localApp(t, b.path())
	a.exec(createNotes)
	a.stop()
	s.Inject(func(memstore.Request) memstore.Fault { return memstore.Lose })
	err := r.Close()
	require.ErrorIs(t, err, memstore.ErrInjected)
	require.Equal(t, err, r.Close())
}

func TestOfFourWritersAtOnceNoRowIsLost(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	cfg := b.config("g")
	cfg.Empty, cfg.SyncInterval = true, time.Millisecond
	r := b.open(cfg)
	ran := make(chan error, 1)
	go func() { ran <- r.Run(context.WithoutCancel(t.Context())) }()
	a := startApp(t, b.path())
	a.exec(createNotes)
	a.send(".load 300")
	others := startApp(t, b.path())
	for range 20 {
		others.exec("PRAGMA wal_checkpoint(PASSIVE)") // it is held off, or seen
		durable(t, r)
	}
	a.wait()
	others.end()
	a.stop()
	_, err := r.FlushFinal(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.NoError(t, <-ran, "Close ends Run")
	require.Len(t, b.restored("g"), 1200)
	require.Equal(t, notes(t, b.path()), b.restored("g"))
}

func TestAVacuumAndAShrunkDatabaseAreReplicated(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	r := b.bootstrap("g")
	a := localApp(t, b.path())
	a.exec(createNotes)
	for _, sql := range []string{
		"INSERT INTO notes (body) VALUES (hex(randomblob(400000)))", "DELETE FROM notes", "VACUUM",
		"INSERT INTO notes (body) VALUES ('small')", "INSERT INTO notes (body) VALUES (hex(zeroblob(100000)))",
		"DELETE FROM notes WHERE body != 'small'", "VACUUM",
	} {
		a.exec(sql)
		durable(t, r)
	}
	require.Equal(t, []string{"small"}, b.restored("g"))
}

func TestDescriptorsAreOfTheDatabaseAndGoWithClose(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	r := b.bootstrap("g")
	held, err := r.Descriptors()
	require.NoError(t, err)
	files := map[string]int{}
	for _, d := range held {
		files[strings.TrimPrefix(d.Path, b.path())]++
		require.Equal(t, os.Getpid(), d.PID)
		require.NotZero(t, d.Start)
		target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", d.FD))
		require.NoError(t, err)
		require.Equal(t, d.Path, target)
	}
	require.GreaterOrEqual(t, files[""], 2)
	require.GreaterOrEqual(t, files["-wal"], 1)
	require.GreaterOrEqual(t, files["-shm"], 1)
	require.NoError(t, r.Close())
	held, err = r.Descriptors()
	require.NoError(t, err)
	require.Empty(t, held)
}

func TestBadConfigIsRefusedByName(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	for field, change := range map[string]func(*hostdb.Config){
		"Path":       func(c *hostdb.Config) { c.Path = "app.db" },
		"MetaDir":    func(c *hostdb.Config) { c.MetaDir = "" },
		"Check":      func(c *hostdb.Config) { c.Check = nil },
		"Empty":      func(c *hostdb.Config) { c.Base, c.BaseSHA256, c.Empty = 3, digestOf(nil), true },
		"session":    func(c *hostdb.Config) { c.Generation.Session = 0 },
		"generation": func(c *hostdb.Config) { c.Generation.ID = "../other" },
		"location":   func(c *hostdb.Config) { c.Generation.Location = "/" },
	} {
		cfg := b.config("g")
		change(&cfg)
		_, err := hostdb.Open(t.Context(), s, cfg)
		require.ErrorContains(t, err, field)
	}
	_, err := os.Stat(filepath.Join(b.dir, "meta-g"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestPublishingIsOnceAndTheSame(t *testing.T) {
	s := memstore.New()
	require.NoError(t, hostdb.MarkPublished(t.Context(), s, location, "g"))
	require.NoError(t, hostdb.MarkPublished(t.Context(), s, location, "g"))
	require.Len(t, s.Log(), 1)
	require.Error(t, hostdb.MarkPublished(t.Context(), s, location, ".."))
	_, err := s.Put(t.Context(), location+"/db/h/generation.json", []byte("{}\n"), objstore.IfAbsent())
	require.NoError(t, err)
	require.ErrorIs(t, hostdb.MarkPublished(t.Context(), s, location, "h"), objstore.ErrConflict)
}
