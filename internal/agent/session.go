package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/hostguard"
	"github.com/carlosframework/regionha/internal/runner"
)

// errNotAdmitted refuses every write of a session that a claim read no longer
// names.
var errNotAdmitted = errors.New("the session is not admitted any more")

// session is one admitted writer that runs here: the app with its replicator
// and its publisher. The host's supervisor owns it.
type session struct {
	number     uint64
	generation string
	files      hostfiles.Target

	producers
	config runner.Config
	app    atomic.Pointer[runner.App] // another one once a stop was taken back

	routed time.Time   // since when requests may reach its app; zero: not yet
	lost   atomic.Bool // a claim named another: nothing more is written
	cancel context.CancelFunc
	follow func(*runner.App) // tells when the app changes its state
	loops  sync.WaitGroup
	broken chan struct{} // closed when the replicator or the publisher is of no use any more
	why    error         // set before broken is closed
	once   sync.Once
}

// producers bring what one session writes to the store.
type producers struct {
	replicator *hostdb.Replicator
	publisher  *hostfiles.Publisher
}

// check is asked before every write to the store.
func (s *session) check() error {
	if s.lost.Load() {
		return fmt.Errorf("session %d of %s: %w", s.number, s.generation, errNotAdmitted)
	}
	return nil
}

// run starts the loops that bring what the app writes to the store. From then on
// appChanged is told of every change of the app's state.
func (s *session) run(ctx context.Context, appChanged func()) {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.broken = make(chan struct{})
	s.loops.Go(func() { s.end(s.replicator.Run(ctx)) })
	s.loops.Go(func() { s.end(s.publisher.Run(ctx)) })
	s.follow = func(app *runner.App) { s.loops.Go(func() { follow(ctx, app, appChanged) }) }
	s.follow(s.app.Load())
}

// start runs the app; again, where a stop of it is taken back.
func (s *session) start() error {
	app, err := runner.Start(s.config)
	if err != nil {
		return err
	}
	s.app.Store(app)
	if s.follow != nil {
		s.follow(app)
	}
	return nil
}

func (s *session) end(err error) {
	if err == nil {
		return
	}
	s.once.Do(func() { s.why = err; close(s.broken) })
}

// durable waits until the app is ready and its generation has a durable root.
func (s *session) durable(ctx context.Context) error {
	if err := s.app.Load().WaitReady(ctx); err != nil {
		return err
	}
	_, err := s.replicator.Durable(ctx)
	return err
}

// abandon stops a session that may not write any more. What it did not upload
// is lost; whoever is admitted next declares it.
func (s *session) abandon(ctx context.Context) error {
	s.lost.Store(true)
	return s.halt(ctx)
}

// finish brings everything that a session whose app has stopped wrote to the
// store, says where that is, and closes it.
func (s *session) finish(ctx context.Context) (hostguard.Final, error) {
	final, err := s.flush(ctx, s.generation)
	return final, errors.Join(err, s.halt(ctx))
}

// flush brings everything that a session whose writers have stopped wrote to
// the store, and says where that is.
func (p producers) flush(ctx context.Context, generation string) (hostguard.Final, error) {
	txid, err := p.replicator.FlushFinal(ctx)
	if err != nil {
		return hostguard.Final{}, err
	}
	return p.flushFiles(ctx, generation, txid)
}

// flushFiles publishes every pending change of the files as one revision beside
// the database's final position.
func (p producers) flushFiles(ctx context.Context, generation string, txid uint64) (hostguard.Final, error) {
	seq, err := p.publisher.Flush(ctx)
	if err != nil {
		return hostguard.Final{}, err
	}
	return hostguard.Final{Generation: generation, TXID: txid, FilesGeneration: generation, FilesSeq: seq}, nil
}

// close ends the publisher and the replicator.
func (p producers) close() error { return errors.Join(p.publisher.Close(), p.replicator.Close()) }

// halt stops the app first, so that it never runs without its replicator. Where
// the app may still live, nothing else is closed: ask again.
func (s *session) halt(ctx context.Context) error {
	if err := s.app.Load().Stop(ctx); err != nil {
		return err
	}
	closed := s.join()
	if s.lost.Load() {
		return nil // a writer that lost its claim is not expected to finish
	}
	return closed
}

// join ends the loops of a session whose app has stopped, and closes its
// producers.
func (s *session) join() error {
	if s.cancel != nil {
		s.cancel()
	}
	s.loops.Wait()
	return s.close()
}

// probe asks the app three times in a row and the store once.
func (s *session) probe(ctx context.Context) error {
	for range 3 {
		if err := s.app.Load().Probe(ctx); err != nil {
			return err
		}
	}
	_, err := s.replicator.Durable(ctx)
	return err
}

// lag is how long the oldest commit that is not in the store has waited.
func (s *session) lag(now time.Time) time.Duration {
	st := s.replicator.Status()
	if st.Oldest.IsZero() {
		return 0
	}
	return now.Sub(st.Oldest)
}

func position(f hostguard.Final) hostclaim.Position {
	return hostclaim.Position{Generation: f.Generation, TXID: f.TXID, FilesGeneration: f.FilesGeneration, FilesSeq: f.FilesSeq}
}

func final(p hostclaim.Position) hostguard.Final {
	return hostguard.Final{Generation: p.Generation, TXID: p.TXID, FilesGeneration: p.FilesGeneration, FilesSeq: p.FilesSeq}
}
