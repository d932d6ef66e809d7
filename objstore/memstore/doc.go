// Package memstore is an [objstore.Store] in memory, for tests and simulations.
// No URL opens it.
//
// It keeps every version, lists page by page, and has what a test of a
// distributed program needs beyond that: a [Fault] per request ([Store.Inject]),
// writes that land long after their sender died ([Hold], [Store.Held]), the log
// of every write that applied ([Store.Log]), and a count of requests
// ([Store.Requests]), which is what a cloud would bill.
//
// # Guarantees
//
// It meets the whole contract of package objstore, versions included. Without
// faults it never fails and its listings are exact. Its ETags are hashes of the
// content, so the same bytes again have the same ETag, as on S3: code that
// forgets its write nonce is found out here.
//
// # Not guaranteed
//
// Nothing is bounded: it holds every body ever written until it is collected, or
// with [Store.Forget] every object's newest.
package memstore
