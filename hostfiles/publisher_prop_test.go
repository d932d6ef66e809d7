package hostfiles_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// machine drives a real directory, a real publisher and a store with faults
// through sessions, and holds them to the guarantees of the package.
type machine struct {
	dir        string // of this sequence
	s          *memstore.Store
	b          box
	p          *hostfiles.Publisher
	session    uint64
	generation string
	foldAt     int
	durable    map[string][]byte // objects, by key
	named      map[string]map[string]bool
	seqs       map[string]uint64
	checked    int // writes of the log
}

var names = []string{"a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "z \xff"}

func (m *machine) path(t *rapid.T) string {
	return filepath.Join(m.b.root, rapid.SampledFrom(names).Draw(t, "path"))
}

// mutate changes the tree; what the system refuses is no change.
func (m *machine) mutate(t *rapid.T) {
	path := m.path(t)
	switch rapid.IntRange(0, 6).Draw(t, "mutation") {
	case 0, 1:
		if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
			_ = os.WriteFile(path, []byte(rapid.SampledFrom([]string{"", "x", "y", "longer"}).Draw(t, "body")), 0o644)
		}
	case 2:
		_ = os.MkdirAll(path, 0o755)
	case 3:
		_ = os.RemoveAll(path)
	case 4:
		_ = os.Rename(path, m.path(t))
	case 5:
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink == 0 {
			_ = os.Chmod(path, os.FileMode(rapid.SampledFrom([]int{0o700, 0o750}).Draw(t, "mode")))
			_ = os.Chtimes(path, time.Time{}, time.Unix(rapid.Int64Range(0, 3).Draw(t, "time"), 0))
		}
	case 6:
		_ = os.Symlink(rapid.SampledFrom([]string{"a", "../d", "/nowhere"}).Draw(t, "target"), path)
	}
}

// disturb gives a few of the next requests a fault.
func (m *machine) disturb(t *rapid.T) {
	faults := rapid.SliceOfN(rapid.SampledFrom([]memstore.Fault{memstore.None, memstore.None, memstore.Lose,
		memstore.LoseAnswer, memstore.Hold, memstore.Replay, memstore.Refuse}), 0, 6).Draw(t, "faults")
	var mu sync.Mutex // files are examined in parallel
	m.s.Inject(func(memstore.Request) memstore.Fault {
		mu.Lock()
		defer mu.Unlock()
		if len(faults) == 0 {
			return memstore.None
		}
		next := faults[0]
		faults = faults[1:]
		return next
	})
}

func (m *machine) quiet() { m.s.Inject(nil) }

// deliver lets one write that was out on the network arrive.
func (m *machine) deliver(t *rapid.T) {
	if held := m.s.Held(); len(held) > 0 {
		_, _ = held[rapid.IntRange(0, len(held)-1).Draw(t, "held")].Deliver()
	}
}

func (m *machine) sync(t *rapid.T) {
	_, err := m.p.SyncDir(ctx)
	if err != nil {
		require.NotErrorIs(t, err, hostfiles.ErrFenced, "nobody else writes this generation")
	}
}

// restart opens another publisher of the same session, as an agent does that
// died and has that session's tail to flush. What its predecessor had sent lands
// first or never.
func (m *machine) restart(t *rapid.T) {
	m.deliverAll()
	require.NoError(t, m.p.Close())
	m.open(t)
}

func (m *machine) deliverAll() {
	for _, held := range m.s.Held() {
		_, _ = held.Deliver()
	}
}

func (m *machine) open(t *rapid.T) {
	m.quiet()
	cfg := m.b.config(target(m.generation, m.session))
	cfg.Parallel = 1
	m.p = open(t, m.s, cfg)
	hostfiles.FoldAt(m.p, m.foldAt)
}

// settle publishes until the store holds the tree, and checks that it does.
func (m *machine) settle(t *rapid.T) hostfiles.Pinned {
	m.quiet()
	_, err := m.p.Flush(ctx)
	require.NoError(t, err)
	pinned, err := hostfiles.Newest(ctx, m.s, location, []string{m.generation})
	require.NoError(t, err)
	dir, err := os.MkdirTemp(m.dir, "restored")
	require.NoError(t, err)
	same(t, m.b, restored(t, m.s, pinned.ManifestRef, dir))
	require.NoError(t, os.RemoveAll(dir))
	return pinned
}

// move begins the next session, by a copy or by a prepared generation.
func (m *machine) move(t *rapid.T) {
	pinned := m.settle(t)
	require.NoError(t, m.p.Close())
	m.deliverAll()
	m.check(t)
	m.session++
	m.generation = fmt.Sprint("g", m.session)
	if rapid.Bool().Draw(t, "prepared") {
		p, err := hostfiles.WritePrepared(ctx, m.s, pinned.Bytes, prepared(m.generation, m.session))
		require.NoError(t, err)
		_, err = hostfiles.OpenPrepared(ctx, m.s, p, target(m.generation, m.session))
		require.NoError(t, err)
	} else {
		_, err := hostfiles.AdmitCopy(ctx, m.s, pinned.ManifestRef, target(m.generation, m.session))
		require.NoError(t, err)
	}
	m.open(t)
}

// check holds every write that applied since the last check to the guarantees.
func (m *machine) check(t *rapid.T) {
	log := m.s.Log()
	for _, w := range log[m.checked:] {
		if isManifest(w.Key) {
			m.checkManifest(t, w)
			continue
		}
		require.True(t, w.Cond.IsAbsent(), "an object is created, never replaced")
		require.Contains(t, w.Key, "/files/"+m.generation+"/objects/")
		require.True(t, strings.HasSuffix(w.Key, w.SHA256), "an object holds what its name says")
		m.durable[w.Key] = w.Body
	}
	m.checked = len(log)
}

func (m *machine) checkManifest(t *rapid.T, w memstore.Write) {
	require.Equal(t, hostfiles.ManifestKey(location, m.generation), w.Key)
	got, err := record.Decode[hostfiles.Manifest](w.Body)
	require.NoError(t, err)
	last, before := m.seqs[w.Key], m.named[w.Key]
	if before == nil {
		require.True(t, w.Cond.IsAbsent())
		if got.From != nil {
			before = m.named[got.From.Key]
		}
	} else {
		_, match := w.Cond.ETag()
		require.True(t, match)
		require.Greater(t, got.Seq, last, "the sequence only grows")
	}
	named := m.objects(t, got)
	for key := range named {
		require.Contains(t, m.durable, key, "named and not there")
		if !before[key] {
			require.Contains(t, key, "/files/"+m.generation+"/", "another session's object that nobody named")
		}
	}
	m.seqs[w.Key], m.named[w.Key] = got.Seq, named
}

// objects returns every object that a manifest and its base name.
func (m *machine) objects(t *rapid.T, got hostfiles.Manifest) map[string]bool {
	named := map[string]bool{}
	list := slices.Clone(got.Changes)
	if got.Base != nil {
		named[got.Base.Key] = true
		require.Contains(t, m.durable, got.Base.Key)
		_, lines, _ := strings.Cut(string(m.durable[got.Base.Key]), "\n")
		for line := range strings.Lines(lines) {
			e, err := record.Decode[hostfiles.Entry]([]byte(line))
			require.NoError(t, err)
			list = append(list, e)
		}
	}
	for _, e := range list {
		if e.Object != "" {
			named[e.Object] = true
		}
	}
	return named
}

func TestEverySequenceKeepsTheGuarantees(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		run, err := os.MkdirTemp(dir, "run")
		require.NoError(t, err)
		m := &machine{dir: run, s: memstore.New(), b: newBox(t, run), session: 1, generation: "g1",
			foldAt:  rapid.IntRange(0, 4).Draw(t, "fold at"),
			durable: map[string][]byte{}, named: map[string]map[string]bool{}, seqs: map[string]uint64{}}
		m.open(t)
		t.Repeat(map[string]func(*rapid.T){
			"mutate":  m.mutate,
			"disturb": m.disturb,
			"deliver": m.deliver,
			"sync":    m.sync,
			"restart": m.restart,
			"move":    m.move,
			"":        m.check,
		})
		m.settle(t)
		m.check(t)
		require.NoError(t, m.p.Close())
		require.NoError(t, os.RemoveAll(run))
	})
}

// story is one host's life in the store: two publications with a fold, and a
// move. It stops at the first error.
func story(s *memstore.Store, b box) error {
	p, err := hostfiles.New(ctx, s, b.config(target("g1", 1)))
	if err != nil {
		return err
	}
	defer p.Close()
	if _, err := p.SyncDir(ctx); err != nil {
		return err
	}
	hostfiles.FoldAt(p, 0)
	if err := os.WriteFile(filepath.Join(b.root, "b"), []byte("two"), 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(b.root, "gone")); err != nil {
		return err
	}
	_, err = p.Flush(ctx)
	return err
}

func TestACrashAtEveryRequestIsRecovered(t *testing.T) {
	for _, fault := range []memstore.Fault{memstore.Lose, memstore.LoseAnswer, memstore.Hold} {
		finished := false
		for n := 0; !finished; n++ {
			s := memstore.New()
			b := newBox(t, t.TempDir())
			b.write(t, "a", "one")
			b.write(t, "gone", "for now")
			var count atomic.Int64 // files are examined in parallel
			s.Inject(func(memstore.Request) memstore.Fault {
				switch now := int(count.Add(1)); {
				case now <= n:
					return memstore.None
				case now == n+1:
					return fault
				}
				return memstore.Lose
			})
			finished = story(s, b) == nil
			s.Inject(nil)

			// What the crash left is a whole tree, or nothing yet.
			pinned, err := hostfiles.Newest(ctx, s, location, []string{"g1"})
			if err == nil {
				got := restored(t, s, pinned.ManifestRef, t.TempDir())
				require.Contains(t, []string{"a gone", "a b"}, strings.Join(filesIn(t, got), " "))
			} else {
				require.ErrorIs(t, err, hostfiles.ErrNoManifest)
			}

			held := s.Held()
			require.NoError(t, story(s, b))
			for _, late := range held {
				if _, err := late.Deliver(); isManifest(late.Key) {
					require.ErrorIs(t, err, objstore.ErrConflict)
				}
			}
			same(t, b, restored(t, s, current(t, s, "g1"), t.TempDir()))
		}
	}
}

func filesIn(t *testing.T, b box) (names []string) {
	t.Helper()
	list, err := os.ReadDir(b.root)
	require.NoError(t, err)
	for _, d := range list {
		names = append(names, d.Name())
	}
	return names
}
