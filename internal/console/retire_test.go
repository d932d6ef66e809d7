package console_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/console"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// terminate lets the worker on by read the machine of ref as terminated.
func (d *deployment) terminate(t *testing.T, ref, by string) {
	t.Helper()
	box := d.entry(t, ref)
	rec, err := termfence.Verify(box, d.entry(t, by), termfence.Observation{Via: termfence.ViaDescribe, Found: true,
		InstanceID: box.Cloud.InstanceID, Account: box.Cloud.Account, Region: box.Cloud.Region, State: termfence.Terminated, RequestID: "r"}, d.clock)
	require.NoError(t, err)
	_, err = termfence.Publish(t.Context(), d.mem, termfence.Reader{Store: d.mem, Roster: d.Roster}, rec)
	require.NoError(t, err)
}

func (d *deployment) declareLost(t *testing.T, ref string) {
	t.Helper()
	l := loss()
	l.Ref, l.Confirm = ref, ref
	_, err := d.DeclareLost(t.Context(), l)
	require.NoError(t, err)
}

func refused(t *testing.T, err error, why string) {
	t.Helper()
	var refusal *console.Refusal
	require.ErrorAs(t, err, &refusal)
	require.ErrorContains(t, refusal.Err, why)
	require.NotEmpty(t, refusal.Next)
}

func TestABoxThatIsGoneIsRetired(t *testing.T) {
	for name, goes := range map[string]func(*testing.T, *deployment){
		"terminated":    func(t *testing.T, d *deployment) { d.terminate(t, "box-2", "box-1") },
		"declared lost": func(t *testing.T, d *deployment) { d.declareLost(t, "box-2") },
	} {
		t.Run(name, func(t *testing.T) {
			d := deploy(t)
			d.join(t, "box-2", "i-0002")
			goes(t, d)
			before := len(d.mem.Log())
			box, err := d.Retire(t.Context(), "box-2")
			require.NoError(t, err)
			require.Equal(t, roster.Retired, box.State)
			require.Equal(t, box, d.entry(t, "box-2"))
			require.Len(t, d.mem.Log(), before+1)
			again, err := d.Retire(t.Context(), "box-2")
			require.NoError(t, err)
			require.Equal(t, box, again)
			require.Len(t, d.mem.Log(), before+1)
		})
	}
}

func TestABoxThatMayStillRunIsNotRetired(t *testing.T) {
	d := deploy(t)
	before := len(d.mem.Log())
	_, err := d.Retire(t.Context(), "box-1")
	refused(t, err, "it is neither read terminated nor declared lost")
	_, err = d.Retire(t.Context(), "box-9")
	refused(t, err, "it is not in the roster")
	for _, key := range []string{termfence.Key(d.entry(t, "box-1").Enrollment), termfence.DeclarationKey(d.entry(t, "box-1").Enrollment)} {
		d.mem.Inject(memstore.Once(memstore.OpGet, key, memstore.Lose))
		_, err = d.Retire(t.Context(), "box-1")
		require.ErrorIs(t, err, memstore.ErrInjected)
	}
	require.Len(t, d.mem.Log(), before)
}

func TestAConsoleWithoutTheKeyRetiresAndReadmitsNobody(t *testing.T) {
	d := deploy(t)
	d.declareLost(t, "box-1")
	private := d.Private
	d.Private = nil
	_, err := d.Retire(t.Context(), "box-1")
	require.ErrorContains(t, err, "private key")
	require.ErrorContains(t, d.RequireProtocol(t.Context(), 1), "private key")
	require.ErrorContains(t, d.SetRegion(t.Context(), "de", roster.Region{Account: "123456789012", AWSRegion: "eu-central-1"}), "private key")
	d.Private = private
	_, err = d.Retire(t.Context(), "box-1")
	require.NoError(t, err)
	d.identify(t, "box-1b", "i-0001")
	d.Private = nil
	_, err = d.Readmit(t.Context(), console.Readmission{Ref: "box-1", As: "box-1b"})
	require.ErrorContains(t, err, "private key")
	require.Zero(t, d.entry(t, "box-1b"))
}

func TestABoxThatAClaimNamesIsNotRetired(t *testing.T) {
	d := serving(t)
	d.declareLost(t, "box-1")
	before := len(d.mem.Log())
	_, err := d.Retire(t.Context(), "box-1")
	refused(t, err, "claims of 1 hosts still name it: notes.example")
	_, err = d.mem.Put(t.Context(), hostclaim.Key("broken.example"), []byte("{}"), objstore.IfAbsent())
	require.NoError(t, err)
	_, err = d.Retire(t.Context(), "box-1")
	refused(t, err, "the claim of broken.example may name it")
	d.mem.Inject(memstore.Once(memstore.OpList, "control/hosts/", memstore.Lose))
	_, err = d.Retire(t.Context(), "box-1")
	require.ErrorIs(t, err, memstore.ErrInjected)
	require.Len(t, d.mem.Log(), before+1)
}

func TestABoxThatAnOperationNeedsIsNotRetired(t *testing.T) {
	d := serving(t)
	_, err := d.Drain(t.Context(), "notes.example")
	require.NoError(t, err)
	require.Equal(t, "box-2", d.claim(t).Op.Target().Box)
	d.declareLost(t, "box-2")
	_, err = d.Retire(t.Context(), "box-2")
	refused(t, err, "notes.example")
	d = deploy(t)
	_, err = d.Create(t.Context(), wanted())
	require.NoError(t, err)
	d.declareLost(t, "box-1")
	_, err = d.Retire(t.Context(), "box-1")
	refused(t, err, "notes.example")
}

func TestARetirementOfUnknownOutcomeIsSettled(t *testing.T) {
	for name, fault := range map[string]memstore.Fault{"lost": memstore.Lose, "answer lost": memstore.LoseAnswer, "replayed": memstore.Replay} {
		t.Run(name, func(t *testing.T) {
			d := deploy(t)
			d.declareLost(t, "box-1")
			d.mem.Inject(memstore.Once(memstore.OpPut, roster.Key, fault))
			_, err := d.Retire(t.Context(), "box-1")
			require.NoError(t, err)
			require.Equal(t, roster.Retired, d.entry(t, "box-1").State)
		})
	}
}

// returned is a box that was declared lost and retired, and whose machine came
// back as box-1b.
func returned(t *testing.T) *deployment {
	t.Helper()
	d := deploy(t)
	d.declareLost(t, "box-1")
	_, err := d.Retire(t.Context(), "box-1")
	require.NoError(t, err)
	d.identify(t, "box-1b", "i-0001")
	return d
}

func TestAMachineThatComesBackIsReadmittedAsAnotherBox(t *testing.T) {
	for name, fault := range map[string]memstore.Fault{"at once": memstore.None, "lost": memstore.Lose, "answer lost": memstore.LoseAnswer, "replayed": memstore.Replay} {
		t.Run(name, func(t *testing.T) {
			d := returned(t)
			d.mem.Inject(memstore.Once(memstore.OpPut, roster.Key, fault))
			box, err := d.Readmit(t.Context(), console.Readmission{Ref: "box-1", As: "box-1b"})
			require.NoError(t, err)
			require.Equal(t, "i-0001", box.Cloud.InstanceID)
			require.Equal(t, box, d.entry(t, "box-1b"))
			require.Equal(t, "box-1b", d.entry(t, "box-1").ReadmittedAs)
			require.NotEqual(t, d.entry(t, "box-1").Enrollment, box.Enrollment)
			before := len(d.mem.Log())
			again, err := d.Readmit(t.Context(), console.Readmission{Ref: "box-1", As: "box-1b"})
			require.NoError(t, err)
			require.Equal(t, box, again)
			require.Len(t, d.mem.Log(), before)
			old, err := d.Box(t.Context(), "box-1")
			require.NoError(t, err)
			require.Equal(t, "box-1b", old.ReadmittedAs)
		})
	}
}

func TestAReadmittedMachineComesBackOnceMore(t *testing.T) {
	d := returned(t)
	_, err := d.Readmit(t.Context(), console.Readmission{Ref: "box-1", As: "box-1b"})
	require.NoError(t, err)
	d.identify(t, "box-1c", "i-0001")
	_, err = d.Readmit(t.Context(), console.Readmission{Ref: "box-1", As: "box-1c"})
	refused(t, err, `enrolled under "box-1b"`)
	d.declareLost(t, "box-1b")
	_, err = d.Retire(t.Context(), "box-1b")
	require.NoError(t, err)
	_, err = d.Readmit(t.Context(), console.Readmission{Ref: "box-1", As: "box-1c"})
	refused(t, err, `it was readmitted as "box-1b"`)
	_, err = d.Readmit(t.Context(), console.Readmission{Ref: "box-1b", As: "box-1c"})
	require.NoError(t, err)
}

func TestAReadmissionIsRefused(t *testing.T) {
	m := console.Readmission{Ref: "box-1", As: "box-1b"}
	for name, c := range map[string]struct {
		spoil  func(*testing.T, *deployment, *console.Readmission)
		reason string
	}{
		"a bad reference":       {func(_ *testing.T, _ *deployment, m *console.Readmission) { m.As = "box.1" }, "bad box reference"},
		"the same reference":    {func(_ *testing.T, _ *deployment, m *console.Readmission) { m.As = "box-1" }, "once, for ever"},
		"not there":             {func(_ *testing.T, _ *deployment, m *console.Readmission) { m.Ref = "box-9" }, "not in the roster"},
		"nothing was published": {func(_ *testing.T, _ *deployment, m *console.Readmission) { m.As = "box-1c" }, "has not published its identity"},
		"another machine": {func(t *testing.T, d *deployment, m *console.Readmission) {
			m.As = "box-2"
			d.identify(t, "box-2", "i-0002")
		}, `the operator expects "i-0001"`},
		"still active": {func(t *testing.T, d *deployment, m *console.Readmission) {
			d.join(t, "box-2", "i-0002")
			m.Ref = "box-2"
		}, "it is active"},
		"terminated": {func(t *testing.T, d *deployment, m *console.Readmission) {
			d.join(t, "box-2", "i-0002")
			d.join(t, "box-3", "i-0003")
			d.terminate(t, "box-2", "box-3")
			_, err := d.Retire(t.Context(), "box-2")
			require.NoError(t, err)
			d.identify(t, "box-2b", "i-0002")
			*m = console.Readmission{Ref: "box-2", As: "box-2b"}
		}, "was read terminated, and never comes back"},
		"it never proved itself": {func(t *testing.T, d *deployment, m *console.Readmission) {
			_, err := roster.Update(t.Context(), d.mem, d.Private, d.Roster, func(r *roster.Roster) error {
				r.Boxes["old"] = roster.Box{Enrollment: "e-old", Region: "ie", State: roster.Retired}
				return nil
			})
			require.NoError(t, err)
			m.Ref = "old"
		}, "never proved which machine it is"},
	} {
		t.Run(name, func(t *testing.T) {
			d, m := returned(t), m
			c.spoil(t, d, &m)
			before := len(d.mem.Log())
			_, err := d.Readmit(t.Context(), m)
			refused(t, err, c.reason)
			require.Len(t, d.mem.Log(), before)
		})
	}
	d := returned(t)
	for _, key := range []string{termfence.Key(d.entry(t, "box-1").Enrollment), boxid.Key("box-1b")} {
		d.mem.Inject(memstore.Once(memstore.OpGet, key, memstore.Lose))
		_, err := d.Readmit(t.Context(), m)
		require.ErrorIs(t, err, memstore.ErrInjected)
	}
}

func TestAProtocolIsRequiredOnceEveryBoxSpeaksIt(t *testing.T) {
	d := deploy(t)
	d.join(t, "box-2", "i-0002")
	d.speaks(t, "box-1", 1)
	refused(t, d.RequireProtocol(t.Context(), 1), "box-2 speaks 0")
	d.speaks(t, "box-2", 1)
	d.clock = d.clock.Add(16 * time.Minute)
	d.mem.Now = func() time.Time { return d.clock }
	d.speaks(t, "box-1", 1)
	refused(t, d.RequireProtocol(t.Context(), 1), "box-2 (silent")
	d.declareLost(t, "box-2")
	require.NoError(t, d.RequireProtocol(t.Context(), 1), "one that takes no part is not asked")
	snap, err := d.Roster.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, snap.ProtocolFloor)
	before := len(d.mem.Log())
	require.NoError(t, d.RequireProtocol(t.Context(), 1))
	refused(t, d.RequireProtocol(t.Context(), 0), "falls from 1 to 0")
	d.speaks(t, "box-1", 2)
	refused(t, d.RequireProtocol(t.Context(), 2), "is above 1, which this build speaks")
	require.Len(t, d.mem.Log(), before+1, "only what box-1 published")
}

func TestABoxEnrolledMeanwhileIsAskedToo(t *testing.T) {
	d := deploy(t)
	d.speaks(t, "box-1", 1)
	d.identify(t, "box-2", "i-0002")
	raced := false
	d.mem.Inject(func(r memstore.Request) memstore.Fault {
		if r.Op == memstore.OpPut && r.Key == roster.Key && !raced {
			raced = true
			_, err := d.Enroll(t.Context(), console.Enrollment{Ref: "box-2", Region: "ie", Pool: "default", InstanceID: "i-0002"})
			require.NoError(t, err)
		}
		return memstore.None
	})
	refused(t, d.RequireProtocol(t.Context(), 1), `box "box-2" was enrolled meanwhile`)
}

// speaks gives a box a fresh edges file of a build that speaks a protocol.
func (d *deployment) speaks(t *testing.T, ref string, protocol int) {
	t.Helper()
	old, err := placement.Read(t.Context(), d.mem, ref)
	if err != nil {
		old = placement.Published{}
	}
	e := old.Edges
	e.Box, e.Region, e.Protocol, e.At = ref, "ie", protocol, d.clock
	_, err = placement.Publish(t.Context(), d.mem, old, e)
	require.NoError(t, err)
}
