package hostdb_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superfly/ltx"

	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// source writes a generation of one image and seven transactions, of which the
// fifth is too large for the tail of a prepared generation, and loses its box.
func source(t *testing.T, s objstore.Store, generation string) {
	t.Helper()
	b := newBox(t, s)
	r := b.bootstrap(generation)
	a := localApp(t, b.path())
	a.exec(createNotes)
	durable(t, r)
	for _, body := range []string{"one", "two", "three"} {
		a.insert(body)
		durable(t, r)
	}
	a.exec("CREATE TABLE big (b BLOB)")
	a.exec("INSERT INTO big VALUES (randomblob(5000000))")
	durable(t, r)
	for _, body := range []string{"four", "five"} {
		a.insert(body)
		durable(t, r)
	}
	a.end()
	require.NoError(t, r.Close())
}

func under(s *memstore.Store, prefix string) map[string][]byte {
	out := map[string][]byte{}
	for _, w := range s.Log() {
		if strings.HasPrefix(w.Key, prefix) {
			out[w.Key] = w.Body
		}
	}
	return out
}

func TestABuildIsVerifiedReadAndRestored(t *testing.T) {
	s := memstore.New()
	source(t, s, "g")
	b := newBox(t, s)
	set := b.selected(hostdb.Link{Generation: "g"})
	isBuilt := func(want bool) {
		t.Helper()
		got, err := hostdb.Built(t.Context(), s, location, "p")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	isBuilt(false)
	built, _ := b.prepare(set, "p")
	isBuilt(true)
	require.Equal(t, set.MaxTXID, built.SnapshotTXID)

	verified, err := hostdb.VerifyPrepared(t.Context(), s, location, "p", set)
	require.NoError(t, err)
	require.Equal(t, built, verified)

	matches, err := built.Matches(b.path())
	require.NoError(t, err)
	require.True(t, matches)

	read, err := hostdb.ReadPrepared(t.Context(), s, location, "p", built.InstallSHA256)
	require.NoError(t, err)
	again := filepath.Join(t.TempDir(), "again.db")
	var done, total int64
	require.NoError(t, read.Restore(t.Context(), s, again, func(d, n int64) { done, total = d, n }))
	matches, err = built.Matches(again)
	require.NoError(t, err)
	require.True(t, matches)
	require.Positive(t, total)
	require.Equal(t, total, done)

	read.DatabaseSHA256 = digestOf(nil)
	wrong := filepath.Join(t.TempDir(), "wrong.db")
	require.ErrorIs(t, read.Restore(t.Context(), s, wrong, nil), hostdb.ErrBroken)
	require.NoFileExists(t, wrong)

	own := b.selected(hostdb.Link{Generation: "p"})
	require.Equal(t, len(built.Objects)-1, len(own.Objects), "P is complete without its anchor")
	require.Equal(t, []string{
		"0009/01-01.ltx", "0008/02-02.ltx", "0008/03-03.ltx", "0008/04-04.ltx", "0008/05-05.ltx", "0008/06-06.ltx", "0008/07-09.ltx",
	}, names(own), "copies, and one object for the last and small")
	require.Equal(t, set.MaxTXID, own.MaxTXID)

	other := filepath.Join(t.TempDir(), "other.db")
	sum, err := hostdb.Restore(t.Context(), s, set, other, nil)
	require.NoError(t, err)
	require.Equal(t, built.DatabaseSHA256, sum, "the set and P make the same file")
	require.Equal(t, []string{"one", "two", "three", "four", "five"}, notes(t, other))
}

// A build dies at each of its writes, in each way, and is made again: the same
// objects with the same bytes.
func TestABuildThatDiedAnywhereIsRebuiltToTheSameBytes(t *testing.T) {
	s := memstore.New()
	source(t, s, "g")
	set := newBox(t, s).selected(hostdb.Link{Generation: "g"})
	build := func(s objstore.Store) error {
		b := newBox(t, s)
		require.NoError(t, os.WriteFile(b.path()+".building", []byte("left by a crash"), 0o600))
		_, err := b.builder().BuildPrepared(t.Context(), set, location, "p", b.path())
		if err != nil {
			require.NoFileExists(t, b.path())
		}
		require.NoFileExists(t, b.path()+".building")
		require.NoDirExists(t, b.path()+".building")
		return err
	}
	clean := cloneOf(t, s)
	require.NoError(t, build(clean))
	want := under(clean, location+"/db/p/")
	require.Len(t, want, 10, "6 copies, the tail, the anchor and two records")
	for _, fault := range []memstore.Fault{memstore.Lose, memstore.LoseAnswer, memstore.Hold, memstore.Refuse, memstore.Replay} {
		for n := 1; n <= len(want); n++ {
			s := cloneOf(t, s)
			var writes atomic.Int64
			var hit atomic.Pointer[memstore.Request]
			s.Inject(func(r memstore.Request) memstore.Fault {
				if (r.Op == memstore.OpPut || r.Op == memstore.OpCopy) && writes.Add(1) == int64(n) {
					hit.Store(&r)
					return fault
				}
				return memstore.None
			})
			err := build(s)
			copied := hit.Load().Op == memstore.OpCopy
			switch {
			case copied && fault != memstore.Lose && fault != memstore.LoseAnswer: // a copy has no condition
				require.NoError(t, err)
			case !copied && (fault == memstore.LoseAnswer || fault == memstore.Replay):
				require.NoError(t, err, "the build looks again")
			default:
				require.Error(t, err)
				require.NotErrorIs(t, err, hostdb.ErrBroken)
				_, err := hostdb.VerifyPrepared(t.Context(), s, location, "p", set)
				require.ErrorIs(t, err, hostdb.ErrBroken, "not complete")
			}
			s.Inject(nil)
			require.NoError(t, build(s), "fault %d at write %d", fault, n)
			for _, late := range s.Held() {
				_, err := late.Deliver()
				require.ErrorIs(t, err, objstore.ErrConflict)
			}
			require.Equal(t, want, under(s, location+"/db/p/"), "fault %d at write %d", fault, n)
			_, err = hostdb.VerifyPrepared(t.Context(), s, location, "p", set)
			require.NoError(t, err)
		}
	}
}

func TestTheInstallManifestIsTheLastWriteAndCheckComesBeforeEachStep(t *testing.T) {
	s := memstore.New()
	source(t, s, "g")
	b := newBox(t, s)
	set := b.selected(hostdb.Link{Generation: "g"})
	before := len(s.Log())
	errLost := errors.New("lease lost")
	copies := 6
	for allowed, writes := range []int{0, 1, copies + 3, copies + 4} {
		s := cloneOf(t, s)
		checks := 0
		builder := hostdb.Builder{Store: s, Check: func(context.Context) error {
			if checks++; checks > allowed {
				return errLost
			}
			return nil
		}}
		_, err := builder.BuildPrepared(t.Context(), set, location, "p", b.path())
		if allowed < 3 {
			require.ErrorIs(t, err, errLost)
			require.NoFileExists(t, b.path())
		} else {
			require.NoError(t, err)
		}
		log := s.Log()[before:]
		require.Len(t, log, writes)
		for i, w := range log {
			switch {
			case i == 0:
				require.Equal(t, location+"/db/p/build.json", w.Key)
			case i == copies+1:
				require.Equal(t, file{8, 7, set.MaxTXID}.key("p"), w.Key, "the tail follows the copies")
			case i == copies+2:
				require.Equal(t, file{0, set.MaxTXID, set.MaxTXID}.key("p"), w.Key, "the anchor follows the tail")
			case i == copies+3:
				require.Equal(t, location+"/db/p/install.json", w.Key)
			default:
				require.Regexp(t, "/ltx/000[89]/", w.Key)
			}
		}
	}
}

func TestAnEmptySetBuildsNoDatabase(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	set := hostdb.RecoverySet{Empty: true}
	built, _ := b.prepare(set, "p")
	require.Zero(t, built.SnapshotTXID)
	require.NoFileExists(t, b.path())
	verified, err := hostdb.VerifyPrepared(t.Context(), s, location, "p", set)
	require.NoError(t, err)
	require.Equal(t, built, verified)
	_, err = hostdb.Select(t.Context(), s, location, []hostdb.Link{{Generation: "p"}})
	require.ErrorIs(t, err, hostdb.ErrEmpty)
	require.Error(t, built.Restore(t.Context(), s, b.path(), nil))

	r := b.bootstrap("p")
	require.EqualValues(t, 1, durable(t, r), "the first upload is a full image")
}

func TestASetThatDoesNotSayWhatItIsIsRefused(t *testing.T) {
	s := memstore.New()
	b := newBox(t, s)
	for _, set := range []hostdb.RecoverySet{
		{},
		{Generation: "g", MaxTXID: 3},
		{Empty: true, MaxTXID: 1},
		{Empty: true, Objects: []hostdb.ObjectRef{{Key: "k", ETag: "e"}}},
		{Generation: "g", MaxTXID: 1, Objects: []hostdb.ObjectRef{{Key: "k"}}},
		{Generation: "g", MaxTXID: 1, Objects: []hostdb.ObjectRef{{Key: "k", ETag: "e", Size: -1}}},
		{Generation: "p", MaxTXID: 1, Objects: []hostdb.ObjectRef{{Key: "k", ETag: "e"}}}, // P from itself
	} {
		_, err := b.builder().BuildPrepared(t.Context(), set, location, "p", b.path())
		require.Error(t, err, "%+v", set)
		if set.Generation != "p" {
			_, err = hostdb.Restore(t.Context(), s, set, b.path(), nil)
			require.Error(t, err, "%+v", set)
			_, err = hostdb.VerifyPrepared(t.Context(), s, location, "p", set)
			require.Error(t, err, "%+v", set)
		}
	}
	require.Empty(t, s.Log())
}

// The verifier believes no record and no listing alone: whatever is wrong with
// P, it is not installed.
func TestVerifyRefusesAPThatIsNotExactlyTheBuild(t *testing.T) {
	ctx := t.Context()
	s := memstore.New()
	source(t, s, "g")
	b := newBox(t, s)
	set := b.selected(hostdb.Link{Generation: "g"})
	b.prepare(set, "p")
	good := under(s, location+"/db/p/")
	snapshot, copied, tail := file{9, 1, 1}.key("p"), file{8, 3, 3}.key("p"), file{8, 7, set.MaxTXID}.key("p")
	anchor := file{0, set.MaxTXID, set.MaxTXID}.key("p")
	edit := func(key, from, to string) func(*testing.T, *memstore.Store) {
		return func(t *testing.T, s *memstore.Store) {
			require.Contains(t, string(good[key]), from)
			_, err := s.Put(ctx, key, bytes.Replace(good[key], []byte(from), []byte(to), 1), objstore.Always())
			require.NoError(t, err)
		}
	}
	flip := func(key string, at int) func(*testing.T, *memstore.Store) {
		return func(t *testing.T, s *memstore.Store) {
			b := bytes.Clone(good[key])
			b[(at+len(b))%len(b)] ^= 1
			_, err := s.Put(ctx, key, b, objstore.Always())
			require.NoError(t, err)
		}
	}
	remove := func(key string) func(*testing.T, *memstore.Store) {
		return func(t *testing.T, s *memstore.Store) {
			for v, err := range s.ListVersions(ctx, key) {
				require.NoError(t, err)
				require.NoError(t, s.DeleteVersion(ctx, key, v.VersionID))
			}
		}
	}
	for rule, break_ := range map[string]func(*testing.T, *memstore.Store){
		"no build":             remove(location + "/db/p/build.json"),
		"no install":           remove(location + "/db/p/install.json"),
		"no image":             remove(snapshot),
		"no anchor":            remove(anchor),
		"no copy":              remove(copied),
		"no tail":              remove(tail),
		"image flipped":        flip(snapshot, 300),
		"image header flipped": flip(snapshot, 20),
		"a copy flipped":       flip(copied, -1),
		"a tail flipped":       flip(tail, 150),
		"anchor flipped":       flip(anchor, -1),
		"another mode":         edit(location+"/db/p/build.json", `"mode":"copy"`, `"mode":"Copy"`),
		"another source":       edit(location+"/db/p/build.json", `"source":"g"`, `"source":"h"`),
		"another position":     edit(location+"/db/p/install.json", `"txid":`, `"txid":1`),
		"an anchor that every sync would fail on": func(t *testing.T, s *memstore.Store) {
			dec := ltx.NewDecoder(bytes.NewReader(good[anchor]))
			require.NoError(t, dec.DecodeHeader())
			h := dec.Header()
			h.WALOffset = 0
			var b bytes.Buffer
			enc, err := ltx.NewEncoder(&b)
			require.NoError(t, err)
			require.NoError(t, errors.Join(enc.EncodeHeader(h), enc.Close()))
			_, err = s.Put(ctx, anchor, b.Bytes(), objstore.Always())
			require.NoError(t, err)
			edit(location+"/db/p/install.json", digestOf(good[anchor]), digestOf(b.Bytes()))(t, s)
		},
		"left over": func(t *testing.T, s *memstore.Store) {
			put(t, s, file{0, set.MaxTXID + 1, set.MaxTXID + 1}.key("p"))
		},
	} {
		t.Run(rule, func(t *testing.T) {
			s := memstore.New()
			for key, body := range good {
				_, err := s.Put(ctx, key, body, objstore.IfAbsent())
				require.NoError(t, err)
			}
			_, err := hostdb.VerifyPrepared(ctx, s, location, "p", set)
			require.NoError(t, err)
			break_(t, s)
			_, err = hostdb.VerifyPrepared(ctx, s, location, "p", set)
			require.ErrorIs(t, err, hostdb.ErrBroken)
		})
	}
	other := set
	other.Gap = "another pin"
	_, err := hostdb.VerifyPrepared(ctx, s, location, "p", other)
	require.ErrorIs(t, err, hostdb.ErrBroken)
	s.Inject(func(memstore.Request) memstore.Fault { return memstore.Lose })
	_, err = hostdb.VerifyPrepared(ctx, s, location, "p", set)
	require.ErrorIs(t, err, memstore.ErrInjected)
	require.NotErrorIs(t, err, hostdb.ErrBroken)
	_, err = hostdb.Built(ctx, s, location, "p")
	require.ErrorIs(t, err, memstore.ErrInjected)
	s.Inject(nil)
	_, err = hostdb.ReadPrepared(ctx, s, location, "p", strings.Repeat("0", 64))
	require.ErrorIs(t, err, hostdb.ErrBroken)
}

// The objects are sound and the database in them is not: SQLite says so.
func TestADatabaseThatSQLiteRefusesIsNotBuilt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.db")
	a := localApp(t, path)
	a.exec(createNotes)
	a.exec(".load 100")
	a.end()
	file1, err := os.ReadFile(path)
	require.NoError(t, err)
	clear(file1[len(file1)-4096:]) // a page of the table
	var b bytes.Buffer
	enc, err := ltx.NewEncoder(&b)
	require.NoError(t, err)
	require.NoError(t, enc.EncodeHeader(ltx.Header{
		Version: ltx.Version, Flags: ltx.HeaderFlagNoChecksum, PageSize: 4096, Commit: uint32(len(file1) / 4096), MinTXID: 1, MaxTXID: 1,
	}))
	for pgno := range len(file1) / 4096 {
		require.NoError(t, enc.EncodePage(ltx.PageHeader{Pgno: uint32(pgno + 1)}, file1[pgno*4096:(pgno+1)*4096]))
	}
	require.NoError(t, enc.Close())
	s := memstore.New()
	_, err = s.Put(t.Context(), file{0, 1, 1}.key("g"), b.Bytes(), objstore.IfAbsent())
	require.NoError(t, err)

	box := newBox(t, s)
	_, err = box.builder().BuildPrepared(t.Context(), box.selected(hostdb.Link{Generation: "g"}), location, "p", box.path())
	require.ErrorIs(t, err, hostdb.ErrBroken)
	require.ErrorContains(t, err, "integrity check")
	require.NoFileExists(t, box.path())
	built, err := hostdb.Built(t.Context(), s, location, "p")
	require.NoError(t, err)
	require.False(t, built)
}

func TestMatchesOnlyThePreparedFileWithNothingBesideIt(t *testing.T) {
	s := memstore.New()
	source(t, s, "g")
	b := newBox(t, s)
	built, _ := b.prepare(b.selected(hostdb.Link{Generation: "g"}), "p")
	check := func(want bool) {
		t.Helper()
		got, err := built.Matches(b.path())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	check(true)
	require.NoError(t, os.WriteFile(b.path()+"-wal", []byte("x"), 0o600))
	check(false)
	require.NoError(t, os.Remove(b.path()+"-wal"))
	f, err := os.OpenFile(b.path(), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("x")
	require.NoError(t, errors.Join(err, f.Close()))
	check(false)
	require.NoError(t, os.Remove(b.path()))
	check(false)
}
