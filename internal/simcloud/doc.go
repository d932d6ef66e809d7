// Package simcloud is a small cloud on loopback: EC2's and Auto Scaling's Query
// APIs, SQS, and one instance metadata service per instance, on their real wire
// protocols, so that the programs under test use the real AWS SDK and no stub of
// it.
//
// A [Cloud] holds instances of any number of regions. Its instances run no
// programs: whoever launches one starts the box's processes, and hands them
// the address of that instance's metadata service.
//
// # Guarantees
//
// A terminated instance is first seen shutting-down, for Config.ShutdownTime,
// and never changes again once terminated. With Config.Lag every describe
// answers from that long ago, as an eventually consistent reply may.
//
// A request finds only the instances, groups and queue of the region that its
// signature's scope names, whatever host it was sent to.
//
// Every region has one queue, to which every change of state of an instance
// there is sent as EventBridge sends it, in the order in which it came to pass.
// [Cloud.Post] puts anything else there. Messages wait until they are deleted;
// the oldest of more than 10,000 are dropped.
//
// An instance shows its root volume and what [Cloud.Attach] attached, detaching
// while it shuts down, and nothing once it is terminated. One that
// [Cloud.LaunchInGroup] launched is Pending in its group for Config.JoinTime,
// then InService, and Terminating while it shuts down.
//
// Identity documents are signed byte for byte with the key of their region,
// whose certificate stands in Config.CertDir as <region>.pem. As on AWS, the
// document ends without a line feed and the signature is wrapped at 76 columns.
//
// A [Fault] answers a bounded number of matching requests as the service answers
// when it throttles, denies, loses, repeats, reorders, truncates or hangs.
//
// # Not guaranteed
//
// Signatures of requests are not verified, only their scope is read. A group
// replaces no instance, and shows nothing that is not asked for by name. The
// metadata service of a terminated instance keeps answering until the cloud
// closes, which no real one does: it leaves a process that outlived its box
// every means to go on, which is the harder case.
package simcloud
