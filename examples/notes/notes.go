package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"
)

// A note is one row, its body unsealed. Error says why a body cannot be.
type note struct {
	RowID int64  `json:"rowid"`
	ID    string `json:"id"`
	Run   string `json:"run"` // the process that wrote it
	Body  string `json:"body"`
	Error string `json:"error,omitempty"`
}

// notes are the notes in the database.
type notes struct {
	db   *sql.DB
	seal seal
	run  string // this process
}

const schema = `
	CREATE TABLE IF NOT EXISTS notes (
		rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, run TEXT NOT NULL, body BLOB NOT NULL);
	CREATE TABLE IF NOT EXISTS filler (bytes BLOB NOT NULL);`

// openNotes opens the database, or makes it. Checkpoints are left to who
// replicates it; a commit waits up to 10 s for such a neighbour's lock.
func openNotes(path string, s seal) (*notes, error) {
	if path == "" {
		return nil, errors.New("it is not set")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	dsn := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: url.Values{
		"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "wal_autocheckpoint(0)"},
		"_txlock": {"immediate"},
	}.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	if _, err := db.Exec(schema); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &notes{db: db, seal: s, run: rand.Text()}, nil
}

// Close closes the database.
func (n *notes) Close() error { return n.db.Close() }

// add commits a note and reports true, once for each id: what an id's first note
// said stays.
func (n *notes) add(ctx context.Context, id, body string) (added bool, err error) {
	done, err := n.db.ExecContext(ctx, `INSERT INTO notes (id, run, body) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING`,
		id, n.run, n.seal.close(id, body))
	if err != nil {
		return false, err
	}
	rows, err := done.RowsAffected()
	return rows == 1, err
}

// list reads every note, in the order of their commits.
func (n *notes) list(ctx context.Context) ([]note, error) {
	rows, err := n.db.QueryContext(ctx, `SELECT rowid, id, run, body FROM notes ORDER BY rowid`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []note{}
	for rows.Next() {
		var one note
		var sealed []byte
		if err := rows.Scan(&one.RowID, &one.ID, &one.Run, &sealed); err != nil {
			return nil, err
		}
		if one.Body, err = n.seal.open(one.ID, sealed); err != nil {
			one.Error = err.Error()
		}
		list = append(list, one)
	}
	return list, rows.Err()
}

// check reports whether the database answers.
func (n *notes) check(ctx context.Context) error {
	return n.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM notes)`).Scan(new(int))
}

const chunk = 256 << 10

// fill grows the database by about bytes, a chunk a commit.
func (n *notes) fill(ctx context.Context, bytes int64) error {
	for bytes > 0 {
		size := min(bytes, chunk)
		if _, err := n.db.ExecContext(ctx, `INSERT INTO filler VALUES (randomblob(?))`, size); err != nil {
			return fmt.Errorf("%d bytes are missing: %w", bytes, err)
		}
		bytes -= size
	}
	return nil
}
