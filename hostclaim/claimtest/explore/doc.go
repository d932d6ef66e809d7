// Package explore reaches every claim that there is within bounds, and checks
// each. Transitions are pure, so nothing is sampled: from a host that never was,
// [Explore] tries breadth first whatever anyone may try, in every order, with a
// bounded number of faults on each path.
//
// # What is tried
//
// The steps of honest actors are those of claimtest.Steps. Besides them boxes
// are wedged, terminated with and without their disks, or switched off and
// declared lost; apps crash; receipts and data are lost; writes are promised,
// and reach the store or do not. And in every state everybody tries what no
// claim may accept: to be admitted on a box that does not execute, to cite a
// receipt or evidence of something else, to release or end an older session.
//
// A fault is what takes a path off its way: a box or an app that fails, and a
// step that gives up a box which is well. What follows from a fault takes none,
// so from every state the way out is looked for without another.
//
// A step from an older observation is refused by the compare-and-swap of the
// store, and any number of workers are one: the second to write gets a conflict.
// So each step is tried from the newest claim only. That the same step may come
// again, since its answer was lost, is tried after every step.
//
// # States
//
// A state is a claim and what is true around it. Two states are one if they have
// one canonical form, and this loses nothing, for they have the same futures up
// to names:
//
//   - Rules compare stamps and sessions with each other, and each new one is
//     over all before it. The form holds their ranks.
//   - Ids are only ever equal or not, and new ones are fresh. The form holds
//     where each generation appears first; an operation's id nowhere.
//   - No rule prefers a box. The form holds, as a set, what the claim and the
//     world say of each.
//   - The clock leaps by more than every deadline in each write. A deadline
//     refuses a step before it is due and never after, so these are the most
//     steps that a claim can see. What deadlines refuse is not looked at here.
//   - Of the admissions, those from the newest published one on: no chain of
//     baselines goes beyond it. Of chores and losses of a region, whether there
//     are any: they are seen to all at once.
//   - Of the replacements left, at most as many as there are boxes to name.
//
// A test compares the futures of states that the search takes for one.
//
// # What is checked
//
// Every state and every move is held to the properties of the claim, told in
// terms of what is true in the world: see edge.broken. From every state some
// moves without a fault lead to a host that serves, is free or waits for an
// operator; and from every one that waits, some decision leads to serving.
//
// TestBrokenVariants leaves out the guards of hostclaim, one at a time, and
// finds a counterexample for each.
package explore
