package hostclaim

import (
	"fmt"
	"time"
)

// PinFailover moves a failover on to pinning, once every participant
// acknowledged.
func PinFailover(op string, now time.Time) Transition {
	return func(c *Claim) error {
		if c.Op.ID == op && c.Op.Phase == Pinning && c.Op.Reason() == Failover {
			return ErrAlreadyRecorded
		}
		if err := c.at(op, Starting); err != nil {
			return err
		}
		if c.Op.Reason() != Failover {
			return wrong("a %s is pinned after its release: %s still executes", c.Op.Reason(), c.Op.Exec)
		}
		if err := c.acknowledged(); err != nil {
			return err
		}
		c.Op.enter(Pinning, now)
		return nil
	}
}

// PinKey is where the pin selected against a claim generation lies.
func PinKey(host, op string, gen uint64) string {
	return fmt.Sprintf("%spin-%d.json", pinPrefix(host, op), gen)
}

func pinPrefix(host, op string) string { return "control/relocations/" + host + "/" + op + "/" }

// JournalPin fixes what the operation carries over, once. The pin must have
// been selected against exactly the claim that this write replaces, so one
// whose write was lost is abandoned, and its listing must have begun no earlier
// than every fence's observation plus the operation's pin delay. It reaches what
// a session that ended, or was released, had written.
func JournalPin(op string, p Pin) Transition {
	return func(c *Claim) error {
		p.ListedAt = p.ListedAt.UTC()
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
		if end := c.Holder.Ended; end != nil && !c.Reaches(p.Position, end.Final) {
			return wrong("pin %s does not reach what session %d of %s ended at, %s", p.Position, end.Session, end.Box, end.Final)
		}
		if p.Size < 0 {
			return wrong("size is %d bytes", p.Size)
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
