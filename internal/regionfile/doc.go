// Package regionfile is how a process learns, within seconds and for one small
// GET, which hosts of its region to look at.
//
// Whoever starts, hands over, completes or creates something calls [Bump],
// which appends the hosts to control/regions/<region>.json. Agents and workers
// ask a [Watcher] every few seconds what came since they last asked.
//
// # Guarantees
//
// A watcher never misses a bump that applied without saying so: the file keeps
// the last 256, each with its serial, and a watcher that finds that some of
// those it has not seen are gone reports a hole, as it does at its first poll.
// After a hole the caller lists the claims.
//
// A failed read is an error, and the next successful poll reports everything
// since the last successful one.
//
// # Not guaranteed
//
// That a change is bumped at all. The file carries no authority and nothing
// waits for it: a lost bump costs the time to the next slow sweep.
package regionfile
