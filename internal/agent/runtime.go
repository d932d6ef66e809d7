package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/hostguard"
	"github.com/carlosframework/regionha/hostrelocate"
)

// runtime makes the effects that a relocation asks this box for, each by the
// supervisor of its host.
type runtime struct{ agent *Agent }

var _ hostrelocate.Runtime = runtime{}

func (r runtime) host(name string) (*host, error) {
	h, ok := r.agent.supervised(name)
	if !ok {
		return nil, fmt.Errorf("no supervisor for %s", name)
	}
	return h, nil
}

// executing is the host's supervisor, while this box's controller of the
// operation is open: without it nothing of the operation is done here.
func (r runtime) executing(o hostclaim.Observed) (*host, error) {
	h, err := r.host(o.Host)
	if err != nil {
		return nil, err
	}
	return h, h.execution.Check(o.Claim.Op.ID)
}

// Build makes the prepared generation in the store and its database on this
// box. It costs two GETs of the pin, the replica lease (one GET, two PUTs), one
// PUT, and what [hostdb.Builder] does from what is warm, and a claim read a second.
func (r runtime) Build(ctx context.Context, o hostclaim.Observed) error {
	h, err := r.executing(o)
	if err != nil {
		return err
	}
	c := o.Claim
	if h.built == c.Op.Journal.Prepared {
		if _, err := os.Lstat(filepath.Dir(h.staged(c.Op.Journal.InstallStamp))); err == nil {
			return nil
		}
	}
	r.agent.crash("building")
	if err := h.abandon(ctx); err != nil {
		return err
	}
	if err := h.guard.Activate(ctx, c.Holder.Incarnation, c.Op.Journal.InstallStamp); err != nil {
		return err
	}
	if err := h.guard.With(ctx, c.Op.Journal.InstallStamp, func(*hostguard.Held) error { return h.build(ctx, c) }); err != nil {
		return err
	}
	h.built = c.Op.Journal.Prepared
	r.agent.crash("built")
	return nil
}

func (h *host) build(ctx context.Context, c *hostclaim.Claim) error {
	j := c.Op.Journal
	pin, err := hostrelocate.ReadPin(ctx, h.agent.control, *j.Pin)
	if err != nil {
		return err
	}
	retained, err := hostrelocate.ReadRetained(ctx, h.agent.control, pin)
	if err != nil {
		return err
	}
	lease, err := h.agent.leases.Acquire(ctx, h.agent.control, c, h.agent.self.Enrollment)
	if err != nil {
		return err
	}
	defer lease.Release(context.WithoutCancel(ctx))
	asked := h.began
	check := func(ctx context.Context) error {
		if err := errors.Join(lease.Check(), h.execution.Check(c.Op.ID)); err != nil {
			return err
		}
		now := time.Now()
		if now.Sub(asked) < askStands {
			return nil
		}
		if err := h.mayBuild(ctx, c); err != nil {
			return err
		}
		asked = now
		return nil
	}
	if err := check(ctx); err != nil {
		return err
	}
	if _, err := hostfiles.WritePrepared(ctx, h.agent.data, retained, hostrelocate.PreparedTarget(c)); err != nil {
		return err
	}
	staged := h.staged(j.InstallStamp)
	if err := os.RemoveAll(filepath.Dir(staged)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(staged), 0o700); err != nil {
		return err
	}
	_, err = hostdb.Builder{Store: h.agent.data, Check: check, Warm: h.warm()}.BuildPrepared(ctx, pin.Set, c.Holder.Location, j.Prepared, staged)
	return err
}

// askStands is how long a claim that was read lets a build go on. A build that
// goes on for so long after it is not the claim's any more is of no harm: what
// it writes nobody else writes, and no claim write rests on it.
const askStands = time.Second

// mayBuild reads the claim again: it must still hand exactly this build to this
// box.
func (h *host) mayBuild(ctx context.Context, was *hostclaim.Claim) error {
	o, err := hostclaim.Read(ctx, h.agent.control, h.name)
	if err != nil {
		return err
	}
	c := o.Claim
	if c == nil || c.Op.ID != was.Op.ID || c.Op.Phase != hostclaim.Installing || c.Op.Exec != h.agent.self.Box ||
		c.Op.Journal.Prepared != was.Op.Journal.Prepared {
		return fmt.Errorf("the claim does not hand the build of %s to this box any more", was.Op.Journal.Prepared)
	}
	return nil
}

// Install restores the prepared files to this box under the install journal. It
// costs the GETs of [hostfiles.Restore].
func (r runtime) Install(ctx context.Context, o hostclaim.Observed) (hostclaim.LocalInstall, error) {
	h, err := r.executing(o)
	if err != nil {
		return hostclaim.LocalInstall{}, err
	}
	c, j := o.Claim, o.Claim.Op.Journal
	plan := installPlan(c)
	if err := h.guard.Activate(ctx, c.Holder.Incarnation, j.InstallStamp); err != nil {
		return hostclaim.LocalInstall{}, err
	}
	r.agent.crash("installing")
	err = h.guard.With(ctx, j.InstallStamp, func(held *hostguard.Held) error {
		done, err := held.BeginInstall(plan)
		if err != nil || done {
			return err
		}
		if err := h.install(ctx, c); err != nil {
			return err
		}
		return held.FinishInstall(plan)
	})
	if err == nil {
		r.agent.crash("installed")
	}
	return hostclaim.LocalInstall{Box: h.agent.self.Box, Enrollment: h.agent.self.Enrollment, InstallStamp: j.InstallStamp,
		FilesManifest: plan.FilesManifest, SHA256: plan.FilesManifestSHA256}, err
}

// install replaces whatever files lie here by the prepared ones.
func (h *host) install(ctx context.Context, c *hostclaim.Claim) error {
	for _, dir := range []string{h.filesDir(), h.platform()} {
		if err := h.park(dir); err != nil {
			return err
		}
	}
	return hostfiles.Restore(ctx, h.agent.data, preparedRef(c), h.filesDir(), h.platform())
}

// Admit makes one cold admission. An attempt that ran here before is ended in
// order first, as in serving: only so is it known that nothing of it is lost.
// That moves the claim, which is [hostclaim.ErrConflict].
func (r runtime) Admit(ctx context.Context, o hostclaim.Observed, first ...hostclaim.Transition) (hostclaim.Observed, error) {
	h, err := r.executing(o)
	if err != nil {
		return hostclaim.Observed{}, err
	}
	ended, err := h.settle(ctx, o)
	if err != nil {
		return hostclaim.Observed{}, err
	}
	if ended {
		return hostclaim.Observed{}, fmt.Errorf("%w: session %d has ended", hostclaim.ErrConflict, o.Claim.Holder.Session)
	}
	r.agent.crash("admitting")
	next, err := h.admit(ctx, o, first...)
	if err == nil {
		r.agent.crash("admitted")
	}
	return next, err
}

// Start runs the admitted session until its app is ready and what it wrote by
// then is in the store.
func (r runtime) Start(ctx context.Context, o hostclaim.Observed) error {
	h, err := r.executing(o)
	if err != nil {
		return err
	}
	if h.run == nil {
		r.agent.crash("starting")
		if err := h.begin(ctx, o); err != nil {
			return err
		}
		r.agent.crash("started")
	}
	return h.durable(ctx)
}

// Probe asks the running session's app three times in a row, and the store once.
func (r runtime) Probe(ctx context.Context, o hostclaim.Observed) error {
	h, err := r.executing(o)
	if err != nil {
		return err
	}
	if h.run == nil || h.run.number != o.Claim.Holder.Session {
		return fmt.Errorf("session %d of %s does not run here", o.Claim.Holder.Session, o.Host)
	}
	if err := h.run.probe(ctx); err != nil {
		return err
	}
	r.agent.crash("publishing")
	return nil
}

// Stop ends whatever runs of the host here.
func (r runtime) Stop(ctx context.Context, host string) error {
	h, err := r.host(host)
	if err != nil {
		return err
	}
	return h.abandon(ctx)
}
