// Package objstore is the one storage contract of regionha: a small set of
// operations on named objects whose only means of coordination is a write that
// applies under a condition or not at all.
//
// Everything regionha decides is one conditional [Store.Put]. A [Condition] is
// [IfAbsent] (create-only), [IfMatch] (replace exactly the version with this
// ETag) or [Always] (for content-addressed objects and for keys that only one
// prepared generation has). The zero Condition is refused, so that no write is
// unconditional by oversight.
//
// # Guarantees
//
// A write has exactly two certain answers. A nil error: it applied. [ErrConflict]:
// it did not apply and never will. Any other error is [ErrUnknown]: the request
// may have been sent and may still land, even later; act as if you hold nothing
// and as if you might be the holder. Implementations send a conditional write
// once and never retry it, because a retry meets its own first attempt and
// reports a conflict that is not one.
//
// Of any number of concurrent writes under one condition on one key, exactly
// one applies. A read that begins after a write was answered sees it or a later
// one, and so does a listing. A listing that fails half-way yields an error and
// is never a shorter list.
//
// # Settling
//
// [PutSettled] looks again after an unknown outcome and turns it, where the
// stored object allows, into a certain one. That is sound only if no two writers
// ever write the same bytes to a mutable key and no body ever comes back, so
// every mutable record carries a growing gen and a random write nonce. [Create]
// is its counterpart for immutable records, where the same bytes are the same
// record.
//
// # Not guaranteed
//
// There is no Delete. An object that carries authority is never removed: a
// create-only write that was delayed past the deletion of its blocker would
// succeed. An ETag is opaque, and two identical bodies may share one. Versions
// are kept only by stores that also implement [Versioned].
//
// The suite in objstore/storetest is the meaning of this contract; it is
// exported so that an implementation by others can be held to it.
package objstore
