package hostclaim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
)

// carriedOn drives an operation to its end with the boxes that it has.
func carriedOn(t *testing.T, o hostclaim.Observed) *hostclaim.Claim {
	t.Helper()
	for range 30 {
		if o.Claim.Op.Kind == hostclaim.Serving {
			return o.Claim
		}
		o = then(t, o, step(t, o.Claim))
	}
	t.Fatalf("%s %s after 30 steps", o.Claim.Op.Kind, o.Claim.Op.Phase)
	return nil
}

// step is what an operation that is not stuck waits for.
func step(t *testing.T, c *hostclaim.Claim) hostclaim.Transition {
	t.Helper()
	j := c.Op.Journal
	for _, box := range c.Op.Participants {
		if j.Acks[box] == "" {
			m := c.Op.Intent.Source
			if target := c.Op.Target(); target.Box == box {
				m = target
			}
			return ack(m)
		}
	}
	switch c.Op.Phase {
	case hostclaim.Starting:
		if c.Op.Exec == hostclaim.None {
			return hostclaim.PinFailover("op-2", decidedAt)
		}
		return hostclaim.ToReleasing("op-2", decidedAt)
	case hostclaim.Releasing:
		if j.Release == nil {
			return hostclaim.JournalRelease("op-2", releaseOf(t, c, pinned))
		}
		return hostclaim.PinAfterRelease("op-2", stopOf(t, c), hostclaim.Member{}, decidedAt)
	case hostclaim.Pinning:
		return hostclaim.Then(journalPin(c), hostclaim.ToInstalling("op-2", "p-8", decidedAt))
	case hostclaim.Installing:
		a := built
		a.Generation, a.SnapshotTXID, a.SourceFilesSeq = j.Prepared, j.Pin.Position.TXID, j.Pin.Position.FilesSeq
		return hostclaim.ToInstalled("op-2", a, decidedAt)
	case hostclaim.Installed:
		return hostclaim.Then(hostclaim.RecordLocalInstall("op-2", installOf(c)), hostclaim.ToProbing("op-2", decidedAt))
	}
	coverage := hostclaim.Uncovered
	switch {
	case j.Release != nil:
		coverage = hostclaim.Released
	case c.Holder.Ended != nil:
		coverage = hostclaim.CleanReturn
	}
	return hostclaim.Then(hostclaim.BeginProbeAttempt("op-2", 1), hostclaim.AdmitWriter(openingOf(c, coverage)),
		hostclaim.RecordProbe("op-2", c.Op.Exec, c.Holder.Stamp), hostclaim.CompleteRelocation("op-2"))
}

// journalPin pins what was released, or what the newest writer left.
func journalPin(c *hostclaim.Claim) hostclaim.Transition {
	if p := c.Op.Journal.Pin; p != nil {
		return hostclaim.JournalPin("op-2", *p)
	}
	p := pinOf(c)
	p.ListedAt = decidedAt
	if c.Holder.Generation != "g-1" {
		p.Position = written
	}
	return hostclaim.JournalPin("op-2", p)
}

// wedges says from which phase on a box is alive and does nothing more. One that
// is not named does what it is asked.
type wedges map[string]hostclaim.Phase

// opened is the part of probing in which the target has written.
const opened hostclaim.Phase = "opened"

var inOrder = []hostclaim.Phase{hostclaim.Starting, hostclaim.Releasing, hostclaim.Pinning, hostclaim.Installing,
	hostclaim.Installed, hostclaim.Probing, opened, hostclaim.ProbeFailed}

func (w wedges) wedged(box string, c *hostclaim.Claim) bool {
	phase := c.Op.Phase
	if phase == hostclaim.Probing && c.Op.Journal.PreparedOpened == c.Op.Journal.Prepared {
		phase = opened
	}
	from, ok := w[box]
	return ok && slices.Index(inOrder, phase) >= slices.Index(inOrder, from)
}

// boxSteps is what the boxes of a drain do, each for itself.
func (w wedges) boxSteps(t *testing.T, c *hostclaim.Claim, now time.Time) (steps []hostclaim.Transition) {
	for _, m := range []hostclaim.Member{source, c.Op.Target()} {
		if w.wedged(m.Box, c) {
			continue
		}
		steps = append(steps, ack(m))
		if c.Op.Exec != m.Box {
			continue
		}
		j := c.Op.Journal
		if j.Pin == nil || c.Op.Phase == hostclaim.ProbeFailed {
			g := c.Holder.Generation
			final := hostclaim.Position{Generation: g, TXID: 43, FilesGeneration: g, FilesSeq: 2}
			steps = append(steps, hostclaim.JournalRelease("op-2", releaseOf(t, c, final)))
			continue
		}
		a := built
		a.Generation, a.SnapshotTXID, a.SourceFilesSeq = j.Prepared, j.Pin.Position.TXID, j.Pin.Position.FilesSeq
		steps = append(steps, hostclaim.ToInstalled("op-2", a, now), hostclaim.RecordLocalInstall("op-2", installOf(c)),
			hostclaim.ToProbing("op-2", now), hostclaim.Then(hostclaim.BeginProbeAttempt("op-2", 1),
				hostclaim.AdmitWriter(openingOf(c, hostclaim.Released))), hostclaim.RecordProbe("op-2", m.Box, c.Holder.Session))
	}
	return steps
}

// workerSteps is what a worker does, the most wanted first.
func workerSteps(t *testing.T, c *hostclaim.Claim, now time.Time) []hostclaim.Transition {
	fresh := "p-" + c.Op.Target().Box
	p := pinOf(c)
	if r := c.Op.Journal.Release; r != nil {
		p.Position = r.Final
	}
	steps := []hostclaim.Transition{hostclaim.CompleteRelocation("op-2"), hostclaim.ToReleasing("op-2", now),
		hostclaim.Then(hostclaim.JournalPin("op-2", p), hostclaim.ToInstalling("op-2", fresh, now))}
	if c.Op.Journal.Release != nil && c.Op.Exec != hostclaim.None {
		receipt := stopOf(t, c)
		steps = append(steps, hostclaim.PinAfterRelease("op-2", receipt, hostclaim.Member{}, now), hostclaim.PinAfterRelease("op-2", receipt, spare, now))
	}
	steps = append(steps, hostclaim.ToProbeFailed("op-2", now), hostclaim.AbandonTarget("op-2", spare, "p-"+spare.Box, now),
		hostclaim.CancelDrain("op-2", now))
	for _, why := range []hostclaim.StuckReason{hostclaim.ReplacementsUsedUp, hostclaim.NoSpare, hostclaim.ReleaseOverdue, hostclaim.InstallOverdue} {
		steps = append(steps, hostclaim.MarkStuck("op-2", why, now))
	}
	return steps
}

// drained drives a drain in which some boxes are wedged, until the host is
// served or an operator is asked, and says how long that took.
func (w wedges) drained(t *testing.T, o hostclaim.Observed) (*hostclaim.Claim, time.Duration) {
	t.Helper()
	now := relocation.Now
	for now.Before(relocation.Now.Add(24 * time.Hour)) {
		if o.Claim.Op.Kind == hostclaim.Serving || o.Claim.Op.Journal.Stuck != nil {
			return o.Claim, now.Sub(relocation.Now)
		}
		moved := false
		for _, s := range append(w.boxSteps(t, o.Claim, now), workerSteps(t, o.Claim, now)...) {
			if c, err := o.Next("nonce", s); err == nil {
				o.Claim, moved = c, true
				break
			}
		}
		if !moved {
			now = now.Add(5 * time.Minute)
		}
	}
	t.Fatalf("%v: %s %s after a day", w, o.Claim.Op.Kind, o.Claim.Op.Phase)
	return nil, 0
}

// TestEveryWedgeEndsInServingOrStuckInItsBounds wedges the source, the target
// and the next one, each from each phase on, in every combination.
func TestEveryWedgeEndsInServingOrStuckInItsBounds(t *testing.T) {
	const none hostclaim.Phase = "none"
	start := drainUpTo(t, "starting")
	for _, s := range []hostclaim.Phase{none, hostclaim.Starting, hostclaim.Releasing} {
		for _, tg := range append(inOrder, none) {
			for _, n := range append(inOrder, none) {
				w := wedges{source.Box: s, target.Box: tg, spare.Box: n}
				for box, from := range w {
					if from == none {
						delete(w, box)
					}
				}
				c, took := w.drained(t, start)
				require.LessOrEqual(t, took, 90*time.Minute, w)
				switch {
				case s == hostclaim.Starting:
					require.Equal(t, []any{hostclaim.Serving, source.Box}, []any{c.Op.Kind, c.Op.Exec}, w)
				case s == hostclaim.Releasing:
					require.NotEqual(t, target.Box, c.Op.Exec, w)
				case tg == none || tg == hostclaim.ProbeFailed:
					require.Equal(t, []any{hostclaim.Serving, target.Box}, []any{c.Op.Kind, c.Op.Exec}, w)
				case n == none || n == hostclaim.ProbeFailed:
					require.Equal(t, tg == opened, c.Op.Journal.Stuck != nil, "%v: a target that has written is left only by its release", w)
				}
			}
		}
	}
}
