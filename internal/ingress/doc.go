// Package ingress serves HTTP for every host of a region from any of its boxes.
//
// An [Ingress] decides, for each request, where its host is served now: by this
// box's own app, by the home box's ingress (one hop, marked), or nowhere yet.
// In the last case the request is held, up to a bound, and goes on as soon as
// the host has a home, so that the client of an app that moves sees latency and
// no error. It knows nothing of claims: what this box serves and where homes
// are, it asks of its [Config].
//
// # Guarantees
//
//   - A host is never served here while, or after, a higher stamp than this
//     box's was seen elsewhere.
//   - A request that came from another box's ingress is never passed on again,
//     and never held: the ingress that the client is connected to holds it.
//   - A request that a backend may have begun to work on is sent again once, only
//     if its method is safe or it carries an Idempotency-Key, and only while no
//     byte of an answer went to the client.
//   - Requests under way and held ones, and the bytes of bodies that are kept,
//     are bounded for each host and in all, so that a host whose app hangs
//     leaves room for the others. A held request whose client went away is
//     dropped. Nothing grows with the names that strangers send.
//   - Bodies, trailers, interim answers, server-sent events and upgraded
//     connections (websockets) stream both ways, also while an answer begins
//     before its request ended.
//   - A client that neither sends what it announced nor receives what is sent is
//     dropped. A stream in which its app is silent is not.
//   - [Ingress.Serve] ends when what it took is answered, within its bound, and
//     does not wait for streams that do not end by themselves.
//
// # Not guaranteed
//
// That a peer is one: whoever reaches the listener may send the mark, which
// says only "do not pass on"; forwarding headers are believed from a peer that
// knows PeerToken. That an app answers in time: a request whose app is slow
// waits, unless its host gets another home meanwhile. Fairness among clients of
// one host, and among those that open connections without a request.
package ingress
