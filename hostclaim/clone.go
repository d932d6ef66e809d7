package hostclaim

import (
	"maps"
	"slices"
)

// Clone returns a copy that shares no memory with the claim.
func (c *Claim) Clone() *Claim {
	out := *c
	out.Holder = c.Holder.clone()
	out.Op = c.Op.clone()
	out.Touched = slices.Clone(c.Touched)
	out.Obligations = slices.Clone(c.Obligations)
	for i := range out.Obligations {
		out.Obligations[i].Park = copyOf(out.Obligations[i].Park)
	}
	out.Lost = slices.Clone(c.Lost)
	out.LossRefs = slices.Clone(c.LossRefs)
	out.EvidenceRefs = slices.Clone(c.EvidenceRefs)
	for i, l := range c.EvidenceRefs {
		if l.Admission != nil {
			a := l.Admission.clone()
			out.EvidenceRefs[i].Admission = &a
		}
	}
	out.RetiredIncarnations = slices.Clone(c.RetiredIncarnations)
	out.CancelledCreates = slices.Clone(c.CancelledCreates)
	return &out
}

func (h *Holder) clone() *Holder {
	out := copyOf(h)
	if out == nil {
		return nil
	}
	out.Ended = copyOf(h.Ended)
	out.Admissions = slices.Clone(h.Admissions)
	for i, r := range h.Admissions {
		out.Admissions[i] = r.clone()
	}
	return out
}

func (r AdmissionRecord) clone() AdmissionRecord {
	r.WritesLost = copyOf(r.WritesLost)
	return r
}

func (o Op) clone() Op {
	o.Participants = slices.Clone(o.Participants)
	j := &o.Journal
	j.Replaced = slices.Clone(j.Replaced)
	j.Stuck = copyOf(j.Stuck)
	j.Resolutions = slices.Clone(j.Resolutions)
	j.Acks = maps.Clone(j.Acks)
	j.Fences = maps.Clone(j.Fences)
	j.Release = copyOf(j.Release)
	j.Pin = copyOf(j.Pin)
	j.PreparedAuthority = copyOf(j.PreparedAuthority)
	j.Abandoned = slices.Clone(j.Abandoned)
	j.LocalInstall = copyOf(j.LocalInstall)
	j.Probe = copyOf(j.Probe)
	return o
}

// copyOf copies what p points to.
func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	out := *p
	return &out
}
