// Package boxid decides whether a box is the cloud instance that it says it is,
// from evidence that the cloud signed.
//
// A box publishes one [Record]: the identity document that its instance
// metadata service serves, byte for byte, and the cloud's signature over those
// bytes. The record grants nothing. At enrollment a [Verifier] reads it and,
// where everything agrees, makes an [Evidence] that the roster accepts; from
// then on the box is bound to that [Cloud] instance for ever.
//
// # Guarantees
//
// Evidence exists only for a document that the certificate of its own region
// signed, that names the deployment's account and the region of the placement,
// and whose instance no other reference holds. The box field of a record is not
// signed, so a copied record under another reference still verifies; the roster
// is what refuses it. An expectation that is empty never matches.
//
// A published record is never rewritten, and a store that could not be read is
// never taken for one that holds no record.
//
// # Not guaranteed
//
// A signed document says which instance a box is, and not that the instance is
// meant to be this box. For a reference that is new to the roster something
// other than the box must bind the two: [Expect] carries the operator's word,
// and [Evidence.Bound] says whether it was given; a worker's confirmation is the
// business of package membership. Nor does a signature prove
// the region by itself, since many regions share one key; the region comes from
// the signed document only.
package boxid
