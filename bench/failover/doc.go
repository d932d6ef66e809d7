// Package failover measures how long a dead box keeps its hosts from serving.
//
//	go test ./bench/failover -run '^$' -bench . -benchtime 1x -timeout 0
//
// Each benchmark runs examples/quickstart with 1, 20 or 100 hosts, each a real
// process with a database of a megabyte that is written to, all of them on the
// one box whose every process is killed, on a directory or on a real S3 server.
// Times are from the kill, as clients see them: detected-ms until a worker read
// the machine terminated (the simulated cloud takes 1 s to say so), and first-ms,
// half-ms and last-ms until the first host, half of them and the last served
// again.
//
// Beside it, in the same run and on the same store, restore-ms is a bare restore
// of the same databases, 16 at a time, with nothing around it. overhead-ms is
// what the last host waited for beyond detection, the pin delay of 2 s and that
// restore: the protocol, the apps' own start, and the machine, which all of the
// region shares.
package failover
