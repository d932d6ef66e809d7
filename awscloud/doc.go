// Package awscloud turns what AWS answers into plain observations: EC2
// describe replies and EventBridge notifications into [termfence.Observation].
// Package awscloud/imds does the same for the instance metadata service.
//
// It decides nothing. Whether an observation proves that a machine is gone is
// termfence's rule. It is also the only package that knows the EC2 client, which
// costs more than a minute to compile: only a worker needs it.
//
// Credentials and endpoints are the SDK's own: the default credential chain and
// AWS_ENDPOINT_URL_EC2. The calls need one permission, ec2:DescribeInstances.
//
// # Guarantees
//
// An error is never an observation. Denied, throttled, timed out, expired, cut
// off and unreadable replies are errors. So is a reply that is only part of an
// answer, or that does not say whose the instance is: [ErrIncomplete].
//
// "Not there" is an observation of its own, with Found false, about the one
// instance that was asked for. Every instance is described alone, so that one
// unknown id hides no other.
//
// A describe goes to the region of the box, whatever region the client was
// configured with, and within [DescribeTimeout] it has answered or failed.
//
// # Not guaranteed
//
// EC2 is eventually consistent: a reply may be seconds old, which is why no
// reply but exactly "terminated", a state that never changes again, counts for
// termfence. Nothing here signs or verifies; nothing here changes an instance.
package awscloud
