package roster

import "fmt"

// Quarantine keeps a box of a roster that [Update] is about to write from ever
// acting again. An operator does it to a box that is declared lost: it may still
// run, and comes back only as another reference. A box that is quarantined
// already stays so. One that is retired, or that the roster does not hold, is
// [ErrInvalid].
func (r *Roster) Quarantine(ref string) error {
	b, ok := r.Boxes[ref]
	switch {
	case !ok:
		return fmt.Errorf("%w: quarantine box %q: it is not in the roster", ErrInvalid, ref)
	case b.State != Active && b.State != Quarantined:
		return fmt.Errorf("%w: quarantine box %q: it is %s", ErrInvalid, ref, b.State)
	}
	b.State = Quarantined
	r.Boxes[ref] = b
	return nil
}

// Retire ends the entry of a box, of a roster that [Update] is about to write,
// for ever. Whether the box is gone is not asked here: who retires one has the
// evidence. A box that is retired already stays so. One that the roster does not
// hold is [ErrInvalid].
func (r *Roster) Retire(ref string) error {
	b, ok := r.Boxes[ref]
	if !ok {
		return fmt.Errorf("%w: retire box %q: it is not in the roster", ErrInvalid, ref)
	}
	b.State = Retired
	r.Boxes[ref] = b
	return nil
}

// Drain keeps a box of a roster that [Update] is about to write from being
// chosen, and has workers move its hosts to other boxes. A box that drains
// already stays so. One that is not active, or that the roster does not hold, is
// [ErrInvalid].
func (r *Roster) Drain(ref string) error { return r.setDraining(ref, true) }

// Undrain lets a box be chosen again. What was moved off it stays where it is.
// Errors: those of [Roster.Drain].
func (r *Roster) Undrain(ref string) error { return r.setDraining(ref, false) }

func (r *Roster) setDraining(ref string, draining bool) error {
	b, ok := r.Boxes[ref]
	switch {
	case !ok:
		return fmt.Errorf("%w: drain box %q: it is not in the roster", ErrInvalid, ref)
	case b.State != Active:
		return fmt.Errorf("%w: drain box %q: it is %s, and runs nothing", ErrInvalid, ref, b.State)
	}
	b.Draining = draining
	r.Boxes[ref] = b
	return nil
}
