// Package region measures a whole region: how soon hosts serve again when boxes
// die, what that asks of the object store, and what a region asks at rest.
//
//	go test ./bench/region -v -timeout 0 -args -boxes 200 -hosts 20000 -seed 1
//
// Without arguments it is a test: 8 boxes and 200 hosts, held to the shape of
// the result. Every host serves again exactly once, on a box that is there, and
// the home map says so; each claim's history is legal; what was lost is declared;
// the requests of a failover do not grow with the hosts, and stay under a bound.
// The printed numbers are the result, never a test.
//
// The scenarios, each in a fresh region from the same seed: one box with a tenth
// of all hosts dies, a tenth of the boxes dies at once, every box is drained in
// turn, and nothing happens. Time is virtual ([testing/synctest]): a request
// takes a lognormal time with a median of 15 ms (GET), 30 ms (PUT) or 60 ms (a
// page of a LIST) and a 99th percentile of five times that. The seed decides
// latencies and paces. Goroutines that are ready at one instant still run in any
// order, so two runs differ a little.
//
// # What is real
//
// The worker (internal/worker) with its survey and placement, the participants
// of every box (hostrelocate), claims, records, roster and fences, the region's
// file and hints with their bumps, leases, the publisher of the edges files with
// its claim cache, the pins, and the builds of hostdb and hostfiles: each host
// has a database of one page and one file, its instance key.
//
// # What is imitated
//
// A box is the loops of an agent without its processes: region file, listing of
// claims, edges files, roster, and a supervisor for each host, at the agent's
// pace. The effects of a relocation make the agent's requests one by one, as its
// sources say, and take 0.5 to 2 s for a restore and 0.3 s for a start; at most
// eight hosts are built on a box at a time. The execution controller is its lease
// alone, hints travel in memory in 2 ms, and a box follows the edges files
// without folding them. The app writes once at its start and once before it is
// stopped: what an app writes beside is its own.
//
// # How requests are counted
//
// At the way to the bucket, of every process, page by page. The requests of a
// host that moved are all of the region's from the event until eleven minutes
// after the last host serves, when every slow listing has come round, less what
// the same region asked at rest, for each host that moved.
package region
