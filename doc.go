// Package regionha keeps each stateful app on exactly one machine, and moves it
// to another machine without ever having two writers and without losing data in
// silence.
//
// This package is empty: it is the house that the others stand in. Every
// decision is one compare-and-swap on a small object in a bucket (package
// objstore). Package hostclaim is the one object that says who may run a host,
// and all its legal transitions. Packages boxid, roster and termfence are what
// proves that a machine is gone, hostdb and hostfiles what a host consists of,
// placement where it goes, hostguard what a box may do to its own state, and
// hostrelocate what happens next.
//
// The programs are cmd/agent on each box, cmd/worker on any, and cmd/console for
// people. examples/quickstart runs all of them on one machine. The test beside
// this file holds every package to the rules of the house: who may import whom,
// what is documented, how long a file and a function may be.
package regionha
