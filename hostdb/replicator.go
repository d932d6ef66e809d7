package hostdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/benbjohnson/litestream"
	"github.com/superfly/ltx"
	"golang.org/x/sync/errgroup"
)

const (
	defaultSyncInterval = 500 * time.Millisecond
	maxBackoff          = 30 * time.Second

	// closeTimeout bounds the last upload of Close.
	closeTimeout = 30 * time.Second

	// never is a checkpoint threshold, in pages, that no WAL reaches.
	never = 1 << 30
)

// Replicator writes one generation from the database that an app is using. Make
// one with [Open]. It is safe for concurrent use.
type Replicator struct {
	cfg    Config
	client *client
	db     *litestream.DB
	log    *slog.Logger

	turn    chan struct{} // holds one token; who has it drives Litestream
	running sync.WaitGroup
	done    chan struct{}
	close   func() error

	watch watch
}

// newReplicator makes the parts; nothing is open. Litestream runs no goroutine
// of its own: it is driven from here.
func newReplicator(cfg Config, c *client) *Replicator {
	if cfg.SyncInterval <= 0 {
		cfg.SyncInterval = defaultSyncInterval
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	log := cfg.Logger.With("gen", cfg.Generation.ID, "session", cfg.Generation.Session)
	db := litestream.NewDB(cfg.Path)
	db.SetMetaPath(cfg.MetaDir)
	db.MonitorInterval = 0
	db.CheckpointInterval = 0
	db.ShutdownSyncTimeout = 0 // one attempt
	db.L0Retention = 0         // see compact
	db.RetentionEnabled = false
	db.Replica = litestream.NewReplicaWithClient(db, c)
	db.Replica.MonitorEnabled = false
	db.SetLogger(log)
	r := &Replicator{cfg: cfg, client: c, db: db, log: log, turn: make(chan struct{}, 1), done: make(chan struct{})}
	r.turn <- struct{}{}
	r.close = sync.OnceValue(r.shutdown)
	r.watch = watch{wal: db.WALPath(), seen: time.Now()}
	return r
}

// checkpointing turns Litestream's checkpoints on or off. The caller drives.
func (r *Replicator) checkpointing(on bool) {
	r.db.MinCheckpointPageN, r.db.TruncatePageN = never, never
	if on {
		r.db.MinCheckpointPageN, r.db.TruncatePageN = litestream.DefaultMinCheckpointPageN, litestream.DefaultTruncatePageN
	}
}

// drive runs f while nobody else drives Litestream.
func (r *Replicator) drive(ctx context.Context, f func() error) error {
	select {
	case <-r.done:
		return ErrClosed
	default:
	}
	select {
	case <-r.turn:
		defer func() { r.turn <- struct{}{} }()
		return f()
	case <-r.done:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Run uploads changes until ctx ends or Close is called, and then returns nil.
// It looks at the WAL every SyncInterval and asks nothing of the store while the
// database is at rest. It compacts what it uploaded, so that a restore reads
// dozens of objects and not one per second. A failed upload is logged, shown by
// Status and tried again with a growing delay of at most 30s. It returns an
// error when it is of no use any more: [ErrFenced].
func (r *Replicator) Run(ctx context.Context) error {
	err := r.drive(ctx, func() error { // Close waits for what was added before its turn
		r.running.Add(1)
		return nil
	})
	if err != nil {
		return err
	}
	defer r.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.syncLoop(ctx) })
	group.Go(func() error { return r.compactLoop(ctx) })
	group.Go(func() error {
		select {
		case <-r.done:
			cancel()
		case <-ctx.Done():
		}
		return nil
	})
	return group.Wait()
}

func (r *Replicator) syncLoop(ctx context.Context) error {
	wait := r.cfg.SyncInterval
	for {
		if !r.sleep(ctx, wait) {
			return nil
		}
		wait = r.cfg.SyncInterval
		if !r.watch.look(time.Now()) {
			continue
		}
		_, err := r.Durable(ctx)
		switch {
		case errors.Is(err, ErrFenced):
			return err
		case err != nil && ctx.Err() == nil && !errors.Is(err, ErrClosed):
			wait = r.watch.backoff(r.cfg.SyncInterval)
			r.log.Warn("upload failed", "err", err, "again", wait)
		}
	}
}

// sleep waits for d; false when ctx ended or the replicator is being closed.
func (r *Replicator) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-r.done:
	}
	return false
}

// Durable uploads what is missing and returns the position in the store: all
// that was committed when it was called is at or before it. Concurrent calls
// share uploads. ctx bounds the waiting for the store.
func (r *Replicator) Durable(ctx context.Context) (txid uint64, err error) {
	err = r.drive(ctx, func() error {
		txid, err = r.sync(ctx)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("replicate %s: %w", r.cfg.Generation.ID, err)
	}
	return txid, nil
}

// sync copies the WAL into local files and uploads them. The caller drives. The
// local half does not end with ctx: Litestream would lose its read lock on the
// database if it did in the middle of a checkpoint.
func (r *Replicator) sync(ctx context.Context) (uint64, error) {
	started := r.watch.begin(time.Now())
	err := r.db.Sync(context.WithoutCancel(ctx))
	if err == nil {
		err = r.db.Replica.Sync(ctx)
	}
	local, posErr := r.db.Pos()
	err = errors.Join(err, posErr, r.client.fence())
	if stored := r.client.newest(0); err == nil && local.TXID != stored {
		err = fmt.Errorf("the store ends at TXID %d, the database at %d", stored, local.TXID)
	}
	r.watch.end(started, local.TXID, r.client.newest(0), err)
	return uint64(local.TXID), err
}

// FlushFinal is called when every writer of the database has stopped. It uploads
// all that was committed and returns its position N when a fresh listing shows
// level 0 ending exactly at N. After an error nothing is certain: call it again.
// It is the session's end: Litestream makes no checkpoints any more, so only
// Close follows. It costs what is missing and two listings of one key.
func (r *Replicator) FlushFinal(ctx context.Context) (txid uint64, err error) {
	err = r.drive(ctx, func() error {
		r.checkpointing(false) // each would add a transaction of its own
		if txid, err = r.sync(ctx); err != nil {
			return err
		}
		return r.client.endsAt(ctx, ltx.TXID(txid))
	})
	if err != nil {
		return 0, fmt.Errorf("final flush of %s: %w", r.cfg.Generation.ID, err)
	}
	return txid, nil
}

// Close uploads what is missing, once, and closes the database. It first ends
// Run. An error says that the store may lack what was committed, or that a file
// did not close. A second call returns the same.
func (r *Replicator) Close() error { return r.close() }

func (r *Replicator) shutdown() error {
	close(r.done)
	<-r.turn // for good
	r.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	r.checkpointing(false)
	if err := errors.Join(r.db.Close(ctx), r.client.fence()); err != nil {
		return fmt.Errorf("close replicator of %s: %w", r.cfg.Generation.ID, err)
	}
	return nil
}

// Status is where replication stands.
type Status struct {
	TXID    uint64    // the newest local position
	Durable uint64    // the newest position known to be in the store
	Oldest  time.Time // no later than the oldest commit that may not be in the store; zero if all is
	Err     error     // why the last upload failed; nil after one that did not
}

// Status looks at the WAL and says where replication stands. It asks nothing of
// the store and never waits for an upload.
func (r *Replicator) Status() Status {
	r.watch.look(time.Now())
	return r.watch.status()
}
