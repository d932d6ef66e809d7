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
// A transition takes no clock, no store and no randomness: times and ids come
// in as arguments, and evidence comes in as a value that only its verifier can
// make. So whoever holds a claim and its evidence can compute what may happen
// next, and any worker can take over from any other. The transitions stand in
// files named for what they are about; docs/claim.md is the map of them.
//
// # Guarantees
//
//   - At most one box may write at any instant: [AdmitWriter] is legal for at
//     most one box in every reachable claim.
//   - Gen, Stamp and Session never decrease. Two admissions never share a
//     session, nor a generation.
//   - A prepared generation is opened at most once, and never rebuilt once its
//     build was accepted.
//   - A drain without a failure declares no loss. A failover that admits declares
//     the predecessor's session exactly once, and an admission's baseline reaches
//     everything that was not declared.
//   - Every box that was ever handed the host, but the final executor, owes its
//     clean-up or was discharged; every generation that was built and never
//     opened is parked.
//   - From every reachable claim, whichever boxes are alive, wedged or dead,
//     serving or a named stuck is reached within the bounds; from every stuck
//     claim some [Resolve] leads to serving.
//   - Any byte string decodes to a valid claim or to an error, and encoding a
//     decoded claim gives the same bytes.
//   - Replaying a step from the same observation is [ErrConflict],
//     [ErrAlreadyRecorded] or the same result, never a second effect.
//   - Evidence about one box never changes another box's execution.
//
// Package claimtest checks these sentences, for this package's drivers and for
// yours.
//
// # Not guaranteed
//
// A claim cannot stop a process. A box reads its claim before every start
// (internal/agent), keeps its own stamp under a lock (hostguard), and a writer
// that lost its claim writes only to a generation that nobody reads any more
// (hostdb). What proves that a box is gone is decided by termfence; that a
// writer has stopped, by stopevidence. Deadlines bound waiting, and no safety
// rests on them.
package hostclaim
