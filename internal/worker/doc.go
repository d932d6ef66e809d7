// Package worker drives a region: it fences boxes that are gone, and moves
// their hosts, and those of draining boxes, to others.
//
// [New] makes a [Worker] from a [Config] that reaches nothing by itself, and
// [Worker.Drive] runs its loops; [Run] is both as a process. The loops meet in
// one queue of hosts. The sweep describes every box of the region; the events do
// so for what the cloud tells by itself, and hints for what peers do. Each of
// them fences what is terminated, and then queues the hosts of that box. The
// watch follows the claims. Drivers take hosts from the queue and make their
// moves, step by step.
//
// # Guarantees
//
//   - A host is failed over only on evidence that termfence verified: a fence, or an
//     operator's declaration about a quarantined box. No state but terminated,
//     no silence and no error is evidence.
//   - A worker that crashed anywhere, or several workers at once, do no harm:
//     every step is one conditional write on a claim. One of a region's workers
//     drives at a time, so that two do not double the requests; if it dies,
//     another goes on within 12 seconds.
//   - A message of the event queue is deleted only once the fence that it calls
//     for exists, the look that it hints at was made, or a roster that was read
//     after it came has no such box. One that cannot be decoded is alerted, left
//     to the queue's redrive policy, and keeps no other.
//   - A hint makes exactly the box that it is about be described, at once, and
//     never more than once in two seconds; all describes together stay under ten
//     a second.
//   - A host that no box may be given stays as it is, is reported as unplaced,
//     and is tried again on every sweep. A target that is gone is replaced in
//     the running operation, by the same choice.
//   - What a failover costs does not grow with the hosts that fail over.
//   - A worker whose clock is off from the store's, or whose own entry in the
//     roster is not active, drives nothing.
//
// # Not guaranteed
//
// How soon: a box that vanished without being terminated is never fenced here.
// Its hosts await evidence, which is alerted, and only an operator can declare it
// lost.
package worker
