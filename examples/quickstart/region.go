package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/carlosframework/regionha/internal/simcloud"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/storeurl"
)

const (
	regionCode = "ie"

	// hostName is the host that is moved on purpose and watched closely.
	hostName = "notes.demo.example"

	// startWithin bounds every step of the set-up.
	startWithin = 60 * time.Second
)

// box is one machine: an instance of the cloud and the session of processes
// that stands for what runs on it.
type box struct {
	ref      string
	dir      string // its data directory
	instance simcloud.Instance
	*process
}

// region is everything that runs, in one directory.
type region struct {
	opts options
	teller
	dir           string
	control, data string // store URLs
	store         objstore.Store
	procs         *processes
	cloud         cloud
	boxes         []*box
	hosts         []string // hostName first
	api           consoleServer
	self          string            // this program
	machines      bool              // boxes are machines of their own
	filled        bool              // the database was grown
	earlier       []ack             // notes that were acknowledged before the failover
	sent          map[string]string // and the sums of all that were tried
}

// newRegion makes the directory and nothing else.
func newRegion(o options, out io.Writer) (*region, error) {
	dir, err := os.MkdirTemp("", "regionha-quickstart-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // /proc shows programs by their real path
		return nil, err
	}
	r := &region{opts: o, dir: dir, teller: teller{out: out, began: time.Now()}, hosts: hostNames(o.hosts)}
	if r.self, err = os.Executable(); err != nil {
		return nil, err
	}
	r.machines = machinesPossible(r.self)
	if r.control, r.data, err = storeURLs(o.store, dir); err != nil {
		return nil, err
	}
	for _, sub := range []string{"bin", "log", "worker"} {
		if err := os.Mkdir(r.in(sub), 0o755); err != nil {
			return nil, err
		}
	}
	r.procs = newProcesses(r.in("log"), nil)
	return r, nil
}

// hostNames are the names of n hosts.
func hostNames(n int) []string {
	names := []string{hostName}
	for i := 2; i <= n; i++ {
		names = append(names, fmt.Sprintf("notes-%d.demo.example", i))
	}
	return names
}

// storeURLs are the control and the data store: directories of dir, or a prefix
// of this run's own in the store that was named.
func storeURLs(named, dir string) (control, data string, err error) {
	if named == "" {
		return "dir://" + filepath.Join(dir, "control"), "dir://" + filepath.Join(dir, "data-"+regionCode), nil
	}
	u, err := url.Parse(named)
	if err != nil {
		return "", "", fmt.Errorf("-store: %w", err)
	}
	under := func(name string) string {
		v := *u
		v.Path = path.Join("/", u.Path, filepath.Base(dir), name)
		return v.String()
	}
	return under("control"), under("data-" + regionCode), nil
}

// in is a path in the region's directory.
func (r *region) in(elem ...string) string {
	return filepath.Join(append([]string{r.dir}, elem...)...)
}

// setUp builds and starts everything and creates the hosts.
func (r *region) setUp(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		r.build, r.startCloud, r.initialise, r.startBoxes, r.startConsole, r.createHosts,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// module is the path of the programs to build.
const module = "github.com/carlosframework/regionha"

func (r *region) build(ctx context.Context) error {
	r.say("building agent, worker, console and the app, in %s", r.dir)
	// Without debug information linking takes half the time.
	args := []string{"build", "-ldflags=-s -w", "-o", r.in("bin") + string(filepath.Separator)}
	for _, program := range []string{"cmd/agent", "cmd/worker", "cmd/console", "examples/notes"} {
		args = append(args, module+"/"+program)
	}
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (r *region) startCloud(ctx context.Context) (err error) {
	if r.cloud, err = startCloud(ctx, r.procs, r.dir, r.opts.shutdown); err != nil {
		return err
	}
	r.procs.env = append(r.procs.env, "AWS_ENDPOINT_URL_EC2="+r.cloud.EC2,
		"AWS_ENDPOINT_URL_SQS="+r.cloud.SQS, "AWS_ENDPOINT_URL_AUTO_SCALING="+r.cloud.AutoScaling)
	// An S3 store brings its own; the simulated cloud takes any.
	for _, v := range [][2]string{{"AWS_ACCESS_KEY_ID", "quickstart"}, {"AWS_SECRET_ACCESS_KEY", "quickstart"}, {"AWS_REGION", awsRegion}} {
		if os.Getenv(v[0]) == "" {
			r.procs.env = append(r.procs.env, v[0]+"="+v[1])
		}
	}
	r.say("a cloud answers at %s, with instance metadata on a port of each instance", r.cloud.EC2)
	return nil
}

// initialise makes the deployment's keys and its roster.
func (r *region) initialise(ctx context.Context) (err error) {
	if r.store, err = storeurl.Open(ctx, r.control); err != nil {
		return err
	}
	r.say("console init: the control store is %s", r.control)
	return r.procs.command(ctx, "console", r.in("bin", "console"), "init",
		"--control", r.control, "--data", r.data, "--region", regionCode,
		"--account", simcloud.DefaultAccount, "--aws-region", awsRegion, "--out", r.in("keys"))
}

// console runs one command of the console.
func (r *region) console(ctx context.Context, args ...string) error {
	argv := []string{r.in("bin", "console"), "--config", r.in("keys", "console.yaml")}
	return r.procs.command(ctx, "console", append(argv, args...)...)
}

// consoleSaid is the last line that the last command of the console printed.
func (r *region) consoleSaid() string {
	return strings.TrimSpace(tail(filepath.Join(r.procs.logs, "console.log"), 1))
}

// startBoxes launches the instances, starts what runs on each, and enrolls each
// by the identity that it publishes.
func (r *region) startBoxes(ctx context.Context) error {
	for n := range r.opts.boxes {
		ref := fmt.Sprintf("box-%d", n+1)
		b, err := r.startBox(ctx, ref, "agent", "--data-dir", r.in(ref), "--ingress", "127.0.0.1:0")
		if err != nil {
			return err
		}
		r.boxes = append(r.boxes, b)
	}
	worker, err := r.startBox(ctx, "worker", "worker", "--sweep", "1s", "--pin-delay", r.opts.pinDelay.String(),
		"--termination-queue", r.cloud.Queue)
	if err != nil {
		return err
	}
	for _, b := range append([]*box{worker}, r.boxes...) {
		if err := r.enroll(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func (r *region) startBox(ctx context.Context, ref, program string, args ...string) (*box, error) {
	i, err := r.cloud.Launch(ctx, awsRegion, "")
	if err != nil {
		return nil, err
	}
	b := &box{ref: ref, dir: r.in(ref), instance: i}
	argv := append([]string{r.in("bin", program), "--config", r.in("keys", program+".yaml"), "--box", ref,
		"--internal", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--identity-certs", r.cloud.Certs}, args...)
	env := []string{"AWS_EC2_METADATA_SERVICE_ENDPOINT=" + i.IMDS}
	if r.machines {
		b.process, err = r.procs.startMachine(ref, env, r.self, argv...)
	} else {
		b.process, err = r.procs.start(ref, env, nil, argv...)
	}
	if err != nil {
		return nil, err
	}
	r.say("%s runs on instance %s: pid %d, log %s", ref, i.ID, b.pid, b.log)
	return b, nil
}

func (r *region) enroll(ctx context.Context, b *box) error {
	err := r.console(ctx, "box", "enroll", b.ref, "--region", regionCode, "--instance-id", b.instance.ID,
		"--identity-certs", r.cloud.Certs, "--wait", "--timeout", startWithin.String())
	if err != nil {
		return err
	}
	r.say("%s is enrolled by the identity that the cloud signed for it", b.ref)
	return b.ended()
}

// close ends every process, and removes the directory where all went well.
func (r *region) close(remove bool) {
	r.procs.close()
	if !remove {
		r.say("everything is kept in %s", r.dir)
		return
	}
	os.RemoveAll(r.dir)
}

// sayAddresses says where everything is that is left running.
func (r *region) sayAddresses() {
	r.say("left running until interrupted; everything is in %s", r.dir)
	for _, b := range r.boxes {
		if b.ended() != nil {
			continue
		}
		r.say("  %s: curl -H 'Host: %s' http://%s/notes", b.ref, hostName, b.address("ingress"))
	}
	r.say("  API: curl %s/api/v1/hosts/%s", r.api.url, hostName)
	r.say("  %s --config %s host show %s", r.in("bin", "console"), r.in("keys", "console.yaml"), hostName)
}
