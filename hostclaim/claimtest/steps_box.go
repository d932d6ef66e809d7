package claimtest

import (
	"time"

	"github.com/carlosframework/regionha/hostclaim"
)

// requestLimit is how long a request may be under way.
const requestLimit = time.Minute

// box is about what a live box could do for the host.
func (s *steps) box(b *Box) {
	c := s.c
	for _, o := range c.Obligations {
		if o.Kind == hostclaim.ParkLocal && o.Box == b.Ref {
			s.add(b.Ref, "complete "+o.Kind, hostclaim.CompleteObligation(o.Op, o.ID))
		}
	}
	if c.Op.Kind == hostclaim.Creating && c.Op.Intent.Selected.Box == b.Ref {
		s.add(b.Ref, "complete create", hostclaim.CompleteCreate(c.Op.ID, b.Ref, b.Enrollment))
	}
	if c.Op.Kind == hostclaim.Relocating && c.Op.Participates(b.Ref) && c.Op.Journal.Acks[b.Ref] == "" {
		s.add(b.Ref, "acknowledge", hostclaim.Acknowledge(c.Op.ID, b.Ref, b.Enrollment))
	}
	if c.Op.Exec != b.Ref {
		return
	}
	s.release(b)
	s.session(b)
	if c.Op.Kind == hostclaim.Relocating && c.Op.Target().Box == b.Ref {
		s.target(b)
	}
	s.admissions(b)
}

// session is about the session that runs on the executor, or has just ended.
func (s *steps) session(b *Box) {
	c, h := s.c, s.c.Holder
	if h.Session == 0 || h.WriterBox != b.Ref {
		return
	}
	ref, session, generation := b.Ref, h.Session, h.Generation
	if b.Session == session {
		s.after(ref, "publish", func(w *World) { w.Root(generation) }, hostclaim.PublishGeneration(ref, session))
	}
	if b.Session == session || b.Closed >= session {
		s.after(ref, "end session", func(w *World) { w.Close(ref, session, generation) },
			hostclaim.EndSession(ref, session, s.w.Final(c)))
	}
}

// release is about an executor that gives the host up.
func (s *steps) release(b *Box) {
	c, h := s.c, s.c.Holder
	if c.Op.Kind != hostclaim.Deleting && c.Op.Phase != hostclaim.Releasing && c.Op.Phase != hostclaim.ProbeFailed {
		return
	}
	ref, session, generation := b.Ref, h.Session, h.Generation
	receipt := s.w.Receipt(c, b.Member()).Ref()
	s.after(ref, "journal release", func(w *World) { w.Close(ref, session, generation) }, hostclaim.JournalRelease(c.Op.ID, hostclaim.Release{
		Box: ref, Enrollment: b.Enrollment, Session: session, Final: s.w.Final(c), Receipt: receipt.Key, ReceiptSHA256: receipt.SHA256,
	}))
}

// target is about a box that was handed the host.
func (s *steps) target(b *Box) {
	w, c, j := s.w, s.c, s.c.Op.Journal
	op := c.Op.ID
	install := hostclaim.LocalInstall{Box: b.Ref, Enrollment: b.Enrollment, InstallStamp: j.InstallStamp, FilesManifest: "m"}
	if j.PreparedAuthority != nil {
		install.SHA256 = j.PreparedAuthority.FilesManifestSHA256
		s.add(b.Ref, "local install", hostclaim.RecordLocalInstall(op, install))
	}
	s.add(b.Ref, "to probing", hostclaim.ToProbing(op, w.Now))
	s.add(b.Ref, "begin attempt", hostclaim.BeginProbeAttempt(op, j.ProbeAttempts+1))
	if j.PreparedAuthority != nil && j.Pin != nil {
		opening := s.admission(b, j.Pin.Position)
		opening.Phase, opening.NewGeneration, opening.KeepStamp = hostclaim.Probing, j.Prepared, true
		if r := j.Release; r != nil && r.Session == opening.Session && r.Generation == opening.Generation {
			opening.Coverage = hostclaim.Released
		}
		s.add(b.Ref, "install and open", hostclaim.Then(hostclaim.RecordLocalInstall(op, install), hostclaim.ToProbing(op, w.Now),
			hostclaim.BeginProbeAttempt(op, max(1, j.ProbeAttempts)), hostclaim.AdmitWriter(opening)))
		s.add(b.Ref, "open", hostclaim.AdmitWriter(opening))
		if s.short(opening) {
			opening.Coverage = hostclaim.Uncovered
			s.add(b.Ref, "open and declare", hostclaim.AdmitWriter(opening))
		}
	}
	if b.Session == c.Holder.Session && b.Session > 0 && !b.Failing {
		s.add(b.Ref, "pass probe", hostclaim.RecordProbe(op, b.Ref, b.Session))
	}
	if b.ReceiptLost {
		s.add(b.Ref, "receipt lost", hostclaim.MarkStuck(op, hostclaim.ReceiptLost, w.Now))
	}
}

// admissions is about an executor that would start a writer on a fresh
// generation.
func (s *steps) admissions(b *Box) {
	baseline, complete := s.w.Baseline(s.c)
	if !complete && !s.c.Op.Journal.AcceptEmpty {
		return
	}
	a := s.admission(b, baseline)
	s.fresh(b.Ref, "admit", 1, hostclaim.AdmitWriter(a))
	if s.short(a) {
		declaring := a
		declaring.Coverage = hostclaim.Uncovered
		s.fresh(b.Ref, "admit and declare", 1, hostclaim.AdmitWriter(declaring))
	}
	name := "admit under a new stamp"
	if !a.KeepStamp {
		name = "admit under the same stamp" // which is never legal
	}
	a.KeepStamp = !a.KeepStamp
	s.fresh(b.Ref, name, 1, hostclaim.AdmitWriter(a))
}

// admission asks for a writer on a fresh generation, with the best that vouches
// for the one before.
func (s *steps) admission(b *Box, baseline hostclaim.Position) hostclaim.Admission {
	c, h := s.c, s.c.Holder
	a := hostclaim.Admission{Op: c.Op.ID, Phase: c.Op.Phase, Session: h.Session, Generation: h.Generation,
		Box: b.Ref, NewGeneration: s.id("g", 1), KeepStamp: h.Stamp > h.Session, Baseline: baseline}
	if h.Ended != nil {
		a.Coverage = hostclaim.CleanReturn
	}
	return a
}

// short reports whether what vouches for the session before says that it went
// further than the baseline does: the store has lost something.
func (s *steps) short(a hostclaim.Admission) bool {
	end := s.c.Holder.Ended
	if a.Coverage == hostclaim.Uncovered || end == nil {
		return false
	}
	return behind(a.Baseline, end.Final)
}

// behind reports whether p does not hold all of q, in either half.
func behind(p, q hostclaim.Position) bool {
	return p.Generation != q.Generation || p.TXID < q.TXID || p.FilesGeneration != q.FilesGeneration || p.FilesSeq < q.FilesSeq
}
