package s3store_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/objstore/s3store"
)

// script is an S3 server that answers from a list, the last step for ever. It
// keeps what it was asked.
type script struct {
	t     *testing.T
	steps []http.HandlerFunc

	mu       sync.Mutex
	requests []request
}

type request struct {
	*http.Request
	body string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	step := s.steps[min(len(s.requests), len(s.steps)-1)]
	s.requests = append(s.requests, request{Request: r, body: string(body)})
	s.mu.Unlock()
	step(w, r)
}

// asked returns the requests so far.
func (s *script) asked() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.requests...)
}

// scripted opens a store on a server that answers so.
func scripted(t *testing.T, steps ...http.HandlerFunc) (*s3store.Store, *script) {
	t.Helper()
	s := &script{t: t, steps: steps}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return connect(t, server.URL), s
}

// scriptedTLS is scripted over https.
func scriptedTLS(t *testing.T, steps ...http.HandlerFunc) (*s3store.Store, *script) {
	t.Helper()
	s := &script{t: t, steps: steps}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(bundle, cert, 0o644))
	t.Setenv("AWS_CA_BUNDLE", bundle)
	return connect(t, server.URL), s
}

func connect(t *testing.T, endpoint string) *s3store.Store {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	store, err := s3store.Open(t.Context(), s3store.Config{Bucket: "bucket", Prefix: "/pre/", Endpoint: endpoint, PathStyle: true})
	require.NoError(t, err)
	return store
}

// refuse answers with an S3 error.
func refuse(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>a message</Message></Error>", code)
	}
}

// accept answers a write.
func accept(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("ETag", `"new"`)
	w.Header().Set("x-amz-version-id", "v2")
}

// cut closes the connection without an answer; the request was read to its end,
// so a server may well have carried it out.
func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// xml answers with a document.
func xml(format string, args ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		fmt.Fprintf(w, format, args...)
	}
}

// object answers a GET with a whole object, or with what a range asks.
func object(etag, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		http.ServeContent(w, r, "", modified, strings.NewReader(body))
	}
}

// truncated answers a GET with the head of a whole object and half of its body.
func truncated(etag, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", etag)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = io.WriteString(w, body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}
