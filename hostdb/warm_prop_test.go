package hostdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superfly/ltx"
	"pgregory.net/rapid"

	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// transactions are the level-0 bodies of a real session that writes, grows,
// shrinks by VACUUM and grows again.
func transactions(t *testing.T) (bodies [][]byte) {
	s := memstore.New()
	b := newBox(t, s)
	r := b.bootstrap("g")
	a := localApp(t, b.path())
	for _, sql := range []string{
		createNotes, "INSERT INTO notes (body) VALUES ('one')", "CREATE TABLE big (b BLOB)",
		"INSERT INTO big VALUES (randomblob(300000))", ".load 20", "UPDATE notes SET body = 'two' WHERE id % 7 = 0",
		"DELETE FROM big", "VACUUM", "INSERT INTO notes (body) VALUES ('three')", "INSERT INTO big VALUES (randomblob(4300000))", // more than the tail of a prepared generation

		"UPDATE notes SET body = hex(randomblob(300)) WHERE id % 3 = 0", "DELETE FROM notes WHERE id % 2 = 0", "VACUUM",
		"INSERT INTO notes (body) VALUES ('four')", "INSERT INTO big VALUES (randomblob(400000))", "DROP TABLE big", "VACUUM",
		".load 5", "INSERT INTO notes (body) VALUES ('five')", "UPDATE notes SET body = 'six' WHERE id % 5 = 0",
	} {
		a.exec(sql)
		durable(t, r)
	}
	a.end()
	require.NoError(t, r.Close())
	for _, w := range s.Log() {
		bodies = append(bodies, w.Body)
	}
	return bodies
}

// merged is one object with what the transactions low to high changed. A forged
// one lacks every third page.
func merged(t require.TestingT, bodies [][]byte, low, high int, forged bool) []byte {
	var in []io.Reader
	for _, b := range bodies[low-1 : high] {
		in = append(in, bytes.NewReader(b))
	}
	var out bytes.Buffer
	c, err := ltx.NewCompactor(&out, in)
	require.NoError(t, err)
	c.HeaderFlags = ltx.HeaderFlagNoChecksum
	require.NoError(t, c.Compact(ctx))
	if !forged {
		return out.Bytes()
	}
	dec := ltx.NewDecoder(bytes.NewReader(out.Bytes()))
	require.NoError(t, dec.DecodeHeader())
	var less bytes.Buffer
	enc, err := ltx.NewEncoder(&less)
	require.NoError(t, err)
	require.NoError(t, enc.EncodeHeader(dec.Header()))
	for data, page := make([]byte, dec.Header().PageSize), (ltx.PageHeader{}); dec.DecodePage(&page, data) == nil; {
		if page.Pgno%3 != 2 {
			require.NoError(t, enc.EncodePage(ltx.PageHeader{Pgno: page.Pgno}, data))
		}
	}
	require.NoError(t, enc.Close())
	return less.Bytes()
}

// warming is a target that warms, is interrupted, damaged and built from.
type warming struct {
	*rapid.T
	s      *memstore.Store
	bodies [][]byte
	top    int    // the newest transaction in the store
	dir    string // of all that is local
	record []byte // of an earlier warmth
	builds int
}

func (w *warming) warm() string { return filepath.Join(w.dir, "warm") }

// pin is a set as a worker would pin it now, or cut shorter.
func (w *warming) pin() hostdb.RecoverySet {
	link := hostdb.Link{Generation: "g"}
	if rapid.IntRange(0, 3).Draw(w.T, "cut") == 0 {
		link.StopAt = uint64(rapid.IntRange(1, w.top).Draw(w.T, "stop"))
	}
	set, err := hostdb.Select(ctx, w.s, location, []hostdb.Link{link})
	require.NoError(w, err)
	return set
}

func (w *warming) upload() {
	for range rapid.IntRange(1, 3).Draw(w.T, "transactions") {
		if w.top < len(w.bodies) {
			w.top++
			w.put(0, w.top, w.top, w.bodies[w.top-1])
		}
	}
}

func (w *warming) put(level, low, high int, body []byte) {
	_, err := w.s.Put(ctx, file{level, uint64(low), uint64(high)}.key("g"), body, objstore.IfAbsent())
	if !errors.Is(err, objstore.ErrConflict) {
		require.NoError(w, err)
	}
}

func (w *warming) compact() {
	low := rapid.IntRange(1, w.top).Draw(w.T, "low")
	high := rapid.IntRange(low, w.top).Draw(w.T, "high")
	level := rapid.IntRange(1, 3).Draw(w.T, "level")
	forged := low > 1 && rapid.IntRange(0, 3).Draw(w.T, "forged") == 0
	w.put(level, low, high, merged(w, w.bodies, low, high, forged))
}

// keep warms, with or without a store that fails in the middle.
func (w *warming) keep() {
	set := w.pin()
	if fail := rapid.IntRange(-20, 8).Draw(w.T, "fail"); fail > 0 {
		var mu sync.Mutex
		w.s.Inject(func(r memstore.Request) memstore.Fault {
			mu.Lock()
			defer mu.Unlock()
			if fail--; fail == 0 && r.Op == memstore.OpGet {
				return memstore.Lose
			}
			return memstore.None
		})
	}
	got, err := hostdb.Warm(ctx, w.s, set, w.warm())
	w.s.Inject(nil)
	if err != nil {
		return
	}
	require.Equal(w, set.MaxTXID, got.TXID)
	w.sameAs(set, filepath.Join(w.warm(), "base.db"), "")
	w.record, err = os.ReadFile(filepath.Join(w.warm(), "warm.json"))
	require.NoError(w, err)
}

// sameAs compares a file with a plain restore.
func (w *warming) sameAs(set hostdb.RecoverySet, path, digest string) {
	plain := filepath.Join(w.dir, "plain.db")
	defer os.Remove(plain)
	want, err := hostdb.Restore(ctx, w.s, set, plain, nil)
	require.NoError(w, err)
	a, err := os.ReadFile(plain)
	require.NoError(w, err)
	b, err := os.ReadFile(path)
	require.NoError(w, err)
	require.True(w, bytes.Equal(a, b), "the file of %+v is another", set)
	if digest != "" {
		require.Equal(w, want, digest)
	}
}

// damage does to the warm files what a crash or a careless hand can do.
func (w *warming) damage() {
	name := rapid.SampledFrom([]string{"base.db", "base.index", "warm.json"}).Draw(w.T, "file")
	path := filepath.Join(w.warm(), name)
	body, err := os.ReadFile(path)
	if err != nil {
		return
	}
	switch rapid.SampledFrom([]string{"flip", "cut", "remove", "old record", "touch"}).Draw(w.T, "how") {
	case "flip":
		body[rapid.IntRange(0, len(body)-1).Draw(w.T, "at")] ^= 1
		require.NoError(w, os.WriteFile(path, body, 0o600))
	case "cut":
		require.NoError(w, os.Truncate(path, int64(len(body)/2)))
	case "remove":
		require.NoError(w, os.Remove(path))
	case "old record":
		require.NoError(w, os.WriteFile(filepath.Join(w.warm(), "warm.json"), w.record, 0o600))
	case "touch":
		require.NoError(w, os.WriteFile(path, body, 0o600))
	}
}

// build ends with the database of exactly the pin and the manifest of a cold
// build, or with an error that a cold build gives too.
func (w *warming) build() {
	w.builds++
	set, p, path := w.pin(), fmt.Sprintf("p%d", w.builds), filepath.Join(w.dir, fmt.Sprintf("built-%d.db", w.builds))
	check := func(context.Context) error { return nil }
	out, err := hostdb.Builder{Store: w.s, Check: check, Warm: w.warm()}.BuildPrepared(ctx, set, location, p, path)
	again := filepath.Join(w.dir, "cold.db")
	defer os.Remove(again)
	cold, coldErr := hostdb.Builder{Store: w.s, Check: check}.BuildPrepared(ctx, set, location, p, again)
	if err != nil {
		require.Error(w, coldErr, "warm: %v", err)
		return
	}
	w.sameAs(set, path, out.DatabaseSHA256)
	verified, err := hostdb.VerifyPrepared(ctx, w.s, location, p, set)
	require.NoError(w, err)
	require.Equal(w, out, verified)
	if coldErr == nil {
		require.Equal(w, cold, out)
	} else {
		require.ErrorContains(w, coldErr, "check", "a warm build checks what it has, see Warm")
	}
}

func TestAWarmBuildIsTheColdOne(t *testing.T) {
	bodies := transactions(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "hostdb-warming-*")
		require.NoError(rt, err)
		defer os.RemoveAll(dir)
		w := &warming{T: rt, s: memstore.New(), bodies: bodies, dir: dir}
		w.upload()
		steps := []func(){w.upload, w.upload, w.compact, w.keep, w.keep, w.damage, w.build}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			steps[rapid.IntRange(0, len(steps)-1).Draw(rt, "step")]()
		}
		w.build()
	})
}

// A pin whose object lacks pages that the base has from another one: the base,
// though at the same position, is not what the pin makes.
func TestNothingOfAnObjectThatThePinDoesNotNameStays(t *testing.T) {
	bodies := transactions(t)
	s := memstore.New()
	var set hostdb.RecoverySet
	add := func(level, low, high int, body []byte) {
		_, err := s.Put(ctx, file{level, uint64(low), uint64(high)}.key("g"), body, objstore.IfAbsent())
		require.NoError(t, err)
		set = newBox(t, s).selected(hostdb.Link{Generation: "g"})
	}
	at := unevenUpdate(t, bodies)
	for i, body := range bodies[:at] {
		add(0, i+1, i+1, body)
	}
	dir := filepath.Join(t.TempDir(), "warm")
	_, err := hostdb.Warm(ctx, s, set, dir)
	require.NoError(t, err)
	add(1, at, at, merged(t, bodies, at, at, true))
	plain := filepath.Join(t.TempDir(), "plain.db")
	_, err = hostdb.Restore(ctx, s, set, plain, nil)
	require.NoError(t, err)
	want, err := os.ReadFile(plain)
	require.NoError(t, err)
	if _, err = hostdb.Warm(ctx, s, set, dir); err != nil {
		require.ErrorIs(t, err, hostdb.ErrBroken, "made afresh, SQLite refuses it")
		return
	}
	got, err := os.ReadFile(filepath.Join(dir, "base.db"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
}

// unevenUpdate is a transaction that keeps the database's size and of which a
// forgery lacks pages.
func unevenUpdate(t *testing.T, bodies [][]byte) int {
	commit := func(at int) uint32 {
		h, _, err := ltx.PeekHeader(bytes.NewReader(bodies[at-1]))
		require.NoError(t, err)
		return h.Commit
	}
	for at := 3; at <= len(bodies); at++ {
		if commit(at) == commit(at-1) && len(merged(t, bodies, at, at, true)) < len(merged(t, bodies, at, at, false)) {
			return at
		}
	}
	require.Fail(t, "no such transaction")
	return 0
}
