package hostclaim

import "time"

// MaxProbeAttempts is how many cold admissions one target installation gets. An
// attempt is counted before it is made, so a crash never buys another.
const MaxProbeAttempts = 3

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
		if err := c.acknowledged(); err != nil {
			return err
		}
		j := c.Op.Journal
		if j.LocalInstall == nil {
			return wrong("%s has no receipt of installation %d", c.Op.Exec, j.InstallStamp)
		}
		if err := c.checkInstall(*j.LocalInstall); err != nil {
			return err
		}
		c.Op.enter(Probing, now)
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

// ToProbeFailed ends the attempts of a target that is alive: the last of them has
// admitted, or [ProbeDeadline] has passed. A target that has a session of its own
// gives the host up by its release; one that never opened the prepared generation
// has nothing to release, and what the source released stands.
func ToProbeFailed(op string, now time.Time) Transition {
	return func(c *Claim) error {
		if c.Op.ID == op && c.Op.Phase == ProbeFailed {
			return ErrAlreadyRecorded
		}
		if err := c.at(op, Probing); err != nil {
			return err
		}
		j := c.Op.Journal
		until := j.PhaseSince.Add(ProbeDeadline)
		switch {
		case c.probed(j.Probe):
			return wrong("session %d of %s has passed its probe", j.Probe.Session, j.Probe.Box)
		case j.ProbeAdmission < MaxProbeAttempts && now.Before(until):
			return wrong("attempt %d of %d has admitted, and more may until %s", j.ProbeAdmission, MaxProbeAttempts, until)
		}
		c.failProbe(now)
		return nil
	}
}

func (c *Claim) failProbe(now time.Time) {
	if c.PreparedOpened() {
		c.Op.Journal.Release = nil
	}
	c.Op.enter(ProbeFailed, now)
}

// CompleteRelocation ends the operation on a passing probe of the current
// session: the target serves.
func CompleteRelocation(op string) Transition {
	return func(c *Claim) error {
		if c.ended(op, Completed) {
			return ErrAlreadyRecorded
		}
		if err := c.at(op, Probing); err != nil {
			return err
		}
		if !c.probed(c.Op.Journal.Probe) {
			return wrong("session %d of %s has no passing probe", c.Holder.Session, c.Op.Exec)
		}
		c.finish(Completed)
		return nil
	}
}
