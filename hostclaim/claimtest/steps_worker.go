package claimtest

import (
	"github.com/carlosframework/regionha/hostclaim"
)

// worker is about the regional steps.
func (s *steps) worker() {
	switch s.c.Op.Kind {
	case hostclaim.Serving:
		s.start()
	case hostclaim.Relocating:
		s.advance()
		s.leave()
		s.giveUp()
		s.facts()
	case hostclaim.Deleting:
		s.released("park after release", func(m hostclaim.Member) hostclaim.Transition {
			return hostclaim.ParkAfterRelease(s.c.Op.ID, s.w.Receipt(s.c, m))
		})
		s.overdue()
		s.sourceGone()
	}
}

// start is about a host that serves.
func (s *steps) start() {
	w, c := s.w, s.c
	source := w.Box(c.Op.Exec)
	for _, b := range w.Boxes {
		if b.Ref == source.Ref || b.Gone() {
			continue
		}
		r := hostclaim.Relocation{Op: s.id("op", 1), By: Worker, Now: w.Now, Source: source.Member(), Target: b.Member(),
			DirectoryRevision: 1, PinDelay: pinDelay}
		if source.Gone() {
			s.fresh(Worker, "start failover", 1, hostclaim.StartFailover(r, w.Gone(source.Ref)))
			continue
		}
		why := hostclaim.Rebalance
		if source.Draining {
			why = hostclaim.Drain
		}
		s.fresh(Worker, "start "+string(why), 1, hostclaim.StartRelocation(r, why))
	}
}

// pinDelay is the deployment's.
const pinDelay = requestLimit / 2

// advance is about a relocation that goes on as it should.
func (s *steps) advance() {
	w, c := s.w, s.c
	op := c.Op.ID
	s.add(Worker, "to releasing", hostclaim.ToReleasing(op, w.Now))
	s.add(Worker, "pin failover", hostclaim.PinFailover(op, w.Now))
	if c.Op.Phase == hostclaim.Releasing {
		s.released("pin after release", func(m hostclaim.Member) hostclaim.Transition {
			return hostclaim.PinAfterRelease(op, w.Receipt(c, m), hostclaim.Member{}, w.Now)
		})
	}
	if p, ok := s.pin(); ok {
		s.add(Worker, "journal pin", hostclaim.JournalPin(op, p))
		s.fresh(Worker, "pin and hand over", 1, hostclaim.Then(hostclaim.JournalPin(op, p), hostclaim.ToInstalling(op, s.id("p", 1), w.Now)))
	}
	s.fresh(Worker, "hand over", 1, hostclaim.ToInstalling(op, s.id("p", 1), w.Now))
	s.accept()
	if c.Op.Journal.LocalInstall != nil {
		s.add(Worker, "to probing", hostclaim.ToProbing(op, w.Now)) // its target may be wedged since
	}
	s.add(Worker, "complete relocation", hostclaim.CompleteRelocation(op))
}

// released is for a step on the receipt of what the executor released.
func (s *steps) released(name string, step func(hostclaim.Member) hostclaim.Transition) {
	if r := s.c.Op.Journal.Release; r != nil {
		s.add(Worker, name, step(hostclaim.Member{Box: r.Box, Enrollment: r.Enrollment}))
	}
}

// pin selects what is carried over, now.
func (s *steps) pin() (hostclaim.Pin, bool) {
	c := s.c
	baseline, complete := s.w.Baseline(c)
	p := hostclaim.Pin{Key: hostclaim.PinKey(c.Host, c.Op.ID, c.Gen), SHA256: "dd44", ListedAt: s.w.Now, Position: baseline, Size: 1e9}
	if p.Position.FilesGeneration != "" {
		p.FilesSHA256 = "ee55"
	}
	return p, c.Op.Phase == hostclaim.Pinning && (complete || c.Op.Journal.AcceptEmpty)
}

// accept is about a build that is complete: its target built it, in as far as
// it lives, and each build has bytes of its own.
func (s *steps) accept() {
	c, j := s.c, s.c.Op.Journal
	target := s.w.Box(c.Op.Target().Box)
	if j.Prepared == "" || j.Pin == nil || target.Condition != Live {
		return
	}
	id, from := j.Prepared, j.Pin.Position
	s.list = append(s.list, Step{
		Actor: Worker, Name: "accept build", ids: 1,
		before: func(w *World) { w.Build(id, from) },
		Transition: hostclaim.ToInstalled(c.Op.ID, hostclaim.PreparedAuthority{
			Generation: id, InstallManifest: "db/" + id + "/install.json", SHA256: s.id("build", 1),
			SnapshotTXID: from.TXID, SourceFilesSeq: from.FilesSeq, FilesManifestSHA256: "ff66",
		}, s.w.Now),
	})
}

// leave is about a target that is left for another.
func (s *steps) leave() {
	w, c := s.w, s.c
	op, target := c.Op.ID, c.Op.Target().Box
	for _, b := range w.Boxes {
		if b.Gone() || b.Ref == target {
			continue
		}
		if c.Op.Phase == hostclaim.ProbeFailed {
			s.released("pin after release and name", func(m hostclaim.Member) hostclaim.Transition {
				return hostclaim.PinAfterRelease(op, w.Receipt(c, m), b.Member(), w.Now)
			})
		}
		if w.Box(target).Gone() {
			s.fresh(Worker, "replace target", 1, hostclaim.ReplaceTarget(op, w.Gone(target), b.Member(), s.id("p", 1), w.Now))
		} else {
			s.fresh(Worker, "abandon target", 1, hostclaim.AbandonTarget(op, b.Member(), s.id("p", 1), w.Now))
		}
	}
}

// giveUp is about a relocation that does not go on by itself.
func (s *steps) giveUp() {
	w, c := s.w, s.c
	op := c.Op.ID
	s.add(Worker, "to probe-failed", hostclaim.ToProbeFailed(op, w.Now))
	s.add(Worker, "cancel drain", hostclaim.CancelDrain(op, w.Now))
	if s.uncovered() {
		s.add(Worker, "stuck: "+string(hostclaim.PinUncovered), hostclaim.MarkStuck(op, hostclaim.PinUncovered, w.Now))
	}
	s.overdue()
	for _, why := range []hostclaim.StuckReason{hostclaim.ReplacementsUsedUp, hostclaim.NoSpare, hostclaim.InstallOverdue} {
		s.add(Worker, "stuck: "+string(why), hostclaim.MarkStuck(op, why, w.Now))
	}
}

// overdue is about a release that does not come. One that is journaled has a
// receipt that verifies, in this world.
func (s *steps) overdue() {
	if s.c.Op.Journal.Release == nil {
		s.add(Worker, "stuck: "+string(hostclaim.ReleaseOverdue), hostclaim.MarkStuck(s.c.Op.ID, hostclaim.ReleaseOverdue, s.w.Now))
	}
}

// uncovered reports whether a pin of now would not hold what the evidence says
// was written.
func (s *steps) uncovered() bool {
	p, complete := s.w.Baseline(s.c)
	if end := s.c.Holder.Ended; end != nil && behind(p, end.Final) {
		return true
	}
	return !complete && !s.c.Op.Journal.AcceptEmpty
}

// facts is about boxes that are gone.
func (s *steps) facts() {
	w, c := s.w, s.c
	if target := c.Op.Target().Box; w.Box(target).Gone() {
		s.add(Worker, "fence exhausted target", hostclaim.FenceExhaustedTarget(c.Op.ID, w.Gone(target), w.Now))
		s.add(Worker, "fence target without spare", hostclaim.FenceTargetWithoutSpare(c.Op.ID, w.Gone(target), w.Now))
	}
	s.sourceGone()
}

func (s *steps) sourceGone() {
	if source := s.c.Op.Intent.Source.Box; s.w.Box(source).Gone() {
		s.add(Worker, "fence source", hostclaim.FenceSource(s.c.Op.ID, s.w.Gone(source), s.w.Now))
	}
}
