package proof_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
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
	instance string
	err      error
}

func (m *machine) Document(context.Context) ([]byte, error) {
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
	require.ErrorContains(t, err, `region "ie", and not in "de"`)
}
