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
	"github.com/carlosframework/regionha/internal/alert"
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
	if h.agent.place.barred.Load() {
		return hostclaim.Observed{}, errBarred
	}
	c := o.Claim
	a := hostclaim.Admission{
		Op: c.Op.ID, Phase: c.Op.Phase, Session: c.Holder.Session, Generation: c.Holder.Generation,
		Box: h.agent.self.Box, KeepStamp: c.Holder.Stamp > c.Holder.Session,
	}
	if len(first) > 0 {
		a.Phase = hostclaim.Probing // first leads there, if it is not there yet
	}
	h.baseline = nil
	if j := c.Op.Journal; opens(c) {
		a.NewGeneration, a.Baseline = j.Prepared, j.Pin.Position
	} else {
		b, err := hostrelocate.Newest(ctx, h.agent.data, c)
		if err != nil {
			return hostclaim.Observed{}, err
		}
		h.baseline = &b
		a.NewGeneration, a.Baseline = "g-"+record.Nonce(), b.Position
	}
	a.Coverage = coverage(c, a.Baseline)
	if err := h.ask(ctx, c, a.NewGeneration); err != nil {
		return hostclaim.Observed{}, err
	}
	return hostclaim.Update(ctx, h.agent.control, o, hostclaim.Then(append(first, hostclaim.AdmitWriter(a))...))
}

// opens reports whether the next admission opens a prepared generation, which an
// operation that lost a target does more than once.
func opens(c *hostclaim.Claim) bool { return c.Op.Journal.Prepared != "" && !c.PreparedOpened() }

// coverage is what vouches for the session before: its release, where this
// admission opens what was built from that, or its end, where the store still
// holds it. Otherwise that session is declared.
func coverage(c *hostclaim.Claim, baseline hostclaim.Position) hostclaim.Coverage {
	if r := c.Op.Journal.Release; opens(c) && r != nil && r.Session == c.Holder.Session && c.Reaches(baseline, r.Final) {
		return hostclaim.Released
	}
	if end := c.Holder.Ended; end != nil && c.Reaches(baseline, end.Final) {
		return hostclaim.CleanReturn
	}
	return hostclaim.Uncovered
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
	if opens(c) {
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
	to := filepath.Join(h.agent.parked(), h.name+"_"+record.Nonce(), filepath.Base(path))
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
	h.known = nil
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
	s.config = h.appConfig(s)
	s.config.InstanceKey = key
	if err := s.start(); err != nil {
		s.lost.Store(true)
		return errors.Join(err, s.publisher.Close(), ignoreRefused(s.replicator.Close()))
	}
	s.run(ctx, h.appChanged)
	h.run = s
	h.agent.alerts.Clear(alert.Held, h.name) // this session's database is a file of its own
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

func (h *host) appConfig(s *session) runner.Config {
	r := h.record
	return runner.Config{
		Host: h.name, Region: h.agent.set.Region, Session: s.number, Dir: h.dir(), Command: r.Command, User: r.User, Env: r.Env,
		Listen: r.Listen, Database: h.database(), Files: h.filesDir(), ReadyPath: r.ReadyPath,
		StartTimeout: r.StartTimeout.Std(), StopTimeout: r.StopTimeout.Std(), Machine: h.agent.machine, Log: h.log,
	}
}
