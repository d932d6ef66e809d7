package hostclaim

import (
	"strings"

	"github.com/carlosframework/regionha/termfence"
)

const (
	roleSource = "source"
	roleTarget = "target"

	ownerBox    = "box:"
	ownerRegion = "region:"
)

// consume relies on evidence about a member of this operation, in the write
// that needs it: the box is lost for this host for ever, the loss of its last
// session is retained for people, and the regional chores that it owned pass to
// their region. It changes nothing of any other box.
func (c *Claim) consume(e termfence.Evidence, m Member, role string) error {
	switch {
	case e.Box() == "":
		return wrong("no evidence that %s is gone", m.Box)
	case e.Box() != m.Box || e.Enrollment() != m.Enrollment:
		return wrong("the evidence is about %s as %s, not %s as %s", e.Box(), e.Enrollment(), m.Box, m.Enrollment)
	case e.Region() != c.Op.Intent.Region:
		return wrong("the evidence is from region %q, the operation runs in %q", e.Region(), c.Op.Intent.Region)
	}
	if _, consumed := c.Op.Journal.Fences[m.Box]; consumed {
		return nil
	}
	ref := e.Ref()
	f := Fence{Enrollment: m.Enrollment, Key: ref.Key, SHA256: ref.SHA256, ObservedAt: e.ObservedAt().UTC(), Declared: e.Declared()}
	if c.Op.Journal.Fences == nil {
		c.Op.Journal.Fences = map[string]Fence{}
	}
	c.Op.Journal.Fences[m.Box] = f
	c.Lost = add(c.Lost, m.Box)
	c.retainLoss(f, m.Box, role)
	return c.reassign(m.Box)
}

// retainLoss keeps what the evidence means until a person was told. Its id is
// derived, so a replay adds nothing.
func (c *Claim) retainLoss(f Fence, box, role string) {
	l := AutomaticLoss{
		ID: lossID(c.Op.ID, box, f.SHA256), Op: c.Op.ID, Box: box, Role: role, Fence: f,
		Timers: "unknown",
	}
	if contains(c.LossRefs, l.ID) {
		return
	}
	for _, r := range c.Holder.Admissions {
		if r.Box == box {
			l.Session, l.Admission = r.Session, &r
		}
	}
	c.EvidenceRefs = append(c.EvidenceRefs, l)
	c.LossRefs = append(c.LossRefs, l.ID)
}

// reassign passes the regional chores that box owned to each chore's own
// region. Its park-local chores stay its own: only a proof that its disks are
// gone completes those.
func (c *Claim) reassign(box string) error {
	for i, o := range c.Obligations {
		if o.Owner != ownerBox+box || o.Kind == ParkLocal {
			continue
		}
		if o.Region == "" {
			return wrong("chore %s of %s has no region to pass to", o.ID, box)
		}
		c.Obligations[i].Owner = ownerRegion + o.Region
	}
	return nil
}

func checkOwner(owner string) bool {
	return (strings.HasPrefix(owner, ownerBox) && len(owner) > len(ownerBox)) ||
		(strings.HasPrefix(owner, ownerRegion) && len(owner) > len(ownerRegion))
}
