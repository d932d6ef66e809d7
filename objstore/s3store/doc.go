// Package s3store is an [objstore.Store] on S3 or a server that speaks its
// protocol, through the AWS SDK.
//
// # Guarantees
//
// The contract of package objstore, on a server that has it; storetest.Guard
// and console store check find out. A conditional write, and the completion of
// a multipart upload, is sent once: the SDK's retries are off for it, because a
// retry meets its own first attempt and reports a conflict that is not one.
// [objstore.ErrConflict] is 412, 409, or a 404 for the key of an If-Match; any
// other failure is [objstore.ErrUnknown], refusals that were surely not applied
// among them. Reads, parts of an upload and unconditional writes are retried.
//
// A checksum goes out with every body as a header, never as a trailer, which
// some servers refuse. A body that ends early is continued from where it broke
// off, under If-Match on the same ETag, or is an error.
//
// Missing is said only where the server names the key or version as missing: a
// missing bucket, or a refusal, is an error.
//
// # Not guaranteed
//
// Versions, where the bucket keeps none. Copies of objects over 5 GiB. The
// removal of parts of an upload that was cut off: give the bucket a lifecycle
// rule for incomplete uploads.
package s3store
