package hostclaim

import "fmt"

// Coverage says what vouches for the last writes of an admission's predecessor.
type Coverage string

const (
	// Uncovered: nothing does. The admission declares the predecessor's session
	// lost beyond what its baseline holds of it. It is refused where the
	// predecessor is vouched for.
	Uncovered Coverage = ""

	// CleanReturn: the predecessor recorded its end, and the baseline reaches
	// it.
	CleanReturn Coverage = "clean-return"

	// Released: the predecessor gave the host up under a stop receipt in this
	// operation, and the prepared generation that is opened was built from a pin
	// that reaches it.
	Released Coverage = "released"

	// Sealed: the seal of a move to another region vouches. No operation of
	// this package opens a seal.
	Sealed Coverage = "sealed"
)

// Cold is the mode of an admission that purged the local database and restored
// its baseline from the store. There is no other.
const Cold = "cold"

// AdmissionRecord is one admitted writer session.
type AdmissionRecord struct {
	Session    uint64      `json:"session"`
	Box        string      `json:"box"`
	Generation string      `json:"generation"`
	Region     string      `json:"region"`
	Mode       string      `json:"mode"`
	Coverage   Coverage    `json:"coverage"`
	Baseline   Position    `json:"baseline"` // what it was restored from; zero: an empty bootstrap
	WritesLost *WritesLost `json:"writes_lost"`
	Published  bool        `json:"published"` // its generation has a durable root and the app was ready
}

// WritesLost declares that a session may have acknowledged writes beyond
// RemoteMaxTXID of its generation, and that they are gone.
type WritesLost struct {
	ID            string `json:"id"` // over incarnation and session
	Box           string `json:"box"`
	Session       uint64 `json:"session"`
	Generation    string `json:"generation"`
	RemoteMaxTXID uint64 `json:"remote_max_txid"` // 0: none of its generation reached the store
}

// Admission asks for a writer session. Op, Phase, Session and Generation are
// what the box observed: the write is bound to them.
type Admission struct {
	Op         string
	Phase      Phase
	Session    uint64
	Generation string

	Box           string
	NewGeneration string // fresh, or the prepared generation at its one opening
	KeepStamp     bool   // the first admission of a new installation
	Coverage      Coverage
	Baseline      Position // what the box will restore; zero: an empty bootstrap
}

// AdmitWriter admits one writer session on the executor. Every admission is
// cold: the box purges its local database, restores the baseline and writes a
// new generation. The session is numbered by the stamp, which is this write's
// gen unless KeepStamp.
//
// An uncovered admission declares the predecessor's session lost beyond what
// the baseline holds of it.
func AdmitWriter(a Admission) Transition {
	return func(c *Claim) error {
		if c.admitted(a) {
			return ErrAlreadyRecorded
		}
		if c.Op.ID != a.Op {
			return stale(c, a.Op)
		}
		if err := c.mayAdmit(a); err != nil {
			return err
		}
		if err := c.checkBaseline(a.Baseline); err != nil {
			return err
		}
		if err := c.checkCoverage(a); err != nil {
			return err
		}
		c.admit(a)
		return nil
	}
}

func (c *Claim) admitted(a Admission) bool {
	h := c.Holder
	if h == nil || h.Session == 0 || h.Ended != nil || c.Op.ID != a.Op || c.Op.Exec != a.Box || !c.writes() {
		return false
	}
	r := h.Admissions[len(h.Admissions)-1]
	return r.Box == a.Box && r.Generation == a.NewGeneration && r.Coverage == a.Coverage && r.Baseline == a.Baseline
}

func (c *Claim) mayAdmit(a Admission) error {
	h := c.Holder
	switch {
	case !c.admits():
		return wrong("nobody is admitted in %s", c.Op.where())
	case c.Op.Phase != a.Phase:
		return wrong("phase is %q, observed %q", c.Op.Phase, a.Phase)
	case c.Op.Exec != a.Box:
		return wrong("%s is not the executor, %q is", a.Box, c.Op.Exec)
	case h.Session != a.Session || h.Generation != a.Generation:
		return wrong("session is %d of %q, observed %d of %q", h.Session, h.Generation, a.Session, a.Generation)
	case a.KeepStamp && h.Stamp <= h.Session:
		return wrong("stamp %d was used by session %d: a new admission needs a new stamp", h.Stamp, h.Session)
	}
	if c.Op.Phase == Probing {
		return c.mayProbe(a)
	}
	return c.checkFresh(a.NewGeneration)
}

// admits reports whether the executor may start a writer: while it serves, as a
// live source until it released, and as a target in its attempts. An operation
// that is stuck admits nobody but a source that serves on.
func (c *Claim) admits() bool {
	return c.writes() && (c.Op.Journal.Stuck == nil || c.Op.Phase == Starting)
}

// writes reports whether a session of the executor may run.
func (c *Claim) writes() bool {
	switch o := c.Op; o.Phase {
	case Starting:
		return o.sourceExecutes()
	case Releasing:
		return o.Journal.Release == nil
	case Probing:
		return true
	default:
		return o.Kind == Serving
	}
}

// where names what runs, for people.
func (o Op) where() string {
	switch {
	case o.Journal.Stuck != nil:
		return fmt.Sprintf("%s %s, which is stuck: %s", o.Kind, o.Phase, o.Journal.Stuck.Reason)
	case o.Phase != "":
		return fmt.Sprintf("%s %s", o.Kind, o.Phase)
	}
	return string(o.Kind)
}

// mayProbe holds an admission in probing to its attempt: the first of an
// installation opens the prepared generation and no other, and every later one
// is a fresh generation.
func (c *Claim) mayProbe(a Admission) error {
	j := c.Op.Journal
	if j.ProbeAdmission >= j.ProbeAttempts {
		return wrong("attempt %d has admitted: begin the next one first", j.ProbeAdmission)
	}
	if c.PreparedOpened() {
		return c.checkFresh(a.NewGeneration)
	}
	switch {
	case a.NewGeneration != j.Prepared:
		return wrong("the first attempt opens %q, not %q", j.Prepared, a.NewGeneration)
	case !a.KeepStamp:
		return wrong("opening %q keeps the installation's stamp", j.Prepared)
	case a.Baseline != j.Pin.Position:
		return wrong("%q was built from %s, not %s", j.Prepared, j.Pin.Position, a.Baseline)
	}
	return nil
}

// PreparedOpened reports whether a writer was ever admitted to the current
// prepared generation. False: the next admission in probing opens it.
func (c *Claim) PreparedOpened() bool {
	p := c.Op.Journal.Prepared
	if p == "" {
		return false
	}
	if c.Op.Journal.PreparedOpened == p {
		return true
	}
	_, retained := c.admission(p)
	return retained
}

// checkFresh refuses a generation that any retained admission or prepared build
// has named. Ids are random, so one that was trimmed does not come back.
func (c *Claim) checkFresh(generation string) error {
	if err := checkName("generation", generation); err != nil {
		return wrong("%v", err)
	}
	j := c.Op.Journal
	_, seen := c.admission(generation)
	if seen || generation == j.Prepared || generation == j.PreparedOpened || contains(j.Abandoned, generation) {
		return wrong("generation %q is not fresh", generation)
	}
	for _, o := range c.Obligations {
		if o.Generation == generation {
			return wrong("generation %q waits to be parked", generation)
		}
	}
	return nil
}

func (c *Claim) checkCoverage(a Admission) error {
	switch a.Coverage {
	case Uncovered:
		return c.checkUncovered(a)
	case CleanReturn:
		return c.checkCleanReturn(a)
	case Released:
		return c.checkReleased(a)
	case Sealed:
		return wrong("sealed: no move's seal is opened in %s", c.Op.where())
	}
	return wrong("unknown coverage %q", a.Coverage)
}

// checkUncovered refuses to declare lost what something vouches for.
func (c *Claim) checkUncovered(a Admission) error {
	switch {
	case c.Holder.Session == 0:
		return nil
	case c.checkCleanReturn(a) == nil:
		return wrong("nothing is lost: session %d ended at what the baseline reaches: ask for %q", c.Holder.Session, CleanReturn)
	case c.checkReleased(a) == nil:
		return wrong("nothing is lost: session %d released what the baseline reaches: ask for %q", c.Holder.Session, Released)
	}
	return nil
}

func (c *Claim) checkCleanReturn(a Admission) error {
	end := c.Holder.Ended
	if end == nil {
		return wrong("clean-return: session %d did not record its end", c.Holder.Session)
	}
	if !c.Reaches(a.Baseline, end.Final) {
		return wrong("clean-return: baseline %s does not reach the final position %s", a.Baseline, end.Final)
	}
	return nil
}

// checkReleased is about the one opening of a prepared generation: mayProbe has
// held its baseline to the pin.
func (c *Claim) checkReleased(a Admission) error {
	j := c.Op.Journal
	switch {
	case c.Op.Phase != Probing || a.NewGeneration != j.Prepared:
		return wrong("released: only the opening of a prepared generation is covered by a release")
	case j.Release == nil:
		return wrong("released: no release is journaled")
	case !c.ofCurrentSession(*j.Release):
		return wrong("released: the release is of session %d of %q on %s, the predecessor is %d of %q on %s",
			j.Release.Session, j.Release.Generation, j.Release.Box, c.Holder.Session, c.Holder.Generation, c.Holder.WriterBox)
	case !c.Reaches(a.Baseline, j.Release.Final):
		return wrong("released: baseline %s does not reach the release %s", a.Baseline, j.Release.Final)
	}
	return nil
}

func (c *Claim) admit(a Admission) {
	h := c.Holder
	r := AdmissionRecord{
		Box: a.Box, Generation: a.NewGeneration, Region: h.Region,
		Mode: Cold, Coverage: a.Coverage, Baseline: a.Baseline,
	}
	if a.Coverage == Uncovered && h.Session > 0 {
		r.WritesLost = c.writesLost(a.Baseline)
	}
	if !a.KeepStamp {
		c.execute(c.Op.executor())
	}
	if a.Baseline.Generation != "" {
		c.Op.Journal.AcceptEmpty = false
	}
	if c.Op.Phase == Probing {
		j := &c.Op.Journal
		j.ProbeAdmission, j.Probe = j.ProbeAttempts, nil
		if a.NewGeneration == j.Prepared {
			j.PreparedOpened = j.Prepared
		}
	}
	r.Session = h.Stamp
	h.Session, h.WriterBox, h.Generation, h.Ended = h.Stamp, a.Box, a.NewGeneration, nil
	h.Admissions = append(h.Admissions, r)
}

func (c *Claim) writesLost(baseline Position) *WritesLost {
	h := c.Holder
	w := &WritesLost{ID: derivedID(h.Incarnation, fmt.Sprint(h.Session)), Box: h.WriterBox, Session: h.Session, Generation: h.Generation}
	if baseline.Generation == h.Generation {
		w.RemoteMaxTXID = baseline.TXID
	}
	return w
}
