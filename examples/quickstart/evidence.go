package main

import (
	"strings"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
)

// evidence is everything that was seen, for [judge].
type evidence struct {
	store   string // dir or s3
	source  string // the box that died
	session uint64 // the writer session that it ran

	died       time.Time // no process of the box ran any more
	terminated time.Time // the cloud said so

	earlier []ack             // acknowledged before anything was done here
	notes   []ack             // acknowledged by one writer, in that order
	sent    map[string]string // the sums of all notes that were tried
	uploads []ack
	listed  []note // at the end, by row id
	files   []upload

	versions []version // of the claim, as they were seen
	writers  int       // the most boxes that ran the app at one time
	zombie   *zombie   // nil: the box was killed
}

// phases are the moments of a failover, each at or after the one before.
type phases struct {
	detected  time.Time // a worker read the instance terminated
	fenced    time.Time // the operation that cites the fence was there
	pinned    time.Time // what is carried over was fixed
	built     time.Time // the new generation was built from it, and verified
	installed time.Time // files and settings were in place on the target
	probed    time.Time // database restored, app started, ready three times
	serving   time.Time // the operation was complete
}

// phasesOf finds the moments in the versions of the claim. Several steps may
// be one write, or lie between two looks: they get one time then.
func phasesOf(versions []version, source string) phases {
	var p phases
	first := func(t *time.Time, at time.Time, reached bool) {
		if t.IsZero() && reached {
			*t = at
		}
	}
	for _, v := range versions {
		if v.Op.Kind == hostclaim.Relocating && v.Op.Intent.Source.Box == source {
			j := v.Op.Journal
			first(&p.detected, j.Fences[source].ObservedAt, true)
			first(&p.fenced, v.at, true)
			first(&p.pinned, v.at, j.Pin != nil)
			first(&p.built, v.at, j.PreparedAuthority != nil)
			first(&p.installed, v.at, j.LocalInstall != nil)
			first(&p.probed, v.at, j.Probe != nil)
		}
		first(&p.serving, v.at, !p.fenced.IsZero() && v.Op.Kind == hostclaim.Serving && v.Op.Exec != source)
	}
	later := p.serving
	for _, t := range []*time.Time{&p.probed, &p.installed, &p.built, &p.pinned, &p.fenced, &p.detected} {
		if t.IsZero() {
			*t = later
		}
		later = *t
	}
	return p
}

// loss is the last claim's declaration about the session that died, or nil.
func (ev evidence) loss() *hostclaim.WritesLost {
	for i := len(ev.versions) - 1; i >= 0; i-- {
		h := ev.versions[i].Holder
		if h == nil {
			continue
		}
		for _, a := range h.Admissions {
			if l := a.WritesLost; l != nil && l.Session == ev.session {
				return l
			}
		}
	}
	return nil
}

// gap is the longest time between two acknowledged notes.
func gap(notes []ack) time.Duration {
	var longest time.Duration
	for i := 1; i < len(notes); i++ {
		longest = max(longest, notes[i].at.Sub(notes[i-1].at))
	}
	return longest
}

// storeKind is the scheme of a store's URL.
func storeKind(url string) string {
	kind, _, _ := strings.Cut(url, ":")
	return kind
}
