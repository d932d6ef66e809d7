// Package hostclaim decides who may run a host: it holds the claim, one small
// object per host, and every legal transition of it.
//
// A claim names the operation that runs on a host now, its executor (the one
// box that may run the host), the newest stamp (the gen of the write that began
// an installation or admission) and the admitted writer session with the
// generation that it writes. [Read] observes a claim, a [Transition] is a plain
// function that checks and changes a copy, and [Update] writes the copy in one
// compare-and-swap on the version that was observed. [Then] makes several
// transitions one write.
//
// A transition takes no clock, no store and no randomness: times and ids are
// arguments, and evidence is a value that only its verifier can make. So any
// worker can take over from any other. docs/claim.md is the map of the steps.
//
// # Guarantees
//
//   - [AdmitWriter] is legal for at most one box in every reachable claim.
//   - Gen, Stamp and Session never decrease. Two admissions never share a
//     session, nor a generation.
//   - A prepared generation is opened at most once, and never rebuilt once its
//     build was accepted.
//   - A drain without a failure declares no loss; a failover declares its
//     predecessor's session once; a baseline reaches all that was not declared.
//   - Whatever a box or a build leaves behind is owed as a chore.
//   - Whichever boxes are alive, wedged or dead, serving or a named stuck is
//     reached in bounds, and some [Resolve] leads from stuck to serving.
//   - Any bytes decode to a valid claim, which encodes to the same, or to an error.
//   - A replayed step never has a second effect.
//   - Evidence about one box never changes another box's execution.
//
// Package claimtest checks these sentences, for any set of drivers.
//
// # Not guaranteed
//
// A claim cannot stop a process. A box reads its claim before every start
// (internal/agent), keeps its own stamp under a lock (hostguard), and a writer
// that lost its claim writes only to a generation that nobody reads any more
// (hostdb). Deadlines bound waiting; no safety rests on them.
package hostclaim
