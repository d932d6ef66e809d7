// Package agent is a box: it proves who it is, learns which hosts the claims
// name it for, runs those and no others, replicates what they write, and serves
// HTTP for every host of its region.
//
// One goroutine per host, a supervisor, reads the host's claim, compares it
// with what runs, and makes the next step. Everything that it does to local
// state goes through hostguard, everything that it writes to the store through
// hostdb and hostfiles, and every decision through hostclaim.
//
// # Guarantees
//
//   - Nothing runs here but under a session that a claim read by this process
//     admitted on this box. Where a later read names another, the app is
//     stopped, and nothing that it wrote late reaches the store.
//   - An app never runs without its replicator, and is ready only when its
//     generation has a durable root.
//   - A claim that cannot be read keeps what runs running and starts nothing.
//   - An agent that is told to end stops its apps, flushes what they wrote and
//     records the end of their sessions, so that the next start declares
//     nothing lost.
//   - A live box gives a host up only when all that its session wrote is in the
//     store and root saw that nothing of it runs, by steps of which each is
//     durable and none is made twice: a crash anywhere delays a drain and loses
//     nothing. What cannot be given up without loss is not given up.
//   - Nothing of an operation is done here but while this box's execution
//     controller of it is open.
//   - A process that was suspended refuses writes until it has read its claims
//     again.
//   - The edges file names a host only as long as the host's row is ready here
//     and its claim, as last read, names this box. A box joins a region with
//     others in it only when [placement.Permits] says so, and makes no row before;
//     it joins once.
//
// # At rest
//
// What a box with 2,000 hosts asks of the store in a day in which nothing
// happens, in a region of 200 boxes and 20,000 hosts, at $0.0004 for 1,000 GETs
// and $0.005 for 1,000 LISTs or PUTs:
//
//	the region's file every 2 s                  43,200 GET   $0.0173
//	a listing of the edges files every 30 s       2,880 LIST  $0.0144
//	200 edges files, new every 5 to 6 min        52,400 GET   $0.0209
//	a listing of all claims every 9 min, 20 pages 3,200 LIST  $0.0160
//	each own claim once an hour                  45,200 GET   $0.0181
//	its own edges file, and its store's clock       262 PUT   $0.0013
//	                                                262 GET   $0.0001
//	the roster every 10 s                         8,640 GET   $0.0035
//	together                                                  $0.0916
//
// A claim that the listing shows as it was read needs no other read, and a
// replicator asks nothing of the store while its database does not change. After
// a start each own claim is read once more.
//
// # Not guaranteed
//
// A box that is cut off from the store goes on serving in default durability;
// what it acknowledges then is lost if it is fenced, and declared.
package agent
