// Package roster decides who is enrolled: which boxes a deployment has, which
// cloud instance each of them is, in which region it serves and in what state.
//
// The roster is one object at [Key], an [Envelope] that the deployment's
// ed25519 key signs. Consoles hold the private key and change it with [Update];
// everyone else holds the public key and the name of the control bucket, and
// reads it through a [Directory].
//
// A box is known by its reference. Its enrollment is the id of the one time
// that this reference was bound to this instance: a machine that is replaced
// gets a new one, and evidence about a machine always names its enrollment. An
// identity alone enrolls nobody: a [Binding], which is an operator's word or a
// worker's confirmation, says that the machine is meant to be that box.
//
// # Guarantees
//
// A [Directory] returns only a roster that its key signed, for its bucket, and
// that is not older than one it returned before. What it cannot read or does not
// trust is an error, never an empty roster.
//
// Revisions only grow. A reference keeps its enrollment, region and instance
// for ever, and its state only goes from active to quarantined to retired. No
// two entries name one instance, except that retired ones may say which entry
// of it they were readmitted as. A box that is not active is told so by
// [Roster.Self], and never acts again.
//
// # Not guaranteed
//
// Age is told by numbers alone: a process that has just started knows no earlier
// revision, and a store that was rolled back and then written until it is newer
// again is believed. That an enrolled box is alive is said by its
// edges file, and that it is gone by package termfence.
package roster
