// Package boxvolumes decides whether a terminated box's disks are gone, so that
// the local clean-up that the box still owes has nothing left to clean.
//
// While a box runs, workers record which volumes it has, in an immutable
// [Record] at [Key]; the recorder that does so is not here yet. Once the box is
// terminated, [Read] takes every record of its enrollment and [Discharge]
// decides over them. What comes out is a [Verdict], the value that a claim
// transition takes.
//
// # Guarantees
//
// A Verdict discharges only where the records reach from the enrollment to the
// termination, every one of them is whole and of the enrolled instance, every
// volume that any of them lists goes with its instance, and no volume was ever
// removed from it.
//
// What is not known keeps the chore. A record that cannot be read, or that does
// not stand at its own key, is an error, never a gap. The zero Verdict
// discharges nothing.
//
// # Not guaranteed
//
// A Verdict is about disks alone. It never gates a fence, an admission or a
// recovery: whoever cannot read the records goes on with the zero Verdict, which
// only leaves a chore open. That the box is gone is said by package termfence.
package boxvolumes
