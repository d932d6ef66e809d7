package placement

import (
	"fmt"
	"time"
)

const (
	// FreshFor is how long an edges file speaks for its box after the store
	// accepted it. A box publishes every 5 to 6 minutes.
	FreshFor = 15 * time.Minute

	// maxAhead is how far the store's time may be ahead of the reader's.
	maxAhead = 2 * time.Minute
)

// Fresh refuses a file that is older than [FreshFor] at now, or more than two
// minutes in the future. Both bounds are inclusive.
func (p Published) Fresh(now time.Time) error {
	age := now.Sub(p.ModTime)
	switch {
	case p.ModTime.IsZero():
		return fmt.Errorf("no edges file")
	case age > FreshFor:
		return fmt.Errorf("its edges file is %s old, at most %s", age.Round(time.Second), FreshFor)
	case age < -maxAhead:
		return fmt.Errorf("its edges file is %s in the future, at most %s: check this machine's clock", (-age).Round(time.Second), maxAhead)
	}
	return nil
}
