package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/carlosframework/regionha/internal/machine"
)

// A Phase says what an App is doing.
type Phase string

// The phases of an App.
const (
	Starting Phase = "starting" // its process runs and has not answered yet
	Ready    Phase = "ready"    // it answered 200 and its process lives
	Waiting  Phase = "waiting"  // it ended by itself and is started again after a pause
	Stopping Phase = "stopping" // Stop was called
	Stopped  Phase = "stopped"  // no process of it lives, and none will
)

// State is what an App is doing now.
type State struct {
	Phase   Phase
	PID     int      // its first process; 0 while there is none
	Addr    net.Addr // where it answers; nil unless Ready
	Starts  int      // in this session, the current one included
	Failure error    // why the last run that ended by itself did; nil: none has
}

// An App is one session of one host's app. Its methods may be called by any
// goroutine.
type App struct {
	cfg  Config
	out  *logFile
	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	state   State
	changed chan struct{}
}

// ErrStopped: the App's session was ended by Stop.
var ErrStopped = errors.New("the app was stopped")

// Start starts the app's session and returns without waiting for its process.
// It refuses a Config that is not valid, and with ErrLeftover a directory whose
// last run was not ended. The caller ends the session with Stop.
func Start(cfg Config) (*App, error) {
	a, err := start(cfg)
	if err != nil {
		return nil, fmt.Errorf("runner: %s: %w", cfg.Host, err)
	}
	return a, nil
}

func start(cfg Config) (*App, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if _, err := machine.BootID(); err != nil {
		return nil, err
	}
	cfg.Log = cfg.Log.With("host", cfg.Host, "session", cfg.Session)
	if left, ok, err := readRun(cfg.Dir); err != nil {
		return nil, err
	} else if ok {
		return nil, fmt.Errorf("%w: session %d", ErrLeftover, left.Session)
	}
	if err := os.MkdirAll(cfg.workDir(), 0o700); err != nil {
		return nil, err
	}
	out, err := openLog(filepath.Join(cfg.Dir, "log"), cfg.LogSize, cfg.Log)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	a := &App{cfg: cfg, out: out, stop: stop, done: make(chan struct{}),
		state: State{Phase: Starting}, changed: make(chan struct{})}
	go a.supervise(ctx)
	return a, nil
}

func (c Config) workDir() string { return filepath.Join(c.Dir, "work") }

// supervise runs the app again and again until ctx, the session, ends.
func (a *App) supervise(ctx context.Context) {
	defer close(a.done)
	defer a.set(func(s *State) { s.Phase = Stopped })
	defer a.closeLog()
	for failures := 0; ctx.Err() == nil; failures++ {
		began := time.Now()
		err := a.run(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > steady {
			failures = 0
		}
		pause := backoff(failures, rand.Float64())
		a.cfg.Log.Warn("app ended and is started again", "after", time.Since(began), "pause", pause, "err", err)
		a.set(func(s *State) { s.Phase, s.Failure = Waiting, err })
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (a *App) closeLog() {
	if err := a.out.Close(); err != nil {
		a.cfg.Log.Warn("app log", "err", err)
	}
}

const (
	steady     = time.Minute // a run that lasted this long was no failed start
	backoffMin = 100 * time.Millisecond
	backoffMax = 30 * time.Second
)

// backoff is the pause after the n-th failure in a row, counted from 0: it
// doubles up to backoffMax; random, in [0,1), takes up to a half off.
func backoff(n int, random float64) time.Duration {
	d := backoffMax
	if n < 16 {
		d = min(d, backoffMin<<n)
	}
	return d - time.Duration(random*float64(d)/2)
}

// set changes the state and tells who waits for it. PID and Addr live only as
// long as the phases that have them.
func (a *App) set(change func(*State)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.state)
	if a.state.Phase != Ready {
		a.state.Addr = nil
	}
	if a.state.Phase == Waiting || a.state.Phase == Stopped {
		a.state.PID = 0
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

// State is what the app is doing now, and a channel that is closed when that
// changes.
func (a *App) State() (State, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state, a.changed
}

// Addr is where the app answers, a *net.TCPAddr or a *net.UnixAddr; nil while
// it is not ready. It changes when the app is started again.
func (a *App) Addr() net.Addr {
	s, _ := a.State()
	return s.Addr
}

// Cgroup is the absolute directory of the cgroup v2 that each run of the app is
// in; "" where there are process groups only.
func (a *App) Cgroup() string { return a.cfg.spawner().Cgroup(a.cfg.Host) }

// WaitReady waits until the app is ready, over restarts. When ctx ends first its
// error holds the app's last failure; after Stop it is ErrStopped.
func (a *App) WaitReady(ctx context.Context) error {
	for {
		s, changed := a.State()
		switch s.Phase {
		case Ready:
			return nil
		case Stopping, Stopped:
			return ErrStopped
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if s.Failure == nil {
				return fmt.Errorf("app is not ready: %w", ctx.Err())
			}
			return fmt.Errorf("app is not ready after %d starts: %w; its last run: %w", s.Starts, ctx.Err(), s.Failure)
		}
	}
}

// Probe asks a ready app's ready path once. nil: it answered 200.
func (a *App) Probe(ctx context.Context) error {
	s, _ := a.State()
	if s.Addr == nil {
		return fmt.Errorf("app is %s, not ready", s.Phase)
	}
	return a.cfg.probe(ctx, s.Addr)
}

// Stop ends the session: TERM to the app's process group, after StopTimeout
// KILL to all of the run, and then it waits until no process of it lives. nil
// means exactly that. ctx bounds the waiting, not the stopping, which goes on.
func (a *App) Stop(ctx context.Context) error {
	a.stop()
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("runner: %s: app is not stopped yet: %w", a.cfg.Host, ctx.Err())
	}
}

// Done is closed when the session has ended and no process of the app lives.
func (a *App) Done() <-chan struct{} { return a.done }
