// Package hostrecord is the record of a host: what runs under one hostname and
// how, as its owner asked for it. The claim says who may run the host; the
// record says what is run.
//
// A [Record] lies at [Key] and names the incarnation of the claim it belongs
// to. Every box renders a host from its record alone, so nothing that a host
// needs to start is known to one box only.
//
// # Guarantees
//
// What [Read] returns and what [Create] and [Replace] write has passed
// [Record.Check]: every string that becomes a path, a key, an environment
// variable or an argument is of the form that its use allows. The error of a
// bad field names the field, what came and what was expected.
//
// A record's bytes are unique for ever: gen grows and write is a nonce, so an
// unknown outcome is settled by looking again.
//
// # Not guaranteed
//
// That the program exists on a box, that the incarnation is the claim's, or
// that a region or pool of this name exists. The box compares the first two
// before it runs anything, and the console looks up the rest before a create.
package hostrecord
