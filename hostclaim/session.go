package hostclaim

// EndSession records that the current session stopped cleanly, with everything
// that it wrote in the store up to final. The box closes the session durably
// before it sends this, and runs nothing under it afterwards whatever the
// answer.
func EndSession(box string, session uint64, final Position) Transition {
	return func(c *Claim) error {
		h := c.Holder
		if h == nil || session == 0 || h.Session != session || h.WriterBox != box {
			return wrong("session %d of %s is not the current one", session, box)
		}
		if end := h.Ended; end != nil {
			if end.Final == final {
				return ErrAlreadyRecorded
			}
			return wrong("session %d ended at %s, not %s", session, end.Final, final)
		}
		if c.Op.Exec != box || !(c.writes() || c.Op.Phase == ProbeFailed) {
			return wrong("no session of %s runs in %s, executor %q", box, c.Op.where(), c.Op.Exec)
		}
		if err := c.checkFinal(final); err != nil {
			return err
		}
		h.Ended = &SessionEnd{Box: box, Session: session, Final: final}
		return nil
	}
}

// checkFinal holds each half of a final position to the session's own
// generation, or to its baseline where the session wrote nothing.
func (c *Claim) checkFinal(final Position) error {
	h := c.Holder
	own, _ := c.admission(h.Generation)
	base := own.Baseline
	if final.Generation != h.Generation && (final.Generation != base.Generation || final.TXID != base.TXID) {
		return wrong("final position %s is neither in %q nor its baseline %s", final, h.Generation, base)
	}
	if final.FilesGeneration != h.Generation &&
		(final.FilesGeneration != base.FilesGeneration || final.FilesSeq != base.FilesSeq) {
		return wrong("final files position %s is neither in %q nor its baseline %s", final, h.Generation, base)
	}
	return nil
}

// PublishGeneration records that the current session's generation has its first
// durable root and that the app is ready. The unfinished run before it, and the
// newest generation that was published before, are dead from then on: each is
// to be parked. What lies in another region is that region's own business.
func PublishGeneration(box string, session uint64) Transition {
	return func(c *Claim) error {
		h := c.Holder
		if h == nil || session == 0 || h.Session != session || h.WriterBox != box || c.Op.Exec != box {
			return wrong("session %d of %s is not the current one", session, box)
		}
		last := len(h.Admissions) - 1
		switch {
		case h.Admissions[last].Published:
			return ErrAlreadyRecorded
		case !c.admits():
			return wrong("no generation is published in %s", c.Op.where())
		case h.Ended != nil:
			return wrong("session %d has ended", session)
		}
		for i := last - 1; i >= 0; i-- {
			dead := h.Admissions[i]
			if dead.Region == h.Region {
				c.oweGeneration(dead.Generation)
			}
			if dead.Published {
				break
			}
		}
		h.Admissions[last].Published = true
		c.Op.Journal.AcceptEmpty = false
		return nil
	}
}
