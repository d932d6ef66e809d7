package hostclaim

import "time"

// ToInstalling hands the host to the target under a new stamp, with a fresh
// prepared generation to build. The target is on Touched before its first
// effect.
func ToInstalling(op, prepared string, now time.Time) Transition {
	return func(c *Claim) error {
		if c.Op.ID == op && prepared != "" && c.Op.Journal.Prepared == prepared && c.Op.Phase != Pinning {
			return ErrAlreadyRecorded
		}
		if err := c.at(op, Pinning); err != nil {
			return err
		}
		switch {
		case c.Op.Journal.Pin == nil:
			return wrong("nothing is pinned")
		case c.Op.Target().Box == "":
			return wrong("no target is named")
		}
		if err := c.acknowledged(); err != nil {
			return err
		}
		if err := c.checkFresh(prepared); err != nil {
			return err
		}
		c.install(prepared, now)
		return nil
	}
}

// install hands the target a fresh prepared generation to build from the pin.
func (c *Claim) install(prepared string, now time.Time) {
	c.handOver(Installing, now)
	c.Op.Journal.Prepared, c.Op.Journal.PreparedStamp = prepared, c.Holder.Stamp
}

// handOver makes the target the executor of a new installation, which has no
// receipt and no attempts of an earlier one.
func (c *Claim) handOver(p Phase, now time.Time) {
	c.execute(c.Op.Target())
	c.Op.enter(p, now)
	j := &c.Op.Journal
	j.InstallStamp, j.LocalInstall = c.Holder.Stamp, nil
	j.ProbeAttempts, j.ProbeAdmission, j.Probe = 0, 0, nil
}

// ToInstalled accepts the build of the prepared generation, after a fresh read
// of all of it. Nobody builds it again. The build of a pin without a database
// may do without an install manifest.
func ToInstalled(op string, a PreparedAuthority, now time.Time) Transition {
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
		if err := c.acknowledged(); err != nil {
			return err
		}
		if err := c.checkAuthority(a); err != nil {
			return err
		}
		c.Op.Journal.PreparedAuthority = &a
		c.Op.enter(Installed, now)
		return nil
	}
}

func (c *Claim) checkAuthority(a PreparedAuthority) error {
	j := c.Op.Journal
	pin := j.Pin.Position
	switch {
	case a.Generation != j.Prepared:
		return wrong("the build is of %q, not %q", a.Generation, j.Prepared)
	case (a.InstallManifest == "") != (a.SHA256 == ""), a.SHA256 == "" && pin.TXID > 0:
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
		if err := c.runs(op, Relocating); err != nil {
			return err
		}
		if was := c.Op.Journal.LocalInstall; was != nil && *was == l {
			return ErrAlreadyRecorded
		}
		if err := c.at(op, Installed, Probing); err != nil {
			return err
		}
		if c.PreparedOpened() {
			return wrong("%q was opened: its local install is not remade", c.Op.Journal.Prepared)
		}
		if err := c.checkInstall(l); err != nil {
			return err
		}
		c.Op.Journal.LocalInstall = &l
		return nil
	}
}

// checkInstall holds a receipt to exactly this executor, enrollment,
// installation and build.
func (c *Claim) checkInstall(l LocalInstall) error {
	j := c.Op.Journal
	switch {
	case l.Box != c.Op.Exec || l.Enrollment == "" || j.Acks[l.Box] != l.Enrollment:
		return wrong("the receipt is of %s as %s, the executor is %s as %s", l.Box, l.Enrollment, c.Op.Exec, j.Acks[c.Op.Exec])
	case l.InstallStamp != j.InstallStamp:
		return wrong("the receipt is of installation %d, not %d", l.InstallStamp, j.InstallStamp)
	case l.SHA256 != j.PreparedAuthority.FilesManifestSHA256:
		return wrong("the receipt is of files manifest %s, the accepted one is %s", l.SHA256, j.PreparedAuthority.FilesManifestSHA256)
	}
	return nil
}
