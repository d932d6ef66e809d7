package agent

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/hostfiles"
	"github.com/carlosframework/regionha/hostguard"
	"github.com/carlosframework/regionha/hostrelocate"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/runner"
)

// errSessionOver: the session ran here before, in a process that is gone. It is
// not continued: the next admission restores what reached the store.
var errSessionOver = errors.New("the session is over")

// admit makes one cold admission as the newest step of the claim: it journals
// the generation that it asks for, and then writes first and the admission as
// one claim write. It costs the requests of [hostrelocate.Newest], or none where
// the prepared generation is opened.
func (h *host) admit(ctx context.Context, o hostclaim.Observed, first ...hostclaim.Transition) (hostclaim.Observed, error) {
	c := o.Claim
	a := hostclaim.Admission{
		Op: c.Op.ID, Phase: c.Op.Phase, Session: c.Holder.Session, Generation: c.Holder.Generation,
		Box: h.agent.self.Box, KeepStamp: c.Holder.Stamp > c.Holder.Session,
	}
	if len(first) > 0 {
		a.Phase = hostclaim.Probing // first leads there, if it is not there yet
	}
	if c.Holder.Ended != nil {
		a.Coverage = hostclaim.CleanReturn
	}
	h.baseline = nil
	if j := c.Op.Journal; j.Prepared != "" && j.PreparedOpened == "" {
		a.NewGeneration, a.Baseline = j.Prepared, j.Pin.Position
	} else {
		b, err := hostrelocate.Newest(ctx, h.agent.data, c)
		if err != nil {
			return hostclaim.Observed{}, err
		}
		h.baseline = &b
		a.NewGeneration, a.Baseline = "g-"+record.Nonce(), b.Position
	}
	if err := h.ask(ctx, c, a.NewGeneration); err != nil {
		return hostclaim.Observed{}, err
	}
	return hostclaim.Update(ctx, h.agent.control, o, hostclaim.Then(append(first, hostclaim.AdmitWriter(a))...))
}

// ask journals the generation before the claim is asked for it. Files that this
// box cannot vouch for are moved aside first, while the journal still says why.
func (h *host) ask(ctx context.Context, c *hostclaim.Claim, generation string) error {
	if err := h.guard.Activate(ctx, c.Holder.Incarnation, c.Holder.Stamp); err != nil {
		return err
	}
	return h.guard.With(ctx, c.Holder.Stamp, func(held *hostguard.Held) error {
		if err := h.distrustFiles(c); err != nil {
			return err
		}
		return held.AskSession(generation)
	})
}

// distrustFiles moves the local files aside unless the last session here is of
// this incarnation and either ended or ran in this very boot. A relocation's own
// local install is always trusted: it was just made.
func (h *host) distrustFiles(c *hostclaim.Claim) error {
	if c.Op.Kind == hostclaim.Relocating && c.Op.Journal.PreparedOpened == "" {
		return nil
	}
	last, found, err := h.guard.Session()
	if err != nil {
		return err
	}
	vouched := last.Step == hostguard.Ended || last.BootID == h.agent.bootID
	if found && last.Incarnation == c.Holder.Incarnation && vouched {
		return nil
	}
	for _, dir := range []string{h.filesDir(), h.platform()} {
		if err := h.park(dir); err != nil {
			return err
		}
	}
	return nil
}

// park moves local state aside, where an operator finds it.
func (h *host) park(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	to := filepath.Join(h.agent.set.DataDir, ".parked", h.name+"-"+filepath.Base(path)+"-"+record.Nonce())
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	h.log.Warn("moving local state aside", "from", path, "to", to)
	return os.Rename(path, to)
}

// startable reports whether the session that the claim admitted was only asked
// for by this box: it wrote nothing yet and may start.
func (h *host) startable(c *hostclaim.Claim) (bool, error) {
	s, found, err := h.guard.Session()
	if err != nil || !found {
		return false, err
	}
	return c.Holder.WriterBox == h.agent.self.Box && c.Holder.Ended == nil && c.Holder.Session > 0 &&
		s.Generation == c.Holder.Generation && s.Step == hostguard.Asked && s.BootID == h.agent.bootID, nil
}

// begin runs the session that the claim admitted: purge, restore, files and key
// in place, replicator open, app started. On an error nothing runs.
//
// It costs the GETs of the restore (none where the database was built here), the
// requests of [hostfiles.AdmitCopy] or [hostfiles.OpenPrepared],
// [hostfiles.EnsureInstanceKey], [hostfiles.New] and [hostdb.Open], and one GET
// of the record.
func (h *host) begin(ctx context.Context, o hostclaim.Observed) error {
	c := o.Claim
	rec, err := h.readRecord(ctx, c)
	if err != nil {
		return err
	}
	h.record = rec
	ok, err := h.startable(c)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: %d of %s", errSessionOver, c.Holder.Session, c.Holder.Generation)
	}
	if err := h.guard.Activate(ctx, c.Holder.Incarnation, c.Holder.Stamp); err != nil {
		return err
	}
	var db hostdb.Config
	var files *hostfiles.Pinned
	err = h.guard.With(ctx, c.Holder.Stamp, func(held *hostguard.Held) error {
		if db, err = h.restoreDatabase(ctx, c); err != nil {
			return err
		}
		if files, err = h.restoreFiles(ctx, c); err != nil {
			return err
		}
		for _, dir := range []string{h.filesDir(), h.platform()} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
		}
		return held.RestoredSession(c.Holder.Generation)
	})
	if err != nil {
		return err
	}
	return h.open(ctx, c, db, files)
}

// open starts a restored session, whose files half begins as a copy of from; nil
// opens the prepared generation.
func (h *host) open(ctx context.Context, c *hostclaim.Claim, db hostdb.Config, from *hostfiles.Pinned) error {
	s := &session{number: c.Holder.Session, generation: c.Holder.Generation, files: hostfiles.Target{
		Location: c.Holder.Location, Generation: c.Holder.Generation, Session: c.Holder.Session, Stamp: c.Holder.Stamp}}
	key, err := h.openFiles(ctx, c, s, from)
	if err != nil {
		return err
	}
	db.Check = s.check
	if s.replicator, err = hostdb.Open(ctx, h.agent.data, db); err != nil {
		return errors.Join(err, s.publisher.Close())
	}
	app := h.appConfig(s)
	app.InstanceKey = key
	if s.app, err = runner.Start(app); err != nil {
		s.lost.Store(true)
		return errors.Join(err, s.publisher.Close(), ignoreRefused(s.replicator.Close()))
	}
	s.run(ctx)
	h.run = s
	return nil
}

// ignoreRefused drops what a close says when its uploads were refused on
// purpose.
func ignoreRefused(err error) error {
	if errors.Is(err, errNotAdmitted) {
		return nil
	}
	return err
}

// openFiles begins the generation's files: the manifest first, then the key,
// then the publisher.
func (h *host) openFiles(ctx context.Context, c *hostclaim.Claim, s *session, from *hostfiles.Pinned) ([]byte, error) {
	var err error
	if from == nil {
		_, err = hostfiles.OpenPrepared(ctx, h.agent.data, preparedRef(c), s.files)
	} else if from.Key != "" && from.Key != hostfiles.ManifestKey(s.files.Location, s.files.Generation) {
		_, err = hostfiles.AdmitCopy(ctx, h.agent.data, from.ManifestRef, s.files)
	}
	if err != nil {
		return nil, err
	}
	text, err := hostfiles.EnsureInstanceKey(ctx, h.agent.data, s.files, h.platform())
	if err != nil {
		return nil, err
	}
	key, err := base64.RawURLEncoding.DecodeString(string(text))
	if err != nil {
		return nil, errors.New("the instance key is not base64url")
	}
	s.publisher, err = hostfiles.New(ctx, h.agent.data, hostfiles.Config{
		Root: h.filesDir(), Platform: h.platform(), Target: s.files,
		Durability: h.record.FilesDurability, Interval: h.record.FilesSnapshotInterval.Std(),
		Check: func(context.Context) error { return s.check() }, Logger: h.log,
	})
	return key, err
}

func preparedRef(c *hostclaim.Claim) hostfiles.ManifestRef {
	j := c.Op.Journal
	return hostfiles.ManifestRef{Key: hostfiles.ManifestKey(c.Holder.Location, j.Prepared), SHA256: j.PreparedAuthority.FilesManifestSHA256}
}

// opensPrepared reports whether the current session is the one opening of the
// prepared generation.
func opensPrepared(c *hostclaim.Claim) bool {
	p := c.Op.Journal.Prepared
	return p != "" && c.Holder.Generation == p
}

// restoreDatabase purges the local database and puts the session's baseline in
// its place. A failed purge refuses the start.
func (h *host) restoreDatabase(ctx context.Context, c *hostclaim.Claim) (hostdb.Config, error) {
	for _, dir := range []string{filepath.Dir(h.database()), filepath.Join(h.dir(), "meta")} {
		if err := os.RemoveAll(dir); err != nil {
			return hostdb.Config{}, fmt.Errorf("purge: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(h.database()), 0o700); err != nil {
		return hostdb.Config{}, err
	}
	cfg := hostdb.Config{
		Path: h.database(), MetaDir: h.meta(c.Holder.Generation), Logger: h.log,
		Generation: hostdb.Generation{Location: c.Holder.Location, ID: c.Holder.Generation, Session: c.Holder.Session},
	}
	if opensPrepared(c) {
		return h.placePrepared(ctx, c, cfg)
	}
	b, err := h.chosen(ctx, c)
	if err != nil {
		return cfg, err
	}
	cfg.Empty = b.Set.Empty
	if !cfg.Empty {
		_, err = hostdb.Restore(ctx, h.agent.data, b.Set, h.database(), nil)
	}
	return cfg, err
}

// chosen is the baseline of the current admission. A process that did not make
// the admission selects again: the newest generation holds nothing yet, so the
// answer is the same.
func (h *host) chosen(ctx context.Context, c *hostclaim.Claim) (hostrelocate.Baseline, error) {
	if h.baseline != nil {
		return *h.baseline, nil
	}
	b, err := hostrelocate.Newest(ctx, h.agent.data, c)
	if err != nil {
		return hostrelocate.Baseline{}, err
	}
	h.baseline = &b
	return b, nil
}

// placePrepared opens the database that this installation built, or restores it
// from the prepared generation.
func (h *host) placePrepared(ctx context.Context, c *hostclaim.Claim, cfg hostdb.Config) (hostdb.Config, error) {
	j := c.Op.Journal
	p, err := hostdb.ReadPrepared(ctx, h.agent.data, c.Holder.Location, j.Prepared, j.PreparedAuthority.SHA256)
	if err != nil {
		return cfg, err
	}
	cfg.Base, cfg.BaseSHA256, cfg.Empty = p.SnapshotTXID, p.DatabaseSHA256, p.SnapshotTXID == 0
	if cfg.Empty {
		return cfg, nil
	}
	staged := h.staged(j.InstallStamp)
	same, err := p.Matches(staged)
	if err != nil {
		return cfg, err
	}
	if same {
		return cfg, os.Rename(staged, h.database())
	}
	return cfg, p.Restore(ctx, h.agent.data, h.database(), nil)
}

// restoreFiles puts the files of the baseline in place where the local ones are
// not this box's own live state, and says which manifest the session's own
// begins as a copy of; nil for the prepared generation, whose files were
// installed.
func (h *host) restoreFiles(ctx context.Context, c *hostclaim.Claim) (*hostfiles.Pinned, error) {
	if opensPrepared(c) {
		return nil, nil
	}
	b, err := h.chosen(ctx, c)
	if err != nil {
		return nil, err
	}
	_, statErr := os.Lstat(h.filesDir())
	switch {
	case statErr == nil || b.Files.Key == "":
		return &b.Files, nil
	case !errors.Is(statErr, os.ErrNotExist):
		return nil, statErr
	}
	return &b.Files, hostfiles.Restore(ctx, h.agent.data, b.Files.ManifestRef, h.filesDir(), h.platform())
}

// settle ends the session that an earlier process of this box left, where that
// is possible: one that was only asked for wrote nothing, one that ended here is
// repeated to the claim, and one of this very boot is flushed first. Otherwise
// the next admission declares what it may have lost.
func (h *host) settle(ctx context.Context, o hostclaim.Observed) (ended bool, err error) {
	hold := o.Claim.Holder
	if hold.Session == 0 || hold.Ended != nil || hold.WriterBox != h.agent.self.Box {
		return false, nil
	}
	s, found, err := h.guard.Session()
	if err != nil {
		return false, err
	}
	if !found || s.Generation != hold.Generation || s.Incarnation != hold.Incarnation {
		return false, nil
	}
	at, ok, err := h.finalOf(ctx, o.Claim, s)
	if err != nil || !ok {
		return false, err
	}
	return true, h.recordEnd(ctx, o, at)
}

// finalOf is where the left session ends; false if nobody can say.
func (h *host) finalOf(ctx context.Context, c *hostclaim.Claim, s hostguard.Session) (hostguard.Final, bool, error) {
	switch s.Step {
	case hostguard.Ended:
		return *s.Final, true, nil
	case hostguard.Asked:
		if err := h.distrustFiles(c); err != nil {
			return hostguard.Final{}, false, err
		}
		return untouched(c), true, nil
	}
	at, err := h.flushTail(ctx, c)
	if err == nil {
		h.tails = 0
		return at, true, nil
	}
	if h.tails++; h.tails < tailAttempts && !givesUp(err) {
		return hostguard.Final{}, false, fmt.Errorf("flush the tail of session %d, attempt %d: %w", c.Holder.Session, h.tails, err)
	}
	h.tails = 0
	h.log.Warn("the last session's tail is not flushed; what it may have lost will be declared", "session", c.Holder.Session, "err", err)
	return hostguard.Final{}, false, nil
}

// untouched is where a session ends that wrote nothing: at its own baseline, and
// the one that opened the prepared generation where that was built.
func untouched(c *hostclaim.Claim) hostguard.Final {
	p := c.Holder.Generation
	if opensPrepared(c) {
		return hostguard.Final{Generation: p, TXID: c.Op.Journal.PreparedAuthority.SnapshotTXID, FilesGeneration: p}
	}
	return final(c.Holder.Admissions[len(c.Holder.Admissions)-1].Baseline)
}

// tailAttempts is how often a left session's tail is tried: a failed request
// loses nothing, and a tail that cannot be read keeps no host down.
const tailAttempts = 5

// givesUp reports whether trying again is of no use: the guard refuses the tail,
// or it is not what the store or this disk holds.
func givesUp(err error) bool {
	for _, refusal := range []error{hostguard.ErrSession, hostguard.ErrStale, hostguard.ErrFenced, hostdb.ErrFenced, hostdb.ErrNotFresh, hostfiles.ErrFenced} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// flushTail uploads what a session of this boot wrote before its agent was
// gone, to that session's own generation.
func (h *host) flushTail(ctx context.Context, c *hostclaim.Claim) (at hostguard.Final, err error) {
	err = h.guard.With(ctx, c.Holder.Stamp, func(held *hostguard.Held) error {
		if err := held.Flushable(c.Holder.Generation); err != nil {
			return err
		}
		at, err = h.flushLeft(ctx, c)
		return err
	})
	return at, err
}

// flushLeft opens what the session had opened, or was about to.
func (h *host) flushLeft(ctx context.Context, c *hostclaim.Claim) (at hostguard.Final, err error) {
	target := hostfiles.Target{Location: c.Holder.Location, Generation: c.Holder.Generation, Session: c.Holder.Session, Stamp: c.Holder.Stamp}
	if opensPrepared(c) { // fenced: it was opened, by whom [hostfiles.New] finds out
		if _, err := hostfiles.OpenPrepared(ctx, h.agent.data, preparedRef(c), target); err != nil && !errors.Is(err, hostfiles.ErrFenced) {
			return at, err
		}
	}
	publisher, err := hostfiles.New(ctx, h.agent.data, hostfiles.Config{Root: h.filesDir(), Platform: h.platform(), Target: target, Logger: h.log})
	if err != nil {
		return at, err
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	cfg := hostdb.Config{
		Path: h.database(), MetaDir: h.meta(c.Holder.Generation), Logger: h.log,
		Generation: hostdb.Generation{Location: c.Holder.Location, ID: c.Holder.Generation, Session: c.Holder.Session},
		Check:      func() error { return nil },
	}
	if err := h.leftBase(ctx, c, &cfg); err != nil {
		return at, err
	}
	replicator, err := hostdb.Open(ctx, h.agent.data, cfg)
	if err != nil {
		return at, err
	}
	defer func() { err = errors.Join(err, replicator.Close()) }()
	return flush(ctx, replicator, publisher, c.Holder.Generation)
}

// leftBase says what the current session began from: nothing, the build of a
// prepared generation, or any other database, which a fresh generation takes
// from the disk.
func (h *host) leftBase(ctx context.Context, c *hostclaim.Claim, cfg *hostdb.Config) error {
	from := c.Holder.Admissions[len(c.Holder.Admissions)-1].Baseline
	if cfg.Empty = from.Generation == ""; cfg.Empty {
		return nil
	}
	if opensPrepared(c) {
		p, err := hostdb.ReadPrepared(ctx, h.agent.data, c.Holder.Location, c.Holder.Generation, c.Op.Journal.PreparedAuthority.SHA256)
		cfg.Base, cfg.BaseSHA256 = p.SnapshotTXID, p.DatabaseSHA256
		return err
	}
	prepared, err := hostdb.Built(ctx, h.agent.data, c.Holder.Location, c.Holder.Generation)
	if prepared {
		cfg.Base = from.TXID
	}
	return err
}

// recordEnd closes the session durably here, and then tells the claim.
func (h *host) recordEnd(ctx context.Context, o hostclaim.Observed, at hostguard.Final) error {
	hold := o.Claim.Holder
	err := h.guard.With(ctx, hold.Stamp, func(held *hostguard.Held) error { return held.EndSession(hold.Generation, at) })
	if err != nil {
		return err
	}
	next, err := hostclaim.Update(ctx, h.agent.control, o, hostclaim.EndSession(h.agent.self.Box, hold.Session, position(at)))
	if err != nil {
		return err
	}
	h.agent.changed(ctx, next.Claim)
	return nil
}

// retire ends what runs when the agent is told to end: a session that the claim
// still names is finished in order, any other is abandoned.
func (h *host) retire(ctx context.Context) error {
	if h.run == nil {
		return nil
	}
	o, err := hostclaim.Read(ctx, h.agent.control, h.name)
	if err != nil || !runs(o.Claim, h.agent.self.Box, h.run.number) {
		return errors.Join(err, h.abandon(ctx))
	}
	s := h.run
	h.run = nil
	h.show(func(v *shown) { v.run, v.row = nil, held })
	at, err := s.finish(ctx)
	if err != nil {
		return err
	}
	return h.recordEnd(ctx, o, at)
}

func (h *host) appConfig(s *session) runner.Config {
	r := h.record
	return runner.Config{
		Host: h.name, Region: h.agent.set.Region, Session: s.number, Dir: h.dir(), Command: r.Command, User: r.User, Env: r.Env,
		Listen: r.Listen, Database: h.database(), Files: h.filesDir(), ReadyPath: r.ReadyPath,
		StartTimeout: r.StartTimeout.Std(), StopTimeout: r.StopTimeout.Std(), Cgroup: h.agent.cgroup, Log: h.log,
	}
}
