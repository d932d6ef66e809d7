// Package hostdb decides what the durable form of a host's SQLite database is:
// which objects of which generation make the newest complete database, how a
// machine gets exactly that database, and how a running one reaches the store.
//
// A [Generation] is one replication lineage: one key prefix,
// <location>/db/<generation>/, that one admitted session writes in Litestream's
// own layout. Its transaction ids (TXIDs) count from 1 and order only within
// it. A [RecoverySet] names the exact objects that make one database. [Select]
// finds it by listing, [Restore] turns it into a file, [Builder] turns it into a
// prepared generation, and a [Replicator] writes one generation while the app
// runs.
//
// There are two ways to open a Replicator. A prepared generation P is opened
// with Base N and the database that P's install manifest describes: the first
// upload is N+1 and holds only what changed. Any other generation is fresh and
// is opened with Base 0, whatever it was restored from: the first upload is
// TXID 1 and holds the whole database, so the generation is complete by itself
// and nothing in it refers to another. Until that upload it holds no LTX file,
// and [Select] goes back to the position that it was restored from.
//
// A target that is to take over from a running source warms: [Warm] keeps, on
// the target's disk, the database that the newest set makes, and brings it
// forward by each newer one, so that the last [Builder.BuildPrepared] fetches and
// applies only what came after. Of what it fetched early nothing is believed
// beyond its digests. Each page of the base is known to be from one object, read
// by ETag; a later set may differ from where it likes, because every page from
// an object that it does not name must be given again by one that it does, or
// the base is thrown away. The result is, byte for byte, the cold build.
//
// # Guarantees
//
//   - A set that Select returns is a full image and an unbroken chain of
//     transactions, or there is an error. A generation that holds LTX files and
//     no such set is [ErrBroken] and never skipped, and a failed listing is
//     never an empty one.
//   - Restore makes a file of exactly the pinned objects, each checked by ETag
//     or SHA-256, by its own checksum and by its place in the chain, or no file.
//   - A prepared generation has its last object, the install manifest, only when
//     everything that it names is there. Building it again from the same set,
//     warm or cold, on any machine, writes the same bytes.
//   - A Replicator creates objects of its own generation and nothing else. It
//     never overwrites or deletes. Where other bytes lie under a key that it
//     writes, it is fenced for good.
//   - When [Replicator.Durable] or [Replicator.FlushFinal] answers a TXID,
//     everything committed before the call is in the store.
//
// # Not guaranteed
//
// Who may write a generation is decided by the claim (package hostclaim); here
// it is the Check that is called before each write. Whether an empty or a
// shortened set is acceptable is the caller's to prove: a lost tail cannot be
// seen in a listing, so compare with the released position.
//
// The app must use WAL mode, set busy_timeout to 5 s or more, keep the page size
// of 4096 that an empty database is created with, and should set
// wal_autocheckpoint to 0. A read transaction that it leaves open keeps the WAL
// from restarting, and each interval then costs an upload. No other code of the process may open or close the
// database file or its -shm while a Replicator is open: closing any descriptor
// of a file drops the process's POSIX locks on it.
//
// SQLite checks a base whole when it is made, not again for what is applied to
// it: those pages are the ones that the source's SQLite committed, each checked
// by its object's digests and read back for the database's. Warm files and seals
// count by the kernel's identity of a file and its boot: a disk that changes
// bytes by itself is not seen there, as it is not under an open database.
package hostdb
