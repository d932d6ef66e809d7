package boxauth_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/boxauth"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func secret(t *testing.T, fill byte) boxauth.Secret {
	t.Helper()
	s, err := boxauth.ParseSecret(bytes.Repeat([]byte{fill}, 32))
	require.NoError(t, err)
	return s
}

func request(method, url, body string) *http.Request {
	req := httptest.NewRequest(method, url, strings.NewReader(body))
	req.RequestURI = ""
	return req
}

func TestASignedRequestIsAcceptedOnce(t *testing.T) {
	v := &boxauth.Verifier{Secret: secret(t, 1), Now: func() time.Time { return now }}
	req := request("POST", "http://10.0.0.1:99/v1/hint?x=1", "body")
	v.Secret.Sign(req, []byte("body"), now)
	require.NoError(t, v.Verify(req, []byte("body")))
	require.ErrorContains(t, v.Verify(req, []byte("body")), "replay")
	v.Secret.Sign(req, []byte("body"), now)
	require.NoError(t, v.Verify(req, []byte("body")), "another signature of the same request")
}

func TestEverythingThatIsSignedCounts(t *testing.T) {
	sign := secret(t, 1)
	for name, change := range map[string]func(*http.Request){
		"method":       func(r *http.Request) { r.Method = "PUT" },
		"path":         func(r *http.Request) { r.URL.Path = "/v1/hint2" },
		"encoded path": func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/v1/hint", "/v1%2Fhint" },
		"query":        func(r *http.Request) { r.URL.RawQuery = "x=2" },
		"host":         func(r *http.Request) { r.Host = "10.0.0.2:99" },
		"no header":    func(r *http.Request) { r.Header.Del("Authorization") },
		"another scheme": func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+strings.TrimPrefix(r.Header.Get("Authorization"), "Regionha-Hmac-Sha256 "))
		},
		"time": func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), fmt.Sprint(now.UnixNano()), fmt.Sprint(now.UnixNano()+1), 1))
		},
		"nonce": func(r *http.Request) {
			part := strings.Split(r.Header.Get("Authorization"), ".")
			part[1] = "AAAA"
			r.Header.Set("Authorization", strings.Join(part, "."))
		},
		"one more part":   func(r *http.Request) { r.Header.Set("Authorization", r.Header.Get("Authorization")+".") },
		"shorter mac":     func(r *http.Request) { h := r.Header.Get("Authorization"); r.Header.Set("Authorization", h[:len(h)-2]) },
		"other secret":    func(r *http.Request) { secret(t, 2).Sign(r, []byte("body"), now) },
		"the zero secret": func(r *http.Request) { boxauth.Secret{}.Sign(r, []byte("body"), now) },
		"other body":      func(r *http.Request) { sign.Sign(r, []byte("bod"), now) },
	} {
		t.Run(name, func(t *testing.T) {
			v := &boxauth.Verifier{Secret: sign, Now: func() time.Time { return now }}
			req := request("POST", "http://10.0.0.1:99/v1/hint?x=1", "body")
			sign.Sign(req, []byte("body"), now)
			change(req)
			require.ErrorIs(t, v.Verify(req, []byte("body")), boxauth.ErrUnauthorized)
		})
	}
}

func TestAVerifierWithoutASecretAcceptsNothing(t *testing.T) {
	req := request("GET", "http://a/", "")
	boxauth.Secret{}.Sign(req, nil, time.Now())
	require.ErrorIs(t, (&boxauth.Verifier{}).Verify(req, nil), boxauth.ErrUnauthorized)
}

func TestTheWindowIsThirtySecondsBothWays(t *testing.T) {
	for off, good := range map[time.Duration]bool{
		30 * time.Second: true, 30*time.Second + 1: false, -30 * time.Second: true, -30*time.Second - 1: false,
	} {
		v := &boxauth.Verifier{Secret: secret(t, 1), Now: func() time.Time { return now }}
		req := request("GET", "http://a/", "")
		v.Secret.Sign(req, nil, now.Add(off))
		if good {
			require.NoError(t, v.Verify(req, nil))
		} else {
			require.ErrorContains(t, v.Verify(req, nil), "is a clock wrong?")
		}
	}
}

func TestANonceIsRememberedAsLongAsItsRequestIsInTheWindow(t *testing.T) {
	clock := now
	v := &boxauth.Verifier{Secret: secret(t, 1), Now: func() time.Time { return clock }}
	req := request("GET", "http://a/", "")
	v.Secret.Sign(req, nil, now.Add(boxauth.Window)) // from a box whose clock is ahead
	require.NoError(t, v.Verify(req, nil))
	for range 2 * int(boxauth.Window/time.Second) {
		clock = clock.Add(time.Second)
		require.ErrorIs(t, v.Verify(req, nil), boxauth.ErrUnauthorized)
	}
}

func TestAFullMemoryRefusesAndEmptiesWithTime(t *testing.T) {
	clock := now
	v := &boxauth.Verifier{Secret: secret(t, 1), Now: func() time.Time { return clock }}
	req := request("GET", "http://a/", "")
	var err error
	for range 1<<16 + 1 {
		v.Secret.Sign(req, nil, clock)
		if err = v.Verify(req, nil); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, boxauth.ErrBusy)
	clock = clock.Add(boxauth.Window + time.Second)
	v.Secret.Sign(req, nil, clock)
	require.NoError(t, v.Verify(req, nil))
}

func TestHandlerOverHTTP(t *testing.T) {
	var logged bytes.Buffer
	v := &boxauth.Verifier{Secret: secret(t, 1), Log: slog.New(slog.NewTextHandler(&logged, nil))}
	server := httptest.NewServer(v.Handler(8, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "got %s", body)
	})))
	defer server.Close()
	send := func(body string, sign bool) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/a%2Fb?q=%20", strings.NewReader(body))
		require.NoError(t, err)
		if sign {
			v.Secret.Sign(req, []byte(body), time.Now())
		}
		res, err := server.Client().Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		answer, _ := io.ReadAll(res.Body)
		return res.StatusCode, strings.TrimSpace(string(answer))
	}
	code, answer := send("12345678", true)
	require.Equal(t, 200, code)
	require.Equal(t, "got 12345678", answer)
	code, answer = send("x", false)
	require.Equal(t, 401, code)
	require.Equal(t, "unauthorized", answer, "a stranger is not told why")
	require.Contains(t, logged.String(), "no signature")
	code, _ = send("123456789", true)
	require.Equal(t, 413, code)
}

func TestSecretFile(t *testing.T) {
	s := boxauth.NewSecret()
	require.NotEqual(t, s, boxauth.NewSecret())
	dir := t.TempDir()
	path := filepath.Join(dir, "secret")
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	raw, err := base64.StdEncoding.DecodeString(s.Text())
	require.NoError(t, err)
	for name, text := range map[string]string{
		"base64": s.Text() + "\n", "raw": string(raw),
		"url alphabet": base64.RawURLEncoding.EncodeToString(raw),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			got, err := boxauth.LoadSecret(path, log)
			require.NoError(t, err)
			require.Equal(t, s, got)
			require.Empty(t, logged.String())
		})
	}
	require.NoError(t, os.Chmod(path, 0o640))
	_, err = boxauth.LoadSecret(path, log)
	require.NoError(t, err)
	require.Contains(t, logged.String(), "chmod 600")

	for name, text := range map[string]string{
		"empty": "", "short": base64.StdEncoding.EncodeToString(raw[:31]), "long": base64.StdEncoding.EncodeToString(append(raw, 1)),
		"not base64": "not a secret at all, really!", "zero": string(make([]byte, 32)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := boxauth.ParseSecret([]byte(text))
			require.ErrorIs(t, err, boxauth.ErrBadSecret)
		})
	}
	_, err = boxauth.LoadSecret(filepath.Join(dir, "absent"), log)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestASecretIsNeverPrinted(t *testing.T) {
	s := secret(t, 7)
	require.Equal(t, "4bb06f8e4e3a7715", secret(t, 7).Fingerprint())
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		require.Equal(t, "secret "+s.Fingerprint(), fmt.Sprintf(verb, s))
	}
}
