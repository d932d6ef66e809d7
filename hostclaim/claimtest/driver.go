package claimtest

import "github.com/carlosframework/regionha/hostclaim"

// Driver is one actor of a platform, as it is to be tested. It has the name of
// an actor of [Steps], a box's reference, [Worker], [Console], [Operator] or
// [Parker], and acts in that one's place.
//
// A driver never writes: it is given an observation, which may be old, and
// returns the transition that it would ask for, or nil where it would wait. What
// becomes of it, it is not told: it sees the next observation. What it does to
// the world before it would write, such as [World.Close], it does in that call.
type Driver interface {
	Actor() string
	Next(w *World, o hostclaim.Observed) hostclaim.Transition
}

// taken reports whether a driver acts in the place of an actor.
func taken(drivers []Driver, actor string) bool {
	for _, d := range drivers {
		if d.Actor() == actor {
			return true
		}
	}
	return false
}

// possible lists the steps from an observation: those of the honest actors, and
// of each driver what it would do.
func possible(w *World, o hostclaim.Observed, drivers []Driver) []Step {
	list := Steps(w, o)
	if len(drivers) == 0 {
		return list
	}
	mine := list[:0]
	for _, s := range list {
		if !taken(drivers, s.Actor) {
			mine = append(mine, s)
		}
	}
	for _, d := range drivers {
		b := w.Box(d.Actor())
		if b != nil && b.Condition != Live {
			continue
		}
		mine = append(mine, Step{Actor: d.Actor(), Name: driven, driver: d})
	}
	return mine
}

// driven is the name of a driver's step.
const driven = "driven"

// ask lets the step of a driver find out what it is. False: it waits.
func (s Step) ask(w *World, o hostclaim.Observed) (Step, bool) {
	if s.driver == nil {
		return s, true
	}
	s.Transition = s.driver.Next(w, o)
	return s, s.Transition != nil
}
