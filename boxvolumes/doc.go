// Package boxvolumes decides whether a terminated box's disks are gone, so that
// the local clean-up that the box still owes has nothing left to clean.
//
// While a box runs, workers hand what the cloud says of its disks, an
// [Observation], to a [Recorder], which writes an immutable [Record] at [Key]:
// at the first sight of an enrollment, at each change of a volume or of the
// instance's state, and at least hourly. Once the box is terminated, [Read] takes
// every record of its enrollment and [Discharge] decides over them. What comes
// out is a [Verdict], the value that a claim transition takes.
//
// # Guarantees
//
// A Verdict discharges only where the records reach from the enrollment to the
// termination, every one of them is whole and of the enrolled instance, every
// volume that any of them lists goes with its instance, and no volume was ever
// removed from it.
//
// What a recorder took without an error is in the records, and so is, once it
// writes again, what it could not write meanwhile: a volume that it saw and that
// is missing later is named as removed. A restarted recorder goes on from the
// newest record. Any number of recorders of one box make a verdict no more
// lenient than what one of them would have recorded alone.
//
// What is not known keeps the chore. A record that cannot be read, or that does
// not stand at its own key, is an error, never a gap. The zero Verdict
// discharges nothing.
//
// # Not guaranteed
//
// What no recorder was shown is in no record: a volume that came and went between
// two describes, or one that was taken off after the last of them.
//
// A Verdict is about disks alone. It never gates a fence, an admission or a
// recovery: whoever cannot read or write the records goes on with the zero
// Verdict, which only leaves a chore open. That the box is gone is said by
// package termfence.
package boxvolumes
