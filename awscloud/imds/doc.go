// Package imds reads this machine's own instance metadata service: the bytes
// that boxid verifies.
//
// It decides nothing: whether a document proves who a box is is boxid's rule.
// The endpoint is the SDK's own, AWS_EC2_METADATA_SERVICE_ENDPOINT, of which the
// SDK drops a path.
//
// # Guarantees
//
// The service is spoken to in its second version only, with a session token.
// An answer is refused when it is empty or over 64 KiB, and is otherwise the
// exact bytes served. A machine without the service is an error within seconds.
//
// # Not guaranteed
//
// Nothing here verifies a signature, or that the machine is the one it says.
package imds
