package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
)

// uploadWindow is how old an upload may be when its box dies and yet be lost:
// the files are published every filesEvery, and that takes its time.
const uploadWindow = 3 * filesEvery

// outcome is the verdict on one failover.
type outcome struct {
	evidence
	phases

	unavailable    time.Duration // the longest gap between two acknowledged notes
	lostDeclared   int           // acknowledged notes that are gone, as writes_lost says
	lostUndeclared int           // and those about which nothing is said
	lostSpan       time.Duration // from the first lost note's acknowledgement to the box's death
	lostUploads    int           // uploads within the window that are gone
	zombieAcked    int           // notes that the woken box acknowledged and nobody has

	broken []string // the promises that were broken, in words
}

func (o *outcome) breaks(format string, args ...any) {
	o.broken = append(o.broken, fmt.Sprintf(format, args...))
}

// judge holds what was seen against what is promised.
func judge(ev evidence) outcome {
	o := outcome{evidence: ev, phases: phasesOf(ev.versions, ev.source), unavailable: gap(ev.notes)}
	if o.serving.IsZero() {
		o.breaks("the host never served on another box")
	}
	if ev.writers > 1 {
		o.breaks("the app ran on %d boxes at one time", ev.writers)
	}
	o.judgeClaims()
	o.judgeRows()
	o.judgeNotes()
	o.judgeUploads()
	if ev.zombie != nil {
		o.judgeZombie()
	}
	return o
}

// judgeClaims: stamps and sessions only grow, and the executor changes only in
// an operation that cites the fence of the box that it leaves, or its release.
func (o *outcome) judgeClaims() {
	for i := 1; i < len(o.versions); i++ {
		before, after := o.versions[i-1].Claim, o.versions[i].Claim
		if before.Holder == nil || after.Holder == nil {
			o.breaks("claim %d: the host has no holder", after.Gen)
			continue
		}
		if after.Gen <= before.Gen || after.Holder.Stamp < before.Holder.Stamp || after.Holder.Session < before.Holder.Session {
			o.breaks("claim %d after %d: a number went back", after.Gen, before.Gen)
		}
		if before.Op.Exec == after.Op.Exec || before.Op.Exec == hostclaim.None {
			continue
		}
		if !left(before, after) {
			o.breaks("claim %d: executor %s was replaced without evidence", after.Gen, before.Op.Exec)
		}
	}
}

// left reports whether a claim shows why its executor before is none any more:
// the box's fence or its release, or the admission of a writer that opened what
// the box released.
func left(before, after *hostclaim.Claim) bool {
	box, j := before.Op.Exec, after.Op.Journal
	if _, fenced := j.Fences[box]; fenced || after.IsLost(box) || j.Release != nil && j.Release.Box == box {
		return true
	}
	n := len(after.Holder.Admissions)
	return n > 0 && after.Holder.Session > before.Holder.Session && after.Holder.Admissions[n-1].Coverage == hostclaim.Released
}

// judgeRows: the runs of the app, in the order of the rows that they wrote, do
// not interleave, so no two of them ever wrote to one database.
func (o *outcome) judgeRows() {
	over := map[string]bool{}
	for i, n := range o.listed {
		if i > 0 && n.RowID <= o.listed[i-1].RowID {
			o.breaks("note %s: rows are not in order", n.ID)
		}
		if i > 0 && n.Run != o.listed[i-1].Run {
			over[o.listed[i-1].Run] = true
		}
		if over[n.Run] {
			o.breaks("note %s: run %s wrote again after another had", n.ID, n.Run)
			return
		}
	}
}

// judgeNotes: every acknowledged note is there with its body, or is one of the
// last of the session that died, and that session's loss is declared.
func (o *outcome) judgeNotes() {
	there := map[string]bool{}
	for _, n := range o.listed {
		there[n.ID] = true
		if n.Error != "" {
			o.breaks("note %s: the instance key does not open it: %s", n.ID, n.Error)
		} else if sum, ok := o.sumOf(n.ID); (!ok || sum != digest([]byte(n.Body))) && !strings.HasPrefix(n.ID, logPrefix) {
			o.breaks("note %s: its body is not what was sent", n.ID)
		}
	}
	for _, n := range o.earlier {
		if !there[n.id] {
			o.loseUndeclared([]ack{n}, "it was acknowledged long before")
		}
	}
	var missing []ack // of the dead session, since the last note that is there
	for _, n := range o.notes {
		switch {
		case there[n.id] && n.at.Before(o.fenced):
			o.loseUndeclared(missing, "later notes of its session outlived it")
			missing = nil
		case !there[n.id] && n.at.Before(o.fenced):
			missing = append(missing, n)
		case !there[n.id]:
			o.loseUndeclared([]ack{n}, "it was acknowledged by the new home")
		}
	}
	if len(missing) == 0 {
		return
	}
	o.lostSpan = o.died.Sub(missing[0].at)
	if o.loss() == nil {
		o.loseUndeclared(missing, "the claim declares no loss")
		return
	}
	o.lostDeclared = len(missing)
}

func (o *outcome) loseUndeclared(notes []ack, why string) {
	if len(notes) == 0 {
		return
	}
	o.lostUndeclared += len(notes)
	o.breaks("%d acknowledged notes from %s on are gone: %s", len(notes), notes[0].id, why)
}

// sumOf is the sum of a note that was sent, by either writer.
func (o *outcome) sumOf(id string) (string, bool) {
	sum, ok := o.sent[id]
	if !ok && o.zombie != nil {
		sum, ok = o.zombie.sent[id]
	}
	return sum, ok
}

// judgeUploads: every file that is there has the content that its name says,
// and every upload that was older than the window when the box died is there.
func (o *outcome) judgeUploads() {
	there := map[string]bool{}
	for _, f := range o.files {
		there[f.Name] = true
		if f.Name != f.SHA256 {
			o.breaks("file %s: its digest is %s", f.Name, f.SHA256)
		}
	}
	for _, u := range o.uploads {
		if there[u.id] {
			continue
		}
		if u.at.Before(o.fenced) && u.at.After(o.died.Add(-uploadWindow)) {
			o.lostUploads++
			continue
		}
		o.breaks("file %s: acknowledged at %s, and gone", u.id, u.at.Format(time.TimeOnly))
	}
}

// judgeZombie: what the woken box acknowledged by itself is nowhere. A note that
// it passed on to the new home is there, and written by that one's run.
func (o *outcome) judgeZombie() {
	runs := map[string]string{}
	for _, n := range o.listed {
		runs[n.ID] = n.Run
	}
	for _, n := range o.zombie.notes {
		switch run, there := runs[n.id]; {
		case !there:
			o.zombieAcked++
		case run == o.listed[0].Run:
			o.breaks("note %s: a late write of the woken box is in the database", n.id)
		}
	}
}
