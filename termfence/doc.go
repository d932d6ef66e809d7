// Package termfence decides whether a box is gone for ever.
//
// A box is replaced without its consent only on positive evidence that it can
// never write again. The one machine-made evidence is a fence: the immutable
// record that a worker of the box's own region read the instance of the box's
// enrollment as exactly "terminated". Package awscloud turns what a cloud says
// into an [Observation]; [Verify] decides whether it counts; [Publish] stores
// it; a [Reader] turns what is stored into [Evidence], the value that a claim
// transition takes.
//
// # Guarantees
//
// Evidence exists only where the stored bytes name, by enrollment, a box of the
// roster and exactly the complete cloud instance of its entry, in the state
// "terminated", observed by a box enrolled in the same region.
//
// Absence proves nothing: not an instance that is missing from a reply, not an
// error, not any other state, not silence, and nothing that the box itself
// says. Two empty values never match. A fence that cannot be read or does not
// verify is an error, never "not fenced".
//
// A fence is never changed and never goes. Of several workers that see one
// termination at different times the first record stands for all.
//
// # Not guaranteed
//
// A box that is stopped, unreachable or vanished stays unfenced for as long as
// its cloud does not say "terminated"; only an operator can declare it lost.
// What the box held on its disks is the business of package boxvolumes.
package termfence
