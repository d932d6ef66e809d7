// Package stopevidence decides whether a live box's writer has stopped.
//
// A box that runs on gives up a host only with a stop receipt: the immutable
// [Record], at [Key], that root looked at the whole machine and found nothing
// that runs for the host or holds its files. [WritersStopped] is that look while
// the replicator still has the database, [Collect] the one after. [Publish] stores
// the receipt; [Read] makes a [Receipt] of it, which a claim transition takes.
//
// # Guarantees
//
// A look passes only where cgroup v2 says of the host's cgroup, twice, that
// nothing is in it or below it, and two passes over every task of the machine
// found no holder of the database, its -wal and its -shm but exactly the
// descriptors that the caller names. What holds is found by device and inode: by
// another name, in another mount namespace, deleted, inherited, in a thread's own
// table of descriptors, or mapped without any. A file that was renamed or linked
// elsewhere, and is at its path no more, is known by [Subject].Known alone.
//
// A process that appears while a pass runs is looked at in that pass, and one that
// opens a file behind it is found by the next. A look that could not see
// everything is [ErrIncomplete], never "nothing found". It opens none of the
// files, so that it drops no lock.
//
// A Receipt exists only where the stored bytes are exactly those that its [Ref]
// cites, in their one encoding, at the key that their own fields name, with
// every field of its form and every check that a stop needs passed. One for
// [Retirement] is never read as one for [Release], nor the reverse. What does not
// verify is an error, neither "stopped" nor "not stopped".
//
// # Not guaranteed
//
// The machine is what the pid namespace of the caller shows: it runs in the first
// one, or has a namespace that is all of its box. No table shows a descriptor that
// is in flight in a socket, registered with io_uring, or the kernel's own, such as
// a loop device's. Nothing keeps root from opening the files afterwards.
//
// Bucket policies keep the creation of receipts to the boxes. Whether a receipt is about this operation,
// box, enrollment and session is decided by the transition that takes it. A box
// that is gone has no receipt: that is the business of package termfence.
package stopevidence
