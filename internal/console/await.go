package console

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
)

// pace is how often a waiting command looks.
const pace = 500 * time.Millisecond

// Await watches a create until its app answers, and says each new sentence to
// progress. A box that has not taken the host by the deadline makes it cancel
// the create; an app that has not answered by then stays, and is an error.
// A ctx that ends leaves everything as it is.
func (c *Console) Await(ctx context.Context, cr Creation, timeout time.Duration, progress func(string)) error {
	deadline := cr.StartedAt.Add(timeout)
	said := ""
	for {
		o, err := hostclaim.Read(ctx, c.Store, cr.Host)
		line, done, err := c.watched(ctx, cr, o, err, deadline)
		if done || err != nil {
			return err
		}
		if line != said {
			progress(line)
			said = line
		}
		if !pause(ctx, pace) {
			return fmt.Errorf("%s goes on without us (%w); look at it with: console host show %s", cr.Host, context.Cause(ctx), cr.Host)
		}
	}
}

// watched judges one look at the claim. A read that failed is only said, until
// the deadline.
func (c *Console) watched(ctx context.Context, cr Creation, o hostclaim.Observed, readErr error, deadline time.Time) (line string, done bool, err error) {
	late := c.now().After(deadline)
	switch {
	case readErr != nil && late:
		return "", false, readErr
	case readErr != nil:
		return fmt.Sprintf("the claim cannot be read, trying again: %v", readErr), false, nil
	case o.Claim == nil || o.Claim.Holder == nil || o.Claim.Holder.Incarnation != cr.Incarnation:
		return "", false, refuseCreate(cr.Host, errors.New("its create was cancelled meanwhile"), "create it again")
	case o.Claim.Op.Kind == hostclaim.Creating && late:
		return c.giveUp(ctx, cr, o)
	case published(o.Claim):
		return "", true, nil
	case late:
		return "", false, fmt.Errorf("%s was created on %s and its app has not answered yet: %s", cr.Host, cr.Box, describe(o.Claim, known{}, c.now()))
	}
	return progressOf(o.Claim), false, nil
}

// progressOf is what is waited for; that it takes time shows by itself.
func progressOf(claim *hostclaim.Claim) string {
	s := describe(claim, known{}, claim.Op.StartedAt)
	if s.Waits == "" {
		return s.Doing
	}
	return "waiting for " + s.Waits
}

// giveUp cancels a create that its box did not take, unless it just did.
func (c *Console) giveUp(ctx context.Context, cr Creation, o hostclaim.Observed) (string, bool, error) {
	reason := fmt.Sprintf("%s did not take it in time", cr.Box)
	_, err := c.apply(ctx, o, hostclaim.CancelCreate(cr.Op, reason))
	if taken(err) {
		return cr.Box + " took it in the last moment", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("%s is overdue and could not be cancelled: %w", cr.Host, err)
	}
	return "", false, refuseCreate(cr.Host, errors.New(reason), fmt.Sprintf("look at the agent's log on %s, then create it again", cr.Box))
}

// published reports whether the newest writer's app has answered.
func published(claim *hostclaim.Claim) bool {
	a := claim.Holder.Admissions
	return len(a) > 0 && a[len(a)-1].Published
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
