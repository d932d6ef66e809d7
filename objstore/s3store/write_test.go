package s3store_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carlosframework/regionha/internal/s3test"
	"github.com/carlosframework/regionha/objstore"
	"github.com/carlosframework/regionha/objstore/storeurl"
)

var (
	absent = objstore.IfAbsent()
	match  = objstore.IfMatch(`"old"`)
)

// The table of answers to a conditional write. Each is sent once, whatever the
// SDK would do.
func TestAnswersToAConditionalWrite(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		cond   objstore.Condition
		want   error
	}{
		"412 on create":                   {refuse(412, "PreconditionFailed"), absent, objstore.ErrConflict},
		"412 on match":                    {refuse(412, "PreconditionFailed"), match, objstore.ErrConflict},
		"409 concurrent on create":        {refuse(409, "ConditionalRequestConflict"), absent, objstore.ErrConflict},
		"409 concurrent on match":         {refuse(409, "ConditionalRequestConflict"), match, objstore.ErrConflict},
		"404 key on match":                {refuse(404, "NoSuchKey"), match, objstore.ErrConflict},
		"404 key on create":               {refuse(404, "NoSuchKey"), absent, objstore.ErrUnknown},
		"404 bucket on match":             {refuse(404, "NoSuchBucket"), match, objstore.ErrUnknown},
		"404 of a proxy":                  {http.NotFound, match, objstore.ErrUnknown},
		"409 that lasts":                  {refuse(409, "ObjectParentIsFile"), absent, objstore.ErrUnknown},
		"403":                             {refuse(403, "AccessDenied"), absent, objstore.ErrUnknown},
		"400 trailers refused":            {refuse(400, "InvalidRequest"), match, objstore.ErrUnknown},
		"500":                             {refuse(500, "InternalError"), match, objstore.ErrUnknown},
		"503 throttled":                   {refuse(503, "SlowDown"), absent, objstore.ErrUnknown},
		"429 throttled":                   {refuse(429, "TooManyRequests"), match, objstore.ErrUnknown},
		"a reset after the write landed":  {cut, match, objstore.ErrUnknown},
		"an answer that names no ETag":    {func(http.ResponseWriter, *http.Request) {}, match, objstore.ErrUnknown},
		"409 without a condition":         {refuse(409, "ConditionalRequestConflict"), objstore.Always(), objstore.ErrUnknown},
		"412 without a condition":         {refuse(412, "PreconditionFailed"), objstore.Always(), objstore.ErrUnknown},
		"200 with an error document only": {xml("<Error><Code>InternalError</Code></Error>"), absent, objstore.ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			s, server := scripted(t, c.answer)
			_, err := s.Put(t.Context(), "k", []byte("x"), c.cond)
			require.ErrorIs(t, err, c.want)
			if c.want == objstore.ErrUnknown {
				require.NotErrorIs(t, err, objstore.ErrConflict)
			}
			require.NotErrorIs(t, err, objstore.ErrNotFound)
			require.ErrorContains(t, err, "put k: ")
			require.Len(t, server.asked(), 1)
		})
	}
}

func TestAConditionalWriteAsItIsSent(t *testing.T) {
	for name, open := range map[string]func(*testing.T, ...http.HandlerFunc) (store, *script){
		"http":  func(t *testing.T, h ...http.HandlerFunc) (store, *script) { return scripted(t, h...) },
		"https": func(t *testing.T, h ...http.HandlerFunc) (store, *script) { return scriptedTLS(t, h...) },
	} {
		t.Run(name, func(t *testing.T) {
			s, server := open(t, accept)
			info, err := s.Put(t.Context(), "a b/ü", []byte("body"), match)
			require.NoError(t, err)
			require.Equal(t, "a b/ü", info.Key)
			require.Equal(t, `"new"`, info.ETag)
			require.Equal(t, "v2", info.VersionID)
			require.Equal(t, int64(4), info.Size)
			require.WithinDuration(t, time.Now(), info.ModTime, time.Minute, "the time is that of the answer")
			_, err = s.PutReader(t.Context(), "k", strings.NewReader("body"), 4, absent)
			require.NoError(t, err)
			asked := server.asked()
			require.Len(t, asked, 2)
			require.Equal(t, "/bucket/pre/a b/ü", asked[0].URL.Path)
			require.Equal(t, `"old"`, asked[0].Header.Get("If-Match"))
			require.Empty(t, asked[0].Header.Get("If-None-Match"))
			require.Equal(t, "*", asked[1].Header.Get("If-None-Match"))
			for _, r := range asked {
				require.Equal(t, "body", r.body, "not in aws-chunked frames")
				require.Equal(t, "26gLsg==", r.Header.Get("X-Amz-Checksum-Crc32"))
				require.Empty(t, r.Header.Get("X-Amz-Trailer"))
				require.NotContains(t, r.Header.Get("Content-Encoding"), "aws-chunked")
			}
		})
	}
}

type store interface {
	objstore.Store
	objstore.Streamer
	objstore.Versioned
}

func TestAnUnconditionalWriteIsRetried(t *testing.T) {
	s, server := scripted(t, refuse(503, "SlowDown"), cut, accept)
	_, err := s.Put(t.Context(), "k", []byte("x"), objstore.Always())
	require.NoError(t, err)
	require.Len(t, server.asked(), 3)
}

func TestNothingIsSentForABadRequest(t *testing.T) {
	s, server := scripted(t, accept)
	_, err := s.Put(t.Context(), strings.Repeat("k", objstore.MaxKey-1), nil, absent)
	require.ErrorIs(t, err, objstore.ErrBadKey, "with the prefix it is too long")
	_, err = s.Put(t.Context(), "k", nil, objstore.Condition{})
	require.ErrorIs(t, err, objstore.ErrBadCondition)
	for _, size := range []int64{3, 5, 20 << 20} {
		_, err = s.PutReader(t.Context(), "k", strings.NewReader("body"), size, absent)
		require.ErrorIs(t, err, objstore.ErrUnknown)
	}
	require.Error(t, s.DeleteVersion(t.Context(), "k", ""), "it would make a delete marker")
	for _, r := range server.asked() {
		require.NotEqual(t, http.MethodPut, r.Method)
	}
}

func TestADeadlineLeavesTheOutcomeUnknown(t *testing.T) {
	release := make(chan struct{})
	s, _ := scripted(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Put(ctx, "k", []byte("x"), absent)
	require.ErrorIs(t, err, objstore.ErrUnknown)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

const multipart = 17 << 20 // three parts

// upload answers a multipart upload whose completions are answered by steps.
func upload(t *testing.T, steps ...http.HandlerFunc) (store, *script, *atomic.Int32) {
	t.Helper()
	var completions, aborts atomic.Int32
	s, server := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Has("uploads"):
			if r.Header.Get("X-Amz-Checksum-Algorithm") != "CRC32" {
				t.Errorf("the upload is not created with CRC32")
			}
			xml("<InitiateMultipartUploadResult><UploadId>u%d</UploadId></InitiateMultipartUploadResult>", completions.Load())(w, r)
		case r.Method == http.MethodPut:
			if r.Header.Get("X-Amz-Checksum-Crc32") == "" || r.Header.Get("If-None-Match") != "" {
				t.Errorf("a part is sent with %v", r.Header)
			}
			accept(w, r)
		case r.Method == http.MethodDelete:
			aborts.Add(1)
			w.WriteHeader(http.StatusNoContent)
		default:
			if r.Header.Get("If-None-Match") != "*" {
				t.Errorf("the completion carries no condition")
			}
			n := int(completions.Add(1)) - 1
			steps[min(n, len(steps)-1)](w, r)
		}
	})
	return s, server, &aborts
}

var completed = xml(`<CompleteMultipartUploadResult><ETag>"whole"</ETag></CompleteMultipartUploadResult>`)

func putLarge(t *testing.T, s store) (objstore.Info, error) {
	return s.PutReader(t.Context(), "k", bytes.NewReader(make([]byte, multipart)), multipart, absent)
}

func count(server *script, method, parameter string) int {
	n := 0
	for _, r := range server.asked() {
		if r.Method == method && r.URL.Query().Has(parameter) {
			n++
		}
	}
	return n
}

func TestAnUploadInParts(t *testing.T) {
	s, server, aborts := upload(t, completed)
	info, err := putLarge(t, s)
	require.NoError(t, err)
	require.Equal(t, `"whole"`, info.ETag)
	require.Equal(t, int64(multipart), info.Size)
	require.Equal(t, 3, count(server, http.MethodPut, "partNumber"))
	require.Zero(t, aborts.Load())
	asked := server.asked()
	require.Equal(t, 3, strings.Count(asked[len(asked)-1].body, "<ChecksumCRC32>"), "each part is completed with its checksum")
}

func TestACompletionTold409StartsAgain(t *testing.T) {
	s, server, aborts := upload(t, refuse(409, "ConditionalRequestConflict"), completed)
	_, err := putLarge(t, s)
	require.NoError(t, err)
	require.Equal(t, 2, count(server, http.MethodPost, "uploads"))
	require.Equal(t, 6, count(server, http.MethodPut, "partNumber"))
	require.EqualValues(t, 1, aborts.Load())

	s, server, _ = upload(t, refuse(409, "ConditionalRequestConflict"))
	_, err = putLarge(t, s)
	require.ErrorIs(t, err, objstore.ErrConflict)
	require.Equal(t, 3, count(server, http.MethodPost, "uploads"), "but not for ever")
}

func TestAnswersToACompletion(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   error
	}{
		"412":                  {refuse(412, "PreconditionFailed"), objstore.ErrConflict},
		"a reset":              {cut, objstore.ErrUnknown},
		"500":                  {refuse(500, "InternalError"), objstore.ErrUnknown},
		"404, maybe completed": {refuse(404, "NoSuchUpload"), objstore.ErrUnknown},
		"200 with an error":    {xml("<Error><Code>InternalError</Code><Message>try again</Message></Error>"), objstore.ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			s, server, aborts := upload(t, c.answer)
			_, err := putLarge(t, s)
			require.ErrorIs(t, err, c.want)
			require.Equal(t, 2, count(server, http.MethodPost, "uploadId")+1, "a completion is sent once")
			require.EqualValues(t, 1, aborts.Load(), "its parts are removed")
		})
	}
}

func TestAFailedPartIsUnknown(t *testing.T) {
	s, server := scripted(t,
		xml("<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"),
		refuse(404, "NoSuchKey"))
	_, err := s.PutReader(t.Context(), "k", bytes.NewReader(make([]byte, multipart)), multipart, match)
	require.ErrorIs(t, err, objstore.ErrUnknown)
	require.NotErrorIs(t, err, objstore.ErrConflict, "the 404 of a part is not that of an If-Match")
	require.Equal(t, 1, count(server, http.MethodDelete, "uploadId"))
	require.Zero(t, count(server, http.MethodPost, "uploadId"))
}

// TestALostAnswerOfARealServerIsSettled cuts the connection after the server
// has answered, as a network does.
func TestALostAnswerOfARealServerIsSettled(t *testing.T) {
	direct, err := url.Parse(s3test.Start(t))
	require.NoError(t, err)
	query := direct.Query()
	target, err := url.Parse(query.Get("endpoint"))
	require.NoError(t, err)
	var deaf atomic.Bool
	var puts atomic.Int32
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // it is signed
		},
		ModifyResponse: func(r *http.Response) error {
			if r.Request.Method == http.MethodPut {
				puts.Add(1)
				if deaf.Load() {
					panic(http.ErrAbortHandler)
				}
			}
			return nil
		},
	})
	defer proxy.Close()
	query.Set("endpoint", proxy.URL)
	direct.RawQuery = query.Encode()
	s, err := storeurl.Open(t.Context(), direct.String())
	require.NoError(t, err)

	one, err := s.Put(t.Context(), "k", []byte("one"), absent)
	require.NoError(t, err)
	deaf.Store(true)
	_, err = s.Put(t.Context(), "k", []byte("two"), objstore.IfMatch(one.ETag))
	require.ErrorIs(t, err, objstore.ErrUnknown)
	require.EqualValues(t, 2, puts.Load(), "it was sent once")
	o, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "two", string(o.Body))
	three, err := objstore.PutSettled(t.Context(), s, "k", []byte("three"), objstore.IfMatch(o.ETag))
	require.NoError(t, err, "it applied, and the look finds it")
	require.NotEqual(t, o.ETag, three.ETag)
	_, err = objstore.PutSettled(t.Context(), s, "k", []byte("four"), objstore.IfMatch(o.ETag))
	require.ErrorIs(t, err, objstore.ErrSuperseded)
}
