package policies_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxvolumes"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostdb"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/lease"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/objstore/storetest"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/resolution"
	"github.com/carlosframework/regionha/resolution/resolutiontest"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/stopevidence"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
	"github.com/carlosframework/regionha/termfence"
)

const host = "notes.demo.example"

var (
	private  = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	enrolled = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// play runs the real code of all three processes on stores that note what each
// of them asks for.
type play struct {
	*testing.T
	control, data *memstore.Store
	dir           *roster.Directory
	by            string // whose requests are made now
	requests      []request
}

func newPlay(t *testing.T) *play {
	p := &play{T: t, control: memstore.New(), data: memstore.New()}
	p.control.Inject(p.note("control"))
	p.data.Inject(p.note("data"))
	p.dir = roster.Open(p.control, private.Public().(ed25519.PublicKey), "s3://control")
	return p
}

// note turns what a store was asked for into the requests that S3 authorizes.
func (p *play) note(bucket string) func(memstore.Request) memstore.Fault {
	whole := "arn:aws:s3:::" + bucket
	return func(r memstore.Request) memstore.Fault {
		object := whole + "/" + r.Key
		switch r.Op {
		case memstore.OpGet:
			p.asks("s3:GetObject", object)
		case memstore.OpList:
			p.asks("s3:ListBucket", whole)
		case memstore.OpPut:
			_, match := r.Cond.ETag()
			p.requests = append(p.requests, put(p.by, bucket+"/"+r.Key, condition{absent: r.Cond.IsAbsent(), match: match}))
		case memstore.OpListVersions:
			p.asks("s3:ListBucketVersions", whole)
		case memstore.OpDeleteVersion:
			p.asks("s3:DeleteObjectVersion", object)
		default:
			p.Errorf("%s of %s: nobody makes such a request", r.Op, r.Key)
		}
		return memstore.None
	}
}

func (p *play) asks(action, resource string) {
	p.requests = append(p.requests, ask(p.by, action, resource))
}

// ask is a request without a body.
func ask(by, action, resource string) request {
	r := request{by: role(by), action: action, resource: resource, context: tls()}
	r.context["aws:PrincipalArn"] = r.by
	return r
}

func tls() map[string]string { return map[string]string{"aws:SecureTransport": "true"} }

// condition is what a write carries.
type condition struct{ absent, match bool }

// put is a PutObject, or the completion of an upload in parts.
func put(by, object string, cond condition) request {
	r := request{by: role(by), action: "s3:PutObject", resource: "arn:aws:s3:::" + object, context: tls()}
	r.context["s3:ObjectCreationOperation"] = "true"
	r.context["aws:PrincipalArn"] = r.by
	if cond.absent {
		r.context["s3:if-none-match"] = "*"
	}
	if cond.match {
		r.context["s3:if-match"] = "etag"
	}
	return r
}

// scenario is a region's life in requests: a console sets it up and creates a
// host, a box serves it, and a worker finds the box gone.
func scenario(t *testing.T) []request {
	p := newPlay(t)
	p.console()
	p.agent()
	p.worker()
	p.lost()
	return p.requests
}

func cloud(ref string) boxid.Cloud {
	return boxid.Cloud{Provider: boxid.AWS, Account: "111122223333", Region: "eu-west-1", InstanceID: "i-" + ref}
}

func (p *play) console() {
	p.by = "console"
	ctx := p.Context()
	require.NoError(p, storetest.Guard(ctx, p.control))
	r := roster.Roster{DeploymentBucket: "s3://control", Boxes: map[string]roster.Box{},
		Regions: map[string]roster.Region{"ie": {Account: "111122223333", AWSRegion: "eu-west-1", Data: "s3://data"}}}
	for _, ref := range []string{"box-1", "box-2", "worker"} {
		r.Boxes[ref] = roster.Box{Enrollment: "e-" + ref, EnrolledAt: enrolled, Region: "ie", Pool: "default", State: roster.Active, Cloud: cloud(ref)}
	}
	_, err := roster.Create(ctx, p.control, private, r)
	require.NoError(p, err)
	p.edit("box-2", func(b *roster.Box) { b.State = roster.Quarantined })

	stored, err := hostrecord.Create(ctx, p.control, hostrecord.Record{V: 1, Gen: 1, Write: "w", Host: host, Account: "demo", App: "notes", Region: "ie",
		Pool: "default", Command: []string{"/bin/notes"}, Incarnation: "inc", CreatedAt: enrolled}.WithDefaults())
	require.NoError(p, err)
	_, err = hostclaim.Update(ctx, p.control, hostclaim.Observed{Host: host}, hostclaim.BeginCreate(hostclaim.NewHost{Incarnation: "inc",
		Account: "demo", App: "notes", RecordKey: hostrecord.Key("demo", "notes", host), RecordSHA256: stored.SHA256, Region: "ie"},
		"op-1", "console", time.Now(), hostclaim.Member{Box: "box-1", Enrollment: "e-box-1"}))
	require.NoError(p, err)
	require.NoError(p, regionfile.Bump(ctx, p.control, "ie", host))
}

func (p *play) edit(ref string, change func(*roster.Box)) {
	_, err := roster.Update(p.Context(), p.control, private, p.dir, func(r *roster.Roster) error {
		box := r.Boxes[ref]
		change(&box)
		r.Boxes[ref] = box
		return nil
	})
	require.NoError(p, err)
}

func (p *play) agent() {
	p.by = "agent"
	ctx := p.Context()
	require.NoError(p, storetest.Guard(ctx, p.control))
	require.NoError(p, storetest.Guard(ctx, p.data))
	require.NoError(p, boxid.Publish(ctx, p.control, "box-1", machine{}, enrolled))
	p.announce("box-1")
	o, err := hostclaim.Read(ctx, p.control, host)
	require.NoError(p, err)
	_, err = hostclaim.Update(ctx, p.control, o, hostclaim.CompleteCreate("op-1", "box-1", "e-box-1"))
	require.NoError(p, err)
	require.NoError(p, hostdb.MarkPublished(ctx, p.data, hostclaim.LocationOf(host, "inc"), "g1"))
	p.lease("control/exec/" + host + "/op-2/box-1.json")
	p.lease("control/leases/ie/" + hostclaim.LocationOf(host, "inc") + ".json")
	_, err = stopevidence.Publish(ctx, p.control, stoptest.Filled(stopevidence.Record{Host: host}))
	require.NoError(p, err)
}

// announce publishes a box's edges file twice.
func (p *play) announce(ref string) {
	var last placement.Published
	for range 2 {
		var err error
		last, err = placement.Publish(p.Context(), p.control, last, placement.Edges{Box: ref, Region: "ie", Address: "127.0.0.1:1",
			Internal: "127.0.0.1:2", Protocol: roster.Protocol, SecretsKeyFP: "0011223344556677", At: time.Now().UTC()})
		require.NoError(p, err)
	}
}

func (p *play) lease(key string) {
	c := lease.Candidate{Store: p.control, Key: key, Holder: p.by, TTL: time.Minute}
	got, err := c.Acquire(p.Context())
	require.NoError(p, err)
	require.NoError(p, got.Release(p.Context()))
}

func (p *play) worker() {
	p.by = "worker"
	ctx := p.Context()
	require.NoError(p, boxid.Publish(ctx, p.control, "worker", machine{}, enrolled))
	p.announce("worker")
	p.lease("control/drivers/ie.json")
	for range p.control.List(ctx, placement.Prefix) {
	}
	snap, err := p.dir.Read(ctx)
	require.NoError(p, err)
	box, _ := snap.Box("box-1")
	self, _ := snap.Box("worker")
	recorder := boxvolumes.Recorder{Store: p.control}
	_, err = recorder.Saw(ctx, box, boxvolumes.Observation{Found: true, InstanceID: "i-box-1", Account: "111122223333", Region: "eu-west-1",
		State: "running", Volumes: []boxvolumes.Volume{{ID: "vol-1", Device: "/dev/xvda", Status: "attached", DeleteOnTermination: true}}}, enrolled)
	require.NoError(p, err)
	rec, err := termfence.Verify(box, self, termfence.Observation{Via: termfence.ViaDescribe, Found: true, InstanceID: "i-box-1",
		Account: "111122223333", Region: "eu-west-1", State: termfence.Terminated, RequestID: "r"}, enrolled.Add(time.Hour))
	require.NoError(p, err)
	fences := termfence.Reader{Store: p.control, Roster: p.dir}
	_, err = termfence.Publish(ctx, p.control, fences, rec)
	require.NoError(p, err)
	_, err = termfence.Publish(ctx, p.control, fences, rec)
	require.NoError(p, err, "the second worker's is settled by reading")
	_, err = boxvolumes.Read(ctx, p.control, box, enrolled.Add(time.Hour))
	require.NoError(p, err)
	require.NoError(p, regionfile.Bump(ctx, p.control, "ie", host))
}

// lost is what an operator says about a box that nothing proves gone, and about
// a host that is stuck.
func (p *play) lost() {
	p.by = "console"
	ctx := p.Context()
	fences := termfence.Reader{Store: p.control, Roster: p.dir}
	_, err := termfence.Declare(ctx, p.control, fences, termfence.Declaration{Box: "box-2", Enrollment: "e-box-2", Region: "ie", Who: "ann", Why: "the rack burnt",
		Checked: []string{"the rack"}, Confirmation: "box-2", DeclaredAt: enrolled.Add(time.Hour)})
	require.NoError(p, err)
	_, err = termfence.DeclareDestroyed(ctx, p.control, fences, termfence.Destruction{Box: "box-2", Enrollment: "e-box-2", Who: "ann", Why: "the rack burnt",
		How: "by fire", Confirmation: "box-2", DeclaredAt: enrolled.Add(time.Hour)})
	require.NoError(p, err)
	_, err = resolution.Publish(ctx, p.control, resolutiontest.Filled(resolution.Record{Host: host}))
	require.NoError(p, err)
}

// machine is one whose cloud tells it who it is.
type machine struct{}

func (machine) Document(context.Context) ([]byte, error) {
	return []byte(`{"accountId":"111122223333","region":"eu-west-1","instanceId":"i-box-1"}`), nil
}

func (machine) Signature(context.Context) ([]byte, error) {
	return []byte(base64.StdEncoding.EncodeToString([]byte("signature"))), nil
}
