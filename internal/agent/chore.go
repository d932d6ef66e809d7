package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostguard"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/internal/runner"
)

// choreOf is the box's open chore to put its local copy of the host away, where
// it may be done now: nothing that runs or is under way involves the box. One
// whose box is fenced is the region's.
func choreOf(c *hostclaim.Claim, box string) (hostclaim.Obligation, bool) {
	if c == nil || c.Op.Exec == box || c.Op.Participates(box) {
		return hostclaim.Obligation{}, false
	}
	if i := c.Op.Intent; c.Op.Kind != hostclaim.Serving && (i.Source.Box == box || i.Target.Box == box || i.Selected.Box == box) {
		return hostclaim.Obligation{}, false
	}
	for _, o := range c.Obligations {
		if o.Kind == hostclaim.ParkLocal && o.Box == box && o.Owner == "box:"+box {
			return o, true
		}
	}
	return hostclaim.Obligation{}, false
}

// clear does the chore: what lies here of the host is moved aside under the
// guard, and only then is the claim told, by the write that o leads to. While
// the chore is open no operation takes this box, so that a crash anywhere is
// answered by doing it again. It costs one claim write.
func (h *host) clear(ctx context.Context, o hostclaim.Observed, chore hostclaim.Obligation) (hostrelocate.Turn, error) {
	if h.run != nil {
		return hostrelocate.Turn{}, fmt.Errorf("session %d runs: its local copy is not put away", h.run.number)
	}
	if err := h.execution.Finish(ctx, ""); err != nil {
		return hostrelocate.Turn{}, err
	}
	to, err := h.putAway(ctx, chore.ID)
	if err != nil {
		return hostrelocate.Turn{}, fmt.Errorf("put the local copy away: %w", err)
	}
	h.log.Info("moved the local copy aside", "to", to, "kept", parkedFor)
	next, err := hostclaim.Update(ctx, h.agent.control, o, hostclaim.CompleteObligation(chore.Op, chore.ID))
	if err != nil {
		return moved(h.name, err)
	}
	h.agent.changed(ctx, next.Claim)
	return hostrelocate.Turn{Did: "put the local copy of " + h.name + " away"}, nil
}

// putAway ends whatever an earlier process left of the host, closes admission
// here for good, and moves the files.
func (h *host) putAway(ctx context.Context, chore string) (to string, err error) {
	if err := runner.KillLeftover(ctx, h.agent.machine, h.dir()); err != nil {
		return "", err
	}
	active, err := h.guard.Active()
	if err != nil {
		return "", err
	}
	if active.Stamp > 0 && active.Fence == "" {
		if err := h.guard.BeginFence(ctx, active.Stamp, chore); err != nil {
			return "", err
		}
	}
	if err := h.giveUpSession(ctx); err != nil {
		return "", err
	}
	return h.guard.Retire(ctx, chore)
}

// giveUpSession closes a session that wrote in this boot and that its claim has
// moved on without.
func (h *host) giveUpSession(ctx context.Context) error {
	s, found, err := h.guard.Session()
	if err != nil || !found || s.Step != hostguard.Restored || s.BootID != h.agent.bootID {
		return err
	}
	if h.agent.machine != nil {
		if err := h.writersStopped(ctx, stoppedWithin, producers{}); err != nil {
			return err
		}
	}
	active, err := h.guard.Active()
	if err != nil {
		return err
	}
	return h.guard.WithFence(ctx, active.Stamp, active.Fence, func(held *hostguard.Held) error {
		return held.AbandonSession(s.Generation)
	})
}

// dismiss ends the supervisor of a host that has nothing here, unless somebody
// made it look again meanwhile.
func (a *Agent) dismiss(h *host) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(h.wake) > 0 {
		return false
	}
	delete(a.hosts, h.name)
	return true
}

// poke makes the supervisor of a host look now; false if there is none.
func (a *Agent) poke(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	h, ok := a.hosts[name]
	if ok {
		h.poke()
	}
	return ok
}

// unneeded reports whether the claim last read gives this box nothing to do for
// the host, and nothing here waits to be ended.
func (h *host) unneeded() bool {
	s := h.shown.Load()
	return h.run == nil && h.left && s != nil && !names(s.claim, h.agent.self.Box)
}

const (
	// parkedFor is how long local state that was moved aside is kept, for a
	// person who misses something.
	parkedFor = 7 * 24 * time.Hour

	parkedEvery = time.Hour
	parkedPage  = 256 // entries of the directory that are read at once
)

// sweepParked removes what was moved aside long ago, until ctx ends.
func (a *Agent) sweepParked(ctx context.Context) error {
	for pause.For(ctx, parkedEvery) {
		if err := removeParked(ctx, a.parked(), time.Now().Add(-parkedFor)); err != nil {
			a.log.Warn("remove what was moved aside long ago", "err", err)
		}
	}
	return nil
}

// parked is where local state goes that is moved aside.
func (a *Agent) parked() string { return filepath.Join(a.set.DataDir, ".parked") }

// removeParked removes the entries of dir that were put there before then, and
// nothing outside of it. An entry is a directory of its own, whose time is that
// of the last move into it.
func removeParked(ctx context.Context, dir string, then time.Time) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	old, err := parkedBefore(root, then)
	for _, name := range old {
		if ctx.Err() != nil {
			return nil
		}
		err = errors.Join(err, root.RemoveAll(name))
	}
	return err
}

func parkedBefore(root *os.Root, then time.Time) (old []string, err error) {
	list, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer list.Close()
	for {
		entries, err := list.ReadDir(parkedPage)
		for _, e := range entries {
			if info, err := e.Info(); err == nil && info.ModTime().Before(then) {
				old = append(old, e.Name())
			}
		}
		if err == io.EOF || (err == nil && len(old) >= parkedPage) {
			return old, nil // the rest has time
		}
		if err != nil {
			return old, err
		}
	}
}
