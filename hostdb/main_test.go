package hostdb_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
)

// ctx is for code that has no test at hand.
var ctx = context.Background()

const location = "instances/shop.example/1"

// appEnv makes the test binary an app: a process of its own, so that the POSIX
// locks between it and the replicator are real.
const appEnv = "HOSTDB_TEST_APP"

func TestMain(m *testing.M) {
	if path := os.Getenv(appEnv); path != "" {
		if err := serveApp(path, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, // but for the idle connections of the S3 client
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// serveApp executes each line of in as SQL and answers with a line. ".load n"
// inserts n rows from each of four connections.
func serveApp(path string, in io.Reader, out io.Writer) error {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var n int
		if _, scan := fmt.Sscanf(lines.Text(), ".load %d", &n); scan == nil {
			err = load(db, n)
		} else {
			_, err = db.Exec(lines.Text())
		}
		answer := "ok"
		if err != nil {
			answer = strings.ReplaceAll(err.Error(), "\n", " ")
		}
		if _, err := fmt.Fprintln(out, answer); err != nil {
			return err
		}
	}
	return nil
}

func load(db *sql.DB, n int) error {
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			for range n {
				if _, err := db.Exec("INSERT INTO notes (body) VALUES (hex(randomblob(200)))"); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// app is a running app.
type app struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Scanner
	end func() // once, without ceremony where the app is a process
}

// startApp runs an app as a process of its own.
func startApp(t *testing.T, path string) *app {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), appEnv+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	a := &app{t: t, in: in, out: bufio.NewScanner(out), end: sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})}
	t.Cleanup(a.end)
	return a
}

// localApp runs an app in this process, where nothing depends on locks.
func localApp(t *testing.T, path string) *app {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- serveApp(path, inR, outW); outW.Close() }()
	a := &app{t: t, in: inW, out: bufio.NewScanner(outR), end: sync.OnceFunc(func() {
		inW.Close()
		require.NoError(t, <-served)
	})}
	t.Cleanup(a.end)
	return a
}

func (a *app) send(sql string) {
	a.t.Helper()
	_, err := fmt.Fprintln(a.in, sql)
	require.NoError(a.t, err)
}

func (a *app) wait() {
	a.t.Helper()
	require.True(a.t, a.out.Scan(), "the app ended")
	require.Equal(a.t, "ok", a.out.Text())
}

func (a *app) exec(sql string) {
	a.t.Helper()
	a.send(sql)
	a.wait()
}

// stop ends the app in good order: SQLite closes its connections.
func (a *app) stop() {
	a.t.Helper()
	require.NoError(a.t, a.in.Close())
	require.False(a.t, a.out.Scan())
	a.end()
}

const createNotes = "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, body TEXT)"

// insert adds one row that says what it is.
func (a *app) insert(body string) {
	a.t.Helper()
	a.exec(fmt.Sprintf("INSERT INTO notes (body) VALUES ('%s')", body))
}

// notes reads all rows of a database that nobody has open, after SQLite's own
// check of the whole file.
func notes(t *testing.T, path string) (bodies []string) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copy.db")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, b, 0o600))
	db, err := sql.Open("sqlite", "file:"+copied+"?mode=ro&immutable=1")
	require.NoError(t, err)
	defer db.Close()
	var verdict string
	require.NoError(t, db.QueryRow("PRAGMA integrity_check").Scan(&verdict))
	require.Equal(t, "ok", verdict)
	rows, err := db.Query("SELECT body FROM notes ORDER BY id")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var body string
		require.NoError(t, rows.Scan(&body))
		bodies = append(bodies, body)
	}
	require.NoError(t, rows.Err())
	return bodies
}

// box is one machine's local state, with a fresh directory per installation.
type box struct {
	t     *testing.T
	store objstore.Store
	dir   string
}

func newBox(t *testing.T, s objstore.Store) box { return box{t, s, t.TempDir()} }

func (b box) path() string { return filepath.Join(b.dir, "app.db") }

// config is of a fresh generation; prepared makes it one of P's opening.
func (b box) config(generation string) hostdb.Config {
	return hostdb.Config{
		Path:       b.path(),
		MetaDir:    filepath.Join(b.dir, "meta-"+generation),
		Generation: hostdb.Generation{Location: location, ID: generation, Session: 1},
		Check:      func() error { return nil },
		Logger:     slog.New(slog.DiscardHandler),
	}
}

func (b box) open(cfg hostdb.Config) *hostdb.Replicator {
	b.t.Helper()
	r, err := hostdb.Open(b.t.Context(), b.store, cfg)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = r.Close() })
	return r
}

// bootstrap opens an empty database in a generation.
func (b box) bootstrap(generation string) *hostdb.Replicator {
	b.t.Helper()
	cfg := b.config(generation)
	cfg.Empty = true
	return b.open(cfg)
}

func (b box) selected(links ...hostdb.Link) hostdb.RecoverySet {
	b.t.Helper()
	set, err := hostdb.Select(b.t.Context(), b.store, location, links)
	require.NoError(b.t, err)
	return set
}

// restored is what a generation's newest set holds.
func (b box) restored(generation string) []string {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "restored.db")
	_, err := hostdb.Restore(b.t.Context(), b.store, b.selected(hostdb.Link{Generation: generation}), path, nil)
	require.NoError(b.t, err)
	return notes(b.t, path)
}

func (b box) builder() hostdb.Builder {
	return hostdb.Builder{Store: b.store, Check: func(context.Context) error { return nil }}
}

// prepare builds p on this box from set and returns the config that opens it.
func (b box) prepare(set hostdb.RecoverySet, p string) (hostdb.Prepared, hostdb.Config) {
	b.t.Helper()
	out, err := b.builder().BuildPrepared(b.t.Context(), set, location, p, b.path())
	require.NoError(b.t, err)
	cfg := b.config(p)
	cfg.Base, cfg.BaseSHA256 = out.SnapshotTXID, out.DatabaseSHA256
	return out, cfg
}

func durable(t *testing.T, r *hostdb.Replicator) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n, err := r.Durable(ctx)
	require.NoError(t, err)
	return n
}

// cloneOf is a store with the same objects, ETags and versions.
func cloneOf(t *testing.T, s *memstore.Store) *memstore.Store {
	t.Helper()
	c := memstore.New()
	for _, w := range s.Log() {
		_, err := c.Put(t.Context(), w.Key, w.Body, objstore.Always())
		require.NoError(t, err)
	}
	return c
}
