package console_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/console"
)

type call struct {
	method, path, body string
	header             map[string]string
	host               string
}

func (c call) do(h http.Handler) *httptest.ResponseRecorder {
	req := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
	req.Host = "127.0.0.1:1"
	if c.host != "" {
		req.Host = c.host
	}
	if c.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range c.header {
		req.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

func TestTheAPIDoesWhatTheCommandsDo(t *testing.T) {
	d := deploy(t)
	h := (&console.API{Console: d.Console}).Handler()
	w := call{method: "GET", path: "/api/v1/hosts"}.do(h)
	require.Equal(t, 200, w.Code)
	require.JSONEq(t, `[]`, w.Body.String())

	w = call{method: "POST", path: "/api/v1/hosts", body: `{"host":"notes.example","account":"demo","app":"notes","region":"ie","command":["/bin/notes"],"start_timeout":"1m"}`}.do(h)
	require.Equal(t, 202, w.Code, w.Body)
	require.Contains(t, w.Body.String(), `"box": "box-1"`)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	d.start(t)
	w = call{method: "GET", path: "/api/v1/hosts/notes.example"}.do(h)
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), `"doing": "serving on box-1"`)
	require.Contains(t, w.Body.String(), `"start_timeout": "1m"`)

	w = call{method: "GET", path: "/api/v1/boxes"}.do(h)
	require.Contains(t, w.Body.String(), `"instance": "i-0001"`)
	d.identify(t, "box-2", "i-0002")
	w = call{method: "GET", path: "/api/v1/boxes/box-2"}.do(h)
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), `"state": "waiting"`)
	w = call{method: "GET", path: "/api/v1/regions"}.do(h)
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), `"aws_region": "eu-west-1"`)
	w = call{method: "POST", path: "/api/v1/boxes/box-2/enroll", body: `{"region":"ie","instance_id":"i-0002"}`}.do(h)
	require.Equal(t, 200, w.Code, w.Body)
	w = call{method: "GET", path: "/healthz"}.do(h)
	require.Equal(t, 200, w.Code)
}

func TestTheAPIRefusesWithWhatWhyAndWhatNext(t *testing.T) {
	const host = `{"host":"notes.example","account":"demo","app":"notes","region":"ie","command":["/bin/notes"]}`
	for _, row := range []struct {
		name string
		call call
		code int
		want []string
	}{
		{"no such host", call{method: "GET", path: "/api/v1/hosts/none.example"}, 404, []string{`"why": "there is none`, `"next": "see the hosts`}},
		{"no such box", call{method: "GET", path: "/api/v1/boxes/box-9"}, 404, []string{"it is not in the roster"}},
		{"bad host", call{method: "GET", path: "/api/v1/hosts/No"}, 400, []string{"bad host name"}},
		{"bad field", call{method: "POST", path: "/api/v1/hosts", body: strings.Replace(host, "/bin/notes", "notes", 1)}, 400, []string{"command[0]"}},
		{"unknown member", call{method: "POST", path: "/api/v1/hosts", body: strings.Replace(host, `{`, `{"surprise":1,`, 1)}, 400, []string{"surprise"}},
		{"no JSON", call{method: "POST", path: "/api/v1/hosts", body: host + "x"}, 400, []string{"nothing was done"}},
		{"another type", call{method: "POST", path: "/api/v1/hosts", body: host, header: map[string]string{"Content-Type": "text/plain"}}, 415, []string{"application/json"}},
		{"too large", call{method: "POST", path: "/api/v1/hosts", body: strings.Repeat(" ", 256<<10) + host}, 413, []string{"too large"}},
		{"region", call{method: "POST", path: "/api/v1/hosts", body: strings.Replace(host, `"ie"`, `"fr"`, 1)}, 409, []string{"not in the roster"}},
		{"box that published nothing", call{method: "POST", path: "/api/v1/boxes/box-9/enroll", body: `{"region":"ie","instance_id":"i-9"}`}, 404, []string{"not published"}},
		{"box with a dot", call{method: "POST", path: "/api/v1/boxes/box.9/enroll", body: `{"region":"ie","instance_id":"i-9"}`}, 400, []string{"bad box reference"}},
		{"another site's page", call{method: "GET", path: "/api/v1/hosts", host: "evil.example"}, 403, []string{"is not this machine"}},
		{"unknown path", call{method: "GET", path: "/api/v1/nothing"}, 404, nil},
		{"unknown method", call{method: "DELETE", path: "/api/v1/hosts/notes.example"}, 405, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := deploy(t)
			before := len(d.mem.Log())
			w := row.call.do((&console.API{Console: d.Console}).Handler())
			require.Equal(t, row.code, w.Code, w.Body)
			for _, want := range row.want {
				require.Contains(t, w.Body.String(), want)
			}
			require.Len(t, d.mem.Log(), before, "nothing was written")
		})
	}
}

func TestWithATokenNothingIsAnsweredWithoutIt(t *testing.T) {
	d := deploy(t)
	h := (&console.API{Console: d.Console, Token: "0123456789abcdef"}).Handler()
	for header, code := range map[string]int{
		"Bearer 0123456789abcdef": 200, "Bearer 0123456789abcde": 401, "Bearer 0123456789abcdeff": 401,
		"Bearer ": 401, "": 401, "0123456789abcdef": 401, "Basic 0123456789abcdef": 401,
	} {
		w := call{method: "GET", path: "/api/v1/hosts", host: "console.example", header: map[string]string{"Authorization": header}}.do(h)
		require.Equal(t, code, w.Code, header)
	}
	w := call{method: "GET", path: "/healthz", host: "console.example"}.do(h)
	require.Equal(t, 200, w.Code, "a load balancer has no token")
}

func TestAFailedStoreIsNoRefusal(t *testing.T) {
	d := deploy(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := httptest.NewRequestWithContext(ctx, "GET", "/api/v1/hosts", nil)
	req.Host = "localhost:1"
	w := httptest.NewRecorder()
	(&console.API{Console: d.Console}).Handler().ServeHTTP(w, req)
	require.Equal(t, 502, w.Code)
}

// TestServe runs the command itself until it is interrupted.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	control, keys := "dir://"+filepath.Join(dir, "control"), filepath.Join(dir, "keys")
	var out bytes.Buffer
	app := console.App{Stdout: &out, Stderr: &out}
	require.NoError(t, app.Run(t.Context(), []string{"init", "--control", control, "--data", control, "--region", "ie",
		"--account", "123456789012", "--aws-region", "eu-west-1", "--out", keys}))
	token := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600))

	ctx, cancel := context.WithCancel(t.Context())
	logged := &lines{found: make(chan string, 1)}
	done := make(chan error, 1)
	serving := console.App{Stdout: io.Discard, Stderr: logged}
	go func() {
		done <- serving.Run(ctx, []string{"serve", "--config", filepath.Join(keys, "console.yaml"), "--listen", "127.0.0.1:0", "--token-file", token})
	}()
	addr := <-logged.found
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+"/api/v1/boxes", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer 0123456789abcdef")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, 200, res.StatusCode)

	err = app.Run(t.Context(), []string{"serve", "--config", filepath.Join(keys, "console.yaml"), "--listen", addr})
	require.ErrorContains(t, err, "--listen: listen tcp "+addr, "a port in use")
	cancel()
	require.NoError(t, <-done)
}

// lines finds the address in the log.
type lines struct {
	mu    sync.Mutex
	text  string
	found chan string
}

var bound = regexp.MustCompile(`API listener bound" addr=(\S+)`)

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += string(p)
	if m := bound.FindStringSubmatch(l.text); m != nil {
		select {
		case l.found <- m[1]:
		default:
		}
	}
	return len(p), nil
}
