package hostfiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// Settings of Config.Durability, the app's files_durability.
const (
	Snapshot   = "snapshot"   // the whole directory every Config.Interval
	Continuous = "continuous" // a change within about a second: a scan every second
)

const (
	pollInterval = time.Second // of the platform items, and of everything when continuous
	maxBackoff   = time.Minute
	stableReads  = 3 // attempts to read a file that holds still
)

// Config is a [Publisher]'s.
type Config struct {
	Root     string // the app's files directory; it exists
	Platform string // the directory of the platform items; it exists, outside Root
	Target   Target // the generation, already begun or about to begin empty

	Durability string        // Snapshot if empty
	Interval   time.Duration // between snapshots; 15m if zero
	MaxFile    int64         // bytes over which a file is skipped; what the store can hold if zero
	Parallel   int           // files read and uploaded at a time; 8 if zero

	// Check is asked before every write whether the session may still write; an
	// error refuses the write. nil: nobody to ask.
	Check func(context.Context) error

	Logger *slog.Logger // slog.Default if nil
}

func (c *Config) fill() error {
	c.Durability = cmp.Or(c.Durability, Snapshot)
	c.Interval = cmp.Or(c.Interval, 15*time.Minute)
	c.MaxFile = cmp.Or(c.MaxFile, maxFile)
	c.Parallel = cmp.Or(c.Parallel, 8)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	switch {
	case c.Durability != Snapshot && c.Durability != Continuous:
		return fmt.Errorf("durability %q: want %s or %s", c.Durability, Snapshot, Continuous)
	case c.Interval < 0 || c.MaxFile < 0 || c.Parallel < 0:
		return fmt.Errorf("interval %s, max file %d, parallel %d: want none below zero", c.Interval, c.MaxFile, c.Parallel)
	}
	if below, err := filepath.Rel(c.Root, c.Platform); err == nil && filepath.IsLocal(below) {
		return fmt.Errorf("platform directory %s: it lies in the files directory %s", c.Platform, c.Root)
	}
	if c.Durability == Continuous {
		c.Interval = pollInterval
	}
	return c.Target.checkWriter()
}

// ErrClosed: the publisher was closed.
var ErrClosed = errors.New("publisher is closed")

// ErrTorn: a file changed while it was read, each time. Something still writes.
var ErrTorn = errors.New("a file does not hold still")

// Publisher publishes one session's files to its generation. It is safe for
// concurrent use: one turn runs at a time.
type Publisher struct {
	w        writer
	cfg      Config
	log      *slog.Logger
	root     *os.Root
	platform *os.Root

	turn chan struct{} // holds one token, and whoever took it owns the rest
	// What the stored manifest says, and what will be said if a write whose
	// outcome is unknown turns out to have applied.
	durable *state
	pending *state
	read    map[string]reading // by name: what was last read and published
	made    *uploads
	seq     atomic.Uint64 // newest number taken
	foldAt  int           // more changes than these are folded into a new base
	fenced  error         // sticky
	closed  bool
}

// New opens a publisher for cfg.Target. The generation's manifest must be that
// session's, or absent: the first publication then creates it. The sequence goes
// on from it, so a new publisher of the same session continues where the store
// stands. Close it.
//
// One GET, and one more where the manifest has a base. Errors: [ErrFenced],
// [ErrMalformed], [ErrDigest], and the store's.
func New(ctx context.Context, s Store, cfg Config) (*Publisher, error) {
	if err := cfg.fill(); err != nil {
		return nil, fmt.Errorf("hostfiles: %w", err)
	}
	p := &Publisher{
		w:   writer{store: s, target: cfg.Target, check: cfg.Check},
		cfg: cfg, log: cfg.Logger.With("session", cfg.Target.Session, "gen", cfg.Target.Generation),
		turn: make(chan struct{}, 1), read: map[string]reading{}, made: newUploads(),
		foldAt: maxChanges - len(platformItems), // an instance key always finds room
	}
	if err := p.open(ctx); err != nil {
		p.closeRoots()
		return nil, fmt.Errorf("hostfiles: publisher of %s: %w", cfg.Target.manifestKey(), err)
	}
	p.turn <- struct{}{}
	return p, nil
}

func (p *Publisher) open(ctx context.Context) (err error) {
	if p.root, err = os.OpenRoot(p.cfg.Root); err != nil {
		return err
	}
	if p.platform, err = os.OpenRoot(p.cfg.Platform); err != nil {
		return err
	}
	if p.durable, err = load(ctx, p.w.store, p.w.target); err != nil {
		return err
	}
	p.seq.Store(p.durable.manifest.Seq)
	return nil
}

// SyncDir scans everything and publishes what changed as one revision. It
// returns the sequence that the stored manifest then has; 0 is no manifest.
//
// No request where nothing changed. Otherwise one PUT for each content that no
// object holds yet and one for the manifest, and one for a new base when over
// 1,000 entries changed since the last. After an unknown outcome the same write
// is sent again first: one PUT more, and one GET where it had applied.
//
// Errors: [ErrFenced] (sticky), [ErrClosed], [ErrOtherKey], Check's, the
// store's, and a directory that cannot be read: what it held is then not taken
// for deleted. The turn after an error repairs it.
func (p *Publisher) SyncDir(ctx context.Context) (uint64, error) {
	return p.oneTurn(ctx, p.scanAll)
}

// Flush is the last SyncDir of a session, made when every writer has stopped:
// the sequence that it returns covers every mutation there was. A file that
// still changes is [ErrTorn].
func (p *Publisher) Flush(ctx context.Context) (uint64, error) {
	seq, err := p.oneTurn(ctx, p.scanAll)
	if err != nil {
		return 0, err
	}
	for name, e := range p.settled().live() {
		if e.Torn {
			return 0, fmt.Errorf("hostfiles: flush: %w: %s", ErrTorn, name)
		}
	}
	return seq, nil
}

// settled returns the newest state that is known to be stored.
func (p *Publisher) settled() *state {
	<-p.turn
	defer func() { p.turn <- struct{}{} }()
	return p.durable
}

// oneTurn runs one turn, after the one that runs.
func (p *Publisher) oneTurn(ctx context.Context, scan func() (view, error)) (uint64, error) {
	select {
	case <-p.turn:
		defer func() { p.turn <- struct{}{} }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	switch {
	case p.closed:
		return 0, ErrClosed
	case p.fenced != nil:
		return 0, p.fenced
	}
	err := p.publishView(ctx, scan)
	if errors.Is(err, ErrFenced) {
		p.fenced = fmt.Errorf("hostfiles: publish to %s: %w", p.w.target.manifestKey(), err)
		return 0, p.fenced
	}
	if err != nil {
		return 0, fmt.Errorf("hostfiles: publish to %s: %w", p.w.target.manifestKey(), err)
	}
	return p.durable.manifest.Seq, nil
}

// Run publishes until ctx ends, and then returns nil: the platform items within
// about a second of a change, the whole tree at once and then every interval. A
// turn that fails is logged and tried again, after up to a minute. It returns an
// error only where no further turn can succeed: [ErrFenced], [ErrClosed].
func (p *Publisher) Run(ctx context.Context) error {
	var whole time.Time // when the next whole scan is due
	for failures := 0; ; {
		scan := p.scanItems
		if !time.Now().Before(whole) {
			scan = p.scanAll
		}
		seq, err := p.oneTurn(ctx, scan)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrFenced), errors.Is(err, ErrClosed):
			return err
		case err != nil:
			failures++
			whole = time.Time{}
			p.log.WarnContext(ctx, "files are not published", "err", err, "failures", failures)
		default:
			failures = 0
			if !time.Now().Before(whole) {
				whole = time.Now().Add(p.cfg.Interval)
			}
			p.log.DebugContext(ctx, "files are published", "seq", seq)
		}
		if err := pause(ctx, failures); err != nil {
			return nil
		}
	}
}

// pause waits for the next turn: the poll interval, doubled with every failure.
func pause(ctx context.Context, failures int) error {
	wait := min(pollInterval<<min(failures, 10), maxBackoff)
	if failures > 0 {
		wait += rand.N(wait/2) - wait/4
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close waits for the turn that runs, and then no turn runs again and nothing is
// written. It publishes nothing; see [Publisher.Flush].
func (p *Publisher) Close() error {
	<-p.turn
	defer func() { p.turn <- struct{}{} }()
	if p.closed {
		return nil
	}
	p.closed = true
	return p.closeRoots()
}

func (p *Publisher) closeRoots() error {
	var errs []error
	for _, root := range []*os.Root{p.root, p.platform} {
		if root != nil {
			errs = append(errs, root.Close())
		}
	}
	return errors.Join(errs...)
}
