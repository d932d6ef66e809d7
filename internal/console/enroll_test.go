package console_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/console"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

func TestAnEnrollmentIsMadeOnceWhateverBecomesOfItsWrite(t *testing.T) {
	for name, fault := range map[string]memstore.Fault{"lost": memstore.Lose, "answer lost": memstore.LoseAnswer,
		"replayed": memstore.Replay, "refused": memstore.Refuse, "late": memstore.Hold} {
		t.Run(name, func(t *testing.T) {
			d := deploy(t)
			d.identify(t, "box-2", "i-0002")
			d.mem.Inject(memstore.Once(memstore.OpPut, roster.Key, fault))
			e := console.Enrollment{Ref: "box-2", Region: "ie", Pool: "default", InstanceID: "i-0002"}
			box, err := d.Enroll(t.Context(), e)
			require.NoError(t, err)
			for _, held := range d.mem.Held() {
				_, _ = held.Deliver() // it lands late, and finds that it lost
			}
			snap, err := d.Roster.Read(t.Context())
			require.NoError(t, err)
			require.Equal(t, box.Enrollment, snap.Boxes["box-2"].Enrollment)
			again, err := d.Enroll(t.Context(), e)
			require.NoError(t, err)
			require.Equal(t, box.Enrollment, again.Enrollment)
		})
	}
}

func TestAnEnrollmentWaitsForTheBox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy(t)
		e := console.Enrollment{Ref: "box-2", Region: "ie", Pool: "default", InstanceID: "i-0002"}
		var said []string
		done := make(chan error)
		go func() {
			_, err := d.EnrollWhenPublished(t.Context(), e, time.Minute, func(line string) { said = append(said, line) })
			done <- err
		}()
		time.Sleep(10 * time.Second)
		d.identify(t, "box-2", "i-0002")
		require.NoError(t, <-done)
		require.Equal(t, []string{"waiting for box box-2 to publish its identity"}, said)
	})
}

func TestAConsoleWithoutThePrivateKeyEnrollsNothing(t *testing.T) {
	d := deploy(t)
	d.identify(t, "box-2", "i-0002")
	d.Private = nil
	before := len(d.mem.Log())
	_, err := d.Enroll(t.Context(), console.Enrollment{Ref: "box-2", Region: "ie", Pool: "default", InstanceID: "i-0002"})
	require.ErrorContains(t, err, "private key")
	require.Len(t, d.mem.Log(), before)
}
