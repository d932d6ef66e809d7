package hostdb_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/internal/s3test"
	"github.com/carlosframework/regionha/objstore/storeurl"
)

// The whole way on the stores that are used for real: a session, a prepared
// generation, its opening, and a restore.
func TestEndToEndOnADirectory(t *testing.T) { endToEnd(t, "dir://"+t.TempDir()) }

func TestEndToEndOnAnS3Server(t *testing.T) { endToEnd(t, s3test.Start(t)) }

func endToEnd(t *testing.T, url string) {
	s, err := storeurl.Open(t.Context(), url)
	require.NoError(t, err)
	b := newBox(t, s)
	r := b.bootstrap("g")
	a := localApp(t, b.path())
	a.exec(createNotes)
	a.exec("CREATE TABLE big (b BLOB)")
	a.exec("INSERT INTO big VALUES (randomblob(3000000))") // streamed up and down
	durable(t, r)
	a.insert("one")
	a.end()
	n, err := r.FlushFinal(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.Close())

	set := b.selected(hostdb.Link{Generation: "g"})
	require.Equal(t, n, set.MaxTXID)
	b = newBox(t, s)
	built, cfg := b.prepare(set, "p")
	verified, err := hostdb.VerifyPrepared(t.Context(), s, location, "p", set)
	require.NoError(t, err)
	require.Equal(t, built.InstallSHA256, verified.InstallSHA256)
	again := newBox(t, s)
	rebuilt, _ := again.prepare(set, "p")
	require.Equal(t, built.InstallSHA256, rebuilt.InstallSHA256)

	r = b.open(cfg)
	a = localApp(t, b.path())
	a.insert("two")
	a.end()
	n, err = r.FlushFinal(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.NoError(t, hostdb.MarkPublished(t.Context(), s, location, "p"))
	require.Equal(t, []string{"one", "two"}, b.restored("p"))

	session := b.config("p") // another writer of the generation, with a state of its own
	session.MetaDir = t.TempDir()
	_, err = hostdb.Open(t.Context(), s, session)
	require.ErrorIs(t, err, hostdb.ErrFenced)
	put(t, s, file{0, n + 1, n + 1}.key("p"))
	_, err = hostdb.Open(t.Context(), s, cfg)
	require.ErrorIs(t, err, hostdb.ErrFenced)
}
