// Package hostguard decides what one box may do to its own local state of a
// host. It knows no claim, and its one object in a store is a lease: it keeps,
// under <data>/hosts/<host>/, which installation is active here, whether admission is
// still open for it, how far a local install came and what the newest writer
// session did, so that a process that starts again after any crash knows as
// much as the one before it.
//
// An installation is named by its stamp, the claim generation that began it.
// [Guard.Activate] makes one active. [Guard.With] runs a step under the host's
// lock while that installation is active and admission is open;
// [Guard.BeginFence] ends admission for it, durably, before a release, and
// [Guard.WithFence] runs the steps of that release. Both hand the step a
// [Held], which alone can write the journals. [Guard.Retire] parks a copy that
// is over.
//
// An [Execution] is a host's execution controller: while this box takes part in
// an operation it holds control/exec/<host>/<op>/<box>.json and keeps
// <data>/.hostexec/<host>.json. [BeginUpdate] and [EndUpdate] are the updater's
// half of what keeps the agent's executable from being replaced meanwhile.
// [LockDataDir] admits one agent to a data directory.
//
// # Guarantees
//
//   - The active stamp never decreases, whatever the order of calls, processes
//     and crashes.
//   - A step that paused and resumes under an installation that is no longer
//     the active one, or under a fence, does not run.
//   - Once BeginFence has returned, no step under With is running, and none
//     starts until a newer installation is activated.
//   - State written by another box or another enrollment is refused with
//     [ErrForeign], never activated, changed or taken for one's own.
//   - A kill or a power loss at any point leaves every record as it was before
//     the write or as it is after it. A record that is damaged all the same is
//     [ErrMalformed], never an absent one.
//   - No operation has a controller open here unless it is journaled and
//     recorded, and every other participation of the host was cleaned up. A
//     participation's record goes only after a clean-up that succeeded and a
//     claim read that shows it over, both in the same call, or when a successor
//     opens over it; its journal goes after its record. A call returns by its
//     context's end, whatever its clean-up does.
//   - No update begins while a participation may be acknowledged, and none is
//     acknowledged while an update runs.
//   - A session that was ended here never again counts as open, and an
//     acknowledgement that was journaled is never rewritten.
//
// # Not guaranteed
//
// The guard orders the processes of one machine. What other boxes may do is the
// claim's, and whether a claim admits this box is its reader's to know. What
// lies under db/, files/ and env is not checked here: an install record says
// that a step was finished, and the step itself verifies and syncs what it
// wrote. There is no lock outside Linux and macOS; there every call that needs
// one is errors.ErrUnsupported.
package hostguard
