package hostclaim

import "slices"

// The sizes that lists are trimmed to. A list may exceed its size while its
// head may not go, and no bound ever refuses a fence.
const (
	keepAdmissions = 8
	keepUnfinished = 32 // admissions of a run that never published
	keepOthers     = 32
)

// trim drops the oldest entries of the lists that have a size, as far as
// nothing needs them any more.
func (c *Claim) trim() {
	if c.Holder != nil {
		c.trimAdmissions()
	}
	for len(c.LossRefs) > keepOthers {
		i := slices.IndexFunc(c.LossRefs, func(id string) bool { return !c.needsLoss(id) })
		if i < 0 {
			break
		}
		c.LossRefs = slices.Delete(c.LossRefs, i, i+1)
	}
	c.RetiredIncarnations = newest(c.RetiredIncarnations)
	c.CancelledCreates = newest(c.CancelledCreates)
}

// trimAdmissions drops what is older than the newest published admission. Of a
// run that never published it drops, beyond a longer size, what the newest
// admission was not restored from: no baseline falls back to it any more, so it
// is put away.
func (c *Claim) trimAdmissions() {
	h := c.Holder
	for len(h.Admissions) > keepAdmissions && c.reported(h.Admissions[0]) && published(h.Admissions[1:]) {
		h.Admissions = slices.Delete(h.Admissions, 0, 1)
	}
	for i := 0; i < len(h.Admissions)-1 && len(h.Admissions) > keepUnfinished; {
		old, base := h.Admissions[i], h.Admissions[len(h.Admissions)-1].Baseline
		if !c.reported(old) || old.Generation == base.Generation || old.Generation == base.FilesGeneration {
			i++
			continue
		}
		if old.Region == h.Region {
			c.oweGeneration(old.Generation)
		}
		h.Admissions = slices.Delete(h.Admissions, i, i+1)
	}
}

func published(list []AdmissionRecord) bool {
	return slices.ContainsFunc(list, func(r AdmissionRecord) bool { return r.Published })
}

// reported: what the admission declared lost was told to a person.
func (c *Claim) reported(r AdmissionRecord) bool {
	return r.WritesLost == nil || contains(c.LossRefs, r.WritesLost.ID)
}

func (c *Claim) needsLoss(id string) bool {
	if slices.ContainsFunc(c.EvidenceRefs, func(l AutomaticLoss) bool { return l.ID == id }) {
		return true
	}
	return c.Holder != nil && slices.ContainsFunc(c.Holder.Admissions, func(r AdmissionRecord) bool {
		return r.WritesLost != nil && r.WritesLost.ID == id
	})
}

func newest[T any](list []T) []T { return list[max(0, len(list)-keepOthers):] }
