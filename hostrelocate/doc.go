// Package hostrelocate drives a relocation: it decides from a claim alone which
// step comes next, and makes it.
//
// Two kinds of driver meet in the claim. A [Worker] runs in a region and makes
// the regional steps: start, ask for the release, pin, hand over, accept the
// build, complete, and leave a box that is gone or makes no progress. A
// [Participant] runs on a box that takes part and makes that box's steps:
// acknowledge, fetch ahead, release, build, install, admit, probe. It asks for
// their effects through a [Runtime], so this package starts no process and
// touches no file.
//
// Every driver has one call, Step, which makes at most one claim write and
// returns a [Turn]: a sentence of what it did, one of what it waits for, and
// when to look again. Loops, logs and pages use the same sentence.
//
// # Guarantees
//
//   - A driver remembers nothing between two steps. One that crashed anywhere,
//     or another in its place, goes on from what the claim and the immutable
//     records say.
//   - Any number of drivers may step one host: they make the same write, and one
//     of them gets a conflict, which is no error.
//   - Nothing is pinned before the window of every fence has passed, and a pin
//     that was selected against another claim is never journaled. What a live box
//     released is pinned on its verified stop receipt.
//   - A build is accepted only after a fresh read of all of it, compared with
//     the pin and the retained manifest, never with the source.
//   - Whichever boxes are dead or wedged, an operation ends: the host serves, or
//     an operator is asked for, with a reason, within the bounds of the claim.
//     Those bounds stand in hostclaim only: a driver asks the claim whether a
//     step is legal now.
//
// # Not guaranteed
//
// Which box a host moves to is decided by placement, and whether a box is gone
// by termfence; a Worker takes both as given. That a box does what its
// Participant was asked for is the Runtime's.
//
// # Requests
//
// A failover is eight claim writes and a drain ten, six of them in the cut: the
// release, the pin with the hand-over, the build, the admission, the probe, the
// end. What each step costs beside its claim read and write stands at the step.
package hostrelocate
