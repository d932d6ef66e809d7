// Package lease keeps one object in a store that says who holds something now:
// a box's execution of an operation, or the right to build in one location.
//
// A [Candidate] looks at the object once per [Candidate.Acquire] and takes it
// when it is absent, free, its own, or expired. The [Lease] that it gets renews
// itself at a third of its time to live until it is released or lost.
//
// # The clock rule
//
// No two clocks are ever compared. A holder counts from the moment before it
// sent its last renewal that applied, on its own monotonic clock, and stops a
// tenth early ([Lease.SafeUntil]). A candidate takes a foreign lease over only
// by the store's view: it has seen the same version for the whole time to live
// that the record names, counted on its own monotonic clock from its first
// look, or the store's own clock has passed the version's ModTime by as much
// and one second more. Either is later than the holder's end, whatever the two
// machines believe the time to be, as long as neither clock's rate is off by
// a tenth.
//
// # Guarantees
//
// Of any number of candidates at most one holds a lease between an Acquire and
// its SafeUntil. Losing is final: once [Lease.Check] has failed it fails for
// ever, and [Lease.Lost] is closed. The object is never deleted, and no body
// comes back: a write that arrives late meets another version.
//
// # Not guaranteed
//
// A lease is never evidence. Its expiry says nothing about what its holder
// still does, and a machine that was suspended may believe in one that has
// ended; whoever acts under a lease still needs a condition on what it writes.
package lease
