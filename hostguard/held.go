package hostguard

import "fmt"

// Held is a host's lock while a step runs under it. Only the step that was
// given it may use it, and only until it returns.
type Held struct {
	g  *Guard
	at Installation
}

// Installation is the active one, which cannot change while it is held.
func (h *Held) Installation() Installation { return h.at }

func (h *Held) check() error {
	if h.g == nil {
		return fmt.Errorf("hostguard: %w: used after its step returned", ErrStale)
	}
	return nil
}
