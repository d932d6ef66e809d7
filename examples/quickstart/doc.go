// Quickstart runs a whole region on this machine and proves the main jobs on
// it: an app with a SQLite database is moved to another box on purpose, and
// comes back on another box after its box dies, and what was promised about both
// is true.
//
//	go run ./examples/quickstart
//
// It builds the three binaries and the app, starts a small cloud on loopback,
// a worker and three agents as real processes, enrolls the boxes by identities
// that the cloud signed, and creates a host that runs examples/notes. While it
// writes to the host through another box, it drains the host with the console.
// Then it kills everything on the host's box and terminates the instance. It
// checks, by what it sent and by what it sees, that
//
//   - the drain lost no acknowledged write, and no client saw an error;
//   - after the failover the host serves again, on a box that lives;
//   - every acknowledged write is there, or is declared lost by the failover;
//   - no two boxes ever ran a writer at one time;
//   - the instance key still opens the notes, and every upload has its digest.
//
// With -drains 50 -chaos agents are killed at random moments of the drains, and
// what several clients saw is checked to be linearizable. A drain takes root and
// cgroup v2; without them it is left out, and the output says so.
//
// It exits 1 if a promise was broken, keeps the directory then, and prints the
// end of each process's log. It needs Linux.
package main
