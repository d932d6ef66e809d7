// Package survey looks at a region's boxes and chooses one for a host.
//
// A [Reader] makes a [Look]: the roster, every edges file and every fence, as
// one pass over the store showed them. A Look judges each box by
// [placement.Eligible] and chooses by [placement.Choose]. A [Surveyor] serves
// the many hosts of one pass from few Looks, and counts in what it gave away
// until the boxes say it themselves. Workers and the console choose by the same
// rule, from the same reading.
//
// # Guarantees
//
//   - Where a fence cannot be read, nobody is chosen, and that is an error.
//   - A box that the claim or its operation may not name is never chosen: the
//     executor, the source, the target, those replaced in the operation, the
//     lost ones and those that owe the host a park-local. See [Excluded].
//   - Where no box may be given the host, [NoneError] says of each box why not.
//   - What looks cost grows neither with the hosts that are placed nor, beyond
//     ten requests a second, with the boxes.
//
// # Not guaranteed
//
// A choice admits nobody and may be outdated as soon as it is made. The write
// that names the box checks the claim again, and the box itself acknowledges.
package survey
