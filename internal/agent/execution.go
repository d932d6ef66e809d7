package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/hostguard"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/lease"
)

// newExecution makes the controller by which a host takes part in operations.
func (h *host) newExecution() (err error) {
	h.execution, err = hostguard.NewExecution(hostguard.ExecutionConfig{
		Guard: h.guard, Store: h.agent.control, CleanUp: h.cleanUp, Over: h.over, Logger: h.log,
		TTL: lease.BuildTTL, // nobody waits for it to expire, and a move may wait through the pin delay
	})
	return err
}

// recall gives a supervisor to every host for which an earlier process may have
// left a participation: its operation may have ended meanwhile, and then no claim
// names this box any more. The supervisor's steps end it, and then the supervisor.
func (a *Agent) recall() {
	hosts, damaged, err := hostguard.Participants(a.set.DataDir)
	if err := errors.Join(append(damaged, err)...); err != nil {
		a.log.Error("participations of earlier processes cannot be read, and are not ended", "err", err)
	}
	for _, host := range hosts {
		if _, err := a.supervisor(host); err != nil {
			a.log.Error("a participation of an earlier process is not ended", "host", host, "err", err)
		}
	}
}

// Enter opens this box's controller of the operation, before any effect of it.
// A box that could not release what it runs takes no part: the operation is
// then cancelled, and the host serves on.
func (r runtime) Enter(ctx context.Context, o hostclaim.Observed) error {
	h, err := r.host(o.Host)
	if err != nil {
		return err
	}
	op := o.Claim.Op
	acknowledged := op.Journal.Acks[r.agent.self.Box] != ""
	if !acknowledged && sources(o.Claim, r.agent.self.Box) {
		if err := h.releasable(ctx); err != nil {
			return err
		}
	}
	r.agent.crash("entering")
	if err := h.execution.Enter(ctx, op.ID); err != nil {
		return err
	}
	if acknowledged {
		return h.execution.Active(ctx, op.ID)
	}
	r.agent.crash("entered")
	return nil
}

// Leave ends every participation of the host here but the one in current.
func (r runtime) Leave(ctx context.Context, host, current string) error {
	h, err := r.host(host)
	if err != nil {
		return err
	}
	return h.execution.Finish(ctx, current)
}

// VerifyInstall is nil if the local install that the claim's receipt names was
// finished here.
func (r runtime) VerifyInstall(_ context.Context, o hostclaim.Observed) error {
	h, err := r.host(o.Host)
	if err != nil {
		return err
	}
	err = h.guard.VerifyInstall(installPlan(o.Claim))
	if errors.Is(err, hostguard.ErrNoInstall) {
		return fmt.Errorf("%w: %w", hostrelocate.ErrNoInstall, err)
	}
	return err
}

// installPlan is the local install that the claim asks its target for.
func installPlan(c *hostclaim.Claim) hostguard.Install {
	j := c.Op.Journal
	return hostguard.Install{
		Op: c.Op.ID, Stamp: j.InstallStamp, Prepared: j.Prepared,
		InstallManifest: j.PreparedAuthority.InstallManifest, InstallSHA256: j.PreparedAuthority.SHA256,
		FilesManifest:       hostfiles.ManifestKey(c.Holder.Location, j.Prepared),
		FilesManifestSHA256: j.PreparedAuthority.FilesManifestSHA256,
	}
}

// releasable refuses where a stop could not be proven. That something runs is
// the expected answer.
func (h *host) releasable(ctx context.Context) error {
	if h.agent.machine == nil {
		return errNoMachine
	}
	_, err := h.agent.machine.WritersStopped(ctx, h.name, h.subject(), nil)
	if isHeld(err) {
		return nil
	}
	return err
}

// cleanUp retires what an operation installed here and nobody opened: its files,
// and the database that was built for them. It may run beside the supervisor.
func (h *host) cleanUp(ctx context.Context, op string) error {
	return h.guard.RetireInstall(ctx, op, func(i hostguard.Install) error {
		for _, dir := range []string{h.filesDir(), h.platform(), filepath.Dir(h.staged(i.Stamp))} {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
		return nil
	})
}

// over reports whether a fresh claim read shows that op is over for this box. A
// host without a claim shows nothing.
func (h *host) over(ctx context.Context, op string) (bool, error) {
	o, err := hostclaim.Read(ctx, h.agent.control, h.name)
	if err != nil {
		return false, err
	}
	if o.Claim == nil {
		return false, fmt.Errorf("the claim of %s is absent", h.name)
	}
	return o.Claim.Op.ID != op || !hostrelocate.Takes(o.Claim, h.agent.self.Box), nil
}
