package hostdb

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/benbjohnson/litestream"
	"github.com/superfly/ltx"
)

// start opens Litestream's database under the write lock, so that nothing is
// committed between the look at the WAL and Litestream's own read lock.
func (r *Replicator) start(ctx context.Context, local ltx.TXID) error {
	release, err := lockDatabase(ctx, r.cfg.Path)
	if err != nil {
		return err
	}
	defer release()
	wal, err := readSalts(r.db.WALPath())
	if err != nil {
		return err
	}
	if local == 0 && r.cfg.Base > 0 {
		err = r.seed(ctx, wal)
	} else if local > 0 {
		err = r.distrust(ctx, local, wal)
	}
	if err != nil {
		return err
	}
	if err := r.db.Open(); err != nil {
		return err
	}
	// A checkpoint in the first sync would wait for the lock that is held here.
	r.checkpointing(false)
	defer r.checkpointing(true)
	return r.db.Sync(context.WithoutCancel(ctx))
}

// lockDatabase takes SQLite's write lock on the database, in WAL mode and with a
// WAL that has a header. It makes the tables that Litestream would make, so that
// Litestream needs no write lock to start. A missing file is created.
func lockDatabase(ctx context.Context, path string) (release func(), err error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // the lock belongs to a connection
	for _, q := range []string{
		`CREATE TABLE IF NOT EXISTS _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)`,
		`CREATE TABLE IF NOT EXISTS _litestream_lock (id INTEGER)`,
		`INSERT INTO _litestream_seq (id, seq) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET seq = seq + 1`,
		`BEGIN IMMEDIATE`,
	} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), db.Close())
		}
	}
	return func() {
		db.Exec(`ROLLBACK`) // Close does it too
		db.Close()
	}, nil
}

// salts identify one run of the WAL: a restart changes them.
type salts [2]uint32

func readSalts(wal string) (salts, error) {
	f, err := os.Open(wal) // SQLite holds no lock on a WAL
	if err != nil {
		return salts{}, err
	}
	defer f.Close()
	var b [litestream.WALHeaderSize]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return salts{}, fmt.Errorf("read WAL header: %w", err)
	}
	return salts{binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:])}, nil
}

// seed makes the prepared generation's [N,N] the local baseline, standing at the
// start of the WAL that the write lock has just begun over the database at N.
// The first upload is then what is in that WAL, and no full image.
func (r *Replicator) seed(ctx context.Context, wal salts) error {
	n := ltx.TXID(r.cfg.Base)
	anchor, err := r.client.OpenLTXFile(ctx, 0, n, n, 0, 0)
	if err != nil {
		return err
	}
	defer anchor.Close()
	return rewriteLTX(anchor, r.db.LTXPath(0, n, n), wal)
}

// distrust compares the WAL with the newest local file. If the WAL was restarted
// since, commits may have gone to the database unseen; the file then loses its
// place in the WAL, and the next sync writes a full image. Its pages stay, for a
// later compaction.
func (r *Replicator) distrust(ctx context.Context, local ltx.TXID, wal salts) error {
	path := r.db.LTXPath(0, local, local)
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h, err := headerOf(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if (salts{h.WALSalt1, h.WALSalt2}) == wal {
		return nil
	}
	r.log.Warn("the WAL was restarted while no replicator was open: uploading a full image", "txid", uint64(local))
	if local > r.client.newest(0) {
		if err := r.db.Replica.Sync(ctx); err != nil { // as it was written
			return err
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return rewriteLTX(f, path, salts{})
}

// rewriteLTX copies an LTX file to path, standing at the first frame of the WAL
// with these salts.
func rewriteLTX(from io.Reader, path string, wal salts) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return replaceFile(path, func(to *os.File) error {
		dec := ltx.NewDecoder(from)
		if err := dec.DecodeHeader(); err != nil {
			return err
		}
		h := dec.Header()
		h.WALOffset, h.WALSize, h.WALSalt1, h.WALSalt2 = litestream.WALHeaderSize, 0, wal[0], wal[1]
		enc, err := ltx.NewEncoder(to)
		if err != nil {
			return err
		}
		if err := enc.EncodeHeader(h); err != nil {
			return err
		}
		if err := copyPages(enc, dec); err != nil {
			return err
		}
		return errors.Join(dec.Close(), enc.Close())
	})
}

func copyPages(to *ltx.Encoder, from *ltx.Decoder) error {
	data := make([]byte, from.Header().PageSize)
	for {
		var page ltx.PageHeader
		err := from.DecodePage(&page, data)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := to.EncodePage(ltx.PageHeader{Pgno: page.Pgno}, data); err != nil {
			return err
		}
	}
}
