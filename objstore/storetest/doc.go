// Package storetest is the meaning of the objstore contract: a list of checks
// that every store must pass, and that a user's own store can be held to.
//
// [Run] is for the tests of a store. [Check] runs the same list against a live
// store and reports each result with what would go wrong where one fails;
// console store check prints that. [Guard] is the smallest part of it, for a
// program that is about to trust a store.
//
// A check is [Required], or a [Note]: something that regionha avoids by design,
// which is good to know and never a failure.
//
// All of it works under a fresh prefix, control/store-check/<nonce>/. Check and
// Guard remove what they wrote where the store can delete versions.
package storetest
