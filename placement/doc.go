// Package placement decides which box: where a host lives now, which boxes may
// be given one, and which of those is chosen.
//
// Every box publishes one [Edges] file: where it is reached, what it can do, and
// for which hosts it is home under which stamp. [Claims] decides which of its rows
// a box may publish, by the claims behind them and a bounded number of reads, and
// [Pace] when. A [Reader] follows all files at the cost of one LIST and a GET of
// each that changed. [Fold] makes the [HomeMap] that routers use. [Eligible]
// judges one box for one placement, and [Choose] picks one of those that passed.
// [Permits] says whether another box may join a region, and [Rebalance] which few
// hosts to move so that its boxes come closer together.
//
// An edges file is evidence of liveness and configuration, never of identity or
// membership: those are the roster's. Its age is the store's: how long ago the
// store accepted it, by the reader's clock, which its process keeps within 30 s
// of the store's. What the file itself says of the time decides nothing.
//
// # Guarantees
//
//   - Of two files that claim a name the higher stamp wins, and a stamped entry
//     wins over an unstamped one. An alias carries its primary's stamp. The
//     order of the files is irrelevant. Two boxes at one positive stamp are
//     reported.
//   - A name that had a home within the last 15 minutes and has none now is in
//     transit, never unknown.
//   - A box is eligible by its own roster entry and its own edges file, fresh
//     and saying every needed thing; two boxes' halves never make one. What
//     cannot be read is an error, never "not fenced" and never an empty file.
//   - A box names a host as the newest read of its claim says, and before one
//     without a stamp. Of 2,000 claims none goes unread over 15 minutes, however
//     many others fail; a store that refuses writes is asked 16 times in 20.
//   - Choose and Rebalance are pure, and independent of order. Spreading an app
//     over boxes is a preference and never refuses. Rebalance applied again and
//     again ends, and moves no host twice.
//
// # Not guaranteed
//
// The home map reads no claims, so it may be behind: a box that is asked for a
// host checks its own row. Being chosen admits nobody; a claim does. Whether
// an operation still runs for a name, which keeps it in transit past the 15
// minutes, is known from its claim.
package placement
