package hostrelocate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
)

// disk is what a crash of a box's agent leaves.
type disk struct {
	root      string
	entered   string                        // the operation whose controller is open
	active    bool                          // the claim held its acknowledgement
	installed uint64                        // the stamp of the local install that is here
	installs  int                           // how often one was made
	finals    map[uint64]hostclaim.Position // what each session was flushed to, once
	flushes   int
}

// box is a box's effects, without processes: the database and the files are
// real.
type box struct {
	*world
	*disk
	self hostclaim.Member
	warm func(context.Context) error // what happens while it fetches; nil: nothing
}

var (
	errProbe = errors.New("the app answers 500")
	errOver  = errors.New("the session is over")
)

func (b *box) Enter(_ context.Context, o hostclaim.Observed) error {
	b.entered, b.active = o.Claim.Op.ID, o.Claim.Op.Journal.Acks[b.self.Box] == b.self.Enrollment
	return nil
}

func (b *box) Leave(_ context.Context, _, current string) error {
	if b.entered != current {
		b.entered, b.active = "", false
	}
	return nil
}

// inside is the rule of every effect: no effect without an open controller.
func (b *box) inside(o hostclaim.Observed) {
	if b.entered != o.Claim.Op.ID || !b.active {
		b.tb.Errorf("%s acts in %s under the controller of %q, active %t", b.self.Box, o.Claim.Op.ID, b.entered, b.active)
	}
}

func (b *box) Warm(ctx context.Context, o hostclaim.Observed) (hostrelocate.Warmth, error) {
	b.inside(o)
	if b.warm != nil {
		if err := b.warm(ctx); err != nil {
			return hostrelocate.Warmth{}, err
		}
	}
	base, err := hostrelocate.Newest(ctx, b.data, o.Claim)
	return hostrelocate.Warmth{Generation: base.Set.Generation, TXID: base.Set.MaxTXID}, err
}

// Release flushes the session once, journals where it ended, and proves it.
func (b *box) Release(ctx context.Context, o hostclaim.Observed) (hostclaim.Release, error) {
	b.inside(o)
	h := o.Claim.Holder
	final, err := b.end(ctx, o.Claim)
	if err != nil {
		return hostclaim.Release{}, err
	}
	receipt, err := stopevidence.Publish(ctx, b.control, stoptest.Filled(stopevidence.Record{Host: host, Op: o.Claim.Op.ID,
		Box: b.self.Box, Enrollment: b.self.Enrollment, Incarnation: h.Incarnation, Stamp: h.Stamp, Session: h.Session}))
	if err != nil {
		return hostclaim.Release{}, err
	}
	return hostclaim.Release{Box: b.self.Box, Enrollment: b.self.Enrollment, Session: h.Session, Final: final,
		Receipt: receipt.Ref().Key, ReceiptSHA256: receipt.Ref().SHA256}, nil
}

// end is where the current session ended.
func (b *box) end(ctx context.Context, c *hostclaim.Claim) (hostclaim.Position, error) {
	h := c.Holder
	if h.Ended != nil {
		return h.Ended.Final, nil
	}
	if final, ok := b.finals[h.Session]; ok {
		return final, nil
	}
	var final hostclaim.Position
	var err error
	if h.Generation == "g-1" {
		final, err = b.flush(ctx, c)
	} else { // its app wrote nothing here
		var base hostrelocate.Baseline
		base, err = hostrelocate.Newest(ctx, b.data, c)
		final = base.Position
	}
	if err != nil {
		return hostclaim.Position{}, err
	}
	if b.finals == nil {
		b.finals = map[uint64]hostclaim.Position{}
	}
	b.finals[h.Session] = final
	b.flushes++
	return final, nil
}

// flush brings the last of the first session to the store.
func (b *box) flush(ctx context.Context, c *hostclaim.Claim) (p hostclaim.Position, err error) {
	p.Generation, p.FilesGeneration = c.Holder.Generation, c.Holder.Generation
	r, err := hostdb.Open(ctx, b.data, b.database(c, hostdb.Config{}))
	if err != nil {
		return p, err
	}
	if p.TXID, err = r.FlushFinal(ctx); err != nil {
		return p, errors.Join(err, r.Close())
	}
	if err := r.Close(); err != nil {
		return p, err
	}
	if err := os.WriteFile(filepath.Join(b.dir("files"), "last"), []byte("words"), 0o644); err != nil {
		return p, err
	}
	files, err := hostfiles.New(ctx, b.data, hostfiles.Config{Root: b.dir("files"), Platform: b.dir("platform"), Target: hostfiles.Target{
		Location: c.Holder.Location, Generation: "g-1", Session: c.Holder.Session, Stamp: c.Holder.Stamp}})
	if err != nil {
		return p, err
	}
	if p.FilesSeq, err = files.SyncDir(ctx); err != nil {
		return p, errors.Join(err, files.Close())
	}
	return p, files.Close()
}

// database is where the host's database lies on this disk.
func (b *box) database(c *hostclaim.Claim, cfg hostdb.Config) hostdb.Config {
	cfg.Path, cfg.MetaDir, cfg.Check = filepath.Join(b.dir("db"), "app.db"), filepath.Join(b.dir("db"), "meta"), func() error { return nil }
	cfg.Generation = hostdb.Generation{Location: c.Holder.Location, ID: c.Holder.Generation, Session: c.Holder.Session}
	return cfg
}

func (b *box) dir(name string) string { return filepath.Join(b.root, name) }

func (b *box) Build(ctx context.Context, o hostclaim.Observed) error {
	b.inside(o)
	c := o.Claim
	pin, err := hostrelocate.ReadPin(ctx, b.control, *c.Op.Journal.Pin)
	if err != nil {
		return err
	}
	retained, err := hostrelocate.ReadRetained(ctx, b.control, pin)
	if err != nil {
		return err
	}
	if _, err := hostfiles.WritePrepared(ctx, b.data, retained, hostrelocate.PreparedTarget(c)); err != nil {
		return err
	}
	if err := os.RemoveAll(b.dir("db")); err != nil {
		return err
	}
	if err := os.MkdirAll(b.dir("db"), 0o700); err != nil {
		return err
	}
	builder := hostdb.Builder{Store: b.data, Check: func(context.Context) error { return nil }}
	_, err = builder.BuildPrepared(ctx, pin.Set, c.Holder.Location, c.Op.Journal.Prepared, filepath.Join(b.dir("db"), "app.db"))
	return err
}

func (b *box) Install(ctx context.Context, o hostclaim.Observed) (hostclaim.LocalInstall, error) {
	b.inside(o)
	c := o.Claim
	key := hostfiles.ManifestKey(c.Holder.Location, c.Op.Journal.Prepared)
	digest := c.Op.Journal.PreparedAuthority.FilesManifestSHA256
	receipt := hostclaim.LocalInstall{Box: b.self.Box, Enrollment: b.self.Enrollment, InstallStamp: c.Op.Journal.InstallStamp, FilesManifest: key, SHA256: digest}
	if b.installed == receipt.InstallStamp {
		return receipt, nil
	}
	for _, dir := range []string{"files", "platform"} {
		if err := os.RemoveAll(b.dir(dir)); err != nil {
			return hostclaim.LocalInstall{}, err
		}
	}
	if err := hostfiles.Restore(ctx, b.data, hostfiles.ManifestRef{Key: key, SHA256: digest}, b.dir("files"), b.dir("platform")); err != nil {
		return hostclaim.LocalInstall{}, err
	}
	b.installed = receipt.InstallStamp
	b.installs++
	return receipt, nil
}

func (b *box) VerifyInstall(_ context.Context, o hostclaim.Observed) error {
	if !o.Claim.PreparedOpened() {
		b.tb.Error("an install is verified only once the prepared generation was opened")
	}
	if b.installed != o.Claim.Op.Journal.InstallStamp {
		return fmt.Errorf("%w: of installation %d", hostrelocate.ErrNoInstall, o.Claim.Op.Journal.InstallStamp)
	}
	return nil
}

func (b *box) Admit(ctx context.Context, o hostclaim.Observed, first ...hostclaim.Transition) (hostclaim.Observed, error) {
	b.inside(o)
	c := o.Claim
	a := hostclaim.Admission{Op: c.Op.ID, Phase: hostclaim.Probing, Session: c.Holder.Session, Generation: c.Holder.Generation,
		Box: b.self.Box, NewGeneration: c.Op.Journal.Prepared, KeepStamp: true, Baseline: c.Op.Journal.Pin.Position}
	if c.PreparedOpened() {
		base, err := hostrelocate.Newest(ctx, b.data, c)
		if err != nil {
			return hostclaim.Observed{}, err
		}
		a.NewGeneration, a.KeepStamp, a.Baseline = "g-"+record.Nonce(), false, base.Position
	}
	switch r := c.Op.Journal.Release; {
	case a.KeepStamp && r != nil && r.Session == c.Holder.Session:
		a.Coverage = hostclaim.Released
	case c.Holder.Ended != nil:
		a.Coverage = hostclaim.CleanReturn
	}
	return hostclaim.Update(ctx, b.control, o, hostclaim.Then(append(first, hostclaim.AdmitWriter(a))...))
}

func (b *box) Start(_ context.Context, o hostclaim.Observed) error {
	b.inside(o)
	if o.Claim.Holder.Ended != nil {
		return errOver
	}
	return nil
}

func (b *box) Probe(context.Context, hostclaim.Observed) error {
	if len(b.probes) == 0 {
		return nil
	}
	err := b.probes[0]
	b.probes = b.probes[1:]
	return err
}

// Stop ends the session in order, as a box does before it asks for another.
func (b *box) Stop(ctx context.Context, _ string) error {
	o, err := hostclaim.Read(ctx, b.control, host)
	if err != nil {
		return err
	}
	final, err := b.end(ctx, o.Claim)
	if err != nil {
		return err
	}
	_, err = hostclaim.Update(ctx, b.control, o, hostclaim.EndSession(b.self.Box, o.Claim.Holder.Session, final))
	if errors.Is(err, hostclaim.ErrAlreadyRecorded) {
		return nil
	}
	return err
}

func encode[T any](tb testing.TB, v T) []byte {
	body, err := record.Encode(v)
	require.NoError(tb, err)
	return body
}
