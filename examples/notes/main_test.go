package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The test binary is also the app.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_APP") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const patience = time.Minute

// An app is the command of one app, and where its processes keep their data.
type app struct {
	command []string
	dir     string
	key     byte
	listen  string
}

// A process is an app that runs.
type process struct {
	cmd    *exec.Cmd
	client *http.Client
}

func (a app) env(listen string) []string {
	key := base64.URLEncoding.EncodeToString(bytes.Repeat([]byte{a.key}, 32))
	return []string{"TEST_APP=1", "PATH=" + os.Getenv("PATH"), "CARLOS_INSTANCE_KEY=" + key,
		"DATABASE_PATH=" + a.dir + "/app.db", "FILES_DIR=" + a.dir + "/files", listen}
}

// start runs the app until it answers, and ends it with the test.
func (a app) start(t *testing.T) *process {
	network, addr, env := "unix", a.listen, "LISTEN_SOCKET="+a.listen
	if a.listen == "" {
		port := freePort(t)
		network, addr, env = "tcp", net.JoinHostPort("127.0.0.1", port), "PORT="+port
	}
	p := &process{cmd: exec.Command(a.command[0], a.command[1:]...)}
	p.cmd.Env, p.cmd.Stderr = a.env(env), t.Output()
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	p.client = &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial(network, addr) }}}
	require.Eventually(t, func() bool {
		resp, err := p.client.Get("http://app/healthz")
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	}, patience, 5*time.Millisecond)
	return p
}

// stop asks the process to end and expects that it does, well.
func (p *process) stop(t *testing.T) {
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.cmd.Wait())
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func (p *process) post(t *testing.T, path, body string) (status int) {
	resp, err := p.client.Post("http://app"+path, "", bytes.NewBufferString(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	return resp.StatusCode
}

func get[T any](t *testing.T, p *process, path string) (list []T) {
	resp, err := p.client.Get("http://app" + path)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&list))
	return list
}

// apps are the languages of the one contract.
func apps(t *testing.T) map[string][]string {
	self, err := os.Executable()
	require.NoError(t, err)
	all := map[string][]string{"go": {self}}
	if python, err := exec.LookPath("python3"); err == nil {
		script, err := filepath.Abs("../notes-py/notes.py")
		require.NoError(t, err)
		all["python"] = []string{python, script}
	}
	return all
}

// TestContract holds every app to what main.go's documentation says.
func TestContract(t *testing.T) {
	for language, command := range apps(t) {
		for name, rule := range contract {
			t.Run(language+"/"+name, func(t *testing.T) {
				t.Parallel()
				a := app{command: command, dir: t.TempDir(), key: 7}
				require.NoError(t, os.Mkdir(a.dir+"/files", 0o700))
				rule(t, a)
			})
		}
	}
}

var contract = map[string]func(*testing.T, app){
	"a note is committed once for each id": func(t *testing.T, a app) {
		p := a.start(t)
		require.Equal(t, http.StatusCreated, p.post(t, "/notes", `{"id":"n1","body":"first ü"}`))
		require.Equal(t, http.StatusCreated, p.post(t, "/notes", `{"id":"n2","body":""}`))
		require.Equal(t, http.StatusOK, p.post(t, "/notes", `{"id":"n1","body":"again"}`))
		list := get[note](t, p, "/notes")
		require.NotEmpty(t, list[0].Run)
		require.Equal(t, []note{{RowID: 1, ID: "n1", Run: list[0].Run, Body: "first ü"}, {RowID: 2, ID: "n2", Run: list[0].Run}}, list)
	},
	"an acknowledged note outlives the process, and the next one has its own run id": func(t *testing.T, a app) {
		p := a.start(t)
		require.Equal(t, http.StatusCreated, p.post(t, "/notes", `{"id":"n1","body":"kept"}`))
		require.NoError(t, p.cmd.Process.Kill())
		p = a.start(t)
		require.Equal(t, http.StatusCreated, p.post(t, "/notes", `{"id":"n2","body":"new"}`))
		list := get[note](t, p, "/notes")
		require.Equal(t, []string{"kept", "new"}, []string{list[0].Body, list[1].Body})
		require.NotEqual(t, list[0].Run, list[1].Run)
	},
	"bodies are sealed, and another key does not open them": func(t *testing.T, a app) {
		p := a.start(t)
		require.Equal(t, http.StatusCreated, p.post(t, "/notes", `{"id":"n1","body":"a secret that nobody reads"}`))
		for _, file := range []string{"/app.db", "/app.db-wal"} {
			b, err := os.ReadFile(a.dir + file)
			require.NoError(t, err)
			require.NotContains(t, string(b), "a secret")
		}
		p.stop(t)
		a.key++
		list := get[note](t, a.start(t), "/notes")
		require.Empty(t, list[0].Body)
		require.NotEmpty(t, list[0].Error)
	},
	"an upload is a file with its digest": func(t *testing.T, a app) {
		p := a.start(t)
		require.Empty(t, get[file](t, p, "/files"))
		require.Equal(t, http.StatusCreated, p.post(t, "/files/b.txt", "abc"))
		require.Equal(t, http.StatusCreated, p.post(t, "/files/a.txt", ""))
		require.Equal(t, http.StatusCreated, p.post(t, "/files/a.txt", "abc"))
		const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
		require.Equal(t, []file{{"a.txt", 3, abc}, {"b.txt", 3, abc}}, get[file](t, p, "/files"))
		left, err := os.ReadDir(a.dir + "/files")
		require.NoError(t, err)
		require.Len(t, left, 2, "nothing unfinished is left")
	},
	"what is not valid is refused and changes nothing": func(t *testing.T, a app) {
		p := a.start(t)
		for path, body := range map[string]string{
			"/notes": "{", "/notes?2": `{"id":"","body":"x"}`, "/notes?3": `{"body":"x"}`, "/notes?4": `[]`, "/notes?5": `{"id":1}`,
			"/files/.hidden": "x", "/files/..%2Fapp.db": "x", "/fill?bytes=many": "", "/fill": "",
		} {
			require.Equal(t, http.StatusBadRequest, p.post(t, path, body), path)
		}
		require.Empty(t, get[note](t, p, "/notes"))
		require.Empty(t, get[file](t, p, "/files"))
		require.FileExists(t, a.dir+"/app.db")
	},
	"the database can be filled": func(t *testing.T, a app) {
		p := a.start(t)
		require.Equal(t, http.StatusOK, p.post(t, "/fill?bytes=600000", ""))
		wal, err := os.Stat(a.dir + "/app.db-wal")
		require.NoError(t, err)
		require.InDelta(t, 600_000, wal.Size(), 100_000, "and nobody checkpointed")
	},
	"it listens on a socket": func(t *testing.T, a app) {
		dir, err := os.MkdirTemp("", "notes-")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		a.listen = dir + "/s"
		require.Equal(t, http.StatusCreated, a.start(t).post(t, "/notes", `{"id":"n1","body":"x"}`))
	},
	"TERM lets a running request finish": func(t *testing.T, a app) {
		p := a.start(t)
		conn, err := p.client.Transport.(*http.Transport).DialContext(t.Context(), "", "")
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		body := `{"id":"n1","body":"slow"}`
		_, err = fmt.Fprintf(conn, "POST /notes HTTP/1.1\r\nHost: app\r\nContent-Length: %d\r\n\r\n{", len(body))
		require.NoError(t, err)
		require.Empty(t, get[note](t, p, "/notes")) // connections are accepted in order: the first one runs
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
		_, err = io.WriteString(conn, body[1:])
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, http.StatusCreated, resp.StatusCode)
		require.NoError(t, p.cmd.Wait())
	},
}

func TestAMissingSettingIsNamed(t *testing.T) {
	a := app{dir: t.TempDir(), key: 7}
	for _, name := range []string{"PORT", "DATABASE_PATH", "FILES_DIR", "CARLOS_INSTANCE_KEY"} {
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.Command(self)
		for _, e := range a.env("PORT=0") {
			if len(e) < len(name) || e[:len(name)] != name {
				cmd.Env = append(cmd.Env, e)
			}
		}
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), name)
	}
}
