package hostguard

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/carlosframework/regionha/boxid"
)

// Identity is who this box is, proven by the caller, and its present boot.
type Identity struct {
	Box        string
	Enrollment string
	BootID     string // the kernel's id of this boot
}

// Guard is one box's local authority for one host. It is safe for concurrent
// use, across processes too. Close is not needed: it holds no descriptor.
type Guard struct {
	host string
	data string // the data directory
	dir  string // <data>/hosts/<host>
	me   Identity
	disk disk

	// turn orders this process's steps before the file lock does: the kernel's
	// lock alone is no happens-before edge of the Go memory model.
	turn chan struct{}
}

// Installation is what is active for a host on this box.
type Installation struct {
	Incarnation string
	Stamp       uint64 // 0: none was ever activated
	Fence       string // the operation whose release ended admission; "": open
}

// state is guard.json.
type state struct {
	header
	Incarnation string `json:"incarnation"`
	Stamp       uint64 `json:"stamp"`
	Fence       string `json:"fence"`
}

func (s state) check(g *Guard) error {
	if err := s.header.check(g); err != nil {
		return err
	}
	if s.Incarnation == "" || s.Stamp == 0 {
		return fmt.Errorf("%w: incarnation %q, stamp %d: neither may be empty", ErrMalformed, s.Incarnation, s.Stamp)
	}
	return nil
}

func (s state) installation() Installation {
	return Installation{Incarnation: s.Incarnation, Stamp: s.Stamp, Fence: s.Fence}
}

// Open makes the host's directory under dataDir if need be and checks that what
// lies there is this box's own. Errors: [ErrForeign], [ErrMalformed].
func Open(dataDir, host string, me Identity) (*Guard, error) {
	if err := checkName("host", host, maxHost); err != nil {
		return nil, fmt.Errorf("hostguard: %w", err)
	}
	if err := me.check(); err != nil {
		return nil, fmt.Errorf("hostguard: %s: %w", host, err)
	}
	g := &Guard{
		host: host,
		data: dataDir,
		dir:  filepath.Join(dataDir, "hosts", host),
		me:   me,
		turn: make(chan struct{}, 1),
	}
	for _, dir := range []string{g.path("install"), participationsDir(dataDir)} {
		if err := makeDir(dir); err != nil {
			return nil, g.errorf("open: %w", err)
		}
	}
	if _, err := g.Active(); err != nil {
		return nil, err
	}
	return g, nil
}

// Active reads the active installation, without a lock.
func (g *Guard) Active() (Installation, error) {
	s, _, err := read[state](g, guardFile)
	if err != nil {
		return Installation{}, g.errorf("guard: %w", err)
	}
	return s.installation(), nil
}

// Activate makes the installation that began at claim generation stamp the
// active one, with admission open. The active one again is nil and changes
// nothing, its fence included; an older stamp is [ErrStale]. The context bounds
// the wait for the lock.
func (g *Guard) Activate(ctx context.Context, incarnation string, stamp uint64) error {
	if incarnation == "" || stamp == 0 {
		return g.errorf("activate: incarnation %q, stamp %d: want a name and a positive number", incarnation, stamp)
	}
	return g.locked(ctx, "activate", func(s state) error {
		switch {
		case stamp < s.Stamp:
			return fmt.Errorf("%w: stamp %d, active is %d", ErrStale, stamp, s.Stamp)
		case stamp == s.Stamp && incarnation != s.Incarnation:
			return fmt.Errorf("%w: stamp %d is incarnation %s here, not %s", ErrStale, stamp, s.Incarnation, incarnation)
		case stamp == s.Stamp:
			return nil
		}
		s.Incarnation, s.Stamp, s.Fence = incarnation, stamp, ""
		return g.saveState(s)
	})
}

// BeginFence ends admission for the installation, on behalf of op, durably.
// When it returns, no step under [Guard.With] runs, and none will. It waits for
// one that runs, within ctx. A fence is never lifted: only a newer installation
// is open again. Errors: [ErrStale].
func (g *Guard) BeginFence(ctx context.Context, stamp uint64, op string) error {
	if err := checkName("op", op, maxOp); err != nil {
		return g.errorf("fence: %w", err)
	}
	return g.locked(ctx, "fence", func(s state) error {
		if err := s.active(stamp); err != nil || s.Fence == op {
			return err
		}
		s.Fence = op
		return g.saveState(s)
	})
}

// AdmissionFenced reports whether admission has ended for the installation,
// without a lock. Errors: [ErrStale].
func (g *Guard) AdmissionFenced(stamp uint64) (bool, error) {
	s, _, err := read[state](g, guardFile)
	if err == nil {
		err = s.active(stamp)
	}
	if err != nil {
		return false, g.errorf("guard: %w", err)
	}
	return s.Fence != "", nil
}

// With runs fn under the host's lock, if the installation is still the active
// one and admission is open: otherwise [ErrStale] or [ErrFenced], and fn does
// not run. The error of fn is returned as it is. The context bounds the wait
// for the lock, not fn. fn must not wait for the lock itself, by another call
// that takes it. What one step wrote in memory, the next under the same Guard
// sees.
func (g *Guard) With(ctx context.Context, stamp uint64, fn func(*Held) error) error {
	return g.hold(ctx, stamp, fn, func(s state) error {
		if s.Fence != "" {
			return fmt.Errorf("%w: by operation %s", ErrFenced, s.Fence)
		}
		return nil
	})
}

// WithFence is [Guard.With] for the steps of a release: the fence must be the
// one that op began, or it is [ErrNotFenced].
func (g *Guard) WithFence(ctx context.Context, stamp uint64, op string, fn func(*Held) error) error {
	return g.hold(ctx, stamp, fn, func(s state) error {
		if op == "" || s.Fence != op {
			return fmt.Errorf("%w: the fence is of operation %q, want %q", ErrNotFenced, s.Fence, op)
		}
		return nil
	})
}

func (g *Guard) hold(ctx context.Context, stamp uint64, fn func(*Held) error, admits func(state) error) error {
	var result error
	err := g.locked(ctx, "with", func(s state) error {
		if err := s.active(stamp); err != nil {
			return err
		}
		if err := admits(s); err != nil {
			return err
		}
		h := &Held{g: g, at: s.installation()}
		defer func() { h.g = nil }()
		result = fn(h)
		return nil
	})
	if err != nil {
		return err
	}
	return result
}

// locked runs fn on the state as it is under the host's lock.
func (g *Guard) locked(ctx context.Context, what string, fn func(state) error) error {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return g.errorf("%s: %w", what, context.Cause(ctx))
	}
	lock, err := lockFile(ctx, g.path("guard.lock"))
	if err != nil {
		return g.errorf("%s: %w", what, err)
	}
	defer lock.Close()
	s, _, err := read[state](g, guardFile)
	if err == nil {
		err = fn(s)
	}
	if err != nil {
		return g.errorf("%s: %w", what, err)
	}
	return nil
}

func (s state) active(stamp uint64) error {
	if stamp == 0 || s.Stamp != stamp {
		return fmt.Errorf("%w: stamp %d, active is %d", ErrStale, stamp, s.Stamp)
	}
	return nil
}

func (g *Guard) saveState(s state) error {
	s.header = s.next(g)
	return g.disk.save(g.path(guardFile), s)
}

func (g *Guard) path(name string) string { return filepath.Join(g.dir, name) }

func (g *Guard) errorf(format string, args ...any) error {
	return fmt.Errorf("hostguard: %s: %w", g.host, fmt.Errorf(format, args...))
}

func (i Identity) check() error {
	if err := boxid.CheckRef(i.Box); err != nil {
		return err
	}
	if i.Enrollment == "" || i.BootID == "" {
		return fmt.Errorf("identity of %s: enrollment %q, boot id %q: neither may be empty", i.Box, i.Enrollment, i.BootID)
	}
	return nil
}
