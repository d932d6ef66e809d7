// Package claim measures what a claim costs: decoding, validating, a transition
// and encoding of a typical and of a worst one, and [hostclaim.Update] on a
// directory, an S3 server and in memory, beside bare conditional writes of the
// same bytes in the same run:
//
//	go test ./bench/claim -run '^$' -bench . -benchtime 10s
package claim
