package console_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/console"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
)

const fingerprint = "0011223344556677"

// deployment is one region with a box that is enrolled and up, in memory.
type deployment struct {
	*console.Console
	mem   *memstore.Store
	clock time.Time
}

func deploy(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{mem: memstore.New(), clock: time.Now()}
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	_, err := roster.Create(t.Context(), d.mem, private, roster.Roster{DeploymentBucket: "memory",
		Regions: map[string]roster.Region{"ie": {Account: "123456789012", AWSRegion: "eu-west-1", Data: "dir:///data"}}})
	require.NoError(t, err)
	d.Console = &console.Console{Store: d.mem, Roster: roster.Open(d.mem, private.Public().(ed25519.PublicKey), "memory"),
		Private: private, Certs: map[string]*x509.Certificate{"eu-west-1": boxidtest.Cert()}, SecretFP: fingerprint,
		Now: func() time.Time { return d.clock }}
	d.join(t, "box-1", "i-0001")
	return d
}

// join enrolls a box that is up.
func (d *deployment) join(t *testing.T, box, instance string) {
	t.Helper()
	d.identify(t, box, instance)
	_, err := d.Enroll(t.Context(), console.Enrollment{Ref: box, Region: "ie", Pool: "default", InstanceID: instance})
	require.NoError(t, err)
	d.publish(t, box, placement.CapabilityRegionHA, placement.CapabilityRelease)
}

// publish gives a box a fresh edges file.
func (d *deployment) publish(t *testing.T, box string, capabilities ...string) {
	t.Helper()
	old, err := placement.Read(t.Context(), d.mem, box)
	if err != nil {
		old = placement.Published{}
	}
	_, err = placement.Publish(t.Context(), d.mem, old, placement.Edges{Box: box, Region: "ie",
		Address: box + ".internal:80", Internal: box + ".internal:81", Capabilities: capabilities,
		Accepting: true, SecretsKeyFP: fingerprint, At: d.clock})
	require.NoError(t, err)
}

func (d *deployment) identify(t *testing.T, box, instance string) {
	t.Helper()
	doc := boxidtest.Document(boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: instance})
	body, err := record.Encode(boxid.Record{V: 1, Box: box, IdentityDocument: doc, IdentitySignature: boxidtest.Sign(doc), WrittenAt: d.clock.UTC()})
	require.NoError(t, err)
	_, err = d.mem.Put(t.Context(), boxid.Key(box), body, objstore.IfAbsent())
	require.NoError(t, err)
}

// wanted is a host that can be created.
func wanted() console.NewHost {
	return console.NewHost{Host: "notes.example", Account: "demo", App: "notes", Region: "ie", Command: []string{"/bin/notes"}}
}

func (d *deployment) claim(t *testing.T) *hostclaim.Claim {
	t.Helper()
	o, err := hostclaim.Read(t.Context(), d.mem, "notes.example")
	require.NoError(t, err)
	return o.Claim
}

func (d *deployment) update(t *testing.T, transition hostclaim.Transition) {
	t.Helper()
	o, err := hostclaim.Read(t.Context(), d.mem, "notes.example")
	require.NoError(t, err)
	_, err = hostclaim.Update(t.Context(), d.mem, o, transition)
	require.NoError(t, err)
}

// start does what the selected box does: it takes the host, admits a writer and
// its app answers.
func (d *deployment) start(t *testing.T) {
	t.Helper()
	op := d.claim(t).Op
	d.update(t, hostclaim.CompleteCreate(op.ID, op.Intent.Selected.Box, op.Intent.Selected.Enrollment))
	d.update(t, hostclaim.AdmitWriter(hostclaim.Admission{Op: op.ID, Box: "box-1", NewGeneration: "g1", KeepStamp: true}))
	d.update(t, hostclaim.PublishGeneration("box-1", d.claim(t).Holder.Session))
}
