package hostclaim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/record"
)

// Validate checks every structural rule of a claim and names the first that is
// broken, as [ErrMalformed]. A claim that does not validate is never repaired.
func (c *Claim) Validate() error {
	for _, check := range checks {
		if err := check(c); err != nil {
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		}
	}
	return nil
}

var checks = []func(*Claim) error{
	(*Claim).validHead, (*Claim).validHolder, (*Claim).validWriter, (*Claim).validAdmissions,
	(*Claim).validOp, (*Claim).validRelocation, (*Claim).validLists, (*Claim).validLosses,
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
	if h == nil {
		if c.Op.Kind != Free && c.Op.Kind != Parking {
			return fmt.Errorf("op.kind is %q without a holder", c.Op.Kind)
		}
		return nil
	}
	if c.Op.Kind == Free {
		return fmt.Errorf("a free host has holder %q", h.Incarnation)
	}
	for _, field := range [...]struct{ name, value string }{
		{"holder.incarnation", h.Incarnation}, {"holder.account", h.Account}, {"holder.app", h.App},
		{"holder.region", h.Region}, {"holder.record_sha256", h.RecordSHA256},
	} {
		if err := checkName(field.name, field.value); err != nil {
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
	for i, r := range c.Holder.Admissions {
		if err := checkName("admission.generation", r.Generation); err != nil {
			return err
		}
		if err := boxid.CheckRef(r.Box); err != nil {
			return err
		}
		switch {
		case r.Session <= session:
			return fmt.Errorf("admission %d does not come after %d", r.Session, session)
		case slices.ContainsFunc(c.Holder.Admissions[:i], func(x AdmissionRecord) bool { return x.Generation == r.Generation }):
			return fmt.Errorf("generation %s is admitted twice", r.Generation)
		case r.Mode != Cold:
			return fmt.Errorf("admission %d has mode %q, want %q", r.Session, r.Mode, Cold)
		case !slices.Contains([]Coverage{Uncovered, CleanReturn, Released, Sealed}, r.Coverage):
			return fmt.Errorf("admission %d has coverage %q", r.Session, r.Coverage)
		}
		session = r.Session
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
	if !record.IsName(s, 128) {
		return fmt.Errorf("%s is %.220q, want 1 to 128 of [A-Za-z0-9._-]", field, s)
	}
	return nil
}
