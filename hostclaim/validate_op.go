package hostclaim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/carlosframework/regionha/boxid"
)

func (c *Claim) validOp() error {
	o := c.Op
	if o.Kind != Relocating && o.Phase != "" {
		return fmt.Errorf("op.phase is %q in %s", o.Phase, o.Kind)
	}
	switch {
	case len(o.By) > maxText:
		return fmt.Errorf("op.by is %d bytes, at most %d", len(o.By), maxText)
	case o.Outcome != "" && (o.Kind != Serving || !slices.Contains([]Outcome{Completed, Cancelled, Resolved}, o.Outcome)):
		return fmt.Errorf("op.outcome is %q in %s", o.Outcome, o.Kind)
	case (o.Exec == "" || o.Exec == None) != (o.ExecEnrollment == ""):
		return fmt.Errorf("op.exec is %q as %q", o.Exec, o.ExecEnrollment)
	case o.Journal.Stuck != nil && (o.Journal.Stuck.Gen > c.Gen || !slices.Contains(stuckReasons, o.Journal.Stuck.Reason)):
		return fmt.Errorf("op.journal.stuck is for %q since gen %d, at gen %d", o.Journal.Stuck.Reason, o.Journal.Stuck.Gen, c.Gen)
	case o.Kind != Relocating && o.Kind != Deleting && !reflect.DeepEqual(o.Journal, Journal{}):
		return fmt.Errorf("a journal in %s", o.Kind)
	}
	exec, participants := o.Exec, o.Participants
	switch o.Kind {
	case Free:
		if exec != "" || len(participants) > 0 || len(c.Obligations) > 0 {
			return fmt.Errorf("a free host has executor %q, participants %v and %d chores", exec, participants, len(c.Obligations))
		}
		return nil
	case Creating:
		if exec != "" || len(participants) > 0 || c.Holder.Stamp != 0 {
			return fmt.Errorf("a host that is being created has executor %q, participants %v and stamp %d", exec, participants, c.Holder.Stamp)
		}
		if err := o.Intent.Selected.check("op.intent.selected"); err != nil {
			return err
		}
	case Serving, Deleting:
		if err := c.validExecutor(); err != nil {
			return err
		}
	case Parking:
		if exec != None || len(participants) > 0 {
			return fmt.Errorf("parking with executor %q and participants %v", exec, participants)
		}
		if c.Holder == nil && len(c.Obligations) == 0 {
			return fmt.Errorf("parking without a holder or a chore")
		}
	case Relocating:
	default:
		return fmt.Errorf("op.kind is %q", o.Kind)
	}
	return checkName("op.id", o.ID)
}

func (c *Claim) validExecutor() error {
	o := c.Op
	if !slices.Equal(o.Participants, []string{o.Exec}) {
		return fmt.Errorf("%s on %q with participants %v", o.Kind, o.Exec, o.Participants)
	}
	if c.Holder.Stamp == 0 {
		return fmt.Errorf("%s on %q without a stamp", o.Kind, o.Exec)
	}
	switch {
	case o.Kind == Deleting && o.Intent.Source != o.executor():
		return fmt.Errorf("deleting on %q as %q, op.intent.source is %v", o.Exec, o.ExecEnrollment, o.Intent.Source)
	case o.Kind == Serving && o.Intent != Intent{}:
		return fmt.Errorf("an intent in serving: %+v", o.Intent)
	}
	return o.executor().check("op.exec")
}

var phases = []Phase{Starting, Releasing, Pinning, Installing, Installed, Probing, ProbeFailed}

// reached reports whether the operation is in p or a later phase.
func (o Op) reached(p Phase) bool { return slices.Index(phases, o.Phase) >= slices.Index(phases, p) }

func (c *Claim) validRelocation() error {
	o := c.Op
	if o.Kind != Relocating {
		return nil
	}
	if !slices.Contains(phases, o.Phase) {
		return fmt.Errorf("op.phase is %q", o.Phase)
	}
	for _, check := range relocationChecks {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

var relocationChecks = []func(*Claim) error{
	(*Claim).validIntent, (*Claim).validParties, (*Claim).validFences,
	(*Claim).validPrepared, (*Claim).validInstall, (*Claim).validProbe,
}

func (c *Claim) validIntent() error {
	i := c.Op.Intent
	if err := i.Source.check("op.intent.source"); err != nil {
		return err
	}
	if t := c.Op.Target(); t.Box != "" || c.Op.Phase != Pinning {
		if err := t.check("the target"); err != nil {
			return err
		}
	}
	switch {
	case i.Source.Box == i.Target.Box:
		return fmt.Errorf("op.intent has source and target %q", i.Source.Box)
	case !slices.Contains([]Reason{Failover, Drain, Rebalance}, i.Reason):
		return fmt.Errorf("op.intent.reason is %q", i.Reason)
	case c.Op.Journal.Reason != "" && c.Op.Journal.Reason != Failover:
		return fmt.Errorf("op.journal.reason is %q, want none or %q", c.Op.Journal.Reason, Failover)
	case i.Region != c.Holder.Region:
		return fmt.Errorf("op.intent.region is %q, the holder's %q", i.Region, c.Holder.Region)
	case i.PinDelay < 0:
		return fmt.Errorf("op.intent.pin_delay is %s", i.PinDelay)
	}
	return nil
}

// validParties holds the executor and the participants to phase and reason.
func (c *Claim) validParties() error {
	o := c.Op
	source, target := o.Intent.Source.Box, o.Target().Box
	want := target
	switch {
	case o.Phase == Pinning, o.Phase == Starting && o.Reason() == Failover:
		want = None
	case !o.reached(Pinning):
		want = source
	}
	if o.Exec != want || want != None && o.executor() != o.member(want) {
		return fmt.Errorf("%s for %s with executor %q as %q, want %q", o.Phase, o.Reason(), o.Exec, o.ExecEnrollment, want)
	}
	for i, box := range o.Participants {
		if box != source && box != target || contains(o.Participants[:i], box) {
			return fmt.Errorf("participants %v, want each of source %q and target %q at most once", o.Participants, source, target)
		}
	}
	if o.Exec != None && !o.Participates(o.Exec) || target != "" && !o.Participates(target) {
		return fmt.Errorf("participants %v without executor %q or target %q", o.Participants, o.Exec, target)
	}
	for box := range o.Journal.Acks {
		if !o.Participates(box) {
			return fmt.Errorf("%q acknowledged and takes no part", box)
		}
	}
	return nil
}

func (c *Claim) validFences() error {
	o := c.Op
	source := o.Intent.Source.Box
	if o.Reason() == Failover && !c.consumed(source) {
		return fmt.Errorf("a failover without the fence of its source %q", source)
	}
	for box, f := range o.Journal.Fences {
		if !c.IsLost(box) {
			return fmt.Errorf("%q is fenced and not lost", box)
		}
		if err := checkFenceKey(f.Key); err != nil {
			return err
		}
	}
	j := o.Journal
	switch {
	case j.Granted < 0 || j.Replacements > c.replacements() || len(j.Replaced) > j.Replacements:
		return fmt.Errorf("%d replacements of %v, granted %d beyond %d", j.Replacements, j.Replaced, j.Granted, MaxReplacements)
	case j.Release != nil && !o.reached(Releasing):
		return fmt.Errorf("a release in %s", o.Phase)
	}
	return nil
}

// validPrepared holds what is built to its phase. While nobody executes, a
// prepared generation is kept only in an operation that is stuck.
func (c *Claim) validPrepared() error {
	o, j := c.Op, c.Op.Journal
	installing := o.reached(Installing)
	kept := o.Phase == Pinning && j.Stuck != nil
	switch {
	case installing && j.Prepared == "":
		return fmt.Errorf("%s without a prepared generation", o.Phase)
	case !o.reached(Pinning) && j.Pin != nil:
		return fmt.Errorf("a pin in %s", o.Phase)
	case !installing && !kept && j.Prepared != "":
		return fmt.Errorf("prepared generation %q in %s", j.Prepared, o.Phase)
	case j.Pin != nil && (j.Pin.Size < 0 || !strings.HasPrefix(j.Pin.Key, pinPrefix(c.Host, o.ID))):
		return fmt.Errorf("pin %q of %d bytes, want one under %s", j.Pin.Key, j.Pin.Size, pinPrefix(c.Host, o.ID))
	case j.PreparedAuthority != nil && j.PreparedAuthority.FilesSeq != 0:
		return fmt.Errorf("prepared files at sequence %d, want 0", j.PreparedAuthority.FilesSeq)
	case j.Prepared != "" && j.Pin == nil:
		return fmt.Errorf("prepared generation %q without a pin", j.Prepared)
	case (j.Prepared == "") != (j.PreparedStamp == 0):
		return fmt.Errorf("prepared generation %q of stamp %d", j.Prepared, j.PreparedStamp)
	case j.PreparedAuthority != nil && j.PreparedAuthority.Generation != j.Prepared:
		return fmt.Errorf("prepared authority is of %q, prepared is %q", j.PreparedAuthority.Generation, j.Prepared)
	case o.reached(Installed) && j.PreparedAuthority == nil, o.Phase == Installing && j.PreparedAuthority != nil:
		return fmt.Errorf("%s, prepared authority present: %t", o.Phase, j.PreparedAuthority != nil)
	}
	return nil
}

func (c *Claim) validInstall() error {
	o, j := c.Op, c.Op.Journal
	switch {
	case o.reached(Installing) != (j.InstallStamp > 0):
		return fmt.Errorf("%s with install stamp %d", o.Phase, j.InstallStamp)
	case j.InstallStamp > c.Holder.Stamp || j.InstallStamp > 0 && j.PreparedStamp > j.InstallStamp:
		return fmt.Errorf("install stamp %d, prepared stamp %d, stamp %d: want them in order", j.InstallStamp, j.PreparedStamp, c.Holder.Stamp)
	case !o.reached(Installed) && j.LocalInstall != nil:
		return fmt.Errorf("a local install in %s", o.Phase)
	case o.reached(Probing) && j.LocalInstall == nil:
		return fmt.Errorf("%s without a local install", o.Phase)
	case j.LocalInstall != nil && (j.LocalInstall.Box != o.Exec || j.LocalInstall.InstallStamp != j.InstallStamp):
		return fmt.Errorf("a local install of %q at stamp %d, the executor is %q at %d",
			j.LocalInstall.Box, j.LocalInstall.InstallStamp, o.Exec, j.InstallStamp)
	}
	return nil
}

func (c *Claim) validProbe() error {
	o, j := c.Op, c.Op.Journal
	switch {
	case !o.reached(Probing) && (j.ProbeAttempts != 0 || j.Probe != nil || c.PreparedOpened()):
		return fmt.Errorf("a probe attempt in %s", o.Phase)
	case j.ProbeAttempts < 0 || j.ProbeAttempts > MaxProbeAttempts || j.ProbeAdmission < 0 || j.ProbeAdmission > j.ProbeAttempts:
		return fmt.Errorf("%d probe attempts, the last that admitted is %d", j.ProbeAttempts, j.ProbeAdmission)
	}
	return nil
}

func (c *Claim) validLists() error {
	for i, o := range c.Obligations {
		switch {
		case o.ID == "" || slices.ContainsFunc(c.Obligations[:i], func(x Obligation) bool { return x.ID == o.ID }):
			return fmt.Errorf("obligation id %q is empty or not unique", o.ID)
		case o.Kind != ParkLocal && o.Kind != ParkGeneration && o.Kind != ParkReplica:
			return fmt.Errorf("obligation %s has kind %q", o.ID, o.Kind)
		case !checkOwner(o.Owner):
			return fmt.Errorf("obligation %s has owner %q, want box:<ref> or region:<code>", o.ID, o.Owner)
		case o.Incarnation != "" && checkName("incarnation", o.Incarnation) != nil, o.Region != "" && checkName("region", o.Region) != nil:
			return fmt.Errorf("obligation %s is of incarnation %q in region %q", o.ID, o.Incarnation, o.Region)
		case o.Kind == ParkLocal && boxid.CheckRef(o.Box) != nil:
			return fmt.Errorf("obligation %s is of box %q", o.ID, o.Box)
		case o.Park != nil && (o.Kind == ParkLocal || o.Park.Location != LocationOf(c.Host, o.Incarnation)):
			return fmt.Errorf("obligation %s, a %s of %q, is bound to %q", o.ID, o.Kind, o.Incarnation, o.Park.Location)
		}
	}
	for _, list := range [...]struct {
		name    string
		entries []string
	}{
		{"touched", c.Touched}, {"lost", c.Lost}, {"loss_refs", c.LossRefs},
		{"retired_incarnations", c.RetiredIncarnations}, {"op.journal.replaced", c.Op.Journal.Replaced},
		{"op.journal.abandoned_prepared", c.Op.Journal.Abandoned}, {"op.journal.resolutions", c.Op.Journal.Resolutions},
	} {
		for i, s := range list.entries {
			if s == "" || contains(list.entries[:i], s) {
				return fmt.Errorf("%s names %q twice, or nothing", list.name, s)
			}
		}
	}
	return nil
}

func (c *Claim) validLosses() error {
	for _, l := range c.EvidenceRefs {
		if !contains(c.LossRefs, l.ID) {
			return fmt.Errorf("evidence %s is not in loss_refs", l.ID)
		}
		if err := checkFenceKey(l.Fence.Key); err != nil {
			return fmt.Errorf("evidence %s: %w", l.ID, err)
		}
	}
	return nil
}

func checkFenceKey(key string) error {
	if !strings.HasPrefix(key, "control/box-fences/") && !strings.HasPrefix(key, "control/declarations/") {
		return fmt.Errorf("%q is cited, neither a fence nor a declaration", key)
	}
	return nil
}
