package console_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/boxid/boxidtest"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/config"
	"github.com/carlosframework/regionha/internal/console"
	"github.com/carlosframework/regionha/internal/record"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/dirstore"
	"github.com/carlosframework/regionha/objstore/memstore"
	"github.com/carlosframework/regionha/objstore/storeurl"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/termfence"
)

// TestScripts runs the commands against a deployment in a directory store. The
// boxes are commands of the script that do what an agent or a worker would.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			w := &world{dir: env.WorkDir}
			env.Values["world"] = w
			return w.certs()
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"console": runConsole, "code": checkCode, "same": checkSame,
			"clock": in((*world).advance), "type": in((*world).typeLine), "remember": in((*world).remember), "unchanged": in((*world).unchanged),
			"publish": in((*world).publish), "edges": in((*world).edges), "terminate": in((*world).terminate),
			"take": in((*world).take), "admit": in((*world).admit), "answer": in((*world).answer),
			"ack": in((*world).ack), "failover": in((*world).failover), "put": in((*world).put), "twice": in((*world).twice), "sign": in((*world).sign),
		},
		RequireUniqueNames: true,
	})
}

// world is what one script works on.
type world struct {
	dir   string
	ahead time.Duration // of the console's clock
	code  int           // of the last console command
	typed string        // what the person types at the next one
	keys  map[string]string
}

func in(f func(*world, []string) error) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if err := f(ts.Value("world").(*world), args); (err != nil) != neg {
			ts.Fatalf("%v", err)
		}
	}
}

func (w *world) now() time.Time { return time.Now().Add(w.ahead) }

// careless is a store that takes a create-only write for any other.
type careless struct{ *memstore.Store }

func (s careless) Put(ctx context.Context, key string, body []byte, _ objstore.Condition) (objstore.Info, error) {
	return s.Store.Put(ctx, key, body, objstore.Always())
}

func open(ctx context.Context, url string) (objstore.Store, string, error) {
	switch url {
	case "careless://":
		return careless{memstore.New()}, url, nil
	case "memory://":
		return memstore.New(), url, nil
	}
	name, err := storeurl.Name(url)
	if err != nil {
		return nil, "", err
	}
	s, err := storeurl.Open(ctx, url)
	return s, name, err
}

func runConsole(ts *testscript.TestScript, neg bool, args []string) {
	w := ts.Value("world").(*world)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	app := console.App{Stdout: ts.Stdout(), Stderr: ts.Stderr(), Stdin: strings.NewReader(w.typed), Now: w.now, Open: open}
	w.typed = ""
	w.code = config.Exit("console", app.Run(ctx, args), ts.Stderr())
	if (w.code != 0) != neg {
		ts.Fatalf("exit code %d", w.code)
	}
}

func checkCode(ts *testscript.TestScript, _ bool, args []string) {
	if got := fmt.Sprint(ts.Value("world").(*world).code); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

var unstable = []struct {
	form *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "DIGEST"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "ID"},
	{regexp.MustCompile(`[A-Za-z0-9+/]{43}=`), "KEY"},
	{regexp.MustCompile(`\b\ds ago\b`), "Ns ago"},
	{regexp.MustCompile(` +\n`), "\n"},
}

// checkSame compares a file, or the last stdout or stderr, with a golden one,
// after what differs from run to run was named.
func checkSame(ts *testscript.TestScript, _ bool, args []string) {
	w := ts.Value("world").(*world)
	got := strings.ReplaceAll(ts.ReadFile(args[0]), w.dir, "$WORK")
	for _, u := range unstable {
		got = u.form.ReplaceAllString(got, u.text)
	}
	if want := ts.ReadFile(args[1]); got != want {
		ts.Fatalf("%s is\n%s\nwant\n%s", args[0], got, want)
	}
}

func (w *world) advance(args []string) error {
	d, err := time.ParseDuration(args[0])
	w.ahead += d
	return err
}

// typeLine TEXT: what the person types when the next command asks.
func (w *world) typeLine(args []string) error {
	w.typed = args[0] + "\n"
	return nil
}

func (w *world) store() objstore.Store {
	s, err := dirstore.Open(filepath.Join(w.dir, "control"))
	if err != nil {
		panic(err)
	}
	return s
}

func (w *world) list() (map[string]string, error) {
	keys := map[string]string{}
	for info, err := range w.store().List(context.Background(), "") {
		if err != nil {
			return nil, err
		}
		keys[info.Key] = info.ETag
	}
	return keys, nil
}

func (w *world) remember([]string) (err error) {
	w.keys, err = w.list()
	return err
}

func (w *world) unchanged([]string) error {
	now, err := w.list()
	if err == nil && fmt.Sprint(now) != fmt.Sprint(w.keys) {
		err = fmt.Errorf("the store changed:\n%v\nwas\n%v", now, w.keys)
	}
	return err
}

// certs writes the certificate of the cloud that publish signs for.
func (w *world) certs() error {
	dir := filepath.Join(w.dir, "certs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	body := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: boxidtest.Cert().Raw})
	return os.WriteFile(filepath.Join(dir, "eu-west-1.pem"), body, 0o600)
}

// publish BOX INSTANCE [ACCOUNT]: a box publishes its signed identity.
func (w *world) publish(args []string) error {
	cloud := boxid.Cloud{Provider: boxid.AWS, Account: "123456789012", Region: "eu-west-1", InstanceID: args[1]}
	if len(args) > 2 {
		cloud.Account = args[2]
	}
	doc := boxidtest.Document(cloud)
	body, err := record.Encode(boxid.Record{V: 1, Box: args[0], IdentityDocument: doc, IdentitySignature: boxidtest.Sign(doc), WrittenAt: w.now().UTC()})
	if err != nil {
		return err
	}
	_, err = w.store().Put(context.Background(), boxid.Key(args[0]), body, objstore.IfAbsent())
	return err
}

func (w *world) roster() (roster.Snapshot, *roster.Directory, error) {
	text, err := os.ReadFile(filepath.Join(w.dir, "keys", "roster.pub"))
	if err != nil {
		return roster.Snapshot{}, nil, err
	}
	key, err := roster.ParsePublicKey(string(text))
	if err != nil {
		return roster.Snapshot{}, nil, err
	}
	dir := roster.Open(w.store(), key, "dir://"+filepath.Join(w.dir, "control"))
	snap, err := dir.Read(context.Background())
	return snap, dir, err
}

// edges BOX [HOST...]: a box publishes what it has.
func (w *world) edges(args []string) error {
	secret, err := boxauth.LoadSecret(filepath.Join(w.dir, "keys", "secret"), nil)
	if err != nil {
		return err
	}
	e := placement.Edges{Box: args[0], Region: "ie", Address: args[0] + ".internal:8080", Internal: args[0] + ".internal:8081", Accepting: true,
		Capabilities: []string{placement.CapabilityRegionHA, placement.CapabilityRelease}, SecretsKeyFP: secret.Fingerprint(), Hosts: map[string]placement.Host{}, At: w.now()}
	if strings.HasPrefix(args[0], "user") {
		e.Capabilities = []string{placement.CapabilityRegionHA} // its agent is not root
	}
	if strings.HasPrefix(args[0], "worker") {
		e.Capabilities, e.Address = []string{placement.CapabilityWorker}, ""
	}
	for _, host := range args[1:] {
		e.Hosts[host] = placement.Host{Role: placement.RoleHome, Stamp: 1, App: "demo/other"}
	}
	old, err := placement.Read(context.Background(), w.store(), args[0])
	if err != nil {
		old = placement.Published{}
	}
	_, err = placement.Publish(context.Background(), w.store(), old, e)
	return err
}

// terminate BOX WORKER: the worker reads the box's machine as terminated.
func (w *world) terminate(args []string) error {
	snap, dir, err := w.roster()
	if err != nil {
		return err
	}
	box, _ := snap.Box(args[0])
	worker, _ := snap.Box(args[1])
	rec, err := termfence.Verify(box, worker, termfence.Observation{Via: termfence.ViaDescribe, Found: true, InstanceID: box.Cloud.InstanceID,
		Account: box.Cloud.Account, Region: box.Cloud.Region, State: termfence.Terminated, RequestID: "r-1"}, w.now())
	if err != nil {
		return err
	}
	_, err = termfence.Publish(context.Background(), w.store(), termfence.Reader{Store: w.store(), Roster: dir}, rec)
	return err
}

// update makes a transition of the host's claim, as its box or a worker would.
func (w *world) update(host string, t func(*hostclaim.Claim) hostclaim.Transition) error {
	ctx := context.Background()
	o, err := hostclaim.Read(ctx, w.store(), host)
	if err == nil && o.Claim == nil {
		err = fmt.Errorf("%s has no claim", host)
	}
	if err != nil {
		return err
	}
	_, err = hostclaim.Update(ctx, w.store(), o, t(o.Claim))
	return err
}

// take HOST: the selected box completes the create.
func (w *world) take(args []string) error {
	return w.update(args[0], func(c *hostclaim.Claim) hostclaim.Transition {
		selected := c.Op.Intent.Selected
		return hostclaim.CompleteCreate(c.Op.ID, selected.Box, selected.Enrollment)
	})
}

// admit HOST GENERATION: the executor admits a writer.
func (w *world) admit(args []string) error {
	return w.update(args[0], func(c *hostclaim.Claim) hostclaim.Transition {
		h := c.Holder
		return hostclaim.AdmitWriter(hostclaim.Admission{Op: c.Op.ID, Session: h.Session, Generation: h.Generation, Box: c.Op.Exec,
			NewGeneration: args[1], KeepStamp: h.Stamp > h.Session})
	})
}

// answer HOST: the executor's app answers.
func (w *world) answer(args []string) error {
	return w.update(args[0], func(c *hostclaim.Claim) hostclaim.Transition {
		return hostclaim.PublishGeneration(c.Op.Exec, c.Holder.Session)
	})
}

// ack HOST BOX: a box that takes part in the host's relocation acknowledges.
func (w *world) ack(args []string) error {
	snap, _, err := w.roster()
	if err != nil {
		return err
	}
	return w.update(args[0], func(c *hostclaim.Claim) hostclaim.Transition {
		return hostclaim.Acknowledge(c.Op.ID, args[1], snap.Boxes[args[1]].Enrollment)
	})
}

// failover HOST TARGET: a worker starts one.
func (w *world) failover(args []string) error {
	snap, dir, err := w.roster()
	if err != nil {
		return err
	}
	member := func(ref string) hostclaim.Member {
		box, _ := snap.Box(ref)
		return hostclaim.Member{Box: ref, Enrollment: box.Enrollment}
	}
	return w.update(args[0], func(c *hostclaim.Claim) hostclaim.Transition {
		evidence, _, _ := termfence.Reader{Store: w.store(), Roster: dir}.Fenced(context.Background(), member(c.Op.Exec).Enrollment)
		return hostclaim.StartFailover(hostclaim.Relocation{Op: "op-2", By: "worker-1", Now: w.now(), Source: member(c.Op.Exec),
			Target: member(args[1]), DirectoryRevision: snap.Revision, PinDelay: 30 * time.Second}, hostclaim.Gone{Evidence: evidence})
	})
}

// put KEY TEXT: someone writes an object.
func (w *world) put(args []string) error {
	_, err := w.store().Put(context.Background(), args[0], []byte(args[1]), objstore.Always())
	return err
}

// twice BOX OTHER: someone who holds the key makes OTHER the same instance as
// BOX, which this code refuses to write.
func (w *world) twice(args []string) error {
	snap, _, err := w.roster()
	if err != nil {
		return err
	}
	box, other := snap.Boxes[args[0]], snap.Boxes[args[1]]
	other.Cloud = box.Cloud
	snap.Boxes[args[1]] = other
	return w.seal(snap.Roster, filepath.Join(w.dir, "keys", "roster.key"))
}

// sign KEYFILE: the roster, signed by another key.
func (w *world) sign(args []string) error {
	snap, _, err := w.roster()
	if err != nil {
		return err
	}
	return w.seal(snap.Roster, args[0])
}

// seal writes a roster without any of the checks of package roster.
func (w *world) seal(r roster.Roster, keyFile string) error {
	key, err := config.LoadPrivateKey(keyFile)
	if err != nil {
		return err
	}
	r.Revision, r.Gen = r.Revision+1, r.Gen+1
	body, err := record.Encode(r)
	if err != nil {
		return err
	}
	signed := bytes.TrimSuffix(body, []byte("\n"))
	sealed, err := record.Encode(roster.Envelope{V: 1, Roster: signed, Signature: ed25519.Sign(key, signed),
		SignedBy: roster.EncodeKey(key.Public().(ed25519.PublicKey))})
	if err != nil {
		return err
	}
	_, err = w.store().Put(context.Background(), roster.Key, sealed, objstore.Always())
	return err
}
