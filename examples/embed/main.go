// Command embed takes, holds and hands over a host between two processes on a
// directory, with the SDK alone. The host is a job without data: what is carried
// over is nothing. operator.go starts this program again as each box.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	hc "github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/termfence"
)

const host, region, none = "job.demo.example", "here", "none"

func main() {
	if err := run(context.Background(), os.Stdout, os.Args[1:]); err != nil {
		fmt.Println("is refused:", err)
		os.Exit(1)
	}
}

// box takes the host, holds it while its standard input is open, and ends its
// session: whatever the answer, it does nothing more under it.
func box(ctx context.Context, store objstore.Store, evidence termfence.Reader, me hc.Member) error {
	o, err := hc.Read(ctx, store, host)
	if err != nil {
		return err // never "nobody holds it"
	}
	step := create(me)
	if o.Claim != nil {
		source := member(o.Claim.Op.Exec)
		gone, _, err := evidence.Declared(ctx, source.Enrollment)
		if err != nil {
			return err // never "not declared"
		}
		step = takeOver(o, source, me, hc.Gone{Evidence: gone})
	}
	if o, err = hc.Update(ctx, store, o, step); err != nil {
		return err
	}
	session := o.Claim.Holder.Session
	fmt.Printf("holds %s as session %d\n", host, session)
	io.Copy(io.Discard, os.Stdin)
	_, err = hc.Update(ctx, store, o, hc.EndSession(me.Box, session, hc.Position{}))
	return err
}

func create(me hc.Member) hc.Transition {
	return hc.Then(
		hc.BeginCreate(hc.NewHost{Incarnation: "i-1", Account: "demo", App: "job", Region: region,
			RecordKey: "apps/demo/job", RecordSHA256: none}, "op-1", me.Box, time.Now(), me),
		hc.CompleteCreate("op-1", me.Box, me.Enrollment),
		hc.AdmitWriter(hc.Admission{Op: "op-1", Box: me.Box, NewGeneration: "g-1", KeepStamp: true}))
}

// takeOver is a whole failover in one write, of the gen that follows.
func takeOver(o hc.Observed, source, me hc.Member, gone hc.Gone) hc.Transition {
	now, gen, was := time.Now(), o.Claim.Gen+1, o.Claim.Holder
	op, next := fmt.Sprint("op-", gen), fmt.Sprint("g-", gen)
	return hc.Then(
		hc.StartFailover(hc.Relocation{Op: op, By: me.Box, Now: now, Source: source, Target: me}, gone),
		hc.Acknowledge(op, me.Box, me.Enrollment),
		hc.PinFailover(op, now),
		hc.JournalPin(op, hc.Pin{Key: hc.PinKey(host, op, o.Claim.Gen), SHA256: none, ListedAt: now}),
		hc.ToInstalling(op, next, now),
		hc.ToInstalled(op, hc.PreparedAuthority{Generation: next, FilesManifestSHA256: none}, now),
		hc.RecordLocalInstall(op, hc.LocalInstall{Box: me.Box, Enrollment: me.Enrollment, InstallStamp: gen, SHA256: none}),
		hc.ToProbing(op, now),
		hc.BeginProbeAttempt(op, 1),
		hc.AdmitWriter(hc.Admission{Op: op, Phase: hc.Probing, Session: was.Session, Generation: was.Generation,
			Box: me.Box, NewGeneration: next, KeepStamp: true, Coverage: hc.CleanReturn}),
		hc.RecordProbe(op, me.Box, gen),
		hc.CompleteRelocation(op))
}
