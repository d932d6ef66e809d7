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
// Where no cloud will ever say "terminated", an operator may take the
// responsibility: [Declare] stores a [Declaration] about a box that is
// quarantined, and it becomes Evidence that says so. What a box that is gone
// left on its disks is forgiven only where an operator states that they are
// destroyed: [DeclareDestroyed] makes a [Destroyed].
//
// # Guarantees
//
// A fence is evidence only where the stored bytes name, by enrollment, a box of
// the roster and exactly the complete cloud instance of its entry, in the state
// "terminated", observed by a box enrolled in the same region.
//
// A declaration is evidence only where it names such a box and its region, says
// who, why and what was checked, repeats the box's reference as its
// confirmation, and the box's entry is quarantined or retired. It never counts
// as a fence.
//
// Absence proves nothing: not an instance that is missing from a reply, not an
// error, not any other state, not silence, and nothing that the box itself
// says. Two empty values never match. A record that cannot be read or does not
// verify is an error, never "not there". It is never changed and never goes: of
// several about one enrollment the first stands for all.
//
// # Not guaranteed
//
// A box that is stopped, unreachable or vanished stays unfenced for as long as
// its cloud does not say "terminated". A declaration is a person's word: the
// box may still run, until its agent asks the roster or reads its hosts' claims.
// What a box held on its disks is the business of package boxvolumes.
package termfence
