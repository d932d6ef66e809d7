// Package boxauth lets the boxes of a deployment prove to each other that a
// request on an internal listener comes from one of them.
//
// Every box holds the deployment's [Secret]. The sender adds one Authorization
// header with [Secret.Sign]: an HMAC-SHA256 over method, host, path and query,
// the body's digest, the time and a nonce. The receiver's [Verifier] checks it.
//
// # Guarantees
//
// [Verifier.Verify] accepts a request only if someone who holds the secret
// signed exactly this method, host, path, query and body at most 30 seconds
// before or after the verifier's time, and each signature once. It compares in
// constant time, and refuses rather than forgets once its memory of nonces is
// full.
//
// The secret is never printed: its text is its fingerprint.
//
// # Not guaranteed
//
// Secrecy of what is sent, or which box sent it: all share one secret. Other
// headers are not covered. A verifier that was restarted has forgotten the
// nonces of the last 30 seconds; nothing that it guards may count on more than
// that, and hints carry no authority anyhow.
package boxauth
