package hostclaim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/resolution"
	"github.com/carlosframework/regionha/resolution/resolutiontest"
	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
	"github.com/carlosframework/regionha/termfence/fencetest"
)

// tb lets examples make evidence as tests do. Production code reads it: with
// termfence.Reader, stopevidence.Read and resolution.Read.
type tb struct{ testing.TB }

func (tb) Helper()                        {}
func (tb) Errorf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }
func (tb) FailNow()                       { panic("failed") }

// apply makes each transition one write, and says where the claim is then. A
// program calls Update; the examples leave the store out.
func apply(o hostclaim.Observed, ts ...hostclaim.Transition) hostclaim.Observed {
	for _, t := range ts {
		c, err := o.Next("nonce", t)
		if err != nil {
			panic(err)
		}
		o.Claim = c
	}
	op := o.Claim.Op
	fmt.Printf("%s %s exec=%q\n", op.Kind, op.Phase, op.Exec)
	return o
}

// A create names its box before any other effect. Only that box completes it.
func ExampleBeginCreate() {
	o := apply(hostclaim.Observed{Host: testHost}, hostclaim.BeginCreate(newHost, "op-1", "console", epoch, source))
	_, err := o.Next("nonce", hostclaim.CompleteCreate("op-1", target.Box, target.Enrollment))
	fmt.Println(err)
	apply(o, hostclaim.CompleteCreate("op-1", source.Box, source.Enrollment))
	apply(o, hostclaim.CancelCreate("op-1", "it did not complete in 10 minutes"))
	// Output:
	// creating  exec=""
	// not legal in this state: box-2 as enr-2 was not selected: box-1 as enr-1 was
	// serving  exec="box-1"
	// free  exec=""
}

// A writer that ended cleanly is vouched for: the next admission declares
// nothing. One that did not is declared, in the write that follows it.
func ExampleAdmitWriter() {
	o := upTo(tb{}, "serving")
	end := hostclaim.Position{Generation: "g-1", TXID: 41, FilesGeneration: "g-1", FilesSeq: 6}
	next := hostclaim.Admission{Op: "op-1", Session: 2, Generation: "g-1", Box: source.Box, NewGeneration: "g-2", Baseline: end}

	crashed := apply(o, hostclaim.AdmitWriter(next))
	fmt.Printf("%+v\n", *crashed.Claim.Holder.Admissions[1].WritesLost)

	next.Coverage = hostclaim.CleanReturn
	clean := apply(o, hostclaim.EndSession(source.Box, 2, end), hostclaim.AdmitWriter(next))
	fmt.Println(clean.Claim.Holder.Admissions[1].WritesLost)
	// Output:
	// serving  exec="box-1"
	// {ID:0c3afed4078a11d65ad4441f024be90d Box:box-1 Session:2 Generation:g-1 RemoteMaxTXID:41}
	// serving  exec="box-1"
	// <nil>
}

// A drain takes a host from a live box on its stop receipt, and loses nothing.
func ExampleStartRelocation() {
	o := apply(upTo(tb{}, "serving"), hostclaim.StartRelocation(relocation, hostclaim.Drain),
		hostclaim.Acknowledge("op-2", source.Box, source.Enrollment), hostclaim.Acknowledge("op-2", target.Box, target.Enrollment))
	o = apply(o, hostclaim.ToReleasing("op-2", epoch))

	receipt := stoptest.Receipt(tb{}, stopevidence.Record{Host: testHost, Op: "op-2", Box: source.Box, Enrollment: source.Enrollment,
		Incarnation: "inc-1", Stamp: o.Claim.Holder.Stamp, Session: o.Claim.Holder.Session})
	o = apply(o, hostclaim.JournalRelease("op-2", hostclaim.Release{Box: source.Box, Enrollment: source.Enrollment,
		Session: o.Claim.Holder.Session, Final: pinned, Receipt: receipt.Ref().Key, ReceiptSHA256: receipt.Ref().SHA256}))
	o = apply(o, hostclaim.PinAfterRelease("op-2", receipt, hostclaim.Member{}, epoch))

	o = apply(o, hostclaim.Then(hostclaim.JournalPin("op-2", pinOf(o.Claim)), hostclaim.ToInstalling("op-2", "p-1", epoch)))
	o = apply(o, hostclaim.ToInstalled("op-2", built, epoch))
	o = apply(o, hostclaim.RecordLocalInstall("op-2", receiptOf(o.Claim)), hostclaim.ToProbing("op-2", epoch), hostclaim.BeginProbeAttempt("op-2", 1))
	open := opening(o.Claim)
	open.Coverage = hostclaim.Released
	o = apply(o, hostclaim.AdmitWriter(open))
	o = apply(o, hostclaim.RecordProbe("op-2", target.Box, o.Claim.Holder.Session), hostclaim.CompleteRelocation("op-2"))
	fmt.Println("declared lost:", len(o.Claim.PendingLosses()))
	// Output:
	// relocating starting exec="box-1"
	// relocating releasing exec="box-1"
	// relocating releasing exec="box-1"
	// relocating pinning exec="none"
	// relocating installing exec="box-2"
	// relocating installed exec="box-2"
	// relocating probing exec="box-2"
	// relocating probing exec="box-2"
	// serving  exec="box-2"
	// declared lost: 0
}

// A failover needs evidence that the box is gone, as a value that only its
// verifier can make.
func ExampleStartFailover() {
	o := upTo(tb{}, "serving")
	_, err := o.Next("nonce", hostclaim.StartFailover(relocation, hostclaim.Gone{}))
	fmt.Println(err)
	gone := fencetest.Evidence(tb{}, source.Box, source.Enrollment, testRegion, epoch)
	o = apply(o, hostclaim.StartFailover(relocation, hostclaim.Gone{Evidence: gone}))
	fmt.Println("lost:", o.Claim.Lost, "from session", o.Claim.EvidenceRefs[0].Session)
	// Output:
	// not legal in this state: no evidence that box-1 is gone
	// relocating starting exec="none"
	// lost: [box-1] from session 2
}

// A target that dies is replaced in one write, and the next one goes on from
// what is there: here an accepted build that nobody opened.
func ExampleReplaceTarget() {
	o := upTo(tb{}, "received")
	gone := hostclaim.Gone{Evidence: fencetest.Evidence(tb{}, target.Box, target.Enrollment, testRegion, epoch)}
	o = apply(o, hostclaim.ReplaceTarget("op-2", gone, spare, "", epoch))
	fmt.Println(o.Claim.Op.Journal.Prepared, "receipt kept:", o.Claim.Op.Journal.LocalInstall != nil)
	// Output:
	// relocating installed exec="box-3"
	// p-1 receipt kept: false
}

// A stuck operation waits for a person, and goes on as that person decided, with
// data that is chosen afresh.
func ExampleResolve() {
	o := upTo(tb{}, "installing")
	late := epoch.Add(hostclaim.InstallDeadline(0))
	o = apply(o, hostclaim.MarkStuck("op-2", hostclaim.InstallOverdue, late))
	_, err := o.Next("nonce", hostclaim.ToInstalled("op-2", built, late))
	fmt.Println(err)
	decided := resolutiontest.Resolution(tb{}, resolution.Record{Host: testHost, Op: "op-2", Gen: o.Claim.Gen,
		Box: spare.Box, Enrollment: spare.Enrollment, Who: "ada", Why: "box-2 has a broken disk"})
	apply(o, hostclaim.Resolve("op-2", decided, hostclaim.Proof{}, late))
	// Output:
	// relocating installing exec="box-2"
	// not legal in this state: relocating installing, which is stuck: install overdue
	// relocating pinning exec="none"
}

// A deleted host is parked once its executor released it, and free once nothing
// of it is left. The claim stays.
func ExampleBeginDelete() {
	o := apply(upTo(tb{}, "serving"), hostclaim.BeginDelete("op-9", "console", source, epoch))
	release, receipt := stopped(tb{}, o.Claim, source, pinned)
	o = apply(o, hostclaim.JournalRelease("op-9", release), hostclaim.ParkAfterRelease("op-9", receipt))
	for _, chore := range o.Claim.Obligations {
		fmt.Println(chore.Kind, "by", chore.Owner)
	}
	o = complete(tb{}, o)
	o = apply(o, hostclaim.FreeHost("op-9"))
	fmt.Println("retired:", o.Claim.RetiredIncarnations)
	// Output:
	// deleting  exec="box-1"
	// parking  exec="none"
	// park-local by box:box-1
	// park-replica by region:ie
	// free  exec=""
	// retired: [inc-1]
}

// The scope of a chore over stored objects is bound once, and the chore is done
// under it.
func ExampleBindScope() {
	o := upTo(tb{}, "relocated")
	dead := o.Claim.Obligations[0]
	scope := hostclaim.Park{Location: o.Claim.Holder.Location, Incarnation: "inc-1", EvidenceAt: epoch, RequestLimit: 2 * time.Minute}
	o = apply(o, hostclaim.BindScope(dead.Op, dead.ID, scope))
	scope.EvidenceAt = epoch.Add(time.Hour)
	_, err := o.Next("nonce", hostclaim.BindScope(dead.Op, dead.ID, scope))
	fmt.Println(err)
	o = apply(o, hostclaim.CompleteObligation(dead.Op, dead.ID))
	fmt.Println("left:", len(o.Claim.Obligations))
	// Output:
	// serving  exec="box-2"
	// not legal in this state: chore park-generation.fc334900e08a0dd79ee95eb8a663feeb is bound to instances/notes.demo.example/inc-1 up to 2026-03-01 12:00:00 +0000 UTC
	// serving  exec="box-2"
	// left: 1
}
