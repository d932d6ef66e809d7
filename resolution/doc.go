// Package resolution decides what an operator said about a stuck operation.
//
// An operation that no rule can take further waits for a person. What the
// person decides is an immutable [Record], at [Key], numbered within its
// operation. [Publish] stores one; [Read] turns what is stored into a
// [Resolution], the value that a claim transition takes.
//
// # Guarantees
//
// A Resolution exists only where the stored bytes are exactly those that its
// [Ref] cites, in their one encoding, at the key that their own fields name,
// with who decided, why, and the host's name typed out by the person.
//
// A number is used once: a second decision under it is refused, the same one
// again is success. A resolution that cannot be read or does not verify is an
// error, never "not decided". The zero Resolution decides nothing.
//
// # Not guaranteed
//
// That the claim is still as the person saw it is checked by the transition,
// which has the claim and compares [Resolution.Gen]. That the box which shall go
// on may do so is decided there too. Whoever may create objects under the prefix
// can create a resolution; bucket policies keep that to the consoles.
package resolution
