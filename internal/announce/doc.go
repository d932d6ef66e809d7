// Package announce keeps a process's edges file published, and learns from it
// how far the process's clock is from the store's.
//
// An [Announcer] says what its process says of itself. A box's hosts are checked
// against their claims before they are published: which claims are read when,
// and what a read decides, is [placement.Claims]; when a pass is made, and which
// one writes, is [placement.Pace]. This package makes the requests.
//
// # Guarantees
//
//   - A change is published within seconds, and the file at least as often as it
//     is told to, while the store takes writes. Changes that come together share
//     a file.
//   - A pass that has nothing new to say writes nothing, so that reads which find
//     everything as it was cost no other box anything.
//   - After a failed write nothing is read or written for 2 s, doubling to 5 min.
//   - A store that hangs holds up a pass for 20 s, and then another 20 s for its
//     write.
//   - A process that ends says so in a last file, if it has that to say.
//
// # Not guaranteed
//
// That the file is there: it is evidence that its process lived lately, and
// nothing else. How far the clock is off is known only as of a write.
package announce
