// Package roothelper does what takes root, for an agent that is not root.
//
// The helper, [Serve], is a process of its own. The agent, through a [Client],
// sends it strict JSON messages over a unix socket, one a packet. A connection is
// either one request and its answer (a look at what still runs of a host, or its
// end) or one run of a host: its first message starts the app, and the run lives
// at most as long as the connection. Nothing else of it is state: a helper that
// starts kills what an earlier one left.
//
// # Guarantees
//
//   - Only the configured user is answered, by what the kernel says of the peer;
//     anyone else is refused and logged. What may be asked is in the file wire.go,
//     whole.
//   - Commands run as the agent's user, in its own group and no other, without a
//     shell. Nothing runs as root.
//   - Every cgroup that is made, filled, killed or removed is below the helper's
//     own, under the name of a box and of a host, which are both DNS names. One is
//     made only for a run or a look, and for a bounded number of boxes.
//   - When the agent dies, every run of it is killed, whole; when the helper dies,
//     the kernel kills each run's first process, and the next helper the rest. So
//     no app runs without its replicator. A host's next run starts when nothing of
//     the last one lives.
//   - Messages, descriptors, connections, looks and waits are bounded.
//
// # Not guaranteed
//
// Every process of the configured user is a peer: the agent, and every app. Each
// may end another's runs, start one for any box and host, and name any path in a
// look: an answer then says who holds that file. Whether an app may
// run is for the claim and the guard to say. The helper does not know the update
// gate, which works on files of the data directory and takes no root. On systems
// other than Linux everything is [errors.ErrUnsupported].
package roothelper
