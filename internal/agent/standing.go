package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/carlosframework/regionha/internal/alert"
	"github.com/carlosframework/regionha/internal/pause"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

const (
	// standEvery is how often the roster is read: a box that an operator lets be
	// chosen again is not for so long.
	standEvery = 10 * time.Second

	// A box that may not join its region yet asks again every second, as boxes
	// that start together wait for each other's first edges file; after
	// joinGrace it is alerted, and asks every joinAgain.
	joinGrace = 30 * time.Second
	joinAgain = 30 * time.Second
)

// place is this box's standing in its region.
type place struct {
	draining atomic.Bool                       // by the roster
	barred   atomic.Bool                       // by the roster: it takes no new work
	joined   atomic.Bool                       // it may make rows
	refused  atomic.Bool                       // and may not, for longer than it takes to join
	listed   atomic.Pointer[map[string]string] // every claim, by the last complete listing
}

// stand follows the roster until ctx ends: one GET each 10 s.
func (a *Agent) stand(ctx context.Context) error {
	began := time.Now()
	for again := time.Duration(0); pause.For(ctx, again); again = a.standAgain(time.Since(began)) {
		snap, err := a.roster.Read(ctx)
		if err != nil {
			a.log.Warn("read the roster", "err", err)
			continue
		}
		a.follow(ctx, snap)
		if !a.place.joined.Load() && !a.place.barred.Load() {
			a.join(ctx, snap, time.Since(began))
		}
	}
	return nil
}

func (a *Agent) standAgain(waited time.Duration) time.Duration {
	switch {
	case a.place.joined.Load():
		return standEvery
	case waited > joinGrace:
		return joinAgain
	}
	return time.Second
}

// follow does what the roster says of this box. Where it cannot be told whether
// this machine is still that box, the last answer stands.
func (a *Agent) follow(ctx context.Context, snap roster.Snapshot) {
	box, _ := snap.Box(a.self.Box)
	changed := a.place.draining.Swap(box.Draining) != box.Draining
	switch err := a.mayAct(ctx, snap); {
	case err == nil:
		changed = a.place.barred.Swap(false) || changed
	case errors.Is(err, roster.ErrNotSelf):
		changed = !a.place.barred.Swap(true) || changed
	default:
		a.log.Warn("compare this machine with the roster", "err", err)
	}
	if changed {
		a.log.Info("the roster says otherwise now", "draining", box.Draining, "barred", a.place.barred.Load())
		a.rowsChanged()
	}
}

// join asks whether this box may make rows in its region. What cannot be read
// is no answer. It costs a GET for each box of the region that is in the way:
// of its fence.
func (a *Agent) join(ctx context.Context, snap roster.Snapshot, waited time.Duration) {
	err, unknown := a.permitted(ctx, snap)
	switch {
	case unknown != nil:
		a.log.Warn("whether this box may join its region is not known yet", "err", unknown)
	case err == nil:
		err = a.recordJoining()
	}
	if err == nil && unknown == nil {
		a.place.joined.Store(true)
		a.place.refused.Store(false)
		a.alerts.Clear(alert.Gate, a.set.Region)
		a.rowsChanged()
		return
	}
	a.homes.soon()
	if err != nil && waited > joinGrace {
		a.alerts.Raise(alert.Gate, a.set.Region, "this box takes no hosts: it may not join its region yet", "err", err)
		if !a.place.refused.Swap(true) {
			a.rowsChanged()
		}
	}
}

// errNotYet: what is to be asked was not read yet.
var errNotYet = errors.New("not read yet")

// permitted is [placement.Permits] for this box; unknown says why there is no
// answer.
func (a *Agent) permitted(ctx context.Context, snap roster.Snapshot) (refused, unknown error) {
	files, listed := a.homes.files.Load(), a.place.listed.Load()
	if files == nil {
		return nil, errNotYet
	}
	fences := termfence.Reader{Store: a.control, Roster: a.roster}
	refused = placement.Permits(placement.Joining{
		Region: a.set.Region, Box: a.self.Box, Roster: snap.Roster, Files: files.Files, Now: time.Now(),
		Claimed: func(host string) bool {
			if listed == nil {
				unknown = errors.Join(unknown, errNotYet)
				return false
			}
			_, ok := (*listed)[host]
			return ok
		},
		Gone: func(ref string) bool {
			_, gone, err := fences.Fenced(ctx, snap.Boxes[ref].Enrollment)
			unknown = errors.Join(unknown, err)
			return gone
		},
	})
	if unknown != nil {
		return nil, unknown
	}
	return refused, nil
}

// accepts reports whether this box offers to take hosts.
func (p *place) accepts() bool {
	return !p.draining.Load() && !p.barred.Load() && !p.refused.Load()
}

// errBarred: the roster says that this machine takes no new work.
var errBarred = errors.New("this machine may not act as its box any more")

// mayTake reports whether this box may have a row for the host: one that it has
// already, or, once it has joined its region, any.
func (a *Agent) mayTake(host string) bool {
	switch p := &a.place; {
	case p.barred.Load():
		return false
	case p.joined.Load():
		return true
	}
	return a.has(host)
}

// joinedFile remembers that this enrollment has joined: a box joins once.
const joinedFile = "joined"

func (a *Agent) recordJoining() error {
	return os.WriteFile(filepath.Join(a.set.DataDir, joinedFile), []byte(a.self.Enrollment+"\n"), 0o600)
}

func (a *Agent) recallJoining() error {
	raw, err := os.ReadFile(filepath.Join(a.set.DataDir, joinedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	a.place.joined.Store(strings.TrimSpace(string(raw)) == a.self.Enrollment)
	return err
}
