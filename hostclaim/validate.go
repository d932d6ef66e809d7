package hostclaim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/carlosframework/regionha/boxid"
)

// The sizes that lists are trimmed to. A list may exceed its size while its
// head may not go, and no bound ever refuses a fence.
const (
	keepAdmissions = 8
	keepOthers     = 32
)

// Validate checks every structural rule of a claim and names the first that is
// broken, as [ErrMalformed]. A claim that does not validate is never repaired.
func (c *Claim) Validate() error {
	for _, check := range []func() error{
		c.validHead, c.validHolder, c.validWriter, c.validAdmissions, c.validOp, c.validRelocation, c.validLists,
	} {
		if err := check(); err != nil {
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		}
	}
	return nil
}

func (c *Claim) validHead() error {
	if c.V != 1 {
		return fmt.Errorf("v is %d, want 1", c.V)
	}
	if err := CheckHost(c.Host); err != nil {
		return err
	}
	if c.Gen == 0 {
		return fmt.Errorf("gen is 0, want at least 1")
	}
	return checkName("write", c.Write)
}

func (c *Claim) validHolder() error {
	h := c.Holder
	if (h == nil) != (c.Op.Kind == Free) {
		return fmt.Errorf("op.kind is %q, holder present: %t", c.Op.Kind, h != nil)
	}
	if h == nil {
		return nil
	}
	for field, v := range map[string]string{
		"incarnation": h.Incarnation, "account": h.Account, "app": h.App, "region": h.Region, "record_sha256": h.RecordSHA256,
	} {
		if err := checkName("holder."+field, v); err != nil {
			return err
		}
	}
	switch {
	case h.Location != LocationOf(c.Host, h.Incarnation):
		return fmt.Errorf("holder.location is %q, want %q", h.Location, LocationOf(c.Host, h.Incarnation))
	case !strings.HasPrefix(h.RecordKey, "apps/"):
		return fmt.Errorf("holder.record_key is %q, want a key under apps/", h.RecordKey)
	case contains(c.RetiredIncarnations, h.Incarnation):
		return fmt.Errorf("holder.incarnation %s is retired", h.Incarnation)
	case h.Stamp > c.Gen:
		return fmt.Errorf("holder.stamp is %d, over gen %d", h.Stamp, c.Gen)
	case h.Session > h.Stamp:
		return fmt.Errorf("holder.session is %d, over stamp %d", h.Session, h.Stamp)
	}
	return nil
}

func (c *Claim) validWriter() error {
	h := c.Holder
	if h == nil {
		return nil
	}
	if h.Session == 0 {
		if h.WriterBox != "" || h.Generation != "" || h.Ended != nil || len(h.Admissions) > 0 {
			return fmt.Errorf("holder.session is 0, but a writer is named")
		}
		return nil
	}
	if len(h.Admissions) == 0 {
		return fmt.Errorf("holder.session is %d without an admission", h.Session)
	}
	last := h.Admissions[len(h.Admissions)-1]
	if last.Session != h.Session || last.Box != h.WriterBox || last.Generation != h.Generation {
		return fmt.Errorf("session %d of %q on %q is not the newest admission", h.Session, h.Generation, h.WriterBox)
	}
	if e := h.Ended; e != nil && (e.Session != h.Session || e.Box != h.WriterBox) {
		return fmt.Errorf("holder.ended is of session %d on %q, not the current one", e.Session, e.Box)
	}
	return nil
}

func (c *Claim) validAdmissions() error {
	if c.Holder == nil {
		return nil
	}
	var session uint64
	seen := map[string]bool{}
	for _, r := range c.Holder.Admissions {
		if err := checkName("admission.generation", r.Generation); err != nil {
			return err
		}
		if err := boxid.CheckRef(r.Box); err != nil {
			return err
		}
		switch {
		case r.Session <= session:
			return fmt.Errorf("admission %d does not come after %d", r.Session, session)
		case seen[r.Generation]:
			return fmt.Errorf("generation %s is admitted twice", r.Generation)
		case r.Mode != Cold:
			return fmt.Errorf("admission %d has mode %q, want %q", r.Session, r.Mode, Cold)
		case r.Coverage != Uncovered && r.Coverage != CleanReturn:
			return fmt.Errorf("admission %d has coverage %q", r.Session, r.Coverage)
		}
		session, seen[r.Generation] = r.Session, true
	}
	return nil
}

func (c *Claim) validOp() error {
	o := c.Op
	switch o.Kind {
	case Free:
		if o.Exec != "" || len(o.Participants) > 0 {
			return fmt.Errorf("a free host has executor %q and participants %v", o.Exec, o.Participants)
		}
		return nil
	case Creating:
		if o.Exec != "" || c.Holder.Stamp != 0 {
			return fmt.Errorf("a host that is being created has executor %q and stamp %d", o.Exec, c.Holder.Stamp)
		}
		if err := o.Intent.Selected.check("op.intent.selected"); err != nil {
			return err
		}
	case Serving:
		if !slices.Equal(o.Participants, []string{o.Exec}) {
			return fmt.Errorf("serving on %q with participants %v", o.Exec, o.Participants)
		}
		if err := boxid.CheckRef(o.Exec); err != nil {
			return err
		}
	case Relocating:
	default:
		return fmt.Errorf("op.kind is %q", o.Kind)
	}
	if o.Kind != Relocating && o.Phase != "" {
		return fmt.Errorf("op.phase is %q in %s", o.Phase, o.Kind)
	}
	return checkName("op.id", o.ID)
}

func (c *Claim) validRelocation() error {
	o := c.Op
	if o.Kind != Relocating {
		return nil
	}
	rank := slices.Index([]Phase{Starting, Pinning, Installing, Installed, Probing}, o.Phase)
	if rank < 0 {
		return fmt.Errorf("op.phase is %q", o.Phase)
	}
	if err := o.Intent.check(c.Holder); err != nil {
		return err
	}
	handed := rank >= slices.Index([]Phase{Starting, Pinning, Installing}, Installing)
	want := None
	if handed {
		want = o.Target().Box
	}
	if o.Exec != want || !slices.Equal(o.Participants, []string{o.Target().Box}) {
		return fmt.Errorf("%s with executor %q and participants %v, want executor %q", o.Phase, o.Exec, o.Participants, want)
	}
	if _, fenced := o.Journal.Fences[o.Intent.Source.Box]; !fenced || !c.IsLost(o.Intent.Source.Box) {
		return fmt.Errorf("a failover without the fence of its source %q", o.Intent.Source.Box)
	}
	return o.Journal.check(rank, c.Holder)
}

func (i Intent) check(h *Holder) error {
	if err := i.Source.check("op.intent.source"); err != nil {
		return err
	}
	if err := i.Target.check("op.intent.target"); err != nil {
		return err
	}
	switch {
	case i.Source.Box == i.Target.Box:
		return fmt.Errorf("op.intent has source and target %q", i.Source.Box)
	case i.Reason != Failover:
		return fmt.Errorf("op.intent.reason is %q", i.Reason)
	case i.Region != h.Region:
		return fmt.Errorf("op.intent.region is %q, the holder's %q", i.Region, h.Region)
	case i.PinDelay < 0:
		return fmt.Errorf("op.intent.pin_delay is %s", i.PinDelay)
	}
	return nil
}

// check holds the journal to what the phase, by rank, cannot be without.
func (j Journal) check(rank int, h *Holder) error {
	const installing, installed, probing = 2, 3, 4
	switch {
	case rank >= installing && (j.Pin == nil || j.Prepared == "" || j.InstallStamp == 0):
		return fmt.Errorf("installing without a pin, a prepared generation or its stamp")
	case rank < installing && (j.Prepared != "" || j.InstallStamp != 0):
		return fmt.Errorf("a prepared generation %q before installing", j.Prepared)
	case j.InstallStamp > h.Stamp || j.PreparedStamp > j.InstallStamp:
		return fmt.Errorf("install stamp %d, prepared stamp %d, stamp %d: want them in order", j.InstallStamp, j.PreparedStamp, h.Stamp)
	case (rank >= installed) != (j.PreparedAuthority != nil):
		return fmt.Errorf("prepared authority present: %t", j.PreparedAuthority != nil)
	case rank < installed && j.LocalInstall != nil:
		return fmt.Errorf("a local install before installed")
	case rank >= probing && (j.LocalInstall == nil || j.ProbingSince.IsZero()):
		return fmt.Errorf("probing without a local install or its time")
	case rank < probing && (j.ProbeAttempts != 0 || j.Probe != nil || j.PreparedOpened != ""):
		return fmt.Errorf("a probe attempt before probing")
	case j.ProbeAttempts < 0 || j.ProbeAttempts > MaxProbeAttempts || j.ProbeAdmission < 0 || j.ProbeAdmission > j.ProbeAttempts:
		return fmt.Errorf("%d probe attempts, %d of them admitted", j.ProbeAttempts, j.ProbeAdmission)
	}
	return nil
}

func (c *Claim) validLists() error {
	ids := map[string]bool{}
	for _, o := range c.Obligations {
		switch {
		case o.ID == "" || ids[o.ID]:
			return fmt.Errorf("obligation id %q is empty or not unique", o.ID)
		case o.Kind != ParkLocal && o.Kind != ParkGeneration:
			return fmt.Errorf("obligation %s has kind %q", o.ID, o.Kind)
		case !checkOwner(o.Owner):
			return fmt.Errorf("obligation %s has owner %q, want box:<ref> or region:<code>", o.ID, o.Owner)
		}
		ids[o.ID] = true
	}
	for name, list := range map[string][]string{"touched": c.Touched, "lost": c.Lost, "loss_refs": c.LossRefs} {
		if s := slices.Sorted(slices.Values(list)); len(slices.Compact(s)) != len(list) {
			return fmt.Errorf("%s names an entry twice", name)
		}
	}
	for _, l := range c.EvidenceRefs {
		if !contains(c.LossRefs, l.ID) {
			return fmt.Errorf("evidence %s is not in loss_refs", l.ID)
		}
		if !strings.HasPrefix(l.Fence.Key, "control/box-fences/") && !strings.HasPrefix(l.Fence.Key, "control/declarations/") {
			return fmt.Errorf("evidence %s cites %q, neither a fence nor a declaration", l.ID, l.Fence.Key)
		}
	}
	return nil
}

func (m Member) check(field string) error {
	if err := boxid.CheckRef(m.Box); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return checkName(field+".enrollment", m.Enrollment)
}

// checkName refuses what may not be a part of a key or an id: anything but 1 to
// 128 of [A-Za-z0-9._-], and the names "." and "..".
func checkName(field, s string) error {
	if s == "" || len(s) > 128 || s == "." || s == ".." {
		return fmt.Errorf("%s is %q, want 1 to 128 of [A-Za-z0-9._-]", field, s)
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r) {
			return fmt.Errorf("%s is %q, want only [A-Za-z0-9._-]", field, s)
		}
	}
	return nil
}

// trim drops the oldest entries of the lists that have a size, as far as
// nothing needs them any more.
func (c *Claim) trim() {
	if h := c.Holder; h != nil {
		for len(h.Admissions) > keepAdmissions && c.forgettable(h.Admissions) {
			h.Admissions = h.Admissions[1:]
		}
	}
	for len(c.LossRefs) > keepOthers && !c.needsLoss(c.LossRefs[0]) {
		c.LossRefs = c.LossRefs[1:]
	}
	c.RetiredIncarnations = newest(c.RetiredIncarnations)
	c.CancelledCreates = newest(c.CancelledCreates)
}

// forgettable: the head is older than the newest published admission and its
// declared loss, if any, was reported.
func (c *Claim) forgettable(list []AdmissionRecord) bool {
	if w := list[0].WritesLost; w != nil && !contains(c.LossRefs, w.ID) {
		return false
	}
	return slices.ContainsFunc(list[1:], func(r AdmissionRecord) bool { return r.Published })
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
