package agent

import (
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostrelocate"
)

// row is what a claim says this box may do for a host.
type row int

const (
	none  row = iota // the claim does not name this box: what lies here is held, nothing is served
	held             // it takes part in an operation: not served, its timers frozen
	ready            // it executes: the running session is served
)

// rowOf reads the row of box from a claim.
func rowOf(c *hostclaim.Claim, box string) row {
	switch {
	case c == nil:
		return none
	case c.Holder == nil: // nobody runs it
	case c.Op.Kind == hostclaim.Serving && c.Op.Exec == box, sources(c, box):
		return ready
	case c.Op.Kind == hostclaim.Creating && c.Op.Intent.Selected.Box == box, hostrelocate.Takes(c, box):
		return held
	}
	if _, open := choreOf(c, box); open {
		return held
	}
	return none
}

// sources reports whether box is the live source of a relocation that has not
// released yet. It serves on, until its admission fence closes.
func sources(c *hostclaim.Claim, box string) bool {
	if c.Op.Kind != hostclaim.Relocating || c.Op.Exec != box || c.Op.Intent.Source.Box != box {
		return false
	}
	return c.Op.Phase == hostclaim.Starting || (c.Op.Phase == hostclaim.Releasing && c.Op.Journal.Release == nil)
}

// names reports whether a claim concerns box at all, so that it keeps a
// supervisor for the host.
func names(c *hostclaim.Claim, box string) bool {
	return rowOf(c, box) != none || (c != nil && c.Holder != nil && c.Op.Exec == box)
}

// runs reports whether the claim names exactly this session of box as the one
// that may run.
func runs(c *hostclaim.Claim, box string, session uint64) bool {
	if c == nil || c.Holder == nil || c.Op.Exec != box || c.Holder.Ended != nil {
		return false
	}
	return c.Holder.WriterBox == box && c.Holder.Session == session
}

// outlived reports whether a newer installation has begun than the one that the
// current session, which has not ended, runs under.
func outlived(c *hostclaim.Claim) bool {
	h := c.Holder
	return h.Session > 0 && h.Ended == nil && h.Stamp > h.Session
}
