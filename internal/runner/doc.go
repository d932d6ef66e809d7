// Package runner runs one host's app as child processes of the agent.
//
// [Start] gives the app what a host is promised and nothing else: its argv, its
// own working directory, a clean environment, and a free loopback port or a
// socket to listen on. While the app runs, its output goes to rotated files,
// its readiness is asked over HTTP, and when it exits it is started again, after
// a growing pause, in the same session. [App.Stop] ends the session.
//
// A run is one start of the app: the process and all that it forks. It is held
// in its own process group and, where there is a [Machine], in a cgroup of its
// own from its first instruction, so that no fork leaves it. Package machine
// holds it; what takes root may be done by another process.
//
// # Guarantees
//
//   - A run has wholly ended (no process of it lives) before the next one
//     starts, and before Done is closed. With a cgroup this covers processes
//     that left the process group; without one it covers the group.
//   - The app dies with the agent: the kernel kills the process when its
//     parent dies, and what that leaves behind is named by run.json, which
//     [KillLeftover] reads and ends. A process is never killed for its pid
//     alone: its start time, or its environment, must be the recorded run's.
//   - An app counts as ready only when it answered its ready path with 200 at an
//     address that a process of this run listens on. A stranger that took the
//     port first is not taken for the app.
//   - The environment holds only what [Config] names.
//
// # Not guaranteed
//
// Whether the app may run at all: that is the claim's and the guard's to say.
// That no other process has the database open: package stopevidence looks. On
// systems other than Linux nothing ends an app when its agent dies, so Start
// refuses there with [errors.ErrUnsupported].
package runner
