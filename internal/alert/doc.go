// Package alert is how a process tells an operator that a person is needed.
//
// An alert has a [Subject], what kind of trouble it is, and what it is about: a
// box, a host, a region. It is raised again and again while the trouble lasts,
// says so in the log at once and then once an hour, and is cleared when the
// trouble is over. What is raised now is a metric.
//
// # Guarantees
//
//   - Raise never waits and never fails: what serves hosts is not held up by what
//     tells of them.
//   - The number of alerts that are kept is bounded; beyond that they are counted
//     and logged once.
//
// docs/operations.md says of every Subject what it means and what to do.
package alert
