package worker

import (
	"fmt"
	"time"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/config"
)

// Description is the first words of the binary's help.
const Description = "Drives a region of a regionha deployment: fences boxes that are gone and moves their hosts to others."

// Settings are the worker's.
type Settings struct {
	config.Base
	config.Deployment
	config.Admin
	config.SecretFile

	Box    string `help:"Reference under which this machine is enrolled: one DNS label." placeholder:"REF" required:""`
	Region string `help:"The region to drive, such as ie." placeholder:"CODE" required:""`

	Internal  string `help:"Address for hints from the boxes (${default})." placeholder:"ADDR" default:":8082"`
	Advertise string `help:"Host name or IP that peers dial; needed where it listens on every interface." placeholder:"HOST"`

	Sweep    time.Duration `help:"How often every box is described and every running operation is looked for." default:"30s"`
	PinDelay time.Duration `help:"How long after a fence a pin is taken. It bounds what a failover may lose." default:"30s"`
	Parallel int           `help:"How many hosts are moved at a time." default:"16"`
}

func (s Settings) check() error {
	if err := boxid.CheckRef(s.Box); err != nil {
		return fmt.Errorf("%w: box: %w", config.ErrUsage, err)
	}
	if err := boxid.CheckRef(s.Region); err != nil {
		return fmt.Errorf("%w: region: %w", config.ErrUsage, err)
	}
	switch {
	case s.Sweep < 100*time.Millisecond:
		return fmt.Errorf("%w: sweep is %s, want at least 100ms", config.ErrUsage, s.Sweep)
	case s.PinDelay <= 0:
		return fmt.Errorf("%w: pin-delay is %s, want more than 0", config.ErrUsage, s.PinDelay)
	case s.Parallel < 1 || s.Parallel > 1024:
		return fmt.Errorf("%w: parallel is %d, want 1 to 1024", config.ErrUsage, s.Parallel)
	}
	return nil
}
