package hostdb_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/internal/s3test"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/storeurl"
)

// BenchmarkBuild is the database's part of a drain's cut: building a prepared
// generation on the target, verifying it and opening it, after 50 transactions
// that came while the source still served. cold has nothing on the target, warm
// all but those transactions. dir-500 means 500 MB on a directory.
func BenchmarkBuild(b *testing.B) {
	stores := map[string]func() string{
		"dir": func() string { return "dir://" + b.TempDir() },
		"s3":  func() string { return s3test.Start(b) },
	}
	for _, name := range []string{"dir", "s3"} {
		for _, mb := range []int{1, 50, 500} {
			b.Run(fmt.Sprintf("%s-%d", name, mb), func(b *testing.B) {
				s, err := storeurl.Open(b.Context(), stores[name]())
				require.NoError(b, err)
				benchmarkBuild(b, s, mb)
			})
		}
	}
}

func benchmarkBuild(b *testing.B, s objstore.Store, mb int) {
	at := func(generation string) string { return filepath.Join(b.TempDir(), generation+".db") }
	source := box{dir: b.TempDir()}
	cfg := source.config("g")
	cfg.Empty = true
	r, err := hostdb.Open(b.Context(), s, cfg)
	require.NoError(b, err)
	defer r.Close()
	db, err := sql.Open("sqlite", "file:"+cfg.Path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)")
	require.NoError(b, err)
	defer db.Close()
	exec := func(statement string) {
		_, err := db.Exec(statement)
		require.NoError(b, err)
	}
	exec(createNotes)
	for range mb {
		exec("WITH n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 900) INSERT INTO notes (body) SELECT hex(randomblob(500)) FROM n")
	}
	pin := func() hostdb.RecoverySet {
		_, err := r.Durable(b.Context())
		require.NoError(b, err)
		set, err := hostdb.Select(b.Context(), s, location, []hostdb.Link{{Generation: "g"}})
		require.NoError(b, err)
		return set
	}
	early := pin()
	for range 50 {
		exec("INSERT INTO notes (body) VALUES (hex(randomblob(500)))")
		pin()
	}
	late := pin()
	builds := 0
	for _, kind := range []string{"cold", "warm"} {
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				builds++
				p := fmt.Sprintf("p%d", builds)
				builder := hostdb.Builder{Store: s, Check: box{}.builder().Check}
				if kind == "warm" {
					builder.Warm = b.TempDir()
					_, err := hostdb.Warm(b.Context(), s, early, builder.Warm)
					require.NoError(b, err)
				}
				path := at(p)
				b.StartTimer()
				cut(b, s, builder, late, p, path)
			}
		})
	}
}

// cut is what happens between the pin and the app's start.
func cut(b *testing.B, s objstore.Store, builder hostdb.Builder, set hostdb.RecoverySet, p, path string) {
	_, err := builder.BuildPrepared(b.Context(), set, location, p, path)
	require.NoError(b, err)
	out, err := hostdb.VerifyPrepared(b.Context(), s, location, p, set)
	require.NoError(b, err)
	to := filepath.Join(filepath.Dir(path), "app.db")
	same, err := out.Place(path, to)
	require.NoError(b, err)
	require.True(b, same)
	opened := box{dir: filepath.Dir(to)}.config(p)
	opened.Path, opened.Base, opened.BaseSHA256 = to, out.SnapshotTXID, out.DatabaseSHA256
	r, err := hostdb.Open(b.Context(), s, opened)
	require.NoError(b, err)
	b.StopTimer()
	require.NoError(b, r.Close())
	b.StartTimer()
}
