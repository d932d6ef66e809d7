package agent

import (
	"context"
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
	h, err := r.agent.supervisor(name)
	if err != nil {
		return nil, fmt.Errorf("no supervisor for %s: %w", name, err)
	}
	return h, nil
}

// Acknowledge journals the participation under <data>/.participations, so that
// a restart finds every one.
func (r runtime) Acknowledge(ctx context.Context, o hostclaim.Observed) error {
	h, err := r.host(o.Host)
	if err != nil {
		return err
	}
	h.left = false
	_, err = h.guard.Acknowledge(ctx, o.Claim.Op.ID, time.Now())
	return err
}

// Build makes the prepared generation in the store and its database on this
// box. It costs two GETs of the pin, the replica lease (one GET, two PUTs), one
// PUT, and a GET per pinned object and four PUTs, each after a claim read.
func (r runtime) Build(ctx context.Context, o hostclaim.Observed) error {
	h, err := r.host(o.Host)
	if err != nil {
		return err
	}
	c := o.Claim
	if h.built == c.Op.Journal.Prepared {
		return nil
	}
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
	check := func(ctx context.Context) error {
		if err := lease.Check(); err != nil {
			return err
		}
		return h.mayBuild(ctx, c)
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
	_, err = hostdb.Builder{Store: h.agent.data, Check: check}.BuildPrepared(ctx, pin.Set, c.Holder.Location, j.Prepared, staged)
	return err
}

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
	h, err := r.host(o.Host)
	if err != nil {
		return hostclaim.LocalInstall{}, err
	}
	c, j := o.Claim, o.Claim.Op.Journal
	plan := hostguard.Install{
		Op: c.Op.ID, Stamp: j.InstallStamp, Prepared: j.Prepared,
		InstallManifest: j.PreparedAuthority.InstallManifest, InstallSHA256: j.PreparedAuthority.SHA256,
		FilesManifest:       hostfiles.ManifestKey(c.Holder.Location, j.Prepared),
		FilesManifestSHA256: j.PreparedAuthority.FilesManifestSHA256,
	}
	if err := h.guard.Activate(ctx, c.Holder.Incarnation, j.InstallStamp); err != nil {
		return hostclaim.LocalInstall{}, err
	}
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
	h, err := r.host(o.Host)
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
	return h.admit(ctx, o, first...)
}

// Start runs the admitted session until its app is ready and what it wrote by
// then is in the store.
func (r runtime) Start(ctx context.Context, o hostclaim.Observed) error {
	h, err := r.host(o.Host)
	if err != nil {
		return err
	}
	if h.run == nil {
		if err := h.begin(ctx, o); err != nil {
			return err
		}
	}
	return h.durable(ctx)
}

// Probe asks the running session's app three times in a row, and the store once.
func (r runtime) Probe(ctx context.Context, o hostclaim.Observed) error {
	h, err := r.host(o.Host)
	if err != nil {
		return err
	}
	if h.run == nil || h.run.number != o.Claim.Holder.Session {
		return fmt.Errorf("session %d of %s does not run here", o.Claim.Holder.Session, o.Host)
	}
	return h.run.probe(ctx)
}

// Stop ends whatever runs of the host here.
func (r runtime) Stop(ctx context.Context, host string) error {
	h, err := r.host(host)
	if err != nil {
		return err
	}
	return h.abandon(ctx)
}
