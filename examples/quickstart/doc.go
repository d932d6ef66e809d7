// Quickstart runs a whole region on this machine and proves the main job on
// it: an app with a SQLite database comes back on another box after its box
// dies, and what was promised about that is true.
//
//	go run ./examples/quickstart
//
// It builds the three binaries and the app, starts a small cloud on loopback,
// a worker and three agents as real processes, enrolls the boxes by identities
// that the cloud signed, and creates a host that runs examples/notes. While it
// writes to the host through another box, it kills everything on the host's box
// and terminates the instance. Then it checks, by what it sent and by what it
// sees, that
//
//   - the host serves again, on a box that lives;
//   - every acknowledged write is there, or is declared lost;
//   - no two boxes ever ran a writer at one time;
//   - the instance key still opens the notes, and every upload has its digest.
//
// It exits 1 if a promise was broken, keeps the directory then, and prints the
// end of each process's log. It needs Linux.
package main
