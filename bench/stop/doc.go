// Package stop measures what it costs to see that a writer has stopped: one
// [stopevidence.WritersStopped] on a machine of 2,000 processes with 100,000
// descriptors, beside lsof on the same files on the same machine. It makes the
// machine in a cgroup of its own, and ends all of it. It needs root, cgroup v2
// and lsof:
//
//	go test ./bench/stop -run '^$' -bench . -benchtime 10x
package stop
