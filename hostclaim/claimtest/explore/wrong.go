package explore

import (
	"testing"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostclaim/claimtest"
	"github.com/carlosframework/regionha/termfence/fencetest"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// forgeries is evidence that is real and about something else.
type forgeries struct {
	before    map[string]hostclaim.Gone // an earlier enrollment of a box, by reference
	elsewhere map[string]hostclaim.Gone // the box as one of another region
}

func newForgeries(tb testing.TB, w *claimtest.World) *forgeries {
	f := &forgeries{before: map[string]hostclaim.Gone{}, elsewhere: map[string]hostclaim.Gone{}}
	for _, b := range w.Boxes {
		f.before[b.Ref] = hostclaim.Gone{Evidence: fencetest.Evidence(tb, b.Ref, "before-"+b.Enrollment, w.Region, epoch)}
		f.elsewhere[b.Ref] = hostclaim.Gone{Evidence: fencetest.Evidence(tb, b.Ref, b.Enrollment, "elsewhere", epoch)}
	}
	return f
}

// forger collects steps that no claim may accept: each is one that an honest
// actor makes, with one argument that is not true here.
type forger struct {
	*State
	f    *forgeries
	c    *hostclaim.Claim
	list []move
}

func wrong(s *State, f *forgeries) []move {
	if s.Claim == nil || s.Claim.Holder == nil {
		return nil
	}
	w := &forger{State: s, f: f, c: s.Claim}
	w.creates()
	w.sessions()
	for _, b := range s.World.Boxes {
		w.admissions(b)
		w.releases(b)
	}
	if s.Claim.Op.Kind == hostclaim.Relocating {
		w.acknowledgements()
		w.receipts()
		w.installs()
		w.pins()
		w.evidence()
	}
	w.namings()
	return w.list
}

func (w *forger) try(actor, does, why string, t hostclaim.Transition) {
	w.list = append(w.list, move{actor: actor, does: does, wrong: why, step: &claimtest.Step{Actor: actor, Name: does, Transition: t}})
}

func (w *forger) creates() {
	if w.c.Op.Kind != hostclaim.Creating {
		return
	}
	for _, b := range w.World.Boxes {
		if b.Ref != w.c.Op.Intent.Selected.Box {
			w.try(b.Ref, "complete create", "another box was selected", hostclaim.CompleteCreate(w.c.Op.ID, b.Ref, b.Enrollment))
		}
		w.try(b.Ref, "complete create", "it was selected in another enrollment", hostclaim.CompleteCreate(w.c.Op.ID, b.Ref, "before-"+b.Enrollment))
	}
}

// admissions: everyone asks to be admitted, and the executor in every wrong way.
func (w *forger) admissions(b claimtest.Box) {
	c, h, j := w.c, w.c.Holder, w.c.Op.Journal
	baseline, _ := w.World.Baseline(c)
	a := hostclaim.Admission{Op: c.Op.ID, Phase: c.Op.Phase, Session: h.Session, Generation: h.Generation,
		Box: b.Ref, NewGeneration: "g-wrong", Baseline: baseline}
	opening := c.Op.Phase == hostclaim.Probing && !opened(c)
	if opening {
		a.NewGeneration, a.KeepStamp, a.Baseline = j.Prepared, true, j.Pin.Position
	}
	ask := func(why string, change func(*hostclaim.Admission)) {
		bad := a
		change(&bad)
		w.try(b.Ref, "admit", why, hostclaim.AdmitWriter(bad))
	}
	if c.Op.Exec != b.Ref {
		ask("it does not execute", func(*hostclaim.Admission) {})
		return
	}
	if h.Session > 0 {
		ask("it observed an older session", func(a *hostclaim.Admission) { a.Session-- })
		ask("it observed an older generation", func(a *hostclaim.Admission) { a.Generation = "g-older" })
		ask("its generation was admitted before", func(a *hostclaim.Admission) { a.Op, a.NewGeneration = c.Op.ID, h.Admissions[0].Generation })
	}
	if h.Stamp <= h.Session {
		ask("its stamp was used", func(a *hostclaim.Admission) { a.KeepStamp = true })
	}
	if h.Session > 0 && h.Ended == nil {
		ask("the session before recorded no end", func(a *hostclaim.Admission) { a.Coverage = hostclaim.CleanReturn })
	}
	if !opening {
		ask("no prepared generation is opened", func(a *hostclaim.Admission) { a.Coverage = hostclaim.Released })
	}
	ask("there is no seal", func(a *hostclaim.Admission) { a.Coverage = hostclaim.Sealed })
	w.openings(a, ask)
}

func (w *forger) openings(a hostclaim.Admission, ask func(string, func(*hostclaim.Admission))) {
	j := w.c.Op.Journal
	if w.c.Op.Phase != hostclaim.Probing {
		return
	}
	if opened(w.c) {
		ask("the prepared generation was opened before", func(a *hostclaim.Admission) { a.NewGeneration = j.Prepared })
		return
	}
	ask("the first attempt opens the prepared generation", func(a *hostclaim.Admission) { a.NewGeneration = "g-wrong" })
	ask("an opening keeps the installation's stamp", func(a *hostclaim.Admission) { a.KeepStamp = false })
	if h := w.c.Holder; j.Pin.Position.Generation != h.Generation && h.Session > 0 {
		ask("it was built from the pin", func(a *hostclaim.Admission) { a.Baseline.Generation, a.Baseline.TXID = h.Generation, 1 })
	}
	if j.Release == nil {
		ask("nothing was released", func(a *hostclaim.Admission) { a.Coverage = hostclaim.Released })
	}
}

func (w *forger) sessions() {
	c, h := w.c, w.c.Holder
	if h.Session == 0 {
		return
	}
	final := w.World.Final(c)
	if c.Op.Exec != h.WriterBox && h.Ended == nil {
		w.try(h.WriterBox, "end session", "it does not execute any more", hostclaim.EndSession(h.WriterBox, h.Session, final))
	}
	for _, b := range w.World.Boxes {
		if b.Ref != h.WriterBox {
			w.try(b.Ref, "end session", "the session is another box's", hostclaim.EndSession(b.Ref, h.Session, final))
			w.try(b.Ref, "publish", "the session is another box's", hostclaim.PublishGeneration(b.Ref, h.Session))
		}
	}
	w.try(h.WriterBox, "end session", "the session is an older one", hostclaim.EndSession(h.WriterBox, h.Session-1, final))
	w.try(h.WriterBox, "publish", "the session is an older one", hostclaim.PublishGeneration(h.WriterBox, h.Session-1))
	if c.Op.Phase == hostclaim.Probing {
		w.try(c.Op.Exec, "pass probe", "the session is an older one", hostclaim.RecordProbe(c.Op.ID, c.Op.Exec, h.Session-1))
		if h.Session < c.Op.Journal.InstallStamp {
			w.try(c.Op.Exec, "pass probe", "the session is of the box before", hostclaim.RecordProbe(c.Op.ID, h.WriterBox, h.Session))
		}
		n := c.Op.Journal.ProbeAttempts
		w.try(c.Op.Exec, "begin attempt", "the attempt before it was not begun", hostclaim.BeginProbeAttempt(c.Op.ID, n+2))
		if n == hostclaim.MaxProbeAttempts {
			w.try(c.Op.Exec, "begin attempt", "the attempts are used up", hostclaim.BeginProbeAttempt(c.Op.ID, n+1))
		}
	}
}

// releases: what a box says that it gave up is not what it has.
func (w *forger) releases(b claimtest.Box) {
	c, h := w.c, w.c.Holder
	if c.Op.Kind != hostclaim.Relocating && c.Op.Kind != hostclaim.Deleting {
		return
	}
	r := hostclaim.Release{Box: b.Ref, Enrollment: b.Enrollment, Session: h.Session, Final: w.World.Final(c), Receipt: "k", ReceiptSHA256: "s"}
	say := func(why string, change func(*hostclaim.Release)) {
		bad := r
		change(&bad)
		w.try(b.Ref, "journal release", why, hostclaim.JournalRelease(c.Op.ID, bad))
	}
	if c.Op.Exec != b.Ref {
		say("it does not execute", func(*hostclaim.Release) {})
		return
	}
	say("it executes in another enrollment", func(r *hostclaim.Release) { r.Enrollment = "before-" + r.Enrollment })
	say("there is no receipt", func(r *hostclaim.Release) { r.Receipt = "" })
	if h.Session > 0 {
		say("the session is an older one", func(r *hostclaim.Release) { r.Session-- })
		say("it ends in a generation that is not its own", func(r *hostclaim.Release) { r.Final.Generation, r.Final.TXID = "g-other", 7 })
	}
}
