// Package awscloud turns what AWS answers into plain observations: a
// [Describer] reads an instance's state and disks from EC2, [Groups] its
// membership from Auto Scaling, and a [Queue] delivers EventBridge's
// notifications from SQS, which package awscloud/event reads. Package
// awscloud/imds does the same for the instance metadata service.
//
// It decides nothing. Whether an observation proves that a machine is gone is
// termfence's rule, whether its disks went with it is boxvolumes', and whether a
// group launched it is membership's. It is also the only package that knows
// these clients; EC2's costs more than a minute to compile.
//
// Credentials and endpoints are the SDK's own: the default credential chain and
// AWS_ENDPOINT_URL_EC2, _AUTO_SCALING and _SQS. The calls need
// ec2:DescribeInstances, autoscaling:DescribeAutoScalingInstances,
// autoscaling:DescribeAutoScalingGroups, and on the queue sqs:ReceiveMessage and
// sqs:DeleteMessage.
//
// # Guarantees
//
// An error is never an observation. Denied, throttled, timed out, expired, cut
// off and unreadable replies are errors. So is a reply that is only part of an
// answer, or that does not say whose the instance is: [ErrIncomplete].
//
// Every reply is bounded in size, and every call in time.
//
// "Not there" is an observation of its own, with Found false, about the one
// instance that was asked for. Every instance is described alone, so that one
// unknown id hides no other.
//
// A call goes to the region of the box, or of the queue's URL, whatever region
// the client was configured with, and its reply must lie there.
//
// # Not guaranteed
//
// EC2 is eventually consistent: a reply may be seconds old, which is why no
// reply but exactly "terminated", a state that never changes again, counts for
// termfence. A queue delivers late, twice and in any order. Nothing here signs
// or verifies, and nothing changes an instance or a group.
package awscloud
