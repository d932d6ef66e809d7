package agent

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/carlosframework/regionha/boxid"
	"github.com/carlosframework/regionha/hostclaim"
	"github.com/carlosframework/regionha/hostguard"
	"github.com/carlosframework/regionha/internal/boxauth"
	"github.com/carlosframework/regionha/internal/config"
	"github.com/carlosframework/regionha/internal/hostrecord"
	"github.com/carlosframework/regionha/internal/regionfile"
	"github.com/carlosframework/regionha/internal/simcloud"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/storeurl"
	"github.com/carlosframework/regionha/placement"
	"github.com/carlosframework/regionha/roster"
	"github.com/carlosframework/regionha/stopevidence/stoptest"
)

const testHost = "notes.example"

// TestMain is the agent, or the app that it runs, where the environment says so.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("AGENT_TEST_APP") != "":
		if err := testApp(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case os.Getenv("AGENT_TEST_STRANGER") != "":
		if err := stranger(os.Getenv("AGENT_TEST_STRANGER")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case os.Getenv("AGENT_TEST_AGENT") != "":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		var set Settings
		_, err := config.Parse(&set, config.App{Name: "agent", Stdout: os.Stdout, Stderr: os.Stderr}, os.Args[1:])
		if err == nil {
			err = Run(ctx, set)
		}
		os.Exit(config.Exit("agent", err, os.Stderr))
	default:
		stoptest.Main(m)
	}
}

// testApp stores one row for each POST and lists them for a GET.
func testApp() error {
	db, err := sql.Open("sqlite", "file:"+os.Getenv("DATABASE_PATH")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		return err
	}
	if _, err := db.Exec("create table if not exists rows (v text)"); err != nil {
		return err
	}
	http.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if _, err := db.Exec("insert into rows values (?)", string(body)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if err := os.WriteFile(filepath.Join(os.Getenv("FILES_DIR"), string(body)), body, 0o644); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	http.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		var all sql.NullString
		if err := db.QueryRow("select group_concat(v, ' ') from (select v from rows order by rowid)").Scan(&all); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, all.String)
	})
	return http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil)
}

// deployment is what the boxes of a test share: its stores, its roster and its
// cloud.
type deployment struct {
	t       *testing.T
	url     string // of the control store
	control storeurl.Store
	data    storeurl.Store
	secret  boxauth.Secret
	roster  *roster.Directory
	rigs    []*rig
}

// rig is one box of a deployment: its data directory and its agent.
type rig struct {
	t       *testing.T
	control storeurl.Store
	data    string // the agent's data directory
	args    []string
	env     []string
	agent   *exec.Cmd
	log     *bytes.Buffer
}

func newRig(t *testing.T) *rig { return newDeployment(t, 1, "off").rigs[0] }

// newDeployment makes the boxes box-1 up to box-<boxes>, and box-9 for a worker
// that the test is itself.
func newDeployment(t *testing.T, boxes int, cgroup string) *deployment {
	dir := t.TempDir()
	d := &deployment{t: t, url: "dir://" + filepath.Join(dir, "control"), secret: boxauth.NewSecret()}
	cloud, err := simcloud.New(simcloud.Config{CertDir: filepath.Join(dir, "certs")})
	require.NoError(t, err)
	t.Cleanup(cloud.Close)
	d.control, err = storeurl.Open(t.Context(), d.url)
	require.NoError(t, err)
	data := "dir://" + filepath.Join(dir, "data")
	d.data, err = storeurl.Open(t.Context(), data)
	require.NoError(t, err)
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte(d.secret.Text()), 0o600))
	public, private := roster.GenerateKey()
	list := roster.Roster{DeploymentBucket: d.url, Boxes: map[string]roster.Box{},
		Regions: map[string]roster.Region{"ie": {Account: simcloud.DefaultAccount, AWSRegion: "eu-west-1", Data: data}}}
	for _, n := range append(number(boxes), 9) {
		machine, err := cloud.Launch("eu-west-1", simcloud.DefaultAccount)
		require.NoError(t, err)
		ref := fmt.Sprint("box-", n)
		list.Boxes[ref] = roster.Box{Enrollment: fmt.Sprint("enr-", n), EnrolledAt: time.Now().UTC(), Region: "ie", Pool: "default", State: roster.Active,
			Cloud: boxid.Cloud{Provider: boxid.AWS, Account: simcloud.DefaultAccount, Region: "eu-west-1", InstanceID: machine.ID}}
		if n < 9 {
			args := []string{"--control", d.url, "--roster-key", roster.EncodeKey(public), "--secret-file", secret, "--box", ref, "--region", "ie",
				"--data-dir", filepath.Join(dir, ref), "--ingress", "127.0.0.1:0", "--internal", "127.0.0.1:0", "--cgroup", cgroup}
			d.rigs = append(d.rigs, d.rig(filepath.Join(dir, ref), machine.IMDS, args))
		}
	}
	_, err = roster.Create(t.Context(), d.control, private, list)
	require.NoError(t, err)
	d.roster = roster.Open(d.control, public, d.url)
	_, err = placement.Publish(t.Context(), d.control, placement.Published{}, placement.Edges{
		Box: "box-9", Region: "ie", Protocol: roster.Protocol, Capabilities: []string{placement.CapabilityWorker}})
	require.NoError(t, err)
	return d
}

func number(n int) (list []int) {
	for i := range n {
		list = append(list, i+1)
	}
	return list
}

func (d *deployment) rig(data, imds string, args []string) *rig {
	r := &rig{t: d.t, control: d.control, data: data, args: args, log: &bytes.Buffer{}}
	r.env = append(os.Environ(), "AGENT_TEST_AGENT=1", "AWS_EC2_METADATA_SERVICE_ENDPOINT="+imds, "AWS_REGION=eu-west-1")
	d.t.Cleanup(func() {
		if r.agent != nil {
			r.stop(syscall.SIGKILL)
		}
		if d.t.Failed() {
			d.t.Log(r.log.String())
		}
	})
	return r
}

// create makes the host, selected for this box.
func (r *rig) create() {
	self, err := os.Executable()
	require.NoError(r.t, err)
	r.createAs(self)
}

// createAs is create with the program at command for the app.
func (r *rig) createAs(command string) {
	rec := hostrecord.Record{V: 1, Gen: 1, Write: "w", Host: testHost, Account: "demo", App: "notes", Region: "ie", Pool: "default",
		Command: []string{command}, Env: map[string]string{"AGENT_TEST_APP": "1"}, Incarnation: "inc", CreatedAt: time.Now().UTC()}.WithDefaults()
	stored, err := hostrecord.Create(r.t.Context(), r.control, rec)
	require.NoError(r.t, err)
	_, err = hostclaim.Update(r.t.Context(), r.control, hostclaim.Observed{Host: testHost}, hostclaim.BeginCreate(hostclaim.NewHost{
		Incarnation: "inc", Account: "demo", App: "notes", RecordKey: hostrecord.Key("demo", "notes", testHost), RecordSHA256: stored.SHA256, Region: "ie"},
		"op-1", "console", time.Now(), hostclaim.Member{Box: "box-1", Enrollment: "enr-1"}))
	require.NoError(r.t, err)
	require.NoError(r.t, regionfile.Bump(r.t.Context(), r.control, "ie", testHost))
}

func (r *rig) start() {
	self, err := os.Executable()
	require.NoError(r.t, err)
	r.agent = exec.Command(self, r.args...)
	r.agent.Env, r.agent.Stdout, r.agent.Stderr = r.env, r.log, r.log
	require.NoError(r.t, r.agent.Start())
}

func (r *rig) stop(sig syscall.Signal) {
	require.NoError(r.t, r.agent.Process.Signal(sig))
	err := r.agent.Wait()
	if sig == syscall.SIGTERM {
		require.NoError(r.t, err)
	}
	r.agent = nil
}

// claim waits for the host's claim to pass.
func (r *rig) claim(pass func(*hostclaim.Claim) bool) *hostclaim.Claim {
	var c *hostclaim.Claim
	r.eventually(func() bool {
		o, err := hostclaim.Read(r.t.Context(), r.control, testHost)
		if err == nil {
			c = o.Claim
		}
		return c != nil && c.Holder != nil && pass(c)
	})
	return c
}

func (r *rig) eventually(ok func() bool) {
	r.t.Helper()
	require.Eventually(r.t, ok, 60*time.Second, 50*time.Millisecond)
}

// ask sends one request to the host through the box's ingress.
func (r *rig) ask(method, body string) (string, error) {
	addr, err := os.ReadFile(filepath.Join(r.data, "ingress.addr"))
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+strings.TrimSpace(string(addr))+"/", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Host = testHost
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(got), err
}

func (r *rig) put(rows ...string) {
	for _, row := range rows {
		r.eventually(func() bool { _, err := r.ask(http.MethodPost, row); return err == nil })
	}
}

func (r *rig) rows() (got string) {
	r.eventually(func() bool {
		var err error
		got, err = r.ask(http.MethodGet, "")
		return err == nil
	})
	return got
}

func served(session uint64) func(*hostclaim.Claim) bool {
	return func(c *hostclaim.Claim) bool {
		n := len(c.Holder.Admissions)
		return c.Holder.Session > session && n > 0 && c.Holder.Admissions[n-1].Published
	}
}

func TestAnAgentThatIsToldToEndDeclaresNothing(t *testing.T) {
	r := newRig(t)
	r.create()
	r.start()
	first := r.claim(served(0))
	r.put("a", "b")
	r.stop(syscall.SIGTERM)
	ended := r.claim(func(*hostclaim.Claim) bool { return true })
	require.Equal(t, first.Holder.Session, ended.Holder.Ended.Session)

	r.start()
	c := r.claim(served(first.Holder.Session))
	require.Equal(t, "a b", r.rows())
	last := c.Holder.Admissions[len(c.Holder.Admissions)-1]
	require.Equal(t, hostclaim.CleanReturn, last.Coverage)
	require.Nil(t, last.WritesLost)
	require.FileExists(t, filepath.Join(r.data, "hosts", testHost, "files", "b"))
}

// TestAnAgentThatStartsEndsWhatAnEarlierOneLeft of an operation that is over.
func TestAnAgentThatStartsEndsWhatAnEarlierOneLeft(t *testing.T) {
	r := newRig(t)
	_, err := hostclaim.Update(t.Context(), r.control, hostclaim.Observed{Host: testHost}, hostclaim.BeginCreate(hostclaim.NewHost{
		Incarnation: "inc", Account: "demo", App: "notes", RecordKey: hostrecord.Key("demo", "notes", testHost), RecordSHA256: strings.Repeat("0", 64), Region: "ie"},
		"op-1", "console", time.Now(), hostclaim.Member{Box: "box-9", Enrollment: "enr-9"}))
	require.NoError(t, err)
	guard, err := hostguard.Open(r.data, testHost, hostguard.Identity{Box: "box-1", Enrollment: "enr-1", BootID: "boot"})
	require.NoError(t, err)
	_, err = guard.Acknowledge(t.Context(), "op-0", time.Now())
	require.NoError(t, err)
	r.start()
	r.eventually(func() bool {
		hosts, _, err := hostguard.Participants(r.data)
		return err == nil && len(hosts) == 0
	})
	r.stop(syscall.SIGTERM)
}

// TestAKilledAgentsTailIsFlushedBeforeItsNextSession: every row that the app
// had committed is there, though the agent died with it, and nothing is declared.
func TestAKilledAgentsTailIsFlushedBeforeItsNextSession(t *testing.T) {
	r := newRig(t)
	r.create()
	r.start()
	session := r.claim(served(0)).Holder.Session
	want := ""
	for round := range 3 {
		row := fmt.Sprint("row", round)
		r.put(row)
		want = strings.TrimSpace(want + " " + row)
		r.stop(syscall.SIGKILL)
		r.start()
		c := r.claim(served(session))
		session = c.Holder.Session
		require.Equal(t, want, r.rows())
		require.Nil(t, c.Holder.Admissions[len(c.Holder.Admissions)-1].WritesLost)
		require.FileExists(t, filepath.Join(r.data, "hosts", testHost, "files", row))
	}
}

func TestAnAppThatTheClaimDoesNotNameIsStopped(t *testing.T) {
	r := newRig(t)
	r.create()
	r.start()
	c := r.claim(served(0))
	r.put("a")
	// Somebody writes a claim that ends the session: whatever the reason, this
	// box may not run it any more.
	o, err := hostclaim.Read(t.Context(), r.control, testHost)
	require.NoError(t, err)
	own := c.Holder.Admissions[0]
	_, err = hostclaim.Update(t.Context(), r.control, o, hostclaim.EndSession("box-1", own.Session, hostclaim.Position{
		Generation: own.Generation, TXID: 1, FilesGeneration: own.Generation, FilesSeq: 1}))
	require.NoError(t, err)
	require.NoError(t, regionfile.Bump(t.Context(), r.control, "ie", testHost))
	next := r.claim(served(own.Session))
	require.NotEqual(t, own.Generation, next.Holder.Generation)
	require.Equal(t, "a", r.rows(), "and the next session begins from what reached the store")
}

func TestADamagedStoreObjectStopsNothingThatRuns(t *testing.T) {
	r := newRig(t)
	r.create()
	r.start()
	r.claim(served(0))
	r.put("a")
	key := hostclaim.Key(testHost)
	was, err := r.control.Get(t.Context(), key)
	require.NoError(t, err)
	broken, err := r.control.Put(t.Context(), key, []byte("garbage"), objstore.IfMatch(was.ETag))
	require.NoError(t, err)
	require.NoError(t, regionfile.Bump(t.Context(), r.control, "ie", testHost))
	time.Sleep(2 * pollEvery)
	r.put("b")
	_, err = r.control.Put(t.Context(), key, was.Body, objstore.IfMatch(broken.ETag))
	require.NoError(t, err)
	require.Equal(t, "a b", r.rows())
}

func TestAPortInUseIsSaidAndNothingIsDone(t *testing.T) {
	r := newRig(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, append(r.args, "--ingress", l.Addr().String())...)
	cmd.Env = r.env
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "ingress: listen tcp "+l.Addr().String()+": bind: address already in use")
}
