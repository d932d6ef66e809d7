// Package machine holds what the kernel keeps of a running app: its processes,
// its process group and its cgroup.
//
// [Cgroups] runs hosts in cgroups below one parent and looks at what is left of
// them; [Groups] is what is left where there is no cgroup v2. Both are children
// of the process that calls them: the agent's own, or the root helper's. A
// [Process] is one run, a [Tree] what names its processes when nobody holds it
// any more.
//
// # Guarantees
//
//   - A run is in its cgroup from its first instruction, so that no fork leaves
//     it. When End returned nil, no process of the run lives; with a cgroup that
//     covers what left the process group.
//   - The kernel kills the first process of a run when the process that started
//     it dies. What that leaves behind is named by its Tree.
//   - A process is never killed for its number alone: the cgroup, its start time
//     or its environment must be the run's.
//   - What cannot be read is an error, never "nothing lives".
//
// # Not guaranteed
//
// Whether an app may run: that is for the claim and the guard to say. Who may
// ask: package roothelper. On systems other than Linux everything is
// [errors.ErrUnsupported].
package machine
