// Package worker drives a region: it fences boxes that are gone, and moves
// their hosts, and those of draining boxes, to others.
//
// Three loops feed one queue of hosts. The fence loop describes every enrolled
// box of the region, publishes a fence where the cloud says terminated, looks
// for operators' declarations about the quarantined ones, and sees in the roster
// which ones drain. The watch loop finds the hosts whose claims changed. For each
// queued host a driver either steps its running relocation to its end, or starts
// a failover where its box is gone, or a drain where its box is to be emptied, or
// leaves it alone. At most Parallel hosts are driven at a time. A hint about a
// host wakes its driver.
//
// # Guarantees
//
//   - A host is failed over only on evidence that termfence verified: a fence, or an
//     operator's declaration about a quarantined box. No state but terminated,
//     no silence and no error is evidence.
//   - A worker that crashed anywhere, or several workers at once, do no harm:
//     every step is one conditional write on a claim.
//   - A host that no box may be given stays as it is, is reported as unplaced,
//     and is tried again on every sweep. A target that is gone is replaced in
//     the running operation, by the same choice.
//   - A worker whose clock is off from the store's drives nothing.
//
// # Not guaranteed
//
// How soon: a box that vanished without being terminated is never fenced here.
// Only an operator can declare it lost.
package worker
