package region_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/lease"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
)

// What the effects of a box take beside their requests.
const (
	restoreLeast, restoreMost = 500 * time.Millisecond, 2 * time.Second
	startTakes                = 300 * time.Millisecond
	stopTakes                 = 200 * time.Millisecond

	// installsAtOnce bounds the hosts that a box installs at a time.
	installsAtOnce = 8
)

// effects makes the effects of one host on one box. The database and the files
// are real and tiny; what an agent does with processes is a pause, and the
// requests that it makes meanwhile are made plainly.
type effects struct{ *host }

var _ hostrelocate.Runtime = effects{}

// Enter takes the lease of the execution controller, as hostguard.Execution
// does for an agent: a PUT, and one each 20 s.
func (r effects) Enter(ctx context.Context, o hostclaim.Observed) error {
	op := o.Claim.Op.ID
	if r.entered == op && r.lease.Check() == nil {
		return nil
	}
	if err := r.Leave(ctx, r.name, op); err != nil {
		return err
	}
	c := lease.Candidate{Store: r.box.control, Key: fmt.Sprintf("control/exec/%s/%s/%s.json", r.name, op, r.box.self.Box), Holder: r.box.self.Enrollment,
		TTL: lease.BuildTTL, New: true}
	got, err := c.Acquire(ctx)
	if err != nil {
		return err
	}
	r.entered, r.lease = op, got
	return nil
}

// Leave lets the lease go and reads the claim once more, before it believes that
// the participation is over: a PUT and a GET.
func (r effects) Leave(ctx context.Context, _, current string) error {
	if r.entered == "" || r.entered == current {
		return nil
	}
	if err := r.lease.Release(ctx); err != nil {
		return err
	}
	r.entered, r.built = "", ""
	_, err := hostclaim.Read(ctx, r.box.control, r.name)
	return err
}

// Warm lists the chain, and reads the set's objects. What the real one fetches
// it reads here, too; again within 5 s costs nothing.
func (r effects) Warm(ctx context.Context, o hostclaim.Observed) (hostrelocate.Warmth, error) {
	if r.warmOp == o.Claim.Op.ID && time.Since(r.warmedAt) < 5*time.Second {
		return r.warmth, nil
	}
	b, err := hostrelocate.Newest(ctx, r.box.data, o.Claim)
	if err != nil {
		return hostrelocate.Warmth{}, err
	}
	if r.warmOp != o.Claim.Op.ID {
		for _, object := range b.Set.Objects {
			if _, err := r.box.data.Get(ctx, object.Key); err != nil {
				return hostrelocate.Warmth{}, err
			}
		}
		r.box.restoring(ctx)
	}
	r.warmOp, r.warmedAt = o.Claim.Op.ID, time.Now()
	r.warmth = hostrelocate.Warmth{Generation: b.Set.Generation, TXID: b.Set.MaxTXID}
	return r.warmth, ctx.Err()
}

// Release stops the app and says where it ended: the last sync is a PUT, the
// files have nothing new, and the receipt is a PUT and the GET that makes it
// believed.
func (r effects) Release(ctx context.Context, o hostclaim.Observed) (hostclaim.Release, error) {
	h, me := o.Claim.Holder, r.box.self
	sleep(ctx, stopTakes)
	b, err := hostrelocate.Newest(ctx, r.box.data, o.Claim)
	if err != nil {
		return hostclaim.Release{}, err
	}
	if err := r.write(ctx, o.Claim, "last"); err != nil {
		return hostclaim.Release{}, err
	}
	receipt, err := stopevidence.Publish(ctx, r.box.control, stoptest.Filled(stopevidence.Record{Host: r.name, Op: o.Claim.Op.ID,
		Box: me.Box, Enrollment: me.Enrollment, Incarnation: h.Incarnation, Stamp: h.Stamp, Session: h.Session}))
	if err != nil {
		return hostclaim.Release{}, err
	}
	return hostclaim.Release{Box: me.Box, Enrollment: me.Enrollment, Session: h.Session, Final: b.Position,
		Receipt: receipt.Ref().Key, ReceiptSHA256: receipt.Ref().SHA256}, nil
}

// write is one upload of the app's own under its generation. Its name is none of
// Litestream's, so that nobody restores it.
func (r effects) write(ctx context.Context, c *hostclaim.Claim, name string) error {
	key := c.Holder.Location + "/" + c.Holder.Generation + "/" + name
	_, err := r.box.data.PutReader(ctx, key, newBody(name), int64(len(name)), always)
	return err
}

// Build is the agent's, on a disk that is thrown away.
func (r effects) Build(ctx context.Context, o hostclaim.Observed) error {
	c, j := o.Claim, o.Claim.Op.Journal
	if r.built == j.Prepared {
		return nil
	}
	if !r.box.install(ctx) {
		return ctx.Err()
	}
	defer r.box.installed()
	pin, err := hostrelocate.ReadPin(ctx, r.box.control, *j.Pin)
	if err != nil {
		return err
	}
	retained, err := hostrelocate.ReadRetained(ctx, r.box.control, pin)
	if err != nil {
		return err
	}
	held, err := r.box.leases.Acquire(ctx, r.box.control, c, r.box.self.Enrollment)
	if err != nil {
		return err
	}
	defer func() { _ = held.Release(context.WithoutCancel(ctx)) }()
	asked := r.began
	check := func(ctx context.Context) error {
		if time.Since(asked) < time.Second {
			return nil
		}
		asked = time.Now()
		_, err := hostclaim.Read(ctx, r.box.control, r.name)
		return err
	}
	if err := check(ctx); err != nil {
		return err
	}
	if _, err := hostfiles.WritePrepared(ctx, r.box.data, retained, hostrelocate.PreparedTarget(c)); err != nil {
		return err
	}
	r.box.restoring(ctx)
	dir, err := os.MkdirTemp(r.box.region.scratch, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	builder := hostdb.Builder{Store: r.box.data, Check: check}
	if _, err = builder.BuildPrepared(ctx, pin.Set, c.Holder.Location, j.Prepared, filepath.Join(dir, "app.db")); err == nil {
		r.built = j.Prepared
	}
	return err
}

// Install restores the prepared files to a disk that is thrown away.
func (r effects) Install(ctx context.Context, o hostclaim.Observed) (hostclaim.LocalInstall, error) {
	c, j := o.Claim, o.Claim.Op.Journal
	key, digest := hostfiles.ManifestKey(c.Holder.Location, j.Prepared), j.PreparedAuthority.FilesManifestSHA256
	dir, err := os.MkdirTemp(r.box.region.scratch, "install-")
	if err != nil {
		return hostclaim.LocalInstall{}, err
	}
	defer os.RemoveAll(dir)
	err = hostfiles.Restore(ctx, r.box.data, hostfiles.ManifestRef{Key: key, SHA256: digest}, filepath.Join(dir, "files"), filepath.Join(dir, "platform"))
	return hostclaim.LocalInstall{Box: r.box.self.Box, Enrollment: r.box.self.Enrollment, InstallStamp: j.InstallStamp, FilesManifest: key, SHA256: digest}, err
}

// VerifyInstall looks at the disk only.
func (r effects) VerifyInstall(context.Context, hostclaim.Observed) error { return nil }

// Admit opens the prepared generation as an agent does.
func (r effects) Admit(ctx context.Context, o hostclaim.Observed, first ...hostclaim.Transition) (hostclaim.Observed, error) {
	c := o.Claim
	a := hostclaim.Admission{Op: c.Op.ID, Phase: hostclaim.Probing, Session: c.Holder.Session, Generation: c.Holder.Generation,
		Box: r.box.self.Box, NewGeneration: c.Op.Journal.Prepared, KeepStamp: true, Baseline: c.Op.Journal.Pin.Position}
	if c.PreparedOpened() {
		b, err := hostrelocate.Newest(ctx, r.box.data, c)
		if err != nil {
			return hostclaim.Observed{}, err
		}
		a.NewGeneration, a.KeepStamp, a.Baseline = "g-"+record.Nonce(), false, b.Position
	}
	switch release := c.Op.Journal.Release; {
	case a.KeepStamp && release != nil && release.Session == c.Holder.Session:
		a.Coverage = hostclaim.Released
	case c.Holder.Ended != nil:
		a.Coverage = hostclaim.CleanReturn
	}
	return hostclaim.Update(ctx, r.box.control, o, hostclaim.Then(append(first, hostclaim.AdmitWriter(a))...))
}

// Start makes the requests of the agent's begin, in its order: the record, the
// prepared generation's manifest, the opening of the files, the instance key (two
// GETs), the publisher's one, the replicator's listing and base; and then the
// app's first write reaches the store.
func (r effects) Start(ctx context.Context, o hostclaim.Observed) error {
	c, j, data := o.Claim, o.Claim.Op.Journal, r.box.data
	if r.running == c.Holder.Session {
		return nil
	}
	if _, err := hostrecord.Read(ctx, r.box.control, c.Holder.Account, c.Holder.App, r.name); err != nil {
		return err
	}
	p, err := hostdb.ReadPrepared(ctx, data, c.Holder.Location, j.Prepared, j.PreparedAuthority.SHA256)
	if err != nil {
		return err
	}
	key := hostfiles.ManifestKey(c.Holder.Location, j.Prepared)
	_, err = hostfiles.OpenPrepared(ctx, data, hostfiles.ManifestRef{Key: key, SHA256: j.PreparedAuthority.FilesManifestSHA256},
		hostfiles.Target{Location: c.Holder.Location, Generation: j.Prepared, Session: c.Holder.Session, Stamp: c.Holder.Stamp})
	if err != nil {
		return err
	}
	for _, key := range []string{key, key, key, p.Objects[len(p.Objects)-1].Key} {
		if _, err := data.Get(ctx, key); err != nil {
			return err
		}
	}
	for _, err := range data.List(ctx, c.Holder.Location+"/"+j.Prepared+"/") {
		if err != nil {
			return err
		}
	}
	if !sleep(ctx, startTakes) {
		return ctx.Err()
	}
	if err := r.write(ctx, c, "first"); err != nil {
		return err
	}
	r.running = c.Holder.Session
	return nil
}

// Probe asks the app, three times in a row.
func (r effects) Probe(context.Context, hostclaim.Observed) error { return nil }

// Stop ends what runs.
func (r effects) Stop(context.Context, string) error {
	r.running = 0
	return nil
}
