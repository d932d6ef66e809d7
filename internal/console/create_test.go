package console_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/console"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/termfence"
)

func TestACreateClaimsFirstAndTheClaimCitesTheRecord(t *testing.T) {
	d := deploy(t)
	watcher := regionfile.Watcher{Store: d.mem, Region: "ie"}
	_, _, err := watcher.Poll(t.Context())
	require.NoError(t, err)
	before := len(d.mem.Log())
	creation, err := d.Create(t.Context(), wanted())
	require.NoError(t, err)

	writes := d.mem.Log()[before:]
	require.Len(t, writes, 3)
	require.Equal(t, hostclaim.Key("notes.example"), writes[0].Key)
	require.Equal(t, hostrecord.Key("demo", "notes", "notes.example"), writes[1].Key)
	claim := d.claim(t)
	rec, err := hostrecord.Read(t.Context(), d.mem, "demo", "notes", "notes.example")
	require.NoError(t, err)
	require.Equal(t, rec.SHA256, claim.Holder.RecordSHA256)
	require.Equal(t, rec.Incarnation, claim.Holder.Incarnation)
	require.Equal(t, "box-1", claim.Op.Intent.Selected.Box)
	require.Equal(t, creation.Op, claim.Op.ID)
	changed, _, err := watcher.Poll(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"notes.example"}, changed)
}

func TestACreateSettlesEveryWriteOfUnknownOutcome(t *testing.T) {
	for _, prefix := range []string{"control/hosts/", "apps/"} {
		for name, fault := range map[string]memstore.Fault{"lost": memstore.Lose, "answer lost": memstore.LoseAnswer, "replayed": memstore.Replay} {
			t.Run(prefix+" "+name, func(t *testing.T) {
				d := deploy(t)
				d.mem.Inject(memstore.Once(memstore.OpPut, prefix, fault))
				_, err := d.Create(t.Context(), wanted())
				if err != nil { // the record's PUT is tried once: its create is cancelled then
					require.Equal(t, "apps/", prefix)
					require.ErrorIs(t, err, objstore.ErrUnknown)
					require.Equal(t, hostclaim.Free, d.claim(t).Op.Kind)
					_, err = d.Create(t.Context(), wanted())
				}
				require.NoError(t, err)
				d.start(t)
			})
		}
	}
}

func TestACreateThatItsBoxTookIsNotCalledCancelled(t *testing.T) {
	d := deploy(t)
	recordKey := hostrecord.Key("demo", "notes", "notes.example")
	written := false
	d.mem.Inject(func(r memstore.Request) memstore.Fault {
		switch {
		case r.Key != recordKey || r.Op == memstore.OpGet && !written:
			return memstore.None
		case r.Op == memstore.OpPut:
			written = true
			return memstore.LoseAnswer
		}
		d.mem.Inject(nil)
		d.start(t) // the box reads what the console cannot
		return memstore.Lose
	})
	creation, err := d.Create(t.Context(), wanted())
	require.NoError(t, err)
	require.Equal(t, d.claim(t).Op.ID, creation.Op)
	require.NoError(t, d.Await(t.Context(), creation, time.Minute, func(string) {}))
}

func TestACreateIsFinishedThoughItsCallerIsGone(t *testing.T) {
	d := deploy(t)
	ctx, cancel := context.WithCancel(t.Context())
	d.mem.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpPut && r.Key == hostrecord.Key("demo", "notes", "notes.example") {
			cancel()
		}
		return memstore.None
	})
	_, err := d.Create(ctx, wanted())
	require.NoError(t, err)
	_, err = hostrecord.Read(t.Context(), d.mem, "demo", "notes", "notes.example")
	require.NoError(t, err)
}

func TestALateRecordOfACancelledCreateMeansNothing(t *testing.T) {
	d := deploy(t)
	d.mem.Inject(memstore.Once(memstore.OpPut, "apps/", memstore.Hold))
	_, err := d.Create(t.Context(), wanted())
	require.ErrorIs(t, err, objstore.ErrUnknown)
	_, err = d.mem.Held()[0].Deliver()
	require.NoError(t, err)
	_, err = d.Create(t.Context(), wanted())
	require.NoError(t, err)
	rec, err := hostrecord.Read(t.Context(), d.mem, "demo", "notes", "notes.example")
	require.NoError(t, err)
	require.Equal(t, uint64(2), rec.Gen)
	require.Equal(t, rec.SHA256, d.claim(t).Holder.RecordSHA256)
}

func TestARefusedCreateWritesNothing(t *testing.T) {
	for name, change := range map[string]func(*console.NewHost){
		"host":    func(n *console.NewHost) { n.Host = "Notes" },
		"command": func(n *console.NewHost) { n.Command = nil },
		"region":  func(n *console.NewHost) { n.Region = "fr" },
		"pool":    func(n *console.NewHost) { n.Pool = "big" },
		"timeout": func(n *console.NewHost) { n.StartTimeout = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			d := deploy(t)
			before := len(d.mem.Log())
			n := wanted()
			change(&n)
			_, err := d.Create(t.Context(), n)
			var refusal *console.Refusal
			require.ErrorAs(t, err, &refusal)
			require.Len(t, d.mem.Log(), before)
		})
	}
}

func TestABoxThatIsLostForTheHostIsNotSelected(t *testing.T) {
	d := deploy(t)
	body, err := record.Encode(hostclaim.Claim{V: 1, Host: "notes.example", Gen: 1, Write: "w",
		Op: hostclaim.Op{Kind: hostclaim.Free}, Lost: []string{"box-1"}})
	require.NoError(t, err)
	_, err = d.mem.Put(t.Context(), hostclaim.Key("notes.example"), body, objstore.IfAbsent())
	require.NoError(t, err)
	_, err = d.Create(t.Context(), wanted())
	require.ErrorContains(t, err, "box-1 (lost for this host)")
}

func TestARecordOfAnotherIncarnationIsAProblem(t *testing.T) {
	d := deploy(t)
	_, err := d.Create(t.Context(), wanted())
	require.NoError(t, err)
	host, err := d.Host(t.Context(), "notes.example")
	require.NoError(t, err)
	require.Empty(t, host.Problem)
	old, err := hostrecord.Read(t.Context(), d.mem, "demo", "notes", "notes.example")
	require.NoError(t, err)
	other := old.Record
	other.Gen, other.Write, other.Incarnation = 2, "w2", "another"
	_, err = hostrecord.Replace(t.Context(), d.mem, old, other)
	require.NoError(t, err)
	host, err = d.Host(t.Context(), "notes.example")
	require.NoError(t, err)
	require.Contains(t, host.Problem, "its record is of incarnation another")
}

func TestAFenceThatCannotBeReadIsNeverTakenForNone(t *testing.T) {
	d := deploy(t)
	box, err := d.Boxes(t.Context())
	require.NoError(t, err)
	_, err = d.mem.Put(t.Context(), "control/box-fences/"+box[0].Enrollment+".json", []byte("{}\n"), objstore.IfAbsent())
	require.NoError(t, err)
	_, err = d.Create(t.Context(), wanted())
	require.ErrorIs(t, err, termfence.ErrUnverified)
	require.Nil(t, d.claim(t))
	box, err = d.Boxes(t.Context())
	require.NoError(t, err)
	require.Contains(t, box[0].Status, "its fence cannot be read")
}

func TestAwaitSaysEachSentenceOnceAndEndsWhenTheAppAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy(t)
		d.Now = nil // the bubble's clock
		creation, err := d.Create(t.Context(), wanted())
		require.NoError(t, err)
		var said []string
		done := make(chan error)
		go func() {
			done <- d.Await(t.Context(), creation, time.Minute, func(line string) { said = append(said, line) })
		}()
		time.Sleep(3 * time.Second)
		op := d.claim(t).Op
		d.update(t, hostclaim.CompleteCreate(op.ID, op.Intent.Selected.Box, op.Intent.Selected.Enrollment))
		time.Sleep(3 * time.Second)
		d.update(t, hostclaim.AdmitWriter(hostclaim.Admission{Op: op.ID, Box: "box-1", NewGeneration: "g1", KeepStamp: true}))
		time.Sleep(3 * time.Second)
		d.update(t, hostclaim.PublishGeneration("box-1", d.claim(t).Holder.Session))
		require.NoError(t, <-done)
		require.Equal(t, []string{
			"waiting for box-1 to take it",
			"waiting for box-1 to start its app for the first time",
			"waiting for its app to answer",
		}, said)
	})
}

func TestACreateThatItsBoxDoesNotTakeIsCancelledAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy(t)
		d.Now = nil
		creation, err := d.Create(t.Context(), wanted())
		require.NoError(t, err)
		began := time.Now()
		err = d.Await(t.Context(), creation, time.Minute, func(string) {})
		require.ErrorContains(t, err, "box-1 did not take it in time")
		require.WithinDuration(t, began.Add(time.Minute), time.Now(), 2*time.Second)
		claim := d.claim(t)
		require.Equal(t, hostclaim.Free, claim.Op.Kind)
		_, err = claimAfter(t, d, hostclaim.CompleteCreate(creation.Op, "box-1", "any"))
		require.ErrorIs(t, err, hostclaim.ErrStaleOp, "the box comes too late")
	})
}

func TestAnAppThatDoesNotAnswerKeepsItsHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy(t)
		d.Now = nil
		creation, err := d.Create(t.Context(), wanted())
		require.NoError(t, err)
		op := d.claim(t).Op
		d.update(t, hostclaim.CompleteCreate(op.ID, op.Intent.Selected.Box, op.Intent.Selected.Enrollment))
		err = d.Await(t.Context(), creation, time.Minute, func(string) {})
		require.ErrorContains(t, err, "was created on box-1 and its app has not answered yet")
		require.Equal(t, hostclaim.Serving, d.claim(t).Op.Kind)
	})
}

func TestAwaitEndsWithItsContextAndChangesNothing(t *testing.T) {
	d := deploy(t)
	creation, err := d.Create(t.Context(), wanted())
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	err = d.Await(ctx, creation, time.Minute, func(string) {})
	require.ErrorContains(t, err, "goes on without us (interrupted)")
	require.Equal(t, hostclaim.Creating, d.claim(t).Op.Kind)
}

func TestAwaitNoticesThatItsCreateIsGone(t *testing.T) {
	d := deploy(t)
	creation, err := d.Create(t.Context(), wanted())
	require.NoError(t, err)
	d.update(t, hostclaim.CancelCreate(creation.Op, "test"))
	require.ErrorContains(t, d.Await(t.Context(), creation, time.Minute, func(string) {}), "cancelled meanwhile")
}

func claimAfter(t *testing.T, d *deployment, transition hostclaim.Transition) (hostclaim.Observed, error) {
	t.Helper()
	o, err := hostclaim.Read(t.Context(), d.mem, "notes.example")
	require.NoError(t, err)
	return hostclaim.Update(t.Context(), d.mem, o, transition)
}
