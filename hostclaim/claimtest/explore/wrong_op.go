package explore

import (
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostclaim/claimtest"
)

func (w *forger) acknowledgements() {
	for _, b := range w.World.Boxes {
		if w.c.Op.Journal.Acks[b.Ref] == "" {
			w.try(b.Ref, "acknowledge", "it is a member in another enrollment", hostclaim.Acknowledge(w.c.Op.ID, b.Ref, "before-"+b.Enrollment))
		}
		if !w.c.Op.Participates(b.Ref) {
			w.try(b.Ref, "acknowledge", "it takes no part", hostclaim.Acknowledge(w.c.Op.ID, b.Ref, b.Enrollment))
		}
	}
}

// receipts: the executor is left on a receipt of another stop.
func (w *forger) receipts() {
	c, r := w.c, w.c.Op.Journal.Release
	if c.Op.Phase != hostclaim.Releasing && c.Op.Phase != hostclaim.ProbeFailed {
		return
	}
	for _, b := range w.World.Boxes {
		if r != nil && b.Ref == r.Box {
			continue
		}
		w.take("the receipt is of another box, or nothing was released", c, b.Member())
	}
	m := hostclaim.Member{Box: c.Op.Exec, Enrollment: w.World.Box(c.Op.Exec).Enrollment}
	for _, of := range []struct {
		why    string
		change func(*hostclaim.Claim)
	}{
		{"the receipt is of another operation", func(c *hostclaim.Claim) { c.Op.ID = "op-0" }},
		{"the receipt is of another incarnation", func(c *hostclaim.Claim) { c.Holder.Incarnation = "i-0" }},
		{"the receipt is of another stamp", func(c *hostclaim.Claim) { c.Holder.Stamp++ }},
		{"the receipt is of another session", func(c *hostclaim.Claim) { c.Holder.Session++; c.Holder.Stamp++ }},
	} {
		other := &hostclaim.Claim{Host: c.Host, Op: hostclaim.Op{ID: c.Op.ID}, Holder: &hostclaim.Holder{
			Incarnation: c.Holder.Incarnation, Stamp: c.Holder.Stamp, Session: c.Holder.Session}}
		of.change(other)
		w.take(of.why, other, m)
	}
}

func (w *forger) take(why string, of *hostclaim.Claim, m hostclaim.Member) {
	receipt := w.World.Receipt(of, m)
	nexts := []hostclaim.Member{{}}
	if w.c.Op.Phase == hostclaim.ProbeFailed {
		nexts = nil
		for _, b := range w.World.Boxes {
			nexts = append(nexts, b.Member())
		}
	}
	for _, next := range nexts {
		w.try(claimtest.Worker, "pin after release", why, hostclaim.PinAfterRelease(w.c.Op.ID, receipt, next, w.World.Now))
	}
}

func (w *forger) installs() {
	c, j := w.c, w.c.Op.Journal
	if j.PreparedAuthority == nil {
		return
	}
	for _, b := range w.World.Boxes {
		l := hostclaim.LocalInstall{Box: b.Ref, Enrollment: b.Enrollment, InstallStamp: j.InstallStamp, FilesManifest: "other", SHA256: j.PreparedAuthority.FilesManifestSHA256}
		say := func(why string, change func(*hostclaim.LocalInstall)) {
			bad := l
			change(&bad)
			w.try(b.Ref, "local install", why, hostclaim.RecordLocalInstall(c.Op.ID, bad))
		}
		if b.Ref != c.Op.Exec {
			say("it does not execute", func(*hostclaim.LocalInstall) {})
			continue
		}
		say("it acknowledged in another enrollment", func(l *hostclaim.LocalInstall) { l.Enrollment = "before-" + l.Enrollment })
		say("it is of an older installation", func(l *hostclaim.LocalInstall) { l.InstallStamp-- })
		say("it is of another build", func(l *hostclaim.LocalInstall) { l.SHA256 = "other" })
		if opened(c) {
			say("the build was opened", func(*hostclaim.LocalInstall) {})
		}
	}
}

func (w *forger) pins() {
	c, j := w.c, w.c.Op.Journal
	if c.Op.Phase != hostclaim.Pinning {
		return
	}
	baseline, _ := w.World.Baseline(c)
	pin := func(why string, gen uint64, p hostclaim.Position) {
		bad := hostclaim.Pin{Key: hostclaim.PinKey(c.Host, c.Op.ID, gen), SHA256: "other", ListedAt: w.World.Now, Position: p}
		if p.FilesGeneration != "" {
			bad.FilesSHA256 = "other"
		}
		w.try(claimtest.Worker, "journal pin", why, hostclaim.JournalPin(c.Op.ID, bad))
	}
	pin("it was selected against an older claim", c.Gen-1, baseline)
	pin("it is in no generation of the chain", c.Gen, hostclaim.Position{Generation: "g-other", TXID: 1, FilesGeneration: baseline.FilesGeneration, FilesSeq: baseline.FilesSeq})
	if j.Pin != nil {
		pin("another pin is journaled", c.Gen, baseline)
		if j.Prepared != "" {
			w.try(claimtest.Worker, "hand over", "the generation is not fresh", hostclaim.ToInstalling(c.Op.ID, j.Prepared, w.World.Now))
		}
		if c.Holder.Session > 0 {
			w.try(claimtest.Worker, "hand over", "the generation is not fresh", hostclaim.ToInstalling(c.Op.ID, c.Holder.Generation, w.World.Now))
		}
		for _, p := range j.Abandoned {
			w.try(claimtest.Worker, "hand over", "the generation is not fresh", hostclaim.ToInstalling(c.Op.ID, p, w.World.Now))
		}
		return
	}
	if r := j.Release; r != nil && r.Final.Generation == c.Holder.Generation && r.Final.TXID > 0 {
		own := c.Holder.Admissions[len(c.Holder.Admissions)-1]
		pin("it does not reach what was released", c.Gen, own.Baseline)
	}
	if c.Holder.Session > 0 && !j.AcceptEmpty && (c.Holder.Ended == nil || c.Holder.Ended.Final.TXID > 0) {
		pin("nothing shows that the host was empty", c.Gen, hostclaim.Position{})
	}
}

// evidence: a box is given up on evidence about something else.
func (w *forger) evidence() {
	c := w.c
	source, target := c.Op.Intent.Source, c.Op.Target()
	for _, b := range w.World.Boxes {
		w.given(source.Box, target.Box, b.Ref, "an earlier enrollment", w.f.before[b.Ref])
		w.given(source.Box, target.Box, b.Ref, "another region", w.f.elsewhere[b.Ref])
		w.given(source.Box, target.Box, b.Ref, otherBox, w.World.Gone(b.Ref))
	}
}

const otherBox = "another box"

// given offers evidence about box to every step that gives up the source or the
// target. Evidence about the very box is only offered where it is of something
// else.
func (w *forger) given(source, target, box, of string, g hostclaim.Gone) {
	op, now, why := w.c.Op.ID, w.World.Now, "the evidence is of "+of
	if !w.c.IsLost(source) && (box != source || of != otherBox) {
		w.try(claimtest.Worker, "fence source", why, hostclaim.FenceSource(op, g, now))
	}
	if w.c.IsLost(target) || box == target && of == otherBox {
		return
	}
	w.try(claimtest.Worker, "fence exhausted target", why, hostclaim.FenceExhaustedTarget(op, g, now))
	w.try(claimtest.Worker, "fence target without spare", why, hostclaim.FenceTargetWithoutSpare(op, g, now))
	for _, next := range w.World.Boxes {
		w.try(claimtest.Worker, "replace target", why, hostclaim.ReplaceTarget(op, g, next.Member(), "p-wrong", now))
	}
}

// namings: a box becomes the target that can take the host in no operation.
func (w *forger) namings() {
	c, now := w.c, w.World.Now
	if p := c.Op.Journal.Prepared; p != "" && c.Op.Phase == hostclaim.Installing {
		for _, b := range w.World.Boxes {
			w.try(claimtest.Worker, "abandon target for "+b.Ref, "what it shall build is not fresh", hostclaim.AbandonTarget(c.Op.ID, b.Member(), p, now))
		}
	}
	for _, b := range w.World.Boxes {
		why := "it is lost for the host"
		if !c.IsLost(b.Ref) {
			why = "it owes that it puts its local state away"
		}
		if !c.IsLost(b.Ref) && !c.Owes(b.Ref, hostclaim.ParkLocal) {
			continue
		}
		if c.Op.Kind == hostclaim.Serving {
			r := hostclaim.Relocation{Op: "op-wrong", Now: now, Source: w.World.Box(c.Op.Exec).Member(), Target: b.Member()}
			w.try(claimtest.Worker, "start drain to "+b.Ref, why, hostclaim.StartRelocation(r, hostclaim.Drain))
		}
		if c.Op.Kind != hostclaim.Relocating {
			continue
		}
		w.try(claimtest.Worker, "abandon target for "+b.Ref, why, hostclaim.AbandonTarget(c.Op.ID, b.Member(), "p-wrong", now))
		if t := c.Op.Target().Box; t != b.Ref && w.gone(t) && !c.IsLost(t) {
			w.try(claimtest.Worker, "replace target by "+b.Ref, why, hostclaim.ReplaceTarget(c.Op.ID, w.World.Gone(t), b.Member(), "p-wrong", now))
		}
	}
}
