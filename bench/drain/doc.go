// Package drain measures how long a planned move keeps a host from serving.
//
//	go test ./bench/drain -run '^$' -bench . -benchtime 1x -timeout 0
//
// Each benchmark runs examples/quickstart, whose writer notes every
// acknowledged write of a host that is drained back and forth, on a directory
// or on a real S3 server, with a database of some size. The cut is the longest
// gap between two acknowledged writes; cut-ms is its median over the drains, and
// the steps below it are what it went into: released (the app stopped, flushed,
// proven stopped), handed-over (pinned), built, installed, probed, serving.
//
// Beside it, in the same run and on the same store, restore-ms is a bare restore
// of the host's database as the run left it, with nothing around it, the fastest
// of three: the least that anybody waits who begins to fetch only when the old
// writer has stopped. A cut that grows with the database as restore-ms does would
// be one that did not warm.
package drain
