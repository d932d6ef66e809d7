package console

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
)

// movePace is how often a command that waits for a move looks.
const movePace = 100 * time.Millisecond

// AwaitMove watches a move until its host serves again, and returns the box that
// serves it. Each new sentence goes to progress, with the time since the start.
// A move that was cancelled, is stuck, or has not ended after timeout is an
// error. A ctx that ends leaves the move as it is.
func (c *Console) AwaitMove(ctx context.Context, m Move, timeout time.Duration, progress func(string)) (string, error) {
	said := ""
	for {
		o, err := hostclaim.Read(ctx, c.Store, m.Host)
		took := c.now().Sub(m.StartedAt)
		switch {
		case ctx.Err() != nil: // below
		case err != nil && took > timeout:
			return "", err
		case err == nil && moved(m, o.Claim):
			return o.Claim.Op.Exec, nil
		case err == nil:
			if err := m.ended(o.Claim, took > timeout, c.now()); err != nil {
				return "", err
			}
		}
		if line := m.line(o.Claim, err); line != said && ctx.Err() == nil {
			progress(fmt.Sprintf("%6.2f s  %s", took.Seconds(), line))
			said = line
		}
		if !pause(ctx, movePace) {
			return "", fmt.Errorf("%s goes on without us (%w); look at it with: console host show %s", m.Host, context.Cause(ctx), m.Host)
		}
	}
}

// moved reports whether the move ended as it was meant to.
func moved(m Move, claim *hostclaim.Claim) bool {
	return claim != nil && claim.Op.Kind == hostclaim.Serving && claim.Op.ID == m.Op && claim.Op.Outcome == hostclaim.Completed
}

// ended is why a move that did not complete is not waited for any longer.
func (m Move) ended(claim *hostclaim.Claim, late bool, now time.Time) error {
	show := "look at it with: console host show " + m.Host
	if claim == nil || claim.Op.ID != m.Op {
		return refuseMove(m.Host, errors.New("another operation came after its move"), show)
	}
	switch op := claim.Op; {
	case op.Outcome == hostclaim.Cancelled:
		return refuseMove(m.Host, fmt.Errorf("its move could not begin and was cancelled: %s serves on", op.Exec),
			fmt.Sprintf("look at the agents on %s and %s, then drain it again", m.From, m.To))
	case op.Kind == hostclaim.Serving:
		return refuseMove(m.Host, fmt.Errorf("an operator ended its move: %s serves it", op.Exec), show)
	case op.Journal.Stuck != nil, late:
		return refuseMove(m.Host, errors.New(describe(claim, known{}, now).Sentence()), show)
	}
	return nil
}

// line is where the move is: its phase, and what it waits for.
func (m Move) line(claim *hostclaim.Claim, readErr error) string {
	if readErr != nil {
		return fmt.Sprintf("its claim cannot be read, trying again: %v", readErr)
	}
	op := claim.Op
	line := fmt.Sprintf("%s: waiting for %s", op.Phase, waitsFor(op, m.StartedAt))
	if op.Reason() == hostclaim.Failover {
		line = "failing over, " + line
	}
	return line
}
