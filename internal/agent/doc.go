// Package agent is a box: it proves who it is, learns which hosts the claims
// name it for, runs those and no others, replicates what they write, and serves
// HTTP for every host of its region.
//
// One goroutine per host, a supervisor, reads the host's claim, compares it
// with what runs, and makes the next step. Everything that it does to local
// state goes through hostguard, everything that it writes to the store through
// hostdb and hostfiles, and every decision through hostclaim.
//
// # Guarantees
//
//   - Nothing runs here but under a session that a claim read by this process
//     admitted on this box. Where a later read names another, the app is
//     stopped, and nothing that it wrote late reaches the store.
//   - An app never runs without its replicator, and is ready only when its
//     generation has a durable root.
//   - A claim that cannot be read keeps what runs running and starts nothing.
//   - An agent that is told to end stops its apps, flushes what they wrote and
//     records the end of their sessions, so that the next start declares
//     nothing lost.
//   - A live box gives a host up only when all that its session wrote is in the
//     store and root saw that nothing of it runs, by steps of which each is
//     durable and none is made twice: a crash anywhere delays a drain and loses
//     nothing. What cannot be given up without loss is not given up.
//   - Nothing of an operation is done here but while this box's execution
//     controller of it is open.
//   - A process that was suspended refuses writes until it has read its claims
//     again.
//
// # Not guaranteed
//
// A box that is cut off from the store goes on serving in default durability;
// what it acknowledges then is lost if it is fenced, and declared.
package agent
