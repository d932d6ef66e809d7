// Package console is what people and programs in front of a deployment use:
// the commands of cmd/console and a JSON API over the same functions.
//
// A [Console] looks at one deployment and asks for changes. It enrolls boxes
// that proved who they are, declares them lost, retires and readmits them,
// creates hosts on a box that it chooses once, and says in words what is going
// on with each host. An [Enroller] enrolls, without a person, the boxes that a
// worker confirmed.
//
// # Guarantees
//
// A refusal is a [Refusal]: what was refused, why, and what to do next, and
// nothing was changed. Everything that can be checked before the first write is
// checked before it.
//
// A host is created by its claim first: whatever else is written for it is
// named by a claim that is there. A create that its box did not take in time is
// cancelled, and then no box can take it any more.
//
// A box is quarantined before it is declared lost, and both only after its
// reference was typed out. Whatever stops the console between the two, the same
// command again finishes. It is retired only where it was read terminated or
// declared lost and no claim that names it is left.
//
// Nobody is enrolled by what the box alone says: an operator names the instance,
// or a worker's confirmation holds by the very roster that is written.
//
// A change whose outcome stayed unknown is looked at again, and tried again on
// what is there now, which also makes the lost one impossible, before an answer
// is given.
//
// The API listens beyond loopback only with a token.
//
// # Not guaranteed
//
// A listing is a view: what it shows may have changed since. Every decision is
// taken by the conditional write that makes it, never from a view.
//
// The console holds no rights on any cloud and moves no host: workers do.
package console
