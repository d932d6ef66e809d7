package hostclaim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/carlosframework/regionha/termfence"
)

// MaxProbeAttempts is how many cold admissions one target installation gets. An
// attempt is counted before it is made, so a crash never buys another.
const MaxProbeAttempts = 3

// Relocation says what a relocation sets out to do.
type Relocation struct {
	Op                string // a fresh id
	By                string
	Now               time.Time
	Source, Target    Member
	DirectoryRevision uint64        // of the roster that both were checked against
	PinDelay          time.Duration // how long after a fence a pin is taken; bounds loss, not safety
}

// StartFailover begins to move a serving host off a box that is proven gone.
// Nobody executes until the target is handed the installation.
func StartFailover(r Relocation, source termfence.Evidence) Transition {
	return func(c *Claim) error {
		if c.Op.ID == r.Op {
			return ErrAlreadyRecorded
		}
		if err := c.mayRelocate(r); err != nil {
			return err
		}
		h := c.Holder
		c.Op = Op{
			Kind: Relocating, ID: r.Op, Phase: Starting, By: r.By, StartedAt: r.Now.UTC(), Exec: None,
			Participants: []string{r.Target.Box},
			Intent: Intent{
				Region: h.Region, Reason: Failover, Source: r.Source, Target: r.Target,
				StampFrom: h.Stamp, GenerationFrom: h.Generation,
				DirectoryRevision: r.DirectoryRevision, PinDelay: r.PinDelay,
			},
		}
		return c.consume(source, r.Source, roleSource)
	}
}

func (c *Claim) mayRelocate(r Relocation) error {
	switch {
	case c.Op.Kind != Serving:
		return wrong("a host that is %s cannot be relocated", c.Op.Kind)
	case c.Op.Exec != r.Source.Box:
		return wrong("%s is not the executor, %s is", r.Source.Box, c.Op.Exec)
	case r.Source.Box == r.Target.Box:
		return wrong("source and target are both %s", r.Source.Box)
	case c.IsLost(r.Target.Box):
		return wrong("target %s is lost for this host", r.Target.Box)
	case r.PinDelay < 0:
		return wrong("pin delay is %s, want 0 or more", r.PinDelay)
	case c.Owes(r.Target.Box, ParkLocal):
		return fmt.Errorf("%w: target %s still owes this host a %s", ErrPendingChore, r.Target.Box, ParkLocal)
	}
	return nil
}

// Acknowledge records that a participant is ready to take part under its
// enrollment. It is never rewritten.
func Acknowledge(op, box, enrollment string) Transition {
	return func(c *Claim) error {
		if err := c.relocating(op); err != nil {
			return err
		}
		if !c.Op.Participates(box) {
			return wrong("%s takes no part in %s", box, op)
		}
		if got, ok := c.Op.Journal.Acks[box]; ok {
			if got == enrollment {
				return ErrAlreadyRecorded
			}
			return wrong("%s acknowledged as %s, not %s", box, got, enrollment)
		}
		if want := c.Op.enrollment(box); enrollment != want {
			return wrong("%s is enrolled as %s in this operation, not %s", box, want, enrollment)
		}
		if c.Op.Journal.Acks == nil {
			c.Op.Journal.Acks = map[string]string{}
		}
		c.Op.Journal.Acks[box] = enrollment
		return nil
	}
}

func (o Op) enrollment(box string) string {
	if box == o.Intent.Source.Box {
		return o.Intent.Source.Enrollment
	}
	return o.Intent.Target.Enrollment
}

// Acknowledged reports whether every current participant acknowledged.
func (o Op) Acknowledged() bool {
	for _, box := range o.Participants {
		if o.Journal.Acks[box] == "" {
			return false
		}
	}
	return true
}

// PinFailover moves a failover on to pinning, once every participant
// acknowledged.
func PinFailover(op string) Transition {
	return func(c *Claim) error {
		switch err := c.at(op, Starting); {
		case err != nil:
			return err
		case c.Op.Exec != None:
			return wrong("%s still executes", c.Op.Exec)
		case !c.Op.Acknowledged():
			return wrong("not every participant of %v acknowledged", c.Op.Participants)
		}
		c.Op.Phase = Pinning
		return nil
	}
}

// PinKey is where the pin selected against a claim generation lies.
func PinKey(host, op string, gen uint64) string {
	return fmt.Sprintf("control/relocations/%s/%s/pin-%d.json", host, op, gen)
}

// JournalPin fixes what the operation carries over, once. The pin must have
// been selected against exactly the claim that this write replaces, so one
// whose write was lost is abandoned, and its listing must have begun no earlier
// than every fence's observation plus the operation's pin delay.
func JournalPin(op string, p Pin) Transition {
	return func(c *Claim) error {
		if c.Op.ID == op && c.Op.Journal.Pin != nil {
			if *c.Op.Journal.Pin == p {
				return ErrAlreadyRecorded
			}
			return wrong("another pin is journaled: %s", c.Op.Journal.Pin.Key)
		}
		if err := c.at(op, Pinning); err != nil {
			return err
		}
		if want := PinKey(c.Host, op, c.Gen-1); p.Key != want {
			return wrong("pin %s was not selected against this claim: want %s", p.Key, want)
		}
		if from := c.Op.PinFrom(); p.ListedAt.Before(from) {
			return wrong("the pin was listed at %s, before %s", p.ListedAt, from)
		}
		if err := c.checkBaseline(p.Position); err != nil {
			return err
		}
		if (p.Position.FilesGeneration == "") != (p.FilesSHA256 == "") {
			return wrong("files generation %q with digest %q: want both or neither", p.Position.FilesGeneration, p.FilesSHA256)
		}
		c.Op.Journal.Pin = &p
		return nil
	}
}

// PinFrom is the earliest time at which the listing of a pin may begin: every
// consumed fence's observation plus the pin delay. Zero: at once.
func (o Op) PinFrom() time.Time {
	var from time.Time
	for _, f := range o.Journal.Fences {
		if t := f.ObservedAt.Add(o.Intent.PinDelay); t.After(from) {
			from = t
		}
	}
	return from
}

// ToInstalling hands the host to the target under a new stamp, with a fresh
// prepared generation to build. The target is on Touched before its first
// effect.
func ToInstalling(op, prepared string) Transition {
	return func(c *Claim) error {
		if c.Op.ID == op && c.Op.Journal.Prepared == prepared && c.Op.Phase != Pinning {
			return ErrAlreadyRecorded
		}
		if err := c.at(op, Pinning); err != nil {
			return err
		}
		switch {
		case c.Op.Journal.Pin == nil:
			return wrong("nothing is pinned")
		case !c.Op.Acknowledged():
			return wrong("not every participant of %v acknowledged", c.Op.Participants)
		}
		if err := c.checkFresh(prepared); err != nil {
			return err
		}
		target := c.Op.Target().Box
		c.execute(target)
		c.Op.Phase = Installing
		j := &c.Op.Journal
		j.InstallStamp, j.PreparedStamp = c.Holder.Stamp, c.Holder.Stamp
		j.Prepared = prepared
		j.Handed = add(j.Handed, target)
		return nil
	}
}

// ToInstalled accepts the build of the prepared generation, after a fresh read
// of all of it. Nobody builds it again.
func ToInstalled(op string, a PreparedAuthority) Transition {
	return func(c *Claim) error {
		if c.Op.ID == op && c.Op.Journal.PreparedAuthority != nil {
			if *c.Op.Journal.PreparedAuthority == a {
				return ErrAlreadyRecorded
			}
			return wrong("another build of %s is accepted", a.Generation)
		}
		if err := c.at(op, Installing); err != nil {
			return err
		}
		if err := c.checkAuthority(a); err != nil {
			return err
		}
		c.Op.Journal.PreparedAuthority = &a
		c.Op.Phase = Installed
		return nil
	}
}

func (c *Claim) checkAuthority(a PreparedAuthority) error {
	j := c.Op.Journal
	pin := j.Pin.Position
	switch {
	case !c.Op.Acknowledged():
		return wrong("not every participant of %v acknowledged", c.Op.Participants)
	case a.Generation != j.Prepared:
		return wrong("the build is of %q, not %q", a.Generation, j.Prepared)
	case a.InstallManifest == "" || a.SHA256 == "":
		return wrong("the build of %q names no install manifest", a.Generation)
	case a.SnapshotTXID != pin.TXID:
		return wrong("the build is at TXID %d, the pin at %d", a.SnapshotTXID, pin.TXID)
	case a.FilesSeq != 0:
		return wrong("a prepared files manifest is at sequence 0, not %d", a.FilesSeq)
	case a.SourceFilesSeq != pin.FilesSeq:
		return wrong("the files come from sequence %d, the pin from %d", a.SourceFilesSeq, pin.FilesSeq)
	case a.FilesManifestSHA256 == "":
		return wrong("the build of %q names no files manifest", a.Generation)
	}
	return nil
}

// RecordLocalInstall is the target's receipt that its files, env and timers are
// in place. It is of exactly this executor, enrollment and installation, and
// refused once the prepared generation was opened: an install is never remade
// over a live writer's state.
func RecordLocalInstall(op string, l LocalInstall) Transition {
	return func(c *Claim) error {
		if err := c.relocating(op); err != nil {
			return err
		}
		if was := c.Op.Journal.LocalInstall; was != nil && *was == l {
			return ErrAlreadyRecorded
		}
		j := c.Op.Journal
		switch {
		case c.Op.Phase != Installed && c.Op.Phase != Probing:
			return wrong("phase is %q, want %q or %q", c.Op.Phase, Installed, Probing)
		case c.preparedOpened():
			return wrong("%q was opened: its local install is not remade", j.Prepared)
		case l.Box != c.Op.Exec || l.Enrollment == "" || j.Acks[l.Box] != l.Enrollment:
			return wrong("the receipt is of %s as %s, the executor is %s as %s", l.Box, l.Enrollment, c.Op.Exec, j.Acks[c.Op.Exec])
		case l.InstallStamp != j.InstallStamp:
			return wrong("the receipt is of installation %d, not %d", l.InstallStamp, j.InstallStamp)
		case l.SHA256 != j.PreparedAuthority.FilesManifestSHA256:
			return wrong("the receipt is of files manifest %s, the accepted one is %s", l.SHA256, j.PreparedAuthority.FilesManifestSHA256)
		}
		c.Op.Journal.LocalInstall = &l
		return nil
	}
}

// ToProbing opens the installation to its target's attempts. It needs the
// receipt of exactly this installation.
func ToProbing(op string, now time.Time) Transition {
	return func(c *Claim) error {
		if c.Op.ID == op && c.Op.Phase == Probing {
			return ErrAlreadyRecorded
		}
		if err := c.at(op, Installed); err != nil {
			return err
		}
		l := c.Op.Journal.LocalInstall
		switch {
		case l == nil || l.Box != c.Op.Exec || l.InstallStamp != c.Op.Journal.InstallStamp:
			return wrong("%s has no receipt of installation %d", c.Op.Exec, c.Op.Journal.InstallStamp)
		case !c.Op.Acknowledged():
			return wrong("not every participant of %v acknowledged", c.Op.Participants)
		}
		c.Op.Phase = Probing
		c.Op.Journal.ProbingSince = now.UTC()
		return nil
	}
}

// BeginProbeAttempt counts attempt n, from 1, before it is made.
func BeginProbeAttempt(op string, n int) Transition {
	return func(c *Claim) error {
		if err := c.at(op, Probing); err != nil {
			return err
		}
		had := c.Op.Journal.ProbeAttempts
		switch {
		case n == had && n > 0:
			return ErrAlreadyRecorded
		case n != had+1:
			return wrong("attempt %d after %d", n, had)
		case n > MaxProbeAttempts:
			return wrong("attempt %d of at most %d", n, MaxProbeAttempts)
		}
		c.Op.Journal.ProbeAttempts = n
		return nil
	}
}

// RecordProbe records that the current session passed its probe.
func RecordProbe(op, box string, session uint64) Transition {
	return func(c *Claim) error {
		if err := c.at(op, Probing); err != nil {
			return err
		}
		p := Probe{Box: box, Session: session}
		if was := c.Op.Journal.Probe; was != nil && *was == p {
			return ErrAlreadyRecorded
		}
		if !c.probed(&p) {
			return wrong("session %d of %s is not the current one of installation %d", session, box, c.Op.Journal.InstallStamp)
		}
		if c.Holder.Ended != nil {
			return wrong("session %d has ended", session)
		}
		c.Op.Journal.Probe = &p
		return nil
	}
}

// probed reports whether p is of the current session of this installation.
func (c *Claim) probed(p *Probe) bool {
	h := c.Holder
	return p != nil && p.Box == c.Op.Exec && p.Box == h.WriterBox && p.Session == h.Session &&
		p.Session >= c.Op.Journal.InstallStamp
}

// CompleteRelocation ends the operation on a passing probe of the current
// session. Every box that was handed the host and does not execute it now owes
// a park-local, the source included.
func CompleteRelocation(op string) Transition {
	return func(c *Claim) error {
		if c.Op.ID == op && c.Op.Kind == Serving {
			return ErrAlreadyRecorded
		}
		if err := c.at(op, Probing); err != nil {
			return err
		}
		if !c.probed(c.Op.Journal.Probe) {
			return wrong("session %d of %s has no passing probe", c.Holder.Session, c.Op.Exec)
		}
		for _, box := range append([]string{c.Op.Intent.Source.Box}, c.Op.Journal.Handed...) {
			if box != c.Op.Exec {
				c.owe(Obligation{Kind: ParkLocal, Box: box, Region: c.Holder.Region, Owner: ownerBox + box})
			}
		}
		c.Op.Participants = []string{c.Op.Exec}
		c.serve()
		return nil
	}
}

func (c *Claim) relocating(op string) error {
	if c.Op.ID != op {
		return stale(c, op)
	}
	if c.Op.Kind != Relocating {
		return wrong("a host that is %s is not being relocated", c.Op.Kind)
	}
	return nil
}

func (c *Claim) at(op string, phase Phase) error {
	if err := c.relocating(op); err != nil {
		return err
	}
	if c.Op.Phase != phase {
		return wrong("phase is %q, want %q", c.Op.Phase, phase)
	}
	return nil
}

// FencedBoxes lists the boxes whose evidence the operation consumed, sorted.
func (o Op) FencedBoxes() []string { return slices.Sorted(maps.Keys(o.Journal.Fences)) }
