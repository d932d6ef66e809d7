// Package stopevidence decides whether a live box's writer has stopped.
//
// A box that runs on gives up a host only with a stop receipt: the immutable
// [Record], at [Key], that root looked at the whole machine and found nothing
// that runs for the host or holds its files. Receipts are made by the
// collector, which is not here yet. [Read] turns a stored one into a [Receipt],
// the value that a claim transition takes.
//
// # Guarantees
//
// A Receipt exists only where the stored bytes are exactly those that its [Ref]
// cites, in their one encoding, at the key that their own fields name, with
// every field of its form and every check that a stop needs passed.
//
// What a receipt is for is part of its key and of its bytes: one for
// [Retirement] is never read as one for [Release], nor the reverse.
//
// A receipt that cannot be read or does not verify is an error, never "not
// stopped" and never "stopped". The zero Receipt names nothing.
//
// # Not guaranteed
//
// Whoever may create objects under the prefix can create a receipt; bucket
// policies keep that to the boxes. Whether a receipt is about this operation,
// box, enrollment and session is decided by the transition that takes it. A box
// that is gone has no receipt: that is the business of package termfence.
package stopevidence
