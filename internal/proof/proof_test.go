package proof_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/internal/proof"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/roster"
)

const bucket = "s3://control"

// machine is a metadata service.
type machine struct {
	instance  string
	err       error
	documents int // how often it was asked for
}

func (m *machine) Document(context.Context) ([]byte, error) {
	m.documents++
	return fmt.Appendf(nil, `{"accountId":"123456789012","region":"eu-west-1","instanceId":"%s"}`, m.instance), m.err
}

func (m *machine) Signature(context.Context) ([]byte, error) {
	return []byte(base64.StdEncoding.EncodeToString([]byte("signature"))), m.err
}

func (m *machine) Cloud(context.Context) (boxid.Cloud, error) {
	return boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: m.instance}, m.err
}

type deployment struct {
	store   *memstore.Store
	private ed25519.PrivateKey
	dir     *roster.Directory
}

func deploy(t *testing.T) deployment {
	public, private := roster.GenerateKey()
	d := deployment{store: memstore.New(), private: private}
	d.dir = roster.Open(d.store, public, bucket)
	_, err := roster.Create(t.Context(), d.store, private, roster.Roster{DeploymentBucket: bucket,
		Regions: map[string]roster.Region{"ie": {Account: "123456789012", AWSRegion: "eu-west-1", Data: "s3://data"}}})
	require.NoError(t, err)
	return d
}

func (d deployment) enroll(t *testing.T, instance string) {
	_, err := roster.Update(t.Context(), d.store, d.private, d.dir, func(r *roster.Roster) error {
		r.Boxes = map[string]roster.Box{"box-1": {Enrollment: "enr-1", EnrolledAt: time.Now().UTC(), Region: "ie", Pool: "default", State: roster.Active,
			Cloud: boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: instance}}}
		return nil
	})
	require.NoError(t, err)
}

func (d deployment) config(m *machine) proof.Config {
	return proof.Config{Control: d.store, Roster: d.dir, Machine: m, Box: "box-1", Region: "ie", Log: slog.New(slog.DiscardHandler)}
}

func TestAMachineWaitsUntilItIsEnrolled(t *testing.T) {
	d := deploy(t)
	synctest.Test(t, func(t *testing.T) {
		var said []string
		c := d.config(&machine{instance: "i-1"})
		c.Waiting = func(why string) { said = append(said, why) }
		got := make(chan roster.Box, 1)
		go func() {
			box, _, err := proof.Wait(t.Context(), c)
			if err == nil {
				got <- box
			}
		}()
		time.Sleep(10 * time.Second)
		require.Empty(t, got)
		require.Len(t, said, 1, "a wait is said once")
		_, err := d.store.Get(t.Context(), boxid.Key("box-1"))
		require.NoError(t, err, "its identity is published")
		d.enroll(t, "i-1")
		require.Equal(t, "enr-1", (<-got).Enrollment)
	})
}

func TestACloneOfABoxNeverActsInItsName(t *testing.T) {
	d := deploy(t)
	d.enroll(t, "i-1")
	_, _, err := proof.Look(t.Context(), d.config(&machine{instance: "i-2"}))
	require.ErrorIs(t, err, proof.ErrOtherMachine)
	require.ErrorContains(t, err, "i-2")
	_, _, err = proof.Wait(t.Context(), d.config(&machine{instance: "i-2"}))
	require.ErrorIs(t, err, proof.ErrOtherMachine)
}

func TestWhatCannotBeReadIsNotDecided(t *testing.T) {
	d := deploy(t)
	d.enroll(t, "i-1")
	_, _, err := proof.Look(t.Context(), d.config(&machine{instance: "i-1", err: errors.New("timeout")}))
	require.ErrorContains(t, err, "timeout")
	d.store.Inject(memstore.Once(memstore.OpGet, roster.Key, memstore.Lose))
	_, _, err = proof.Look(t.Context(), d.config(&machine{instance: "i-1"}))
	require.ErrorIs(t, err, memstore.ErrInjected)
	require.NotErrorIs(t, err, objstore.ErrNotFound)
}

func TestAnotherRegionIsNotThisBoxs(t *testing.T) {
	d := deploy(t)
	d.enroll(t, "i-1")
	c := d.config(&machine{instance: "i-1"})
	c.Region = "de"
	_, _, err := proof.Look(t.Context(), c)
	require.ErrorIs(t, err, roster.ErrNotSelf)
	require.ErrorContains(t, err, `region "ie", and not in "de"`)
}

// waiting runs Wait for a while, and returns what it said and logged.
func (d deployment) waiting(t *testing.T, c proof.Config, during func()) (said []string, logged string) {
	var log bytes.Buffer
	c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	c.Waiting = func(why string) { said = append(said, why) }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, _, err := proof.Wait(ctx, c)
		done <- err
	}()
	during()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	return said, log.String()
}

func TestAMachineSaysWhatItWaitsFor(t *testing.T) {
	d := deploy(t)
	synctest.Test(t, func(t *testing.T) {
		said, _ := d.waiting(t, d.config(&machine{instance: "i-1"}), func() {
			time.Sleep(5 * time.Second)
			_, err := roster.Update(t.Context(), d.store, d.private, d.dir, func(r *roster.Roster) error {
				ie := r.Regions["ie"]
				ie.GroupName, ie.GroupARN = "boxes", "arn"
				r.Regions["ie"] = ie
				return nil
			})
			require.NoError(t, err)
			time.Sleep(5 * time.Second)
		})
		require.Len(t, said, 2)
		require.Contains(t, said[0], "it is not enrolled: approve it with: console box enroll box-1 --region ie --instance-id i-1")
		require.Contains(t, said[1], "it needs a worker's confirmation that group boxes launched it, and a console that serves; or approve it with: console box enroll box-1")
	})
}

func TestAMetadataServiceThatFailsIsAskedAgainEachMinute(t *testing.T) {
	d := deploy(t)
	synctest.Test(t, func(t *testing.T) {
		m := &machine{instance: "i-1", err: errors.New("no token")}
		said, _ := d.waiting(t, d.config(m), func() {
			time.Sleep(2*time.Minute + 30*time.Second)
			require.Equal(t, 3, m.documents)
			m.err = nil
			time.Sleep(time.Minute)
			require.Equal(t, 4, m.documents)
			time.Sleep(10 * time.Minute)
			require.Equal(t, 4, m.documents, "published once")
		})
		require.Contains(t, said[0], "its identity is not published: boxid: publish box \"box-1\": identity document: no token")
		require.NotContains(t, said[len(said)-1], "not published")
	})
}

func TestAnIdentityOfAnotherMachineIsSaidOnceAndStays(t *testing.T) {
	d := deploy(t)
	require.NoError(t, boxid.Publish(t.Context(), d.store, "box-1", &machine{instance: "i-2"}, time.Now()))
	before := len(d.store.Log())
	synctest.Test(t, func(t *testing.T) {
		m := &machine{instance: "i-1"}
		said, logged := d.waiting(t, d.config(m), func() { time.Sleep(5 * time.Minute) })
		require.Equal(t, 1, strings.Count(logged, "cannot publish who it is"))
		require.Equal(t, 1, m.documents)
		require.Len(t, said, 1)
		require.Contains(t, said[0], "it is of aws/123456789012/eu-west-1/i-2")
	})
	require.Len(t, d.store.Log(), before)
}

func TestAnEnrolledBoxDoesNotNeedItsRecord(t *testing.T) {
	d := deploy(t)
	_, err := d.store.Put(t.Context(), boxid.Key("box-1"), []byte("damaged"), objstore.IfAbsent())
	require.NoError(t, err)
	d.enroll(t, "i-1")
	box, _, err := proof.Wait(t.Context(), d.config(&machine{instance: "i-1"}))
	require.NoError(t, err)
	require.Equal(t, "enr-1", box.Enrollment)
}

func TestAStoreThatFailsIsNotAskedToPublish(t *testing.T) {
	d := deploy(t)
	synctest.Test(t, func(t *testing.T) {
		m := &machine{instance: "i-1"}
		d.store.Inject(memstore.Once(memstore.OpGet, boxid.Key("box-1"), memstore.Lose))
		d.waiting(t, d.config(m), func() {
			time.Sleep(30 * time.Second)
			require.Zero(t, m.documents)
			time.Sleep(time.Minute)
			require.Equal(t, 1, m.documents)
		})
	})
}

func TestAReferenceThatIsNoLabelIsNotTriedAgain(t *testing.T) {
	d := deploy(t)
	c := d.config(&machine{instance: "i-1"})
	c.Box = "box.1"
	_, _, err := proof.Wait(t.Context(), c)
	require.ErrorIs(t, err, boxid.ErrBadRef)
}

func TestABoxThatIsDeclaredLostIsToldSo(t *testing.T) {
	d := deploy(t)
	d.enroll(t, "i-1")
	snap, err := roster.Update(t.Context(), d.store, d.private, d.dir, func(r *roster.Roster) error { return r.Quarantine("box-1") })
	require.NoError(t, err)
	_, _, err = proof.Match(t.Context(), d.config(&machine{instance: "i-1"}), snap)
	require.ErrorIs(t, err, roster.ErrNotSelf)
	require.ErrorContains(t, err, "its entry is quarantined")
	_, _, err = proof.Match(t.Context(), d.config(&machine{instance: "i-1", err: errors.New("timeout")}), snap)
	require.NotErrorIs(t, err, roster.ErrNotSelf, "what cannot be read is not decided")
}

func TestADeploymentWithoutARosterIsNamed(t *testing.T) {
	public, _ := roster.GenerateKey()
	d := deployment{store: memstore.New()}
	d.dir = roster.Open(d.store, public, bucket)
	_, _, err := proof.Look(t.Context(), d.config(&machine{instance: "i-1"}))
	require.EqualError(t, err, "the control store holds no roster yet")
}
