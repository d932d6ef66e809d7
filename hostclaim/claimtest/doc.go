// Package claimtest drives one claim through everything that can befall it, and
// holds each write to the properties that package hostclaim guarantees.
//
// A [World] is what is true beside the claim: boxes that live, are wedged or
// gone, what was promised to clients and what of it is durable. Its actors are
// boxes, workers, the console, an operator and who puts things away; [Steps]
// lists what any honest one of them could try from an observation. [Run] lets
// them act as a seed decides: on observations that moved on, with writes that
// are lost, arrive late or twice, and steps that are made again of a newer
// claim, while boxes crash, wedge, die and come round. [Check] is the same under
// rapid, which makes a failing sequence short. A [Driver] puts an actor of a
// platform, as it is to be tested, in the place of an honest one.
//
// # Guarantees
//
// After each write that applied, by what lies in the store:
//
//  1. at most one box may be admitted, and it is the executor; one that was
//     admitted is left only by its release or on evidence;
//  2. numbers only grow, and no two admissions share a session or a generation;
//  3. a prepared generation is opened at most once, and never built again once
//     its build was accepted;
//  4. a baseline reaches all that was promised to clients and not declared lost,
//     a session is declared once, and a drain without a failure declares nothing;
//  5. no chore goes without being done, none is about what is still needed, and
//     whoever was handed the host, and what was built and not opened, owes one;
//  6. from where a sequence ends, with each box live, wedged or dead, patient
//     actors reach a host that serves or a named stuck within its deadlines, and
//     from there an operator reaches one that serves (one sequence in eight);
//  7. what was written decodes to the same bytes (one write in 32);
//  8. the same step again conflicts, is already recorded, or is refused;
//  9. evidence about a box changes nothing of the execution of another.
//
// The same seed and options make the same sequence.
//
// # Not guaranteed
//
// Random sequences do not exhaust anything; package explore does, for few boxes
// and faults. A driver is given the world, so nothing keeps it from knowing more
// than it could. What a box does beside its claim is not tested here.
package claimtest
