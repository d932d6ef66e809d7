package hostclaim

import "time"

// How long a step may take before the operation goes on without it. They bound
// waiting, and no safety rests on them: each is counted from a time that the
// claim records, by whoever makes the next step.
const (
	CreateDeadline  = 10 * time.Minute // for the selected box to complete a create
	AckDeadline     = 2 * time.Minute  // for a target to acknowledge, once named
	DrainDeadline   = 10 * time.Minute // for a drain to begin
	ReleaseDeadline = 10 * time.Minute // for a live box to release
	ProbeDeadline   = 10 * time.Minute // for a target to pass a probe
	SpareDeadline   = 10 * time.Minute // for a box to be found in the place of a target
)

// InstallDeadline is how long a target may build or install size bytes of
// database: 15 minutes and one more per GB, up to a week.
func InstallDeadline(size int64) time.Duration {
	return 15*time.Minute + time.Duration(min(size/1e9, 10_000))*time.Minute
}

// targetDue is when the target counts as making no progress. False: nothing is
// asked of it now.
func (c *Claim) targetDue() (time.Time, bool) {
	o, j := c.Op, c.Op.Journal
	switch {
	case o.Phase == ProbeFailed, o.Phase == Pinning && o.Target().Box == "":
		return j.PhaseSince, true
	case o.Phase == Probing:
		return j.PhaseSince.Add(ProbeDeadline), true
	case o.Participates(o.Target().Box) && j.Acks[o.Target().Box] == "":
		return j.TargetSince.Add(AckDeadline), true
	}
	return c.installDue()
}

// installDue is when the target should have built, or put in place, what it was
// handed.
func (c *Claim) installDue() (time.Time, bool) {
	if c.Op.Phase != Installing && c.Op.Phase != Installed {
		return time.Time{}, false
	}
	return c.Op.Journal.PhaseSince.Add(InstallDeadline(c.Op.Journal.Pin.Size)), true
}
