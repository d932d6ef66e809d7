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

	TerminationQueue string `help:"URL of the SQS queue that gets the region's EC2 state changes; without one they are found by asking." placeholder:"URL"`

	Pace
}

// Pace says how often a worker looks, and how much it moves at a time.
type Pace struct {
	Sweep     time.Duration `help:"How often every box is described and every running operation is looked for (${default})." default:"30s"`
	PinDelay  time.Duration `help:"How long after a fence a pin is taken (${default}). It bounds what a failover may lose." default:"30s"`
	Parallel  int           `help:"How many hosts are begun to be moved at a time (${default})." default:"16"`
	Rebalance int           `help:"Move a few hosts at a time while one box has that many more than another of its pool; 0 never." default:"0"`
}

func (s Settings) check() error {
	if err := boxid.CheckRef(s.Box); err != nil {
		return fmt.Errorf("%w: box: %w", config.ErrUsage, err)
	}
	if err := boxid.CheckRef(s.Region); err != nil {
		return fmt.Errorf("%w: region: %w", config.ErrUsage, err)
	}
	if err := s.Pace.check(); err != nil {
		return fmt.Errorf("%w: %w", config.ErrUsage, err)
	}
	return nil
}

func (p Pace) check() error {
	switch {
	case p.Sweep < 100*time.Millisecond:
		return fmt.Errorf("sweep is %s, want at least 100ms", p.Sweep)
	case p.PinDelay <= 0:
		return fmt.Errorf("pin-delay is %s, want more than 0", p.PinDelay)
	case p.Parallel < 1 || p.Parallel > 1024:
		return fmt.Errorf("parallel is %d, want 1 to 1024", p.Parallel)
	case p.Rebalance < 0:
		return fmt.Errorf("rebalance is %d, want at least 0", p.Rebalance)
	}
	return nil
}
