package stopevidence

import (
	"errors"
	"fmt"

	"github.com/carlosframework/regionha/internal/record"
)

// Bounds of a receipt, so that none is larger than a person reads.
const (
	maxName   = 200 // bytes of a name
	maxChecks = 16
	maxSaw    = 500 // bytes of what one check saw
)

// check holds a record that was read at a key to the form of a receipt.
func (r Record) check(key string) error {
	if r.V != version {
		return fmt.Errorf("v is %d, expected %d", r.V, version)
	}
	if err := r.checkNames(); err != nil {
		return err
	}
	switch {
	case r.Obligation != Release && r.Obligation != Retirement:
		return fmt.Errorf("obligation is %q, expected %q or %q", r.Obligation, Release, Retirement)
	case r.Stamp == 0:
		return errors.New("stamp is 0, expected 1 or more")
	case r.Session > r.Stamp:
		return fmt.Errorf("session is %d, expected at most the stamp %d", r.Session, r.Stamp)
	case r.DirectoryRevision == 0:
		return errors.New("directory_revision is 0, expected 1 or more")
	case r.EvidenceAt.IsZero():
		return errors.New("evidence_at is missing")
	}
	if own := Key(r.Host, r.Op, r.Box, r.Session, r.Obligation); own != key {
		return fmt.Errorf("it names the key %q", own)
	}
	return checkAll(r.Checks)
}

func (r Record) checkNames() error {
	for _, f := range []struct{ field, name string }{
		{"host", r.Host}, {"op", r.Op}, {"box", r.Box}, {"enrollment", r.Enrollment}, {"boot_id", r.BootID},
		{"controller", r.Controller}, {"incarnation", r.Incarnation}, {"fence", r.Fence},
	} {
		if err := checkName(f.name); err != nil {
			return fmt.Errorf("%s is %w", f.field, err)
		}
	}
	return nil
}

// checkName refuses what may not be one part of a key. That a name is also one
// that the roster or the claim knows is said by who compares it with theirs.
func checkName(name string) error {
	if !record.IsName(name, maxName) {
		return fmt.Errorf("%.220q, expected 1 to %d of [A-Za-z0-9._-]", name, maxName)
	}
	return nil
}

// checkAll wants everything that was looked at to have passed, and everything
// that a stop needs to have been looked at.
func checkAll(checks []Check) error {
	if len(checks) > maxChecks {
		return fmt.Errorf("checks has %d entries, expected at most %d", len(checks), maxChecks)
	}
	passed := make(map[string]bool, len(checks))
	for _, c := range checks {
		if err := checkName(c.Name); err != nil {
			return fmt.Errorf("checks names %w", err)
		}
		switch {
		case len(c.Saw) > maxSaw:
			return fmt.Errorf("check %q saw %d bytes, expected at most %d", c.Name, len(c.Saw), maxSaw)
		case passed[c.Name]:
			return fmt.Errorf("check %q is there twice", c.Name)
		case !c.Passed:
			return fmt.Errorf("check %q did not pass: %q", c.Name, c.Saw)
		}
		passed[c.Name] = true
	}
	for _, name := range []string{CgroupEmpty, NoHolders, AdmissionClosed, ProducersJoined} {
		if !passed[name] {
			return fmt.Errorf("check %q is missing", name)
		}
	}
	return nil
}
