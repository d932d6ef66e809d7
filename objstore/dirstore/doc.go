// Package dirstore is an [objstore.Store] in a directory: the embedded default,
// for one machine.
//
// A key's first version is the file NAME@1 at the key's path, and later ones
// are NAME@/2, NAME@/3 and so on. A write makes a whole file under .tmp, syncs
// it, and claims the next number with a hard link, which fails where the number
// is taken: that link is the compare-and-swap. There are no locks, so a process
// that is killed or frozen half-way holds nobody up, and a write that it sends
// after it wakes finds its number taken.
//
// # Guarantees
//
// The contract of package objstore, across all processes on the machine. A
// process killed at any point leaves the old or the new object, never half of
// one. Before a write is answered, the file and every directory on its path
// are synced, so it survives the loss of power. A mutable key keeps its first
// version and its newest 63.
//
// Any key round-trips, on file systems that fold case or Unicode too: bytes
// other than a-z 0-9 - _ . are escaped, and long components are split. Files
// that are not the store's are never touched; [Store.Foreign] lists them.
//
// A body that is not what was written is an error from Get, never data.
//
// # Not guaranteed
//
// Several machines over a network file system: their directory caches break
// read-after-write. A listing holds the names of one directory in memory at a
// time, and opens each object for its head.
package dirstore
