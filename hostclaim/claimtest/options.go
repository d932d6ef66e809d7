package claimtest

import (
	"fmt"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
)

// Options says how to drive a claim. Proofs is needed.
type Options struct {
	Proofs *Proofs
	Boxes  int // live ones to begin with; 2 to 4 if zero
	Steps  int // random ones in a sequence; 25 if zero

	// Drivers returns the actors that are tested, fresh for each sequence. Nil:
	// honest ones of this package only.
	Drivers func() []Driver

	// Wrote is told of each write that applied, and of those that patient actors
	// make at the end, with the claim before it, which is nil for the first, and
	// after it. Nil: nobody is told.
	Wrote func(s Step, before, after *hostclaim.Claim)
}

// Tuple is one kind of thing that happened: in a claim of this kind and phase an
// actor asked for this step, and this fault befell the write.
type Tuple struct {
	Kind  hostclaim.Kind
	Phase hostclaim.Phase
	Step  string
	Fault Fault
}

// Report is what a run did.
type Report struct {
	Sequences int
	Steps     int // what actors tried, and what befell the world
	Writes    int // that applied
	Liveness  int // states from which patient drivers were let loose
	Resolved  int // stuck ones among them, which an operator resolved
	Took      time.Duration
	Tuples    map[Tuple]int
}

// Add adds what another run did.
func (r *Report) Add(x Report) {
	r.Sequences, r.Steps, r.Writes, r.Took = r.Sequences+x.Sequences, r.Steps+x.Steps, r.Writes+x.Writes, r.Took+x.Took
	r.Liveness, r.Resolved = r.Liveness+x.Liveness, r.Resolved+x.Resolved
	if r.Tuples == nil {
		r.Tuples = map[Tuple]int{}
	}
	for t, n := range x.Tuples {
		r.Tuples[t] += n
	}
}

// String is the report in one line.
func (r Report) String() string {
	return fmt.Sprintf("%d sequences, %d steps, %d writes, %d checks of liveness (%d resolved), %d tuples, %s",
		r.Sequences, r.Steps, r.Writes, r.Liveness, r.Resolved, len(r.Tuples), r.Took.Round(time.Millisecond))
}
