// Package membership decides whether the instance that a box proved to be was
// launched by the Auto Scaling group of a placement, so that it may be enrolled
// without a person.
//
// A box's own record says which instance it is, and nobody but the box says
// under which reference. What binds the two here is a confirmation: the
// immutable [Record] of a worker that asked the cloud about that very instance.
// Package awscloud turns the cloud's replies into an [Observation]; [Verify]
// decides whether they count; [Publish] stores what it made; a [Reader] turns
// what is stored into [Evidence], the value that the roster takes.
//
// A worker confirms the boxes of its own region. For another region it confirms
// one only where that region has no box left that could do it: every enrollment
// there that is active or quarantined was read as terminated in the same pass.
//
// # Guarantees
//
// Evidence names a box, its instance and a placement whose group, by the name
// and the ARN that the roster has, held the instance as Pending or InService
// when a worker that is active looked. Of another region's worker it also lists
// the termination of every active or quarantined enrollment of that placement,
// and is refused as soon as it does not: it is held to the roster when it is
// read, and once more to the roster that the enrollment is written into.
//
// Absence, an error, another state and a partial reply prove nothing, and empty
// values never match. A confirmation fences nothing: only package termfence
// does, and only from a box's own region.
//
// # Not guaranteed
//
// That the instance still runs when the box is enrolled, within [MaxAge] of the
// confirmation, is found out by the workers of its region, which then describe it.
package membership
