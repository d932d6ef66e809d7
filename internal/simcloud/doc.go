// Package simcloud is a small cloud on loopback: EC2's Query API and one
// instance metadata service per instance, on their real wire protocols, so
// that the programs under test use the real AWS SDK and no stub of it.
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
// A request finds only the instances of the region that its signature's scope
// names, whatever host it was sent to.
//
// Identity documents are signed byte for byte with the key of their region,
// whose certificate stands in Config.CertDir as <region>.pem. As on AWS, the
// document ends without a line feed and the signature is wrapped at 76 columns.
//
// A [Fault] answers a bounded number of matching requests as EC2 answers when
// it throttles, denies, loses, truncates or hangs.
//
// # Not guaranteed
//
// Signatures of requests are not verified, only their scope is read. The
// metadata service of a terminated instance keeps answering until the cloud
// closes, which no real one does: it leaves a process that outlived its box
// every means to go on, which is the harder case.
package simcloud
